"""A reproduction's table as a figure: what lies across, what is a line, and that published and ours lie over one another."""

from xml.etree import ElementTree

from velado.papers.paper_figure import Drawn, figure_svg
from velado.text import say, speaking

SPACE = "{http://www.w3.org/2000/svg}"
COLUMNS = ("k", "method", "published", "ours: paper profile", "promise")
ROWS = (
    ("-", "original data", None, 0.9, "none"),
    ("5", "GOK", "0.90 to 0.95 (ICU)", 0.8, "none"),
    ("10", "GOK", "0.90 to 0.95 (ICU)", 0.7, "none"),
    ("5", "Mondrian", "figure only", 0.6, "none"),
    ("10", "Mondrian", "figure only", 0.5, "none"),
)


def parsed(text: str | None) -> ElementTree.Element:
    assert text is not None
    return ElementTree.fromstring(text)


def words(svg: ElementTree.Element) -> list[str]:
    return ["".join(one.itertext()) for one in svg.iter(f"{SPACE}text")]


def series(svg: ElementTree.Element) -> list[ElementTree.Element]:
    return [one for one in svg.iter(f"{SPACE}g") if one.get("class") == "s"]


def test_published_and_ours_lie_in_one_panel_for_each_method() -> None:
    svg = parsed(figure_svg("Accuracy", COLUMNS, ROWS, Drawn()))
    assert {"GOK", "Mondrian", "published", "ours: paper profile", "5", "10"} <= set(words(svg))
    # GOK has a published band and a line of ours; Mondrian, whose text has no numbers, our line alone.
    found = series(svg)
    assert len(found) == 3
    assert sum("fill-opacity" in str(ElementTree.tostring(one)) for one in found) == 1
    # What holds for every k is a level in both panels.
    assert sum(one.get("class") == "base" for one in svg.iter()) == 2


def test_higher_values_are_drawn_higher_and_panels_share_their_heights() -> None:
    svg = parsed(figure_svg("Accuracy", COLUMNS, ROWS, Drawn(lines=(3,))))
    heights = [[float(use.get("y")) for use in one.iter(f"{SPACE}use")] for one in series(svg)]
    assert heights[0][0] < heights[0][1] < heights[1][0] < heights[1][1]
    alone = parsed(figure_svg("Accuracy", COLUMNS, ROWS[1:], Drawn(lines=(3,), apart=True)))
    tops = [[float(use.get("y")) for use in one.iter(f"{SPACE}use")] for one in series(alone)]
    assert tops[0] == tops[1]


def test_values_that_differ_by_powers_are_drawn_by_their_powers() -> None:
    rows = tuple((q, 10.0 ** -(q // 2)) for q in (10, 20, 30))
    svg = parsed(figure_svg("Error", ("q", "published"), rows, Drawn()))
    assert any(word.startswith("1e-") for word in words(svg))
    places = [float(use.get("y")) for use in series(svg)[0].iter(f"{SPACE}use")]
    assert abs((places[1] - places[0]) - (places[2] - places[1])) < 0.3


def test_rows_that_are_names_become_bars() -> None:
    rows = (("Adult", 60, 30), ("clients", 32, 15))
    svg = parsed(figure_svg("Gaussians", ("data set", "published", "ours"), rows, Drawn()))
    assert {"Adult", "clients", "60", "15"} <= set(words(svg)) and not series(svg)


def test_words_alone_are_not_drawn() -> None:
    assert figure_svg("Words", ("a", "b"), (("x", "y"),), Drawn()) is None
    assert figure_svg("Empty", ("k", "b"), (), Drawn()) is None


def test_a_marked_row_has_an_upright_line_and_its_word() -> None:
    rows = ((2, "figure only", 9.0), (3, "published knee", 4.0), (4, "figure only", 3.0))
    svg = parsed(figure_svg("Elbow", ("k", "published", "cost"), rows, Drawn(lines=(2,), marked=1)))
    assert "published knee" in words(svg) and "figure only" not in words(svg)


def test_a_figure_speaks_the_language_spoken_and_is_the_same_every_time() -> None:
    columns, rows = ("k", say("published"), say("ours: paper profile")), ((3, 0.1, 0.25), (5, 0.2, 0.5))
    with speaking("pt"):
        told = figure_svg(say("accuracy"), columns, rows, Drawn())
        assert told == figure_svg(say("accuracy"), columns, rows, Drawn())
    assert "publicado" in words(parsed(told)) and any("," in word for word in words(parsed(told)))
    assert "published" in words(parsed(figure_svg(say("accuracy"), columns, rows, Drawn())))


def test_words_with_a_number_are_a_published_line_and_deviations_are_none() -> None:
    rows = ((3, "about 25 %", 21.0, 0.2), (5, "about 25 %", 22.0, 0.3))
    svg = parsed(figure_svg("Loss", ("k", "published", "ours", "sd (honest)"), rows, Drawn()))
    assert len(series(svg)) == 2 and "sd (honest)" not in words(svg)
