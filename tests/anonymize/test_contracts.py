"""Every registered method keeps every rule, on random tables and under every guarantee."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from velado.anonymize.guarantees import LDiversity
from velado.anonymize.methods import GFKMC, METHODS, Mondrian
from velado.anonymize.release import anonymize
from velado.errors import GuaranteeNotMet, ParameterError
from velado.testing import contracts
from velado.testing.strategies import tables

GUARANTEED = [method for method in METHODS if method.promise == "guaranteed"]


def variants(method):
    """The method with its default settings, and with each choice its fields offer.

    Recoders are shared, so only two methods (with and without a generalized view) try them all. A search is
    cut short: what it promises does not depend on how long it looks.
    """
    short = {"iterations": 1} if "iterations" in {field.name for field in fields(method)} else {}
    out = [method(**short)]
    for field in fields(method):
        if field.name == "recoder" and method not in (GFKMC, Mondrian):
            continue
        for choice in field.metadata.get("choices", ()):
            out.append(replace(out[0], **{field.name: choice}))
    return list(dict.fromkeys(out))


VARIANTS = [variant for method in METHODS for variant in variants(method)]


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.name)
def test_every_method_declares_itself(method):
    contracts.check_declaration(method)


@pytest.mark.parametrize("method", VARIANTS, ids=repr)
@settings(max_examples=20)
@given(table=tables(), k=st.integers(2, 6), order=st.randoms(use_true_random=False))
def test_every_release_keeps_its_promise(method, table, k, order):
    if hasattr(method, "k") and method.promise == "guaranteed":
        method = replace(method, k=k)
    try:
        release = anonymize(table, table.schema, method)
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
    contracts.check_repeatable(table, method, (), release)
    rows = list(range(table.rows))
    order.shuffle(rows)
    contracts.check_row_order(table, method, (), release, rows)


@pytest.mark.parametrize("method", GUARANTEED, ids=lambda m: m.name)
@settings(max_examples=20)
@given(table=tables(), k=st.integers(2, 4), l=st.integers(2, 3), suppression=st.sampled_from([0.0, 0.1, 0.5]))
def test_every_method_keeps_l_diversity_or_publishes_nothing(method, table, k, l, suppression):
    try:
        release = anonymize(
            table, table.schema, replace(variants(method)[0], k=k), (LDiversity(l),), suppression=suppression
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
