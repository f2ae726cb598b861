"""Every registered method keeps every rule, on random tables and under every guarantee."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from velado.data.encode import encode
from velado.data.io import read_table
from velado.data.partition import Partition
from velado.data.schema import Schema
from velado.data.table import Table
from velado.errors import GuaranteeNotMet, ParameterError
from velado.release.anonymize import anonymize
from velado.release.guarantees import GUARANTEES, BetaLikeness, KAnonymity, LDiversity, TCloseness
from velado.release.methods import GFKMC, METHODS, Mondrian
from velado.release.verify import verify
from velado.settings import specs
from velado.settings.refusal import choices_of
from velado.testing import contracts
from velado.testing.strategies import tables
from velado.text import Sentence
from velado.text.languages import catalogue

from ..covering import one_in, pairs_in

GUARANTEED = [method for method in METHODS if method.promise == "guaranteed"]


def variants(method):
    """The method with its default settings, and with each choice its fields offer.

    Recoders are shared, so only two methods (with and without a generalized view) try them all. A search is
    cut short: what it promises does not depend on how long it looks.
    """
    short = {"iterations": 1} if "iterations" in specs(method) else {}
    out = [method(**short)]
    for name, spec in specs(method).items():
        if name == "recoder" and method not in (GFKMC, Mondrian):
            continue
        if name != "effort":  # the method's own tests try every effort
            out += [replace(out[0], **{name: choice}) for choice in choices_of(spec.hint)]
    return list(dict.fromkeys(out))


VARIANTS = [variant for method in METHODS for variant in variants(method)]


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.name)
def test_every_method_declares_itself(method):
    contracts.check_declaration(method)


# A quick run tries every method as it comes, and every sixth of the other choices.
@pytest.mark.parametrize(
    "method",
    [
        pytest.param(v, marks=[pytest.mark.slow] * (at % 6 > 0 and v != variants(type(v))[0]))
        for at, v in enumerate(VARIANTS)
    ],
    ids=repr,
)
@settings(max_examples=6)
@given(table=tables(), k=st.integers(2, 6), order=st.randoms(use_true_random=False))
def test_every_release_keeps_its_promise(method, table, k, order):
    try:
        release = anonymize(table, table.schema, method, k=k if method.promise == "guaranteed" else None)
    except (GuaranteeNotMet, ParameterError):
        # Fewer than k people in the whole table: no grouping can hold, and nothing may leave.
        people = table.schema.person
        assert method.promise == "guaranteed"
        crowd = table.rows if people is None else table.text(people.name).n_unique()
        assert crowd < k
        return
    contracts.check_promise(release)
    contracts.check_cover(release)
    contracts.check_shape(table, release)
    contracts.check_notes(release)
    contracts.check_repeatable(method, release)
    rows = list(range(table.rows))
    order.shuffle(rows)
    contracts.check_row_order(table, method, release, rows)


@pytest.mark.parametrize("method", GUARANTEED, ids=lambda m: m.name)
@settings(max_examples=6)
@given(table=tables(), k=st.integers(2, 4), l=st.integers(2, 3), suppression=st.sampled_from([0.0, 0.1, 0.5]))
def test_every_method_keeps_l_diversity_or_publishes_nothing(method, table, k, l, suppression):
    try:
        release = anonymize(
            table, table.schema, variants(method)[0], (LDiversity(l),), k=k, suppression=suppression
        )
    except (GuaranteeNotMet, ParameterError):
        diseases = table.text("disease").drop_nulls().n_unique()
        people = table.schema.person
        crowd = table.rows if people is None else table.text(people.name).n_unique()
        assert diseases < l or crowd < k
        return
    contracts.check_promise(release)
    contracts.check_cover(release)
    contracts.check_shape(table, release)


EXAMPLES = [example for guarantee in GUARANTEES for example in guarantee.examples()]
WITHIN = [example for example in EXAMPLES if example.reads != "population"]


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=lambda g: g.name)
def test_every_guarantee_has_examples_for_the_contracts_and_words_in_both_languages(guarantee):
    assert guarantee.examples() and all(type(example) is guarantee for example in guarantee.examples())
    for words in (guarantee.title, guarantee.measured_in):
        assert isinstance(words, Sentence) and words in catalogue("pt").single, words


@pytest.mark.parametrize("guarantee", WITHIN, ids=repr)
@given(table=tables(), random=st.randoms(use_true_random=False), parts=st.integers(1, 4))
def test_every_guarantee_finds_in_the_counts_what_its_definition_says_of_the_rows(
    guarantee, table, random, parts
):
    labels = np.array([random.randrange(parts) for _ in range(table.rows)])
    contracts.check_guarantee(
        guarantee, encode(table), Partition.of(np.unique(labels, return_inverse=True)[1])
    )


@pytest.mark.parametrize(
    ("method", "guarantee"), pairs_in(5, GUARANTEED, WITHIN, lambda m, g: f"{m.name}-{g!r}")
)
@settings(max_examples=5)
@given(table=tables(person=False), k=st.integers(2, 4), suppression=st.sampled_from([0.0, 0.2]))
def test_every_pair_of_method_and_guarantee_holds_or_publishes_nothing(
    method, guarantee, table, k, suppression
):
    data = encode(table)
    whole = Partition.of(np.zeros(table.rows, dtype=np.int64))
    possible = guarantee.check(data.group_counts(whole)).holds
    try:
        release = anonymize(
            table, table.schema, variants(method)[0], (guarantee,), k=k, suppression=suppression
        )
    except GuaranteeNotMet as error:
        assert not possible, f"one group of all rows keeps it, but: {error.what}"
        return
    contracts.check_promise(release)
    contracts.check_cover(release)
    contracts.check_shape(table, release)


@pytest.mark.parametrize("guarantee", one_in(2, [e for e in EXAMPLES if e.reads == "population"], repr))
@pytest.mark.parametrize("method", one_in(3, GUARANTEED, lambda m: m.name))
@settings(max_examples=5)
@given(
    table=tables(person=False, min_rows=8),
    more=tables(person=False, min_rows=20),
    k=st.sampled_from([None, 2]),
)
def test_every_pair_of_method_and_population_guarantee_holds(method, guarantee, table, more, k):
    """With k-anonymity beside it, and alone: then no crowd of the table itself is promised."""
    quasi = [column.name for column in table.schema.quasi]
    others = {name: more.frame.get_column(name) for name in quasi if name in more.frame.columns}
    frame = table.frame.select(quasi)
    drawn = pl.DataFrame(
        {n: others.get(n, frame[n].sample(more.rows, with_replacement=True, seed=1)) for n in quasi}
    )
    population = pl.concat([frame, frame, drawn])
    try:
        release = anonymize(
            table, table.schema, variants(method)[0], (guarantee,), k=k, population=population
        )
    except GuaranteeNotMet:
        data = encode(table, Table.of(population, table.schema.with_columns(table.schema.quasi)))
        assert not guarantee.check(
            data.group_counts(Partition.of(np.zeros(table.rows, dtype=np.int64)))
        ).holds
        return
    assert release.goal.k == k
    contracts.check_population(release, population)
    contracts.check_cover(release)


def test_several_guarantees_hold_in_one_run_and_a_broken_one_is_named(data_folder):
    table = adult_table(data_folder)
    wanted = (LDiversity(2), TCloseness(0.3))
    release = anonymize(table, table.schema, Mondrian(), wanted, k=5)
    assert [verdict.holds for verdict in release.verdicts] == [True, True, True]
    with pytest.raises(GuaranteeNotMet, match="l-diversity"):
        anonymize(table, table.schema, Mondrian(), (LDiversity(3), TCloseness(0.3)), k=5)


def adult_table(data_folder):
    names = ("sex", "age", "race", "marital_status")
    columns = {
        name: {"role": "quasi", "kind": "numeric" if name == "age" else "categorical"} for name in names
    }
    columns["income"] = {"role": "sensitive", "kind": "categorical"}
    return read_table(
        data_folder / "adult" / "adult_clean.csv", Schema.from_dict({"columns": columns}), "drop"
    )


@pytest.mark.parametrize(
    "guarantee", [TCloseness(0.4), pytest.param(BetaLikeness(1.5, "basic"), marks=pytest.mark.slow)], ids=repr
)
@pytest.mark.parametrize("method", one_in(3, reversed(GUARANTEED), lambda m: m.name))
@settings(max_examples=5)
@given(table=tables(person=False, min_rows=10))
def test_what_was_released_with_suppressed_rows_verifies_from_the_file(method, guarantee, table):
    """ "The whole table" of a distribution promise is what was published: the file alone must show that it holds."""
    try:
        release = anonymize(table, table.schema, variants(method)[0], (guarantee,), k=2, suppression=0.5)
    except GuaranteeNotMet:
        return
    assert verify(release.frame, table.schema, (KAnonymity(2), guarantee)).checked.holds
