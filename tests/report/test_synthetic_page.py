"""The two pages of a synthetic table: the one that leaves tells promise and making, the owner's says first that it is not private."""

import re
from html import unescape

import polars as pl
import pytest

from velado.data.schema import Column, Schema
from velado.measures.risk.membership import Membership
from velado.measures.utility.two_way import TwoWay
from velado.query.synthetic.synthesize import Synthetic, synthesize
from velado.report.render import render_html
from velado.report.synthetic_page import synthetic_page
from velado.report.synthetic_report import synthetic_report
from velado.report.synthetic_tried import Trial, Tried
from velado.text import Sentence, speaking

DIGEST = "f0" * 32


@pytest.fixture(scope="module")
def made() -> Synthetic:
    schema = Schema(
        {
            "who": Column("who", "identifier", "text", person=True, max_rows=3),
            "<ward>": Column("<ward>", "quasi", values=("a", "b")),
            "age": Column("age", "quasi", "numeric", bounds=(0, 99), step=1.0),
        }
    )
    frame = pl.DataFrame(
        {
            "who": [f"p{at}" for at in range(100)],
            "<ward>": ["a", "b"] * 50,
            "age": [str(at) for at in range(100)],
        }
    )
    return synthesize(frame, schema, epsilon=1, delta="1e-9")


def tried(name: str, mean: float | None, failed: str = "") -> Tried:
    return Tried(
        name=name,
        title=Sentence(f"table {name}"),
        promise=Sentence("some"),
        fidelity=None if mean is None else TwoWay(one_way=0.0, mean=mean, worst=2 * mean, pair=(0, 1)),
        areas={"decision-tree": 0.713} if mean is not None else {},
        attack=None
        if mean is None
        else Membership(area=0.812, null_low=0.462, null_high=0.538, members=9, others=9),
        failed=failed,
    )


def trial(*tables: Tried, no_models: str = "") -> Trial:
    return Trial(tables=tables, target=None, rows=70, held_out=30, no_models=no_models)


def words(page: str) -> str:
    """What a reader sees, without marks."""
    text = re.sub(r"<(style|script).*?</\1>", " ", page, flags=re.S)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", text)).split())


def test_the_page_that_leaves_tells_promise_unit_draws_and_limits(made: Synthetic) -> None:
    html = render_html(synthetic_page(made, DIGEST))
    shown = words(html)
    for part in (
        "Guaranteed: differential privacy",
        "rho-zCDP",
        "for all rows with one value of 'who'",
        "At most 3 rows of one value of 'who' were counted",
        "with delta 1e-09",
        "This page may leave with the table.",
        "It is not k-anonymous",
        "Small groups drown in noise",
        DIGEST,
    ):
        assert part in shown, part
    implied = re.search(r"It implies epsilon ([\d.]+) with", shown)
    assert implied is not None and 0.999 <= float(implied[1]) <= 1
    assert "<ward>" not in html and "&lt;ward&gt;" in html
    # Every draw is listed, with the noise that it had.
    draws = shown[shown.index("Every draw of noise") :]
    assert draws.count("gaussian") == len([s for s in made.how.steps if s.mechanism == "gaussian"]) == 3


def test_the_owners_page_says_first_that_it_is_not_private_and_shows_every_table(made: Synthetic) -> None:
    page = synthetic_report(
        made,
        DIGEST,
        trial(
            tried("synthetic", 0.25),
            tried("k=5", 0.125),
            tried("k=25", 0.375),
            tried("k=100", None, "It could not be made."),
            no_models="nobody asked.",
        ),
    )
    assert page.notice_first
    shown = words(render_html(page))
    marked = shown.index("For the owner only: this page is not differentially private.")
    assert marked < shown.index("25.0%") and "This page may leave" not in shown
    for part in (
        "table k=5",
        "37.5%",
        "0.713",
        "0.812 (null 0.462 to 0.538)",
        "table k=100: It could not be made.",
    ):
        assert part in shown, part
    assert "as far from the true pairs as the synthetic one has k=25" in shown
    assert "Models were not tried: nobody asked." in shown


@pytest.mark.parametrize(
    ("tables", "found"),
    [
        ((tried("synthetic", 0.2), tried("k=5", 0.1), tried("k=25", 0.2)), "k=25"),
        ((tried("synthetic", 0.2), tried("k=5", 0.3), tried("k=25", 0.4)), "k=5"),
        ((tried("synthetic", 0.2), tried("k=5", 0.1)), None),
        ((tried("synthetic", None), tried("k=5", 0.1)), None),
        ((tried("k=5", 0.1),), None),
        ((), None),
    ],
)
def test_equal_loss_is_the_first_crowd_as_far_away(
    made: Synthetic, tables: tuple[Tried, ...], found: str | None
) -> None:
    assert trial(*tables).equal_loss == found
    assert render_html(synthetic_report(made, DIGEST, trial(*tables)))


def test_both_pages_are_portuguese_where_it_is_spoken(made: Synthetic) -> None:
    with speaking("pt"):
        pages = [
            render_html(synthetic_page(made, DIGEST)),
            render_html(synthetic_report(made, DIGEST, trial(tried("synthetic", 0.25), tried("k=5", 0.3)))),
        ]
    english = re.compile(r"\b(the|of|and|with|rows|columns|noise|promised|owner|wrong|made|counted)\b")
    for page in pages:
        assert 'lang="pt' in page
        assert english.findall(words(page).replace("table synthetic", "").replace("made-up", "")) == []
    assert "25,0%" in words(pages[1]) or "25,0 %" in words(pages[1])
