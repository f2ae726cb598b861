"""The recommendation's colour and the limit against the original data follow the numbers."""

from dataclasses import replace

import pytest

from velado.measures.models.quality import Interval
from velado.report.blocks import Table, Text
from velado.study.evaluate._advice import Recommendation
from velado.study.evaluate._claims import Best
from velado.study.evaluate._matched import Leader, Rival
from velado.study.evaluate.analysis import ReleaseSetting, StudyRow
from velado.study.evaluate.page._study_tables import (
    best_sentence,
    best_table,
    limit_blocks,
    same_risk_blocks,
    state_of,
)
from velado.text import told

SETTING = ReleaseSetting("a", 10)


def row(model: str, drop: float | None, high: float | None, setting: ReleaseSetting = SETTING) -> StudyRow:
    low = None if high is None else -high
    numbers = {"accuracy": Interval(0.8, 0.7, 0.9), "drop_accuracy": Interval(drop, low, high)}
    return StudyRow(setting=setting, model=model, protocol="split-first", numbers=numbers)


@pytest.fixture
def made(facts):
    def make(quality=(), decision: str = "use", **more):
        drop = Interval(0.005, 0.0, 0.009)
        choice = None if decision == "none" else StudyRow(setting=SETTING, numbers={"drop": drop})
        said = Recommendation(choice=choice, decision=decision, sentences=())
        empty = {"recommendation": said, "quality": tuple(quality), "best": (), "same_risk": (), **more}
        return replace(facts, **empty)

    return make


@pytest.mark.parametrize(
    ("decision", "state"),
    [("use", "good"), ("open", "caution"), ("beyond", "warning"), ("none", "warning")],
)
def test_the_state_follows_the_decision(made, decision, state) -> None:
    assert state_of(made(decision=decision)) == state


def test_without_a_choice_there_is_nothing_to_hold_against_the_limit(made) -> None:
    assert limit_blocks(made(decision="none")) == []


def test_each_model_is_held_against_the_limit_with_its_interval(made) -> None:
    rows = [
        row("sure", 0.005, 0.009),
        row("mean", 0.005, 0.02),
        row("missed", 0.02, 0.03),
        row("one", 0.005, None),
        row("majority", 0.0, 0.0),
        row("sure", 0.0, 0.0, ReleaseSetting("original")),
    ]
    _, said, table = limit_blocks(made(rows))
    assert isinstance(said, Text) and isinstance(table, Table)
    assert [line[0] for line in table.rows] == ["sure", "mean", "missed", "one"]
    assert [line[4].split()[0] for line in table.rows] == ["kept", "kept", "not", "kept,"]
    assert table.rows[0][3] == "0.5 points (-0.9…0.9)"
    assert told(table.rows[0][3], "pt") == "0,5 pontos (-0,9…0,9)"
    assert "kept by 1 of 4 models with the whole interval, by 2 on average alone; 1 lose more" in said.text


def test_who_is_better_is_sure_only_where_all_comparisons_allow_it(made) -> None:
    def best(low: float | None, sure: bool = False) -> Best:
        gain = Interval(0.02, low, 0.03)
        return Best(
            setting=replace(SETTING, method="b"), model="m", drop=0.0, second="a", gain=gain, sure=sure
        )

    for low, sure, word in (
        (0.01, True, "keeps most"),
        (0.01, False, "is not shown"),
        (-0.01, False, "is not shown"),
        (None, False, "too few seeds"),
    ):
        sentence = best_sentence(best(low, sure), "accuracy")
        assert word in sentence and sentence.startswith("m: b ")
    # What is no share has no points, in a sentence as in a table.
    unsure = best(-0.01)
    said = "m: b comes first; a difference from a is not shown (-0.010 to 0.030)."
    assert best_sentence(unsure, "log_loss") == said
    plain = made(best=(unsure,), main="log_loss")
    assert told(best_table(plain).rows[0][-1], "pt") == "0,020 (-0,010…0,030)"
    assert best_sentence(unsure, "accuracy").endswith("(-1.0 to 3.0 points).")


def test_methods_at_the_same_risk_are_told_apart_by_what_they_lose(made) -> None:
    def rival(method: str, gain: float, verdict: str) -> Rival:
        where = {"k": 10, "k_other": None, "risk": 0.05, "same_risk": True}
        return Rival(method=method, gain=Interval(gain), verdict=verdict, **where)  # type: ignore[arg-type]

    line = Leader(
        setting=SETTING,
        model="m",
        risk=0.05,
        drop=Interval(0.005, 0.0, 0.02),
        within="on average",
        beside=(rival("b", -0.012, "less"), rival("c", 0.1, "more")),
    )
    other = replace(line, setting=ReleaseSetting("a", 20))
    _, here, folded = same_risk_blocks(made(same_risk=(line, other)))
    assert [len(here.rows), len(folded.blocks[0].rows)] == [1, 2]
    wanted = ("5.0%", "0.5 points (0.0…2.0)", "kept on average", "b (1.20)", "–", "c", "–")
    assert here.rows[0][4:] == wanted
    assert same_risk_blocks(made()) == []
