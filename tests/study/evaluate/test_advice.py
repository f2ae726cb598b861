"""The recommendation says no more than the seeds do, names what it leaves out, and has one unit for every number."""

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from velado.measures.models.quality import Interval
from velado.study.evaluate._advice import no_choice, recommend
from velado.study.evaluate._amounts import amount, at_most, bare, digits_beside, interval_of, lost
from velado.study.evaluate._choice import choose
from velado.study.evaluate._claims import above_majority
from velado.study.evaluate._study_grid import ORIGINAL
from velado.study.evaluate._work import columns
from velado.study.evaluate.analysis import Hole, ReleaseSetting
from velado.study.evaluate.load import load
from velado.study.evaluate.page import to_markdown
from velado.study.evaluate.study_outcome import Study
from velado.text import told as in_language

Setting = tuple[str, int | None]
NOISE = (0.03, -0.02, 0.01)
ORIGINALS: Setting = (ORIGINAL, None)


def noisy(mean: float) -> list[float]:
    return [mean + one for one in NOISE]


def release(setting: Setting, seed: int, risk: float | None, **more: Any) -> dict[str, Any]:
    made = {**dict.fromkeys(columns()), "method": setting[0], "k": setting[1], "guarantees": "", "seed": seed}
    made |= {"cell": f"r{setting}{seed}", "kind": "release", "scope": "train", "status": "done", "reason": ""}
    return {**made, "again": False, "ncp": 0.1, "record_linkage": risk, **more}


def model(setting: Setting, seed: int, name: str, **more: Any) -> dict[str, Any]:
    made = release(setting, seed, None, cell=f"m{setting}{seed}{name}", kind="model", ncp=None)
    return {**made, "protocol": "split-first", "model": name, "majority": 0.6, **more}


def cells(
    accuracy: dict[Setting, list[float]], risk: dict[Setting, float], name: str = "knn"
) -> list[dict[str, Any]]:
    """One release and one model for each accuracy of each setting, seed by seed."""
    out = []
    for setting, values in accuracy.items():
        for seed, value in enumerate(values):
            out.append(release(setting, seed, risk.get(setting, 0.95)))
            out.append(model(setting, seed, name, accuracy=value))
    return out


@pytest.fixture
def study_of(example):
    def make(rows: list[dict[str, Any]], *change: tuple[str, str]) -> Study:
        frame = pl.DataFrame(rows, schema=columns())
        return Study(load(example.change(("seeds = [0, 1]", "seeds = [0, 1, 2]"), *change)), frame, len(rows))

    return make


def told(study: Study, language: str = "en") -> str:
    return " ".join(in_language(sentence, language) for sentence in recommend(study).sentences)


BASE = {ORIGINALS: noisy(0.9)}


@pytest.mark.parametrize(
    ("other", "risk", "words"),
    [
        ([0.90, 0.88, 0.88], 0.30, "leaves more risk (30.0% against 10.0%) and was not run at this one"),
        ([0.90, 0.88, 0.88], 0.03, "leaves less risk (3.0% against 10.0%) and was not run at this one"),
        (
            noisy(0.895),
            0.30,
            "it is open whether mdav loses more or less than mondrian (0.0 to 0.0",
        ),
    ],
)
def test_a_difference_that_is_not_sure_is_not_stated(study_of, other, risk, words) -> None:
    accuracy = BASE | {("mondrian", 6): noisy(0.895), ("mdav", 6): other}
    study = study_of(cells(accuracy, {("mondrian", 6): 0.1, ("mdav", 6): risk}))
    if choose(study).row.setting.method != "mondrian":
        pytest.fail("the other is recommended")
    said = told(study)
    assert words in said and "it is open whether mdav loses more or less than mondrian (" in said
    assert "seems" not in said and " less than mondrian and" not in said
    assert "fica em aberto se mdav perde mais ou menos que mondrian" in told(study, "pt")


def test_a_sure_difference_at_another_risk_has_its_interval(study_of) -> None:
    accuracy = BASE | {("mondrian", 6): noisy(0.895), ("mdav", 6): [0.928, 0.88, 0.91]}
    said = told(study_of(cells(accuracy, {("mondrian", 6): 0.1, ("mdav", 6): 0.3})))
    assert "mdav loses 1.0 points less than mondrian" not in said
    accuracy |= {("mdav", 6): [0.9351, 0.8849, 0.915]}
    said = told(study_of(cells(accuracy, {("mondrian", 6): 0.1, ("mdav", 6): 0.3})))
    assert "mdav loses 1.0 points less than mondrian (1.0 to 1.0) and leaves more risk" in said
    accuracy |= {("mdav", 6): [0.825, 0.775, 0.805]}
    said = told(study_of(cells(accuracy, {("mondrian", 6): 0.1, ("mdav", 6): 0.03})))
    assert "mdav loses 10.0 points more than mondrian (10.0 to 10.0) and leaves less risk" in said


def test_any_model_that_surely_beats_the_commonest_class_decides(study_of) -> None:
    setting = ("mondrian", 6)
    rows = cells({ORIGINALS: [0.9, 0.5, 0.9], setting: [0.9, 0.5, 0.9]}, {setting: 0.1}, "wild")
    rows += [
        model(one, seed, "calm", accuracy=value)
        for one in (ORIGINALS, setting)
        for seed, value in enumerate((0.70, 0.7005, 0.6995))
    ]
    said = told(study_of(rows))
    assert "With it calm is right for 70.0% of the test rows, surely more often" in said
    assert "learn anything" not in said and "cannot tell methods apart" not in said


def test_few_seeds_are_told_as_the_cause_where_a_model_clearly_lies_above(study_of) -> None:
    setting = ("mondrian", 6)
    values = [0.85, 0.75]
    said = told(study_of(cells({ORIGINALS: values, setting: values}, {setting: 0.1})))
    assert "2 seeds are too few to make that sure: run more" in said and "On the original rows knn" in said
    assert "cannot tell methods apart" not in said and "learn anything" not in said
    nothing = [0.61, 0.59]
    said = told(study_of(cells({ORIGINALS: nothing, setting: nothing}, {setting: 0.1})))
    assert "learn anything" in said and "cannot tell methods apart" in said


def test_the_models_are_ranked_by_how_often_they_are_right(study_of) -> None:
    study = study_of([*cells({ORIGINALS: [0.7, 0.8]}, {}), model(ORIGINALS, 0, "mute")])
    (found,) = above_majority(study, ReleaseSetting(ORIGINAL))
    assert (found.model, found.clear, found.sure) == ("knn", True, False)


LOG_LOSS = ("[models]", '[metrics]\nquality = ["log_loss", "accuracy"]\n[models]')


def log_loss_rows(known: bool = True) -> list[dict[str, Any]]:
    rows = []
    reason = "log_loss: This model gives no probabilities."
    for setting, value in ((ORIGINALS, 0.4), (("mondrian", 6), 0.4063), (("mdav", 6), 0.43)):
        for seed, noise in enumerate(NOISE):
            rows.append(release(setting, seed, 0.1))
            if known:
                rows.append(model(setting, seed, "knn", accuracy=0.8, log_loss=value + noise))
            rows.append(model(setting, seed, "svm", accuracy=0.8, reason=reason))
    return rows


def test_a_model_without_the_main_quality_is_named_where_the_average_leaves_it_out(study_of) -> None:
    study = study_of(log_loss_rows(), LOG_LOSS)
    sentences = recommend(study).sentences
    assert sentences[1] == "Not in that average, because their log loss is not known: svm."
    assert in_language(sentences[1], "pt").endswith("não se conhece a perda logarítmica: svm.")
    facts = study.facts()
    assert facts.left_out == ("svm",) and facts.gaps == ()
    assert {hole.model for hole in facts.partial} == {"svm"} and len(facts.partial) == 9
    page = to_markdown(facts)
    assert "Computed, but with a figure missing:" in page
    assert "| mondrian | 6 | – | svm | 3 | log\\_loss: This model gives no probabilities. |" in page


def test_log_loss_has_one_unit_everywhere(study_of) -> None:
    study = study_of(log_loss_rows(), LOG_LOSS)
    said = told(study)
    assert said.startswith("Use mondrian, k = 6: it raises the log loss by 0.006 on average")
    assert "within the limit of 0.010." in said
    assert "mondrian loses 0.024 less than mdav (0.024 to 0.024)" in said
    assert "With knn it raises the log loss by 0.0063 (0.0063 to 0.0063), within the limit of 0.010." in said
    assert " points" not in said and " pontos" not in told(study, "pt")
    page = to_markdown(study.facts())
    main = (
        page.replace("At most 1.0 points of accuracy", "").split("## Against")[0] + page.split("## Which")[1]
    )
    assert "rise of log loss |" in page and "points" not in main and "| 0.006 (0.006…0.006) |" in page


def test_the_true_reason_is_given_where_nothing_can_be_recommended(study_of) -> None:
    said = told(study_of(log_loss_rows(known=False), LOG_LOSS))
    assert said.startswith("No setting can be recommended: the log loss of svm is not known")
    rows = [row | {"model": "majority"} if row["model"] else row for row in cells(BASE, {})]
    setting = ("mondrian", 6)
    rows += [release(setting, 0, 0.1), model(setting, 0, "majority", accuracy=0.6)]
    assert "none was trained besides always saying the commonest class" in told(study_of(rows))
    assert "no release was made" in told(study_of(cells(BASE, {})))
    rows = cells(BASE | {setting: noisy(0.9)}, {setting: 0.3})
    limit = ("[models]", "[analyses]\nmost_risk = 0.1\n[models]")
    assert "none keeps the risk at or below the limit of 10.0%" in told(study_of(rows, limit))
    unknown = [row | {"record_linkage": None} for row in rows]
    assert "the risk (record linkage) of none is known" in told(study_of(unknown))
    apart = [row for row in rows if row["kind"] == "release" or row["method"] == ORIGINAL]
    failed = [model(setting, 0, "knn", status="gap", reason="It failed.")]
    assert "the accuracy of knn is not known" in told(study_of([*apart, *failed]))
    assert in_language(no_choice(study_of(cells(BASE, {}))), "pt").startswith("Nenhuma configuração")


def test_a_model_that_no_release_could_train_does_not_take_the_recommendation_away(study_of) -> None:
    rows = cells(BASE | {("mondrian", 6): noisy(0.895)}, {("mondrian", 6): 0.1})
    rows += [model(ORIGINALS, seed, "slow", accuracy=0.9) for seed in range(3)]
    rows += [model(("mondrian", 6), seed, "slow", status="gap", reason="Too long.") for seed in range(3)]
    found = recommend(study_of(rows))
    assert found.choice.setting.method == "mondrian"
    assert "accuracy is not known: slow." in found.sentences[1]


def test_one_seed_has_no_interval_that_could_reach_anywhere(study_of) -> None:
    study = study_of(cells({ORIGINALS: [0.9], ("mondrian", 6): [0.895]}, {("mondrian", 6): 0.1}))
    said = told(study)
    assert "both sides" not in said and "1 seed shows no interval" in said
    assert "within the limit of 1.0 in seeds too few for an interval." in said and "not surely" not in said


def test_seeds_that_are_missing_from_the_recommended_setting_are_told(study_of) -> None:
    accuracy = BASE | {("mondrian", 6): noisy(0.895)[:1], ("mdav", 6): noisy(0.8)}
    said = recommend(study_of(cells(accuracy, {("mondrian", 6): 0.1, ("mdav", 6): 0.1})))
    assert said.choice.setting.method == "mondrian"
    assert said.sentences[1].startswith("It rests on 1 of 3 seeds")
    accuracy |= {("mondrian", 6): noisy(0.895)}
    whole = told(study_of(cells(accuracy, {("mondrian", 6): 0.1, ("mdav", 6): 0.1})))
    assert "It rests on" not in whole


def test_about_the_least_risk_is_not_called_the_least(study_of) -> None:
    accuracy = BASE | {("mondrian", 6): noisy(0.899), ("mdav", 6): noisy(0.892)}
    said = told(study_of(cells(accuracy, {("mondrian", 6): 0.1010, ("mdav", 6): 0.1})))
    assert said.startswith("Use mondrian") and "it leaves about the least risk of the settings" in said
    assert "keeps the limit: the least is 10.00%" in said
    said = told(study_of(cells(accuracy, {("mondrian", 6): 0.1, ("mdav", 6): 0.1})))
    assert "it leaves the least risk of the settings" in said


def test_a_loss_below_zero_is_a_gain(study_of) -> None:
    study = study_of(cells(BASE | {("mondrian", 6): [0.932, 0.889, 0.913]}, {("mondrian", 6): 0.1}))
    assert "it gains 0.5 points of accuracy on average over the models (-0.9 to 1.8)" in told(study)
    assert "ganha 0,5 pontos de acurácia" in told(study, "pt")
    assert lost("it", "accuracy", -0.0001) == "it loses 0.0 points of accuracy"
    assert in_language(lost("it", "log_loss", -0.02), "pt") == "diminui a perda logarítmica em 0,020"
    assert interval_of("accuracy", Interval(-0.02, -0.03, -0.01)) == " (1.0 to 3.0)"
    assert interval_of("accuracy", Interval(0.02)) == ""


def test_rounding_does_not_hide_that_the_limit_is_passed(study_of) -> None:
    said = told(study_of(cells(BASE | {("mondrian", 6): noisy(0.8896)}, {("mondrian", 6): 0.1})))
    assert "it loses 1.04 points" in said and "No setting keeps the limit of 1.0 points." in said
    # 0.9 - 0.89 is a little more than 0.01 as numbers are stored.
    said = told(study_of(cells(BASE | {("mondrian", 6): noisy(0.89)}, {("mondrian", 6): 0.1})))
    assert "settings whose whole interval keeps the limit" in said and "within the limit" in said
    assert digits_beside("accuracy", Interval(0.010004), 0.01) == 4
    assert at_most(0.9 - 0.89, 0.01) and not at_most(0.0101, 0.01)
    assert amount("accuracy", None) == "–" and in_language(bare("log_loss", 0.0104, 2), "pt") == "0,0104"


def test_promises_are_named_in_the_language() -> None:
    setting = ReleaseSetting("mondrian", 6, "l-diversity(l=3)")
    assert in_language(setting.name, "pt") == "mondrian, k = 6, l-diversidade(l=3)"
    assert setting.name == "mondrian, k = 6, l-diversity(l=3)"


def test_marks_in_names_stay_text_in_markdown(study_of) -> None:
    facts = study_of(cells(BASE | {("mondrian", 6): noisy(0.8)}, {("mondrian", 6): 0.1})).facts()
    evil = "<b>|`x`|[y](z)"
    hole = Hole(kind="release", setting=ReleaseSetting(evil), seed=0, reason="Column `a|b`\n# is <i>.")
    said = replace(facts.recommendation, sentences=(*facts.recommendation.sentences, evil))
    data = replace(facts.recipe.data, target=evil)
    page = to_markdown(
        replace(
            facts,
            recipe=replace(facts.recipe, data=data),
            table=replace(facts.table, source=evil),
            planned=facts.planned + 1,
            gaps=(hole,),
            recommendation=said,
        )
    )
    safe = "\\<b\\>\\|\\`x\\`\\|\\[y\\](z)"
    assert page.count(safe) == 6 and evil not in page
    assert f"| {safe} | – | – | – | 1 | Column \\`a\\|b\\` \\# is \\<i\\>. |" in page
