"""One more measure is its own file and one word in the registry: everything that shows measures finds it there."""

from dataclasses import replace

import pytest

from velado.errors import ParameterError
from velado.measures import measure_registry
from velado.measures.declared import Measure
from velado.measures.measure_registry import all_measures, further
from velado.measures.measured import measure_files
from velado.report._cost_sections import loss_section
from velado.report._measured_sections import risk_section
from velado.report.score_lines import score_lines
from velado.study.evaluate._amounts import called, figure
from velado.study.evaluate._work import CellResult, columns
from velado.study.evaluate.analysis import Interval, possible
from velado.study.evaluate.study_settings import StudyMetrics
from velado.testing.examples import four_people, small_release


def _pairs(published, scores) -> float:
    if published.true_rows is None:
        raise ParameterError(*published.unpaired)
    return published.rows / 2


PAIRS = Measure(name="pairs", title="pairs of rows", of=_pairs, decimals=2)
LUCK = Measure(name="luck", title="lucky guesses", of=lambda published, scores: 1 / published.rows)


@pytest.fixture
def two_more(monkeypatch) -> None:
    monkeypatch.setattr(measure_registry, "UTILITY", (*measure_registry.UTILITY, PAIRS))
    monkeypatch.setattr(measure_registry, "RISK", (*measure_registry.RISK, LUCK))


@pytest.mark.usefixtures("two_more")
def test_a_registered_measure_has_a_line_and_a_key() -> None:
    table = four_people()
    scores = measure_files(table, table.frame)
    rows = next(score_lines(scores)).rows
    assert ["pairs of rows", "", "2.00"] in rows and ["lucky guesses", "", "25.0%"] in rows
    facts = scores.to_dict()
    assert facts["utility"]["pairs"] == 2.0 and facts["risk"]["luck"] == 0.25
    assert "pairs" not in facts["risk"] and "luck" not in facts["utility"]


@pytest.mark.usefixtures("two_more")
def test_a_registered_measure_stands_in_the_report_of_a_release() -> None:
    # Made anew: the one that examples share was measured without the two.
    facts = small_release.__wrapped__().facts
    rows = facts.scores.published_rows
    lost, risked = (part.blocks[-1].blocks[-1] for part in (loss_section(facts), risk_section(facts)))
    # One column has no correlations.
    names = [one.title for one in further(measure_registry.UTILITY) if one.name != "correlation_change"]
    assert names[0] == "variance inside groups (SSE)" and names[-1] == "pairs of rows"
    assert [row[0] for row in lost.rows] == names and lost.rows[-1][1] == f"{rows / 2:.2f}"
    assert [row[0] for row in risked.rows] == ["lucky guesses"]


@pytest.mark.usefixtures("two_more")
def test_a_measure_that_cannot_be_found_says_why() -> None:
    table = four_people()
    scores = measure_files(table, table.frame, drawn=True)
    facts = scores.to_dict()
    assert facts["utility"]["pairs"] is None and facts["not_measured"]["pairs of rows"]
    lines = [str(line) for line in score_lines(scores)]
    assert any(line.startswith("Not measured: pairs of rows. ") for line in lines)
    assert "luck" in facts["risk"] and "lucky guesses" not in facts["not_measured"]


@pytest.mark.usefixtures("two_more")
def test_a_registered_measure_is_a_choice_of_a_study_with_its_name_and_decimals() -> None:
    chosen = StudyMetrics(loss="pairs", risk="luck")
    assert (called(chosen.loss), called(chosen.risk)) == ("pairs of rows", "lucky guesses")
    assert (figure("pairs", 2.0), figure("luck", 0.25)) == ("2.00", "25.0%")
    wide = Interval(0.9, -0.1, 1.3)
    assert possible("luck", wide).high == 1.0 and possible("pairs", wide).high == 1.3


def test_without_it_the_study_refuses_the_name() -> None:
    with pytest.raises(ParameterError, match="pairs"):
        StudyMetrics(loss="pairs")
    assert "pairs" not in columns()


@pytest.mark.usefixtures("two_more")
def test_a_registered_measure_is_a_column_of_a_study() -> None:
    table = four_people()
    scores = measure_files(table, table.frame)
    cell = CellResult(cell="ab", kind="release", method="mdav", seed=0)
    row = replace(cell, measured=scores.numbers).to_row()
    assert list(row) == list(columns())
    assert row["pairs"] == 2.0 and row["luck"] == 0.25 and row["ncp"] == 0.0


def test_what_cannot_be_told_apart_by_name_is_not_registered() -> None:
    names = [one.name for one in all_measures()]
    fields = set(CellResult.__dataclass_fields__)
    assert len(set(names)) == len(names) and not fields & set(names)
    assert all(one.title for one in all_measures())
