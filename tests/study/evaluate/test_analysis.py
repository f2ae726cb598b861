"""What a study comes to: means and intervals over seeds, paired differences, the advice, and what was not tested."""

import re

import polars as pl
import pytest

from velado.measures.models.quality import interval
from velado.study.evaluate._advice import not_tested, recommend
from velado.study.evaluate._choice import choose
from velado.study.evaluate._claims import claims_of
from velado.study.evaluate._matched import beside
from velado.study.evaluate._study_grid import ORIGINAL
from velado.study.evaluate._work import columns
from velado.study.evaluate.analysis import ReleaseSetting, StudyRow
from velado.study.evaluate.load import load
from velado.study.evaluate.page import to_markdown
from velado.study.evaluate.study_outcome import Study

SEED_NOISE = [0.03, -0.02, 0.01]


def cells(
    accuracy: dict[tuple[str, int | None], list[float]],
    risk: dict[tuple[str, int | None], float],
    protocol: str = "split-first",
) -> list[dict]:
    """Results by hand: one model, the accuracies of each setting by seed, the risk of each setting."""
    rows = []
    for (method, k), values in accuracy.items():
        for seed, value in enumerate(values):
            base = {**dict.fromkeys(columns()), "method": method, "k": k, "guarantees": "", "seed": seed}
            base |= {"scope": "train", "status": "done", "reason": "", "again": False}
            loss = 0.0 if method == ORIGINAL else (k or 0) / 100
            rows.append(
                {
                    **base,
                    "cell": f"r{len(rows)}",
                    "kind": "release",
                    "ncp": loss,
                    "record_linkage": risk[method, k],
                }
            )
            model = {"kind": "model", "protocol": protocol, "model": "decision-tree"}
            rows.append({**base, "cell": f"m{len(rows)}", **model, "accuracy": value, "majority": 0.6})
    return rows


@pytest.fixture
def made(example):
    def make(accuracy, risk, extra=(), change=()) -> Study:
        change = (("seeds = [0, 1]", "seeds = [0, 1, 2]"), *change)
        frame = pl.DataFrame([*cells(accuracy, risk), *extra], schema=columns())
        return Study(load(example.change(*change)), frame, frame.height)

    return make


def one_of(rows: tuple[StudyRow, ...], method: str, k: int | None = None) -> StudyRow:
    return next(row for row in rows if row.setting.method == method and k in (None, row.setting.k))


def rivals(study: Study, model: str | None = None):
    return claims_of(study).rivals[model]


def noisy(mean: float) -> list[float]:
    return [mean + noise for noise in SEED_NOISE]


BASE = {(ORIGINAL, None): noisy(0.9)}
RISK = {(ORIGINAL, None): 0.95}


def test_what_all_seeds_share_cancels_in_a_drop(made) -> None:
    study = made(BASE | {("mondrian", 3): noisy(0.88)}, RISK | {("mondrian", 3): 0.2})
    row = one_of(study.quality, "mondrian")
    assert row["drop_accuracy"].mean == pytest.approx(0.02)
    assert row["drop_accuracy"].high - row["drop_accuracy"].low == pytest.approx(0, abs=1e-9)
    wide = interval(noisy(0.88), overlap=1 / 3)
    assert (row["accuracy"].low, row["accuracy"].high) == pytest.approx((wide.low, wide.high))
    assert row.seeds == 3


def test_the_least_risk_within_the_limit_is_recommended(made) -> None:
    study = made(
        BASE
        | {("mondrian", 3): noisy(0.899), ("mondrian", 6): noisy(0.893), ("progressive", 6): noisy(0.85)},
        RISK | {("mondrian", 3): 0.3, ("mondrian", 6): 0.15, ("progressive", 6): 0.14},
    )
    found = choose(study)
    assert found.decision == "use" and found.row.setting == ReleaseSetting("mondrian", 6)
    words = recommend(study).sentences
    assert words[0].startswith("Use mondrian, k = 6: it loses 0.7 points of accuracy")
    assert (
        "At k = 6 and about the same risk, mondrian loses 4.3 points less than progressive (4.3 to 4.3), "
        "at a risk of 15.0% against 14.0%." in words
    )


def test_a_release_that_is_worse_is_called_so_and_chance_is_not_called_a_difference(made) -> None:
    study = made(
        BASE
        | {
            ("mondrian", 6): [0.90, 0.91, 0.86],
            ("progressive", 6): [0.91, 0.89, 0.88],
            ("mdav", 6): noisy(0.7),
        },
        RISK | {("mondrian", 6): 0.15, ("progressive", 6): 0.15, ("mdav", 6): 0.15},
    )
    words = " ".join(recommend(study).sentences)
    assert "no difference between" in words and "This table cannot decide yet" in words
    # Twenty points apart in every seed, and yet not sure: a spread of three points over three seeds, four comparisons.
    assert "less than mdav" not in words
    best = study.facts().best[0]
    assert not best.sure and best.gain.low < 0 < best.gain.high


def test_methods_are_compared_at_the_same_risk_between_two_k_where_need_be(made) -> None:
    # Half-way between its two risks on their logarithm, mdav loses half-way between its two drops.
    study = made(
        BASE | {("mondrian", 6): noisy(0.895), ("mdav", 6): noisy(0.86), ("mdav", 3): noisy(0.89)},
        RISK | {("mondrian", 6): 0.10, ("mdav", 6): 0.05, ("mdav", 3): 0.20},
    )
    (found,) = rivals(study)
    assert (found.k, found.k_other, found.verdict) == (3, 6, "more") and found.same_risk
    assert found.gain.mean == pytest.approx(0.895 - 0.875)
    words = recommend(study).sentences
    told = "At the same risk (k = 6; the other between k = 3 and k = 6), mondrian loses 2.0 points less than mdav"
    assert f"{told} (2.0 to 2.0), at a risk of 10.0% against 10.0%." in words
    told = "With decision-tree it loses 0.50 points of accuracy (0.50 to 0.50), within the limit of 1.0."
    assert f"{told} At its risk (10.00%) the other method loses more." in words


def test_a_method_that_keeps_more_at_the_same_risk_is_named_as_better(made) -> None:
    study = made(
        BASE
        | {
            ("mondrian", 6): noisy(0.892),
            ("mdav", 3): noisy(0.91),
            ("mdav", 6): noisy(0.88),
            ("gfkmc", 6): [0.90, 0.91, 0.86],
            ("k-member", 6): noisy(0.8),
        },
        RISK
        | {("mondrian", 6): 0.1, ("mdav", 3): 0.11, ("mdav", 6): 0.09}
        | {("gfkmc", 6): 0.1, ("k-member", 6): 0.02},
    )
    verdicts = {one.method: one.verdict for one in rivals(study, "decision-tree")}
    # k-member loses more and leaves less: that is another trade-off, no worse method.
    assert verdicts == {"mdav": "less", "gfkmc": "even", "k-member": "apart"}
    words = " ".join(recommend(study).sentences)
    assert re.search(r"At its risk \(10\.00%\) less is lost by mdav \(0\.38 points\)", words)
    assert "mdav loses 0.4 points less than mondrian" in words and "on this it is better" in words
    assert "no difference is shown from gfkmc" in words
    assert "k-member loses 9.2 points more than mondrian (9.2 to 9.2) and leaves less risk" in words
    best = {(one.setting.k, one.model): one for one in study.facts().same_risk}[3, "decision-tree"]
    assert (best.setting.method, best.within) == ("mdav", "surely")
    page = to_markdown(study.facts(), "pt")
    assert "## Qual método conserva mais com o mesmo risco" in page and "mantido" in page


@pytest.mark.parametrize(
    ("risk", "accuracy", "verdict"),
    [(0.30, 0.80, "more"), (0.30, 0.90, "apart"), (0.03, 0.90, "less"), (0.03, 0.80, "apart")],
)
def test_away_from_the_risk_only_domination_is_said(made, risk: float, accuracy: float, verdict: str) -> None:
    study = made(
        BASE | {("mondrian", 6): noisy(0.89), ("mdav", 6): noisy(accuracy)},
        RISK | {("mondrian", 6): 0.1, ("mdav", 6): risk},
    )
    chosen = one_of(study.tradeoff, "mondrian")
    (raw,) = beside(study, chosen.setting, chosen["risk"].mean)
    found = raw.judged(True, chosen["risk"].mean)
    assert found.verdict == verdict and not found.same_risk


def test_a_seed_in_which_a_model_is_missing_counts_in_no_mean_over_models(made) -> None:
    extra = [
        row | {"cell": f"x{row['cell']}", "model": "knn"}
        for row in cells(BASE | {("mondrian", 3): noisy(0.5)}, RISK | {("mondrian", 3): 0.2})
        if row["kind"] == "model" and not (row["method"] == "mondrian" and row["seed"] == 1)
    ]
    study = made(BASE | {("mondrian", 3): noisy(0.9)}, RISK | {("mondrian", 3): 0.2}, extra)
    row = one_of(study.tradeoff, "mondrian")
    assert row["drop"].mean == pytest.approx(0.2) and row.seeds == 2


def test_without_a_setting_within_the_limit_the_least_loss_is_named_and_said_to_be_that(made) -> None:
    study = made(
        BASE | {("mondrian", 3): noisy(0.8), ("mondrian", 6): noisy(0.7)},
        RISK | {("mondrian", 3): 0.3, ("mondrian", 6): 0.15},
    )
    found = choose(study)
    assert found.decision == "beyond" and found.row.setting.k == 3
    assert "No setting keeps the limit of 1.0 points. mondrian, k = 3" in recommend(study).sentences[0]


def test_a_risk_limit_that_nothing_keeps_gives_no_recommendation(made) -> None:
    study = made(
        BASE | {("mondrian", 3): noisy(0.9)},
        RISK | {("mondrian", 3): 0.3},
        change=(("[models]", "[analyses]\nmost_risk = 0.1\n[models]"),),
    )
    found = recommend(study)
    assert found.choice is None and found.sentences[0].startswith("No setting can be recommended")


def test_models_that_beat_nothing_are_said_to(made) -> None:
    study = made(
        {(ORIGINAL, None): [0.61, 0.59, 0.6], ("mondrian", 3): [0.6, 0.6, 0.6]}, RISK | {("mondrian", 3): 0.3}
    )
    words = " ".join(recommend(study).sentences)
    assert "it is not shown that models learn anything" in words and "On the original rows, too" in words


def test_what_the_protocol_does_to_a_difference_is_shown(made) -> None:
    honest = {("mondrian", 3): noisy(0.88), ("progressive", 3): noisy(0.89)}
    risk = RISK | {("mondrian", 3): 0.3, ("progressive", 3): 0.3}
    flattered = cells(
        BASE | {("mondrian", 3): noisy(0.95), ("progressive", 3): noisy(0.90)}, risk, protocol="paper-gfkmc"
    )
    extra = [row | {"cell": f"x{row['cell']}", "scope": "whole"} for row in flattered]
    study = made(
        BASE | honest,
        risk,
        extra,
        (("[models]", "[analyses]\nprotocols = ['split-first', 'paper-gfkmc']\n[models]"),),
    )
    table = {one.protocol: one for one in study.protocols}
    assert table["split-first"].due == pytest.approx(0, abs=1e-12)
    paper = table["paper-gfkmc"]
    assert paper.drop == pytest.approx(-0.025) and paper.between == pytest.approx(0.05)
    # One point in favour of the one became five in favour of the other.
    assert paper.due == pytest.approx(0.06) and (paper.reversed, paper.pairs) == (1, 1)
    assert paper.share == pytest.approx(6 / 7) and table["split-first"].share == pytest.approx(0)
    assert paper.default == pytest.approx(0.01)
    words = " ".join(recommend(study).sentences)
    told = "moves their difference by 6.0 points: 6.0 / (6.0 + 1.0) = 86% of what is seen is due to it, and 1 of 1"
    assert told in words
    # What is lost below zero is a gain.
    told = "Under paper-gfkmc releases seem to gain 2.5 points of accuracy; asked about true rows"
    assert f"{told}, as the default protocol does, they lose 1.5 points of accuracy." in words


def test_one_seed_gives_no_interval_and_decides_nothing(made) -> None:
    one = {key: [values[0]] for key, values in BASE.items()}
    study = made(
        one | {("mondrian", 3): [0.92], ("progressive", 3): [0.91]},
        RISK | {("mondrian", 3): 0.3, ("progressive", 3): 0.3},
    )
    assert all(row["accuracy"].low is None for row in study.quality)
    assert all(row["drop_accuracy"].low is None for row in study.quality)
    known = pl.DataFrame(study.results.to_dicts(), schema=columns()).with_columns(
        test_rows=pl.lit(400, dtype=pl.Int64)
    )
    row = Study(study.material, known, known.height).quality[0]
    half = 1.96 * (0.93 * 0.07 / 400) ** 0.5
    assert (row["accuracy"].low, row["accuracy"].high) == pytest.approx((0.93 - half, 0.93 + half), abs=5e-3)
    assert row["auc"].low is None and row["drop_accuracy"].low is None
    assert "too few seeds to tell that from chance" in " ".join(recommend(study).sentences)


def test_what_was_not_tested_is_listed(made) -> None:
    listed = " ".join(not_tested(made(BASE, RISK)))
    for words in (
        "mdav",
        "xgboost",
        "paper-gok",
        "k = 3, 6",
        "not tuned",
        "One table and one target",
        "75% of the rows",
    ):
        assert words in listed
    assert "mondrian" not in listed


def test_a_study_is_told_in_portuguese(made) -> None:
    study = made(BASE | {("mondrian", 3): noisy(0.88)}, RISK | {("mondrian", 3): 0.2})
    page = to_markdown(study.facts(), "pt")
    assert "**Recomendação: " in page and "2,0 pontos" in page and "\n\nNada: " in page
