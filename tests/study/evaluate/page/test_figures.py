"""Every figure has its unit, its interval and the decimals of its language."""

import pytest

from velado.measures.models.quality import UNKNOWN, Interval
from velado.study.evaluate._amounts import dropped, figure, number, percent, span, tick
from velado.text import told


@pytest.mark.parametrize(
    ("name", "value", "english", "portuguese"),
    [
        ("accuracy", 0.5, "50%", "50%"),
        ("record_linkage", 0.005, "0.5%", "0,5%"),
        ("ncp", 0.0002, "0.02%", "0,02%"),
        ("log_loss", 0.35, "0.35", "0,35"),
        ("average_group_size", 1200.0, "1,200", "1.200"),
    ],
)
def test_a_tick_has_its_unit_and_no_needless_decimals(name, value, english, portuguese) -> None:
    assert (tick(name, value), told(tick(name, value), "pt")) == (english, portuguese)


def test_numbers_are_written_as_the_language_does() -> None:
    assert (number(1234.56), told(number(1234.56), "pt")) == ("1,234.6", "1.234,6")
    assert (told(percent(0.125), "pt"), percent(None), number(-0.01)) == ("12,5%", "–", "0.0")


def test_a_figure_with_its_interval() -> None:
    auc = Interval(0.686, 0.604, 0.7675)
    assert span("auc", auc) == "68.6% (60.4…76.8)"
    assert told(span("auc", auc), "pt") == "68,6% (60,4…76,8)"
    assert span("log_loss", Interval(0.51)) == "0.510"
    assert span("f1", UNKNOWN) == figure("f1", None) == "–"


def test_what_is_lost_is_told_in_points_and_log_loss_plainly() -> None:
    drop = Interval(0.0123, -0.01, 0.03)
    assert dropped("accuracy", drop) == "1.2 points (-1.0…3.0)"
    assert told(dropped("accuracy", Interval(0.0123)), "pt") == "1,2 pontos"
    assert dropped("log_loss", drop) == "0.012 (-0.010…0.030)"
    assert dropped("accuracy", UNKNOWN) == "–"


def test_a_digit_is_added_where_rounding_hides_that_a_limit_is_passed() -> None:
    drop = Interval(0.0104, 0.0, 0.03)
    assert dropped("accuracy", drop, 0.01) == "1.04 points (0.00…3.00)"
    assert dropped("accuracy", drop, 0.02) == "1.0 points (0.0…3.0)"
    assert told(dropped("log_loss", Interval(0.0104), 0.01), "pt") == "0,0104"
    assert dropped("accuracy", Interval(0.01 + 1e-15), 0.01) == "1.0 points"
