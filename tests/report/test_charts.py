"""Charts are well-formed SVG whose bars have the lengths of their values."""

import re
from xml.etree import ElementTree

import pytest

from velado.report.charts import Bar, BarChart

VALUES = [("one & <two>", 10.0), ("x" * 60, 5.0), ("none", 0.0)]
ITEMS = tuple(Bar(label, (value,), (f"{value:g}",)) for label, value in VALUES)
PAIRS = tuple(Bar(label, (value, value / 2), (f"{value:g}", "half")) for label, value in VALUES)


def drawn(bars, upright=False, title="t", description="d") -> str:
    series = ("before", "after") if upright or any(len(bar.values) > 1 for bar in bars) else ("rows",)
    return BarChart(
        title=title, description=description, axis="percent", series=series, bars=bars, upright=upright
    ).svg()


def widths(svg: str, name: str) -> list[float]:
    rects = ElementTree.fromstring(svg).iter("rect")
    return [float(rect.get(name)) for rect in rects if rect.get("width") != "11"]


def test_bars_are_as_long_as_their_values() -> None:
    long, half, none = widths(drawn(ITEMS), "width")
    assert half == pytest.approx(long / 2, abs=0.1)
    assert none == 0


def test_pairs_share_one_scale() -> None:
    found = widths(drawn(PAIRS), "width")
    assert found[1] == pytest.approx(found[0] / 2, abs=0.1)
    assert found[2] == pytest.approx(found[0] / 2, abs=0.1)
    heights = widths(drawn(PAIRS, upright=True), "height")
    assert heights[:4] == pytest.approx([150, 75, 75, 37.5])


@pytest.mark.parametrize("upright", [False, True])
@pytest.mark.parametrize("items", [PAIRS, (), PAIRS[2:]])
def test_a_chart_is_well_formed_with_title_and_description_first(upright, items) -> None:
    root = ElementTree.fromstring(drawn(items, upright, "a < b", "x & y"))
    assert [root[0].tag, root[0].text, root[1].tag, root[1].text] == ["title", "a < b", "desc", "x & y"]
    assert root.get("role") == "img"


def test_no_bar_leaves_the_picture() -> None:
    rects = re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', drawn(ITEMS))
    ends = [float(x) + float(w) for x, w in rects]
    assert ends and max(ends) <= 640


@pytest.mark.parametrize("series", [1, 2])
def test_a_long_label_takes_a_second_line_and_is_shown_whole(series) -> None:
    label = "atacante em massa (marketer), parcela esperada"
    svg = drawn((Bar(label, (1.0,) * series, ("1",) * series),))
    texts = [node.text or "" for node in ElementTree.fromstring(svg).iter("text")]
    assert "…" not in svg
    assert label in " ".join(texts)


def test_a_label_that_two_lines_cannot_hold_is_told_whole_in_its_title() -> None:
    assert "x" * 60 in [node.text for node in ElementTree.fromstring(drawn(ITEMS)).iter("title")]
