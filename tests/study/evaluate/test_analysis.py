"""What a study comes to: means and intervals over seeds, paired differences, the advice, and what was not tested."""

import re

import numpy as np
import polars as pl
import pytest

from velado.measure.models.quality import interval
from velado.study.evaluate.advice import choose, not_tested, recommend
from velado.study.evaluate.analysis import Study
from velado.study.evaluate.grid import ORIGINAL
from velado.study.evaluate.load import load
from velado.study.evaluate.markdown import to_markdown
from velado.study.evaluate.words import WORDS, number, percent
from velado.study.evaluate.work import SCHEMA

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
            base = {**dict.fromkeys(SCHEMA), "method": method, "k": k, "guarantees": "", "seed": seed}
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
        frame = pl.DataFrame([*cells(accuracy, risk), *extra], schema=SCHEMA)
        return Study.of(load(example.change(*change)), frame, frame.height)

    return make


def noisy(mean: float) -> list[float]:
    return [mean + noise for noise in SEED_NOISE]


BASE = {(ORIGINAL, None): noisy(0.9)}
RISK = {(ORIGINAL, None): 0.95}


def test_what_all_seeds_share_cancels_in_a_drop(made) -> None:
    study = made(BASE | {("mondrian", 3): noisy(0.88)}, RISK | {("mondrian", 3): 0.2})
    row = study.quality.filter(pl.col("method") == "mondrian").row(0, named=True)
    assert row["drop_accuracy"] == pytest.approx(0.02)
    assert row["drop_accuracy_high"] - row["drop_accuracy_low"] == pytest.approx(0, abs=1e-9)
    wide = interval(noisy(0.88))
    assert (row["accuracy_low"], row["accuracy_high"]) == pytest.approx((wide.low, wide.high))
    assert row["seeds"] == 3


def test_the_least_risk_within_the_limit_is_recommended(made) -> None:
    study = made(
        BASE
        | {("mondrian", 3): noisy(0.899), ("mondrian", 6): noisy(0.893), ("progressive", 6): noisy(0.85)},
        RISK | {("mondrian", 3): 0.3, ("mondrian", 6): 0.15, ("progressive", 6): 0.14},
    )
    chosen, reached = choose(study)
    assert reached and (chosen["method"], chosen["k"]) == ("mondrian", 6)
    words = recommend(study, "en")["sentences"]
    assert words[0].startswith("Use mondrian, k = 6: it loses 0.7 points of accuracy")
    assert (
        "At k = 6, mondrian loses 4.3 points less than progressive (4.3 to 4.3), at a risk of 15.0 % against 14.0 %."
        in words
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
    words = " ".join(recommend(study, "en")["sentences"])
    assert "these seeds tell no difference between" in words
    assert re.search(r"loses \d+\.\d points less than mdav", words)
    best = study.best.row(0, named=True)
    assert best["sure"] is False and best["gain_low"] < 0 < best["gain_high"]


def test_methods_are_compared_at_about_the_same_risk_where_they_have_it(made) -> None:
    study = made(
        BASE | {("mondrian", 6): noisy(0.895), ("mdav", 6): noisy(0.88), ("mdav", 3): noisy(0.89)},
        RISK | {("mondrian", 6): 0.10, ("mdav", 6): 0.04, ("mdav", 3): 0.11},
    )
    words = recommend(study, "en")["sentences"]
    told = "At about the same risk (k = 6 and k = 3), mondrian loses 0.5 points less than mdav (0.5 to 0.5), "
    assert told + "at a risk of 10.0 % against 11.0 %." in words
    assert sum("mdav" in sentence for sentence in words) == 1


def test_without_a_setting_within_the_limit_the_least_loss_is_named_and_said_to_be_that(made) -> None:
    study = made(
        BASE | {("mondrian", 3): noisy(0.8), ("mondrian", 6): noisy(0.7)},
        RISK | {("mondrian", 3): 0.3, ("mondrian", 6): 0.15},
    )
    chosen, reached = choose(study)
    assert not reached and chosen["k"] == 3
    assert "No setting loses at most 1.0 points" in " ".join(recommend(study, "en")["sentences"])


def test_a_risk_limit_that_nothing_keeps_gives_no_recommendation(made) -> None:
    study = made(
        BASE | {("mondrian", 3): noisy(0.9)},
        RISK | {("mondrian", 3): 0.3},
        change=(("[models]", "[analyses]\nmost_risk = 0.1\n[models]"),),
    )
    found = recommend(study, "en")
    assert found["choice"] is None and found["sentences"][0].startswith("No setting can be recommended")


def test_models_that_beat_nothing_are_said_to(made) -> None:
    study = made(
        {(ORIGINAL, None): [0.61, 0.59, 0.6], ("mondrian", 3): [0.6, 0.6, 0.6]}, RISK | {("mondrian", 3): 0.3}
    )
    words = " ".join(recommend(study, "en")["sentences"])
    assert "no model is surely right more often" in words and "Even on the original rows" in words


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
    table = {row["protocol"]: row for row in study.protocols.to_dicts()}
    assert table["split-first"]["due"] == pytest.approx(0, abs=1e-12)
    paper = table["paper-gfkmc"]
    assert paper["drop"] == pytest.approx(-0.025) and paper["between"] == pytest.approx(0.05)
    # One point in favour of the one became five in favour of the other.
    assert paper["due"] == pytest.approx(0.06) and (paper["reversed"], paper["pairs"]) == (1, 1)
    assert "moves that difference by 6.0 points, and 1 of 1" in " ".join(recommend(study, "en")["sentences"])


def test_one_seed_gives_no_interval_and_decides_nothing(made) -> None:
    one = {key: [values[0]] for key, values in BASE.items()}
    study = made(
        one | {("mondrian", 3): [0.92], ("progressive", 3): [0.91]},
        RISK | {("mondrian", 3): 0.3, ("progressive", 3): 0.3},
    )
    assert study.quality.get_column("accuracy_low").null_count() == study.quality.height
    assert study.quality.get_column("drop_accuracy_low").null_count() == study.quality.height
    known = pl.DataFrame(study.results.to_dicts(), schema=SCHEMA).with_columns(
        test_rows=pl.lit(400, dtype=pl.Int64)
    )
    row = Study.of(study.material, known, known.height).quality.row(0, named=True)
    half = 1.96 * (0.93 * 0.07 / 400) ** 0.5
    assert (row["accuracy_low"], row["accuracy_high"]) == pytest.approx((0.93 - half, 0.93 + half), abs=5e-3)
    assert row["auc_low"] is None and row["drop_accuracy_low"] is None
    assert "in one seed, which decides nothing" in " ".join(recommend(study, "en")["sentences"])


def test_what_was_not_tested_is_listed(made) -> None:
    listed = " ".join(not_tested(made(BASE, RISK), "en"))
    for words in (
        "mdav",
        "xgboost",
        "paper-gok",
        "k = 3, 6",
        "not tuned",
        "One table and one target",
        "75 % of the rows",
    ):
        assert words in listed
    assert "mondrian" not in listed


def test_both_languages_say_the_same_things_in_the_same_places(made) -> None:
    assert set(WORDS["en"]) == set(WORDS["pt"])
    for key, text in WORDS["en"].items():
        assert set(re.findall(r"\{(\w+)\}", text)) == set(re.findall(r"\{(\w+)\}", WORDS["pt"][key])), key
    study = made(BASE | {("mondrian", 3): noisy(0.88)}, RISK | {("mondrian", 3): 0.2})
    page = to_markdown(study.to_dict("pt"), "pt")
    assert "## Recomendação" in page and "2,0" in page and "Nada." in page


def test_numbers_are_written_as_the_language_does() -> None:
    assert (number(1234.56, "en"), number(1234.56, "pt")) == ("1,234.6", "1.234,6")
    assert (percent(0.125, "pt"), percent(None, "en"), number(-0.01, "en")) == ("12,5 %", "–", "0.0")
    assert np.isfinite(float(number(-1.5, "en")))
