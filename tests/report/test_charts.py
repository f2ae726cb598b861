"""Charts are well-formed SVG whose bars have the lengths of their values."""

import re
from xml.etree import ElementTree

import pytest

from velado.report.charts import Bar, Pair, bars, columns, paired_bars

ITEMS = [Bar("one & <two>", 10.0, "10"), Bar("x" * 60, 5.0, "5"), Bar("none", 0.0, "0")]
PAIRS = [Pair(bar.label, bar, Bar(bar.label, bar.value / 2, "half")) for bar in ITEMS]


def widths(svg: str, name: str) -> list[float]:
    rects = ElementTree.fromstring(svg).iter("rect")
    return [float(rect.get(name)) for rect in rects if rect.get("width") != "11"]


def test_bars_are_as_long_as_their_values() -> None:
    long, half, none = widths(bars("t", "d", ITEMS, "rows"), "width")
    assert half == pytest.approx(long / 2, abs=0.1)
    assert none == 0


def test_pairs_share_one_scale() -> None:
    found = widths(paired_bars("t", "d", PAIRS, "percent", "before", "after"), "width")
    assert found[1] == pytest.approx(found[0] / 2, abs=0.1)
    assert found[2] == pytest.approx(found[0] / 2, abs=0.1)
    heights = widths(columns("t", "d", PAIRS, "percent", "before", "after"), "height")
    assert heights[:4] == pytest.approx([150, 75, 75, 37.5])


@pytest.mark.parametrize("shape", [paired_bars, columns])
@pytest.mark.parametrize("items", [PAIRS, [], PAIRS[2:]])
def test_a_chart_is_well_formed_with_title_and_description_first(shape, items) -> None:
    root = ElementTree.fromstring(shape("a < b", "x & y", items, "percent", "before", "after"))
    assert [root[0].tag, root[0].text, root[1].tag, root[1].text] == ["title", "a < b", "desc", "x & y"]
    assert root.get("role") == "img"


def test_no_bar_leaves_the_picture() -> None:
    svg = bars("t", "d", ITEMS, "rows")
    ends = [
        float(x) + float(w) for x, w in re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', svg)
    ]
    assert ends and max(ends) <= 640


@pytest.mark.parametrize("shape", ["bars", "pairs"])
def test_a_long_label_takes_a_second_line_and_is_shown_whole(shape) -> None:
    label = "atacante em massa (marketer), parcela esperada"
    item = Bar(label, 1.0, "1")
    svg = (
        bars("t", "d", [item], "rows")
        if shape == "bars"
        else paired_bars("t", "d", [Pair(label, item, item)], "rows", "before", "after")
    )
    texts = [node.text or "" for node in ElementTree.fromstring(svg).iter("text")]
    assert "…" not in svg
    assert label in " ".join(texts)


def test_a_label_that_two_lines_cannot_hold_is_told_whole_in_its_title() -> None:
    svg = bars("t", "d", ITEMS, "rows")
    assert "x" * 60 in [node.text for node in ElementTree.fromstring(svg).iter("title")]
