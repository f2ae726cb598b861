"""Groups of any partitioner are improved: never dearer, the promise kept, the same seed the same groups."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from velado.data.encode import encode
from velado.data.partition import Partition
from velado.data.samples import hospital_csv, hospital_schema
from velado.data.schema import Schema
from velado.errors import GuaranteeNotMet, ParameterError
from velado.release.anonymize import anonymize, carry_out
from velado.release.goal import Goal, silent
from velado.release.guarantees import DeltaPresence, KAnonymity, KMap, LDiversity
from velado.release.methods import GFKMC, GOK, MDAV, METHODS, FullDomain, KMember, Mondrian
from velado.release.methods._method import in_groups
from velado.release.methods.improve import improved, refuse_unimprovable
from velado.release.methods.progressive.progressive import Progressive
from velado.settings import specs
from velado.study.compare import compare
from velado.study.run import apply_recipe, publish
from velado.testing import contracts
from velado.testing.strategies import tables

from ..tables import table

PARTITIONERS = [method for method in METHODS if "recoder" in specs(method)]
OTHERS = [method for method in METHODS if "recoder" not in specs(method)]


def quick(method):
    return method(iterations=1) if "iterations" in specs(method) else method()


def ages(rows=60, **more):
    draw = np.random.default_rng(5)
    return table(
        {
            "age": {"role": "quasi", "kind": "numeric"} | more,
            "weight": "quasi numeric",
            "ward": "quasi categorical",
        },
        {
            "age": [int(a) for a in draw.integers(18, 90, rows)],
            "weight": [int(w) for w in draw.integers(45, 110, rows)],
            "ward": [str(w) for w in draw.choice(["a", "b", "c"], rows)],
        },
    )


def test_methods_that_make_groups_are_those_whose_groups_can_be_published_anew():
    given_table = ages()
    for method in METHODS:
        made = anonymize(
            given_table, given_table.schema, quick(method), k=3 if method.promise == "guaranteed" else None
        )
        assert (made.recoded.regrouped is not None) == (method in PARTITIONERS), method.name
    assert {m.name for m in PARTITIONERS} >= {"gfkmc", "gok", "k-member", "mdav", "mondrian", "progressive"}


@pytest.mark.parametrize("method", PARTITIONERS, ids=lambda m: m.name)
@settings(max_examples=6)
@given(drawn=tables(), k=st.integers(2, 5), suppression=st.sampled_from([0.0, 0.2]), effort=st.just("fast"))
def test_improved_groups_lose_no_more_and_keep_the_promise(method, drawn, k, suppression, effort):
    try:
        plain = anonymize(drawn, drawn.schema, quick(method), k=k, suppression=suppression)
    except (GuaranteeNotMet, ParameterError):
        return
    better = carry_out(plain.prepared, quick(method), plain.goal, improve=effort)
    assert better.loss_before == pytest.approx(plain.loss) and plain.loss_before is None
    assert better.loss <= plain.loss + 1e-12
    assert np.array_equal(better.kept, plain.kept)
    contracts.check_promise(better)
    contracts.check_cover(better)
    contracts.check_shape(drawn, better)
    contracts.check_notes(better)
    again = carry_out(plain.prepared, quick(method), plain.goal, improve=effort)
    assert again.frame.equals(better.frame)


@pytest.mark.parametrize("method", PARTITIONERS, ids=lambda m: m.name)
@pytest.mark.slow
def test_every_partitioner_but_the_default_gets_better_on_the_hospital_sample(method):
    frame = pl.read_csv(hospital_csv(), infer_schema=False).head(500)
    made = anonymize(frame, hospital_schema(), quick(method), k=5, improve=True)
    assert made.loss_before is not None
    if method is Progressive:
        assert made.loss <= made.loss_before
    else:
        assert made.loss < 0.97 * made.loss_before


@pytest.mark.parametrize("recoder", ["mean", "centroid", "most-common-record"])
@pytest.mark.parametrize("method", [Mondrian, GFKMC], ids=lambda m: m.name)
def test_other_recoders_publish_the_improved_groups_with_centres_of_their_own(method, recoder):
    given_table = ages()
    if method is GFKMC and recoder == "mean":
        recoder = "most-common-value"
    made = anonymize(given_table, given_table.schema, method(recoder=recoder), k=4, improve=True)
    assert made.loss < made.loss_before
    contracts.check_promise(made)
    (said,) = {column.states_cover for column in made.recoded.columns}
    assert not said
    if recoder == "centroid":  # the published record is one of its own group
        for group in range(made.recoded.partition.count):
            rows = np.flatnonzero(made.recoded.partition.labels == group)
            assert made.aligned[rows].n_unique() == 1


def test_people_are_still_counted_as_people():
    draw = np.random.default_rng(1)
    rows = 80
    given_table = table(
        {"age": "quasi numeric", "who": {"role": "identifier", "person": True}},
        {"age": [int(a) for a in draw.integers(18, 60, rows)], "who": [f"p{n // 2}" for n in range(rows)]},
    )
    made = anonymize(given_table, given_table.schema, Mondrian(), k=4, per="person", improve=True)
    (verdict,) = made.verdicts
    assert verdict.unit == "people" and verdict.achieved >= 4
    assert made.loss < made.loss_before


@pytest.mark.parametrize("promise", [KMap(4), DeltaPresence(0.1, 0.9)], ids=lambda g: g.name)
def test_promises_about_a_population_are_kept(promise):
    draw = np.random.default_rng(2)
    everyone = table({"age": "quasi numeric"}, {"age": [int(a) for a in draw.integers(18, 60, 200)]})
    some = everyone.with_frame(everyone.frame[np.sort(draw.choice(200, 60, replace=False))])
    plain = anonymize(some, some.schema, Mondrian(), [promise], population=everyone.frame)
    made = anonymize(some, some.schema, Mondrian(), [promise], population=everyone.frame, improve=True)
    contracts.check_promise(made)
    assert all(verdict.holds for verdict in made.verdicts)
    assert made.loss_before == pytest.approx(plain.loss) and made.loss <= plain.loss


def with_illness(rows=40):
    draw = np.random.default_rng(3)
    return table(
        {"age": "quasi numeric", "ill": {"role": "sensitive", "side_door": "accept"}},
        {
            "age": [int(a) for a in draw.integers(18, 60, rows)],
            "ill": [str(i) for i in draw.choice(["flu", "hiv", "gout"], rows)],
        },
    )


def test_where_sensitive_values_are_read_nothing_is_searched_and_the_report_says_so(tmp_path):
    given_table = with_illness()
    plain = anonymize(given_table, given_table.schema, Mondrian(), [LDiversity(2)], k=3)
    made = publish(
        given_table, given_table.schema, Mondrian(), [LDiversity(2)], k=3, improve=True, out=tmp_path / "o",
        reports=("md",),
    )  # fmt: skip
    assert made.release.frame.equals(plain.frame) and made.release.loss_before is None
    told = (made.private / "report.md").read_text("utf-8")
    assert "groups searched for with these in view would tell of them" in told


@pytest.mark.parametrize("method", OTHERS, ids=lambda m: m.name)
def test_methods_that_recode_whole_columns_refuse_and_say_why(method):
    given_table = ages()
    with pytest.raises(ParameterError, match=f"'{method.name}' makes no groups of rows") as found:
        anonymize(given_table, given_table.schema, method(), k=3, improve=True)
    assert "whole columns" in found.value.why and "--improve" in found.value.fix


def test_weights_of_columns_say_what_is_improved():
    heavy = ages(weight=50.0)
    made = {
        name: anonymize(one, one.schema, KMember(), k=4, improve=True)
        for name, one in (("heavy", heavy), ("light", ages()))
    }
    assert made["heavy"].losses["age"] < 0.7 * made["light"].losses["age"]


def test_an_interrupted_search_keeps_the_best_so_far():
    given_table = ages(200)
    plain = anonymize(given_table, given_table.schema, Mondrian(), k=4)
    rounds = 0

    def interrupting(share: float, doing: str = "") -> None:
        nonlocal rounds
        rounds += doing.startswith("searching")
        if rounds == 3:
            rounds += 1
            raise KeyboardInterrupt

    made = carry_out(plain.prepared, Mondrian(), plain.goal, improve="default", progress=interrupting)
    whole = carry_out(plain.prepared, Mondrian(), plain.goal, improve="default")
    contracts.check_promise(made)
    assert whole.loss <= made.loss < plain.loss
    assert rounds <= 6


def test_without_it_nothing_changes_and_the_recipe_repeats_it(tmp_path):
    given_table = ages()
    plain = anonymize(given_table, given_table.schema, MDAV(), k=4)
    assert plain.loss_before is None and plain.recoded.before is None
    made = publish(
        given_table.frame, given_table.schema, MDAV(), k=4, improve=True, out=tmp_path / "a", reports=("md",)
    )
    manifest = json.loads((made.public / "manifest.json").read_text("utf-8"))
    assert manifest["metrics"]["ncp_before_improving"] == pytest.approx(plain.loss, abs=6e-4)
    assert manifest["metrics"]["ncp"]["overall"] < manifest["metrics"]["ncp_before_improving"]
    assert "The method's own groups lost" in (made.private / "report.md").read_text("utf-8")
    recipe = made.private / "recipe.toml"
    assert "improve = true" in recipe.read_text("utf-8")
    again = apply_recipe(recipe, given_table.frame, tmp_path / "b", key=made.private / "owner.key")
    assert (again.public / "table.csv").read_bytes() == (made.public / "table.csv").read_bytes()


def test_compare_improves_every_method_that_can_be():
    given_table = ages()
    methods = [Mondrian, MDAV, FullDomain]
    plain, better = (
        {one.method: one for one in compare(given_table, given_table.schema, 4, methods, improve=how).results}
        for how in (False, True)
    )
    for name in ("mondrian", "mdav"):
        assert better[name].loss < plain[name].loss
    assert "makes no groups" in better["full-domain"].failed


def test_gok_says_how_far_progressive_is_below_it_and_can_do_without():
    given_table = ages()
    with_it = anonymize(given_table, given_table.schema, GOK(), k=4)
    alone = anonymize(given_table, given_table.schema, GOK(start="cuts"), k=4)
    told = with_it.notes
    assert told["progressive_below"] == pytest.approx(1 - told["loss_of_progressive"] / with_it.loss)
    assert with_it.loss <= alone.loss and "loss_of_progressive" not in alone.notes


def test_where_ends_are_rounded_the_rounded_loss_is_what_may_not_rise():
    """The search takes a long rounded column for an unrounded one; what is published is weighed as it is.

    1, 2, 9 and 11, 18, 19 are published as [0..10] and [10..20]; 9 and 11 by themselves are nearer, but become [0..20].
    """
    cells = [20 * cell + at for cell in range(120) for at in (1, 2, 9, 11, 18, 19)]
    given_table = table({"pay": {"role": "quasi", "kind": "numeric", "round": 10}}, {"pay": cells})
    data = encode(given_table)
    made = in_groups(data, Partition.of(np.arange(720) // 3), "cover")
    better = improved(data, made, Goal((KAnonymity(2),)), 0, silent, "fast")
    assert better.before is made
    before, after = (one.columns[0].losses(data.columns[0]).sum() for one in (made, better))
    assert after <= before


def test_groups_searched_for_another_objective_are_not_improved():
    with pytest.raises(ParameterError, match="another objective"):
        refuse_unimprovable(Progressive(objective="sse"), Goal((KAnonymity(2),)))


def test_the_loss_that_is_shown_does_not_rise_where_columns_have_weights():
    columns = {
        "a": {"role": "quasi", "kind": "numeric", "weight": 0.2},
        "b": {"role": "quasi", "kind": "numeric", "weight": 3.0},
        "g": {"role": "quasi"},
    }
    cells = {"a": ["9", "-2", "2", "8"], "b": ["-1", "8", None, "6"], "g": ["v8", "v2", "v4", "v8"]}
    made = anonymize(pl.DataFrame(cells), Schema.from_dict({"columns": columns}), "mdav", k=2, improve=True)
    assert made.loss <= made.loss_before + 1e-12


def test_a_search_that_was_stopped_says_so_in_the_release():
    pressed = []

    def impatient(share, doing=""):
        if "better groups" in doing and not pressed:
            pressed.append(share)
            raise KeyboardInterrupt

    for method in ("progressive", "mondrian"):
        made = anonymize(
            ages(), method=method, k=3, improve=method == "mondrian", progress=impatient, per="row"
        )
        assert pressed and any("stopped from the keyboard" in warning for warning in made.warnings)
        pressed.clear()
    assert not any("keyboard" in warning for warning in anonymize(ages(), k=3, per="row").warnings)
