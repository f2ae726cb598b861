"""The bound printed beside every release is one: no method, guarantee or suppression gets below it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from velado.errors import GuaranteeNotMet, ParameterError
from velado.release.anonymize import anonymize
from velado.release.guarantees import LDiversity
from velado.release.methods import GFKMC, FullDomain, KMember, Mondrian, Progressive
from velado.study import run
from velado.study.run import best_possible
from velado.testing.examples import small_release
from velado.testing.strategies import tables


@pytest.mark.parametrize("method", [GFKMC, FullDomain, KMember, Mondrian, Progressive], ids=lambda m: m.name)
@settings(max_examples=15)
@given(table=tables(), k=st.integers(2, 5), suppression=st.sampled_from([0.0, 0.3]), diverse=st.booleans())
def test_no_release_loses_less_than_the_bound(method, table, k, suppression, diverse):
    guarantees = (LDiversity(2),) if diverse else ()
    try:
        release = anonymize(table, table.schema, method(), guarantees, k=k, suppression=suppression)
    except (GuaranteeNotMet, ParameterError):
        return
    found = best_possible(release)
    assert found["lower_bound"] <= release.loss + 1e-9
    if found["lower_bound"] > 0:
        assert found["above_best_possible_at_most"] == pytest.approx(release.loss / found["lower_bound"] - 1)


def test_a_table_too_large_to_bound_says_so_instead_of_a_bound_that_says_nothing(monkeypatch):
    release = small_release().release
    assert "lower_bound" in best_possible(release)
    monkeypatch.setattr(run, "_BOUNDED", release.data.classes.count - 1)
    found = best_possible(release)
    assert list(found) == ["lower_bound_reason"]
    assert "--bound tight" in str(found["lower_bound_reason"])
    assert "lower_bound" in best_possible(release, "tight")
