"""A client's rows: true ones held out, the rest released at the client, gaps said and no value among them."""

import numpy as np
import polars as pl

from velado.learning.flower import Federation
from velado.learning.flower._local_rows import Locally, prepare, trains
from velado.learning.flower._terms import make_terms
from velado.measures.models.encoder import EncoderSettings
from velado.release.guarantees import LDiversity
from velado.release.methods import Mondrian


def terms_of(people, **settings):
    return make_terms(people.schema, "outcome", Federation(**settings), {})


def test_training_rows_are_released_in_crowds_of_k_and_held_out_rows_are_true(people) -> None:
    terms = terms_of(people)
    prepared = prepare(people.table, terms, Locally(Mondrian(), k=8), 1)
    quasi = [at for at, name in enumerate(terms.encoder.names) if not name.startswith("marker")]
    _, counts = np.unique(prepared.features[:, quasi], axis=0, return_counts=True)
    assert counts.min() >= 8
    true = {tuple(row) for row in terms.encoder.features(people.table.frame)}
    assert {tuple(row) for row in prepared.test_features} <= true
    assert not {tuple(row) for row in prepared.features} <= true
    assert prepared.record.rows + prepared.record.test_rows == 600
    assert prepared.record.ncp > 0 and 0 < prepared.record.linkage < 1
    assert "holds" in prepared.record.promised


def test_a_client_can_be_taught_with_values_drawn_from_its_release(people) -> None:
    how = EncoderSettings(taught_with="drawn")
    terms = make_terms(people.schema, "outcome", Federation(), {}, encoding=how)
    first, again, other = (
        prepare(people.table, terms, Locally(Mondrian(), k=8), number) for number in (1, 1, 2)
    )
    assert np.array_equal(first.features, again.features)
    assert not np.array_equal(first.features[:50], other.features[:50])
    quasi = [at for at, name in enumerate(terms.encoder.names) if not name.startswith("marker")]
    _, counts = np.unique(first.features[:, quasi], axis=0, return_counts=True)
    assert (
        counts.min() == 1
    )  # what one client learns from stays with it; the release it was drawn from is in crowds
    plain = prepare(people.table, terms_of(people), Locally(Mondrian(), k=8), 1)
    assert np.array_equal(first.test_features, plain.test_features)
    assert terms.digest != terms_of(people).digest


def test_original_rows_lose_nothing_and_are_all_linked(people) -> None:
    prepared = prepare(people.table, terms_of(people), Locally(), 1)
    record = prepared.record
    assert record.ncp == 0 and record.promised == ""
    # Rows that share all their quasi-identifiers cannot be told apart: one of each such crowd is found, in the mean.
    quasi = [name for name in terms_of(people).encoder.names if not name.startswith("marker")]
    crowds = len(np.unique(prepared.features[:, : len(quasi)], axis=0))
    assert record.linkage == crowds / record.rows
    # Every row is on one side, and on one only.
    both = np.concatenate([prepared.features, prepared.test_features])
    every = terms_of(people).encoder.features(people.table.frame)
    assert prepared.test_labels.size == prepared.test_features.shape[0] == record.test_rows
    assert np.array_equal(both[np.lexsort(both.T)], every[np.lexsort(every.T)])


def test_clients_draw_apart_and_the_same_client_draws_again_the_same(people) -> None:
    terms = terms_of(people)
    first, again, other = (prepare(people.table, terms, Locally(seed=4), number) for number in (1, 1, 2))
    assert np.array_equal(first.test_features, again.test_features)
    assert not np.array_equal(first.test_features, other.test_features)


def test_a_client_with_too_few_rows_for_k_sits_out_and_says_so(people) -> None:
    few = people.table.with_frame(people.table.frame.head(9))
    prepared = prepare(few, terms_of(people), Locally(Mondrian(), k=10), 3)
    assert not trains(prepared) and prepared.test_labels.size == 0
    assert prepared.record.gap.startswith("client 3 has ")
    assert "fewer than k = 10; it sits out." in prepared.record.gap


def test_a_promise_that_cannot_be_kept_is_a_gap_without_a_value(people) -> None:
    same = people.table.with_frame(people.table.frame.filter(pl.col("outcome") == "ill"))
    prepared = prepare(same, terms_of(people), Locally(Mondrian(), (LDiversity(2),), k=5), 2)
    assert not trains(prepared)
    assert prepared.record.gap.startswith("client 2 sits out:")
    assert "ill" not in prepared.record.gap.replace("will", "").split()


def test_a_client_without_any_row_is_a_gap(people) -> None:
    none = people.table.with_frame(people.table.frame.head(0))
    assert "no rows" in prepare(none, terms_of(people), Locally(), 4).record.gap
