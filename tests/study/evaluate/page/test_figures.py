"""Every figure has its unit, its interval and the decimals of its language."""

import pytest

from velado.study.evaluate.page.plot import figure, lost, promise_name, setting_name, span, tick


@pytest.mark.parametrize(
    ("name", "value", "english", "portuguese"),
    [
        ("accuracy", 0.5, "50 %", "50 %"),
        ("record_linkage", 0.005, "0.5 %", "0,5 %"),
        ("ncp", 0.0002, "0.02 %", "0,02 %"),
        ("log_loss", 0.35, "0.35", "0,35"),
        ("average_group_size", 1200.0, "1,200", "1.200"),
    ],
)
def test_a_tick_has_its_unit_and_no_needless_decimals(name, value, english, portuguese) -> None:
    assert (tick(name, value, "en"), tick(name, value, "pt")) == (english, portuguese)


def test_a_figure_with_its_interval() -> None:
    row = {"auc": 0.686, "auc_low": 0.604, "auc_high": 0.7675, "log_loss": 0.51}
    assert span("auc", row, "en") == "68.6 % (60.4…76.8)"
    assert span("auc", row, "pt") == "68,6 % (60,4…76,8)"
    assert span("log_loss", row, "en") == "0.510"
    assert span("f1", row, "en") == figure("f1", None, "en") == "–"


def test_what_is_lost_is_told_in_points_and_log_loss_plainly() -> None:
    row = {"drop": 0.0123, "drop_low": -0.01, "drop_high": 0.03}
    assert lost("accuracy", row, "en", "drop") == "1.2 points (-1.0…3.0)"
    assert lost("accuracy", {"drop": 0.0123}, "pt", "drop") == "1,2 pontos"
    assert lost("log_loss", row, "en", "drop") == "0.012 (-0.010…0.030)"
    assert lost("accuracy", {}, "en", "drop") == "–"


def test_a_digit_is_added_where_rounding_hides_that_a_limit_is_passed() -> None:
    row = {"drop": 0.0104, "drop_low": 0.0, "drop_high": 0.03}
    assert lost("accuracy", row, "en", "drop", 0.01) == "1.04 points (0.00…3.00)"
    assert lost("accuracy", row, "en", "drop", 0.02) == "1.0 points (0.0…3.0)"
    assert lost("log_loss", {"drop": 0.0104}, "pt", "drop", 0.01) == "0,0104"
    assert lost("accuracy", {"drop": 0.01 + 1e-15}, "en", "drop", 0.01) == "1.0 points"


def test_settings_and_promises_are_named_in_the_language() -> None:
    row = {"method": "mdav", "k": 5, "guarantees": "l-diversity(l=3) + t-closeness"}
    assert setting_name(row, "en") == "mdav, k\u00a0=\u00a05, l-diversity(l=3) + t-closeness"
    assert setting_name(row, "pt") == "mdav, k\u00a0=\u00a05, l-diversidade(l=3) + t-proximidade"
    assert promise_name("", "pt") == "só k"
    assert setting_name({"method": "das", "k": None}, "en") == "das"
