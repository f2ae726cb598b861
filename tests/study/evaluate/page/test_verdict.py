"""The recommendation's colour and the limit against the original data follow the numbers."""

import pytest

from velado.study.evaluate.page.verdict import best_here, best_table, limits, same_risk, state_of

CHOICE = {"method": "a", "k": 10, "guarantees": "", "drop": 0.005, "drop_low": 0.0, "drop_high": 0.009}


def row(model: str, drop: float | None, high: float | None, method: str = "a") -> dict:
    low = None if high is None else -high
    values = {"accuracy": 0.8, "accuracy_low": 0.7, "accuracy_high": 0.9}
    lost = {"drop_accuracy": drop, "drop_accuracy_low": low, "drop_accuracy_high": high}
    k = None if method == "original" else 10
    return {
        "protocol": "split-first",
        "method": method,
        "k": k,
        "guarantees": "",
        "model": model,
        **values,
        **lost,
    }


def document(quality: list[dict], within: bool = True, choice: dict | None = CHOICE) -> dict:
    return {
        "recipe": {"analyses": {"most_drop": 0.01}, "metrics": {"risk": "record_linkage"}},
        "main_quality": "accuracy",
        "protocol": "split-first",
        "recommendation": {"choice": choice, "within_limit": within, "sentences": []},
        "quality": quality,
    }


@pytest.mark.parametrize(
    ("high", "within", "state"),
    [(0.009, True, "good"), (0.011, True, "caution"), (None, True, "caution"), (0.03, False, "warning")],
)
def test_the_state_follows_the_interval(high, within, state) -> None:
    assert state_of(document([], within, {**CHOICE, "drop_high": high})) == state


def test_no_choice_is_a_warning() -> None:
    assert state_of(document([], False, None)) == "warning"
    assert limits(document([], False, None), "en") == []


def test_each_model_is_held_against_the_limit_with_its_interval() -> None:
    rows = [
        row("sure", 0.005, 0.009),
        row("mean", 0.005, 0.02),
        row("missed", 0.02, 0.03),
        row("one", 0.005, None),
        row("majority", 0.0, 0.0),
        row("sure", 0.0, 0.0, "original"),
    ]
    (part,) = limits(document(rows), "en")
    assert [line[0] for line in part["lines"]] == ["sure", "mean", "missed", "one"]
    assert [line[4].split()[0] for line in part["lines"]] == ["kept", "kept", "not", "kept"]
    assert part["lines"][0][3] == "0.5 points (-0.9…0.9)"
    assert "kept with the whole interval by 1 of 4 models, on average only by 2, not by 1" in part["said"]
    (portuguese,) = limits(document(rows), "pt")
    assert portuguese["lines"][0][3] == "0,5 pontos (-0,9…0,9)"


def test_who_is_better_is_sure_only_where_the_interval_leaves_out_zero() -> None:
    best = {"k": 10, "guarantees": "", "model": "m", "method": "b", "second": "a", "gain": 0.02}
    for low, sure, word in (
        (0.01, True, "keeps most"),
        (-0.01, False, "cannot be told"),
        (None, False, "one seed"),
    ):
        said = document([]) | {"best": [{**best, "gain_low": low, "gain_high": 0.03, "sure": sure}]}
        head, (sentence,) = best_here(said, "en")
        assert "k = 10" in head and word in sentence and sentence.startswith("m: b ")
    # What is no share has no points, in a sentence as in a table.
    rows = [{**best, "gain_low": -0.01, "gain_high": 0.03, "sure": False}]
    plain = {**document([]), "main_quality": "log_loss", "best": rows}
    assert best_here(plain, "en")[1] == ["m: b comes first, but a cannot be told from it (-0.010 to 0.030)."]
    assert best_table(plain, "pt")["lines"][0][-1] == "0,020 (-0,010…0,030)"
    points = {**plain, "main_quality": "accuracy"}
    assert best_here(points, "en")[1][0].endswith("(-1.0 to 3.0 points).")


def test_methods_at_the_same_risk_are_told_apart_by_what_they_lose() -> None:
    beside = [
        {"method": "b", "gain": -0.012, "verdict": "less"},
        {"method": "c", "gain": 0.1, "verdict": "more"},
    ]
    line = {
        "method": "a",
        "k": 10,
        "guarantees": "",
        "model": "m",
        "risk": 0.05,
        "drop": 0.005,
        "drop_low": 0.0,
        "drop_high": 0.02,
        "within": "on average",
        "beside": beside,
    }
    other = {**line, "k": 20}
    here, everywhere = same_risk(document([]) | {"same_risk": [line, other]}, "en")
    assert [len(here["lines"]), len(everywhere["lines"])] == [1, 2]
    assert here["lines"][0][4:] == [
        "5.0 %",
        "0.5 points (0.0…2.0)",
        "kept on average",
        "b (1.20)",
        "–",
        "c",
        "–",
    ]
    assert same_risk(document([]) | {"same_risk": []}, "en") is None
