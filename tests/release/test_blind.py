"""Blind groups: made without sensitive values, left out whole where a promise about these fails."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from velado.errors import GuaranteeNotMet, ParameterError, SuppressionLimitExceeded
from velado.release.anonymize import anonymize
from velado.release.goal import Goal
from velado.release.guarantees import GUARANTEES, KAnonymity, KMap, LDiversity, TCloseness
from velado.release.methods import METHODS, Mondrian, Progressive
from velado.release.operations import Impute
from velado.report.terminal import warning_lines
from velado.settings import specs
from velado.study.run import apply_recipe, publish
from velado.testing import contracts
from velado.testing.strategies import tables

from ..tables import table

OF_VALUES = [one for guarantee in GUARANTEES for one in guarantee.examples() if one.reads == "values"]
GUARANTEED = [method for method in METHODS if method.promise == "guaranteed"]


def ill(rows=120, share=0.5):
    draw = np.random.default_rng(7)
    return table(
        {"age": "quasi numeric", "ill": {"role": "sensitive", "side_door": "accept"}},
        {
            "age": [int(a) for a in draw.integers(18, 80, rows)],
            "ill": ["flu" if u < share else str(v) for u, v in zip(draw.random(rows), draw.choice(["hiv", "gout"], rows), strict=True)],
        },
    )  # fmt: skip


def test_a_method_sees_all_of_the_goal_but_promises_about_values():
    goal = Goal((KAnonymity(2), KMap(3), LDiversity(4), TCloseness(0.2)), suppression=0.3, blind=True)
    assert goal.in_view == Goal(
        (KAnonymity(4), KAnonymity(2), KMap(3))
    )  # four rows at least, for four values
    assert not goal.reads_sensitive and Goal(goal.guarantees).reads_sensitive


@pytest.mark.parametrize("method", GUARANTEED, ids=lambda m: m.name)
def test_groups_are_those_of_the_crowd_alone_less_the_ones_that_fail(method):
    given_table = ill(share=0.8)
    quick = method(iterations=1) if "iterations" in specs(method) else method()
    # What holds everywhere, blindly: the order of the file, which may be that of values, has no part in these groups either.
    alone = anonymize(given_table, given_table.schema, quick, [TCloseness(1.0)], k=4, blind=True)
    made = anonymize(
        given_table, given_table.schema, quick, [LDiversity(2)], k=4, suppression=0.9, blind=True
    )
    contracts.check_promise(made)
    texts = alone.aligned["age"].cast(str).to_numpy()
    assert made.suppressed > 0 or quick.name in ("full-domain", "gfkmc")  # whose groups are large
    kinds = {text: set(given_table.frame["ill"].to_numpy()[texts == text]) for text in set(texts)}
    assert [bool(kept) for kept in made.kept] == [len(kinds[text]) >= 2 for text in texts]
    if quick.name in ("mondrian", "k-member", "mdav", "progressive"):  # no column is recoded as a whole
        assert made.aligned["age"].cast(str).to_list() == texts[made.kept].tolist()


@pytest.mark.parametrize("promise", OF_VALUES, ids=repr)
@settings(max_examples=8)
@given(drawn=tables(person=False), k=st.integers(2, 4), suppression=st.sampled_from([0.2, 0.9]))
def test_every_promise_about_values_holds_blindly_or_nothing_is_published(promise, drawn, k, suppression):
    try:
        made = anonymize(drawn, drawn.schema, Mondrian(), [promise], k=k, suppression=suppression, blind=True)
    except (GuaranteeNotMet, ParameterError):
        return
    contracts.check_promise(made)
    contracts.check_cover(made)
    contracts.check_shape(drawn, made)
    assert made.suppressed <= suppression * drawn.rows


def test_too_many_failing_rows_are_counted_in_the_error():
    given_table = ill(share=0.8)
    ask = {"k": 3, "blind": True}
    with pytest.raises(SuppressionLimitExceeded) as found:
        anonymize(given_table, given_table.schema, Mondrian(), [LDiversity(2)], **ask)
    rows = int(found.value.what.split(" and ")[1].split(" of ")[0])
    share = float(found.value.fix.split("--suppression ")[1].split(",")[0])
    made = anonymize(given_table, given_table.schema, Mondrian(), [LDiversity(2)], suppression=share, **ask)
    assert made.suppressed == rows > 0
    assert "--blind" in found.value.fix


def test_groups_left_out_for_closeness_are_counted_until_the_rest_holds():
    given_table = ill(share=0.7)
    with pytest.raises(SuppressionLimitExceeded) as found:
        anonymize(given_table, given_table.schema, Mondrian(), [TCloseness(0.25)], k=4, blind=True)
    share = float(found.value.fix.split("--suppression ")[1].split(",")[0])
    made = anonymize(
        given_table, given_table.schema, Mondrian(), [TCloseness(0.25)], k=4, suppression=share, blind=True
    )
    contracts.check_promise(made)


def test_the_search_is_allowed_since_it_does_not_see_the_values():
    given_table = ill()
    ask = {"k": 4, "suppression": 0.9, "blind": True}
    made = anonymize(given_table, given_table.schema, Mondrian(), [LDiversity(2)], improve=True, **ask)
    assert made.recoded.before is not None and made.recoded.before.partition is not made.recoded.partition
    other = given_table.with_frame(given_table.frame.with_columns(ill=given_table.frame["ill"].reverse()))
    again = anonymize(other, other.schema, Mondrian(), [LDiversity(2)], improve=True, **ask)
    # Which of several people of one age is in which group is drawn; how old those of each group are is not.
    assert ages_of_groups(made) == ages_of_groups(again)
    searched = anonymize(given_table, given_table.schema, Progressive(), [LDiversity(2)], **ask)
    assert searched.notes["searched_loss"] <= searched.notes["start_loss"]


def test_a_blank_is_not_filled_by_sensitive_neighbours():
    """The interval around it would show what it was filled from, and groups would be made with values in view."""
    ages = [str(20 + at) for at in range(40)]
    rows = {"age": ["", *ages[1:]], "pulse": ages, "ill": ["flu", "hiv"] * 20, "weight": ["70", "80"] * 20}
    roles = {
        "age": "quasi numeric",
        "pulse": "sensitive numeric",
        "ill": "sensitive",
        "weight": "quasi numeric",
    }
    seen = []
    for pulse in ("20", "59"):
        given_table = table(roles, {**rows, "pulse": [pulse, *ages[1:]]})
        filled = Impute("age", by="neighbours").apply(given_table, np.random.default_rng(0))
        seen.append(filled.frame["age"].to_list())
    assert seen[0] == seen[1]


def ages_of_groups(made):
    groups, ages = made.recoded.partition, made.original.frame["age"].to_numpy()
    return sorted(sorted(ages[groups.labels == at].tolist()) for at in range(groups.count))


def test_report_terminal_manifest_and_recipe_say_so(tmp_path):
    given_table = ill(share=0.8)
    made = publish(
        given_table.frame,
        given_table.schema,
        Mondrian(),
        [LDiversity(2)],
        k=4,
        suppression=0.9,
        blind=True,
        out=tmp_path / "a",
        reports=("md",),
    )
    report = (made.private / "report.md").read_text("utf-8")
    assert "Being left out" in report and "minimality" not in report
    (told,) = [line for line in warning_lines(made.facts) if "left out" in line]
    assert f"{made.release.suppressed:,} rows" in told
    manifest = json.loads((made.public / "manifest.json").read_text("utf-8"))
    assert manifest["how"]["blind"] is True
    recipe = made.private / "recipe.toml"
    assert "blind = true" in recipe.read_text("utf-8")
    again = apply_recipe(recipe, given_table.frame, tmp_path / "b", key=made.private / "owner.key")
    assert (again.public / "table.csv").read_bytes() == (made.public / "table.csv").read_bytes()


def test_blind_needs_a_promise_about_values():
    with pytest.raises(ParameterError, match="no promise speaks of sensitive values"):
        anonymize(pl.DataFrame({"age": [20, 21, 30, 31]}), k=2, blind=True)
