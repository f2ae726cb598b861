"""Scales put values where they belong, ticks are round and apart, labels cover nothing, colours can be told."""

import itertools
import math
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from velado.report.charts import COLOURS, Box, Scale, definitions, place_labels, svg
from velado.study.evaluate.analysis import ReleaseSetting
from velado.study.evaluate.page._looks import Looks

numbers = st.floats(1e-4, 1e4)
BOX = Box(60, 50, 700, 380)


@given(st.lists(numbers, min_size=1, max_size=20), st.sampled_from(["linear", "log", "root"]))
def test_a_scale_holds_its_values_in_order_and_its_ticks_lie_apart(values, kind) -> None:
    scale = Scale.over(values, 10, 500, kind)
    places = [scale.at(value) for value in sorted(values)]
    assert places == sorted(places)
    assert places[0] >= 10 and places[-1] <= 500
    ticks = scale.ticks(40)
    spots = [scale.at(tick) for tick in ticks]
    assert all(10 - 0.1 <= spot <= 500.1 for spot in spots)
    assert all(second - first >= 39.8 for first, second in itertools.pairwise(spots))
    for tick in ticks:
        digits = f"{tick:.10e}".split("e")[0].rstrip("0").rstrip(".")
        assert len(digits.replace(".", "").replace("-", "")) <= 5


def test_a_logarithmic_scale_gives_equal_steps_to_equal_factors() -> None:
    scale = Scale(0.01, 1, 0, 200, "log")
    assert scale.at(0.1) == pytest.approx(100)
    assert Scale(0, 1, 0, 200, "root").at(0.25) == pytest.approx(100)
    assert Scale(0, 1, 200, 0).at(0.25) == pytest.approx(150)


def test_a_scale_of_equal_values_is_not_empty() -> None:
    for value in (0.0, 0.5, 3.0):
        scale = Scale.over([value, value], 0, 100)
        assert scale.low < scale.high and math.isfinite(scale.at(value))


@given(st.lists(st.tuples(st.floats(70, 690), st.floats(60, 370)), max_size=40))
def test_labels_cover_neither_marks_nor_one_another(places) -> None:
    points = [(x, y, "100") for x, y in places]
    boxes = []
    for spot in place_labels(points, BOX):
        if spot is None:
            continue
        x, y, anchor = spot
        wide = 6.4 * 3
        left = x - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
        boxes.append((left, y - 9, left + wide, y + 1))
    near = 0.2  # places are rounded to a tenth of a pixel
    for at, one in enumerate(boxes):
        for other in [*boxes[:at], *((x - 5, y - 5, x + 5, y + 5) for x, y in places)]:
            apart = one[2] <= other[0] + near or other[2] <= one[0] + near
            assert apart or one[3] <= other[1] + near or other[3] <= one[1] + near


def test_a_lone_point_has_its_label() -> None:
    assert place_labels([(300, 200, "10")], BOX) == [(307, 204, "start")]


def test_a_chart_is_well_formed_and_escaped() -> None:
    root = ElementTree.fromstring(svg("a < b & c", '"x" > y', 470, 300, ["<g/>"]))
    assert (root[0].text, root[1].text) == ("a < b & c", '"x" > y')
    assert root.get("role") == "img"


def test_a_long_heading_takes_two_lines_and_is_cut_only_after_them() -> None:
    def heading(title: str) -> list[str]:
        return re.findall(r'font-size="13">(.*?)</text>', svg(title, "", 470, 300, []))

    assert heading("short") == ["short"]
    words = "word " * 15
    assert " ".join(heading(words.strip())) == words.strip()
    assert len(heading("x" * 400)) == 2 and heading("x" * 400)[1].endswith("…")


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("colour", COLOURS)
def test_every_colour_can_be_read_on_white(colour) -> None:
    assert 1.05 / (luminance(colour) + 0.05) >= 4.5


def test_eleven_methods_look_different_and_so_do_promises() -> None:
    methods = [ReleaseSetting(f"m{n}", 2) for n in range(11)]
    other = ReleaseSetting("m0", 5, "l-diversity")
    looks = Looks.of([*methods, other])
    assert len({(looks.colour(one), looks.mark(one)) for one in methods}) == 11
    assert looks.mark(methods[0]) != looks.mark(other) and looks.dash(methods[0]) != looks.dash(other)


def test_every_mark_that_is_used_is_defined() -> None:
    ids = set(re.findall(r'id="(\w+)"', definitions()))
    settings = [ReleaseSetting(one, 2, promise) for one in "abcdefgh" for promise in ("", "x")]
    looks = Looks.of(settings)
    used = {looks.mark(one) for one in settings}
    assert used | {looks.mark(ReleaseSetting("original")), "gap", "chosen"} <= ids
