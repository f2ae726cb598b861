"""Rounds over the loop: participation enforced and recorded, clients named by number, the history kept."""

import logging
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("flwr", reason="federated runs need velado[federated]")

from velado.errors import ParameterError, SchemaError, TableError
from velado.learning.flower import FederatedFit, Federation, FederationStopped, simulate
from velado.learning.flower._client import ClientState, TrainingClient, answer
from velado.learning.flower._local_rows import Locally, prepare
from velado.learning.flower._server import holder_of, take_round
from velado.learning.flower._terms import make_terms
from velado.learning.flower.flower_records import Packet
from velado.learning.flower.simulation import make_ready, run_ready
from velado.release.methods import Mondrian

from ...covering import pairs_in


def run(people, method=None, k=None, **settings) -> FederatedFit:
    federation = Federation(**{"clients": 5, "rounds": 6, **settings})
    return simulate(people.table, people.schema, method, federation, target="outcome", engine="loop", k=k)


@pytest.mark.parametrize(
    ("model", "split"), pairs_in(2, ["logistic", "xgboost"], ["iid", "dirichlet"], lambda *two: "-".join(two))
)
def test_a_run_learns_and_records_every_round_and_client(people, model: str, split: str) -> None:
    fit = run(people, Mondrian(), model=model, split=split, alpha=2.0, rounds=12, k=3, aggregation="mean")
    assert [one.number for one in fit.rounds] == list(range(1, 13))
    assert all(one.applied and one.asked == one.replied == 5 and one.gap is None for one in fit.rounds)
    assert fit.rounds[-1].accuracy > fit.majority + 0.05
    assert fit.rounds[-1].loss < np.log(2) and fit.rounds[-1].auc > 0.7
    assert [one.name for one in fit.clients] == [f"client {number}" for number in range(1, 6)]
    assert sum(one.rows + one.test_rows for one in fit.clients) == 600
    assert all(one.ncp > 0 and one.linkage is not None for one in fit.clients)
    assert fit.rounds[0].test_rows == sum(one.test_rows for one in fit.clients)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_run_and_another_seed_another(people) -> None:
    def scores(seed: int) -> list[float]:
        fit = simulate(
            people.table,
            people.schema,
            None,
            Federation(clients=3, rounds=3),
            target="outcome",
            seed=seed,
            engine="loop",
        )
        return [one.loss for one in fit.rounds]

    assert scores(1) == scores(1) != scores(2)


def test_a_round_that_too_few_answer_is_recorded_logged_and_leaves_the_model_alone(people, caplog) -> None:
    with caplog.at_level(logging.INFO, "velado.learning.flower"):
        fit = run(people, dropout=0.3, participation=0.8, rounds=12, unmet=12)
    skipped = [one for one in fit.rounds if not one.applied]
    lame = [one for one in fit.rounds if one.applied and one.replied < 5]
    assert skipped and lame
    for one in skipped:
        assert one.gap.startswith(f"{one.replied} of 5 replied, 4 are needed")
        assert len(one.missing) == 5 - one.replied and all(name in one.gap for name in one.missing)
        before = fit.rounds[one.number - 2]
        assert one.number == 1 or (one.loss, one.accuracy) == (before.loss, before.accuracy)
        assert f"Round {one.number}: {one.gap}" in caplog.text
    for one in lame:
        assert "dropped out" in one.gap and one.missing
    assert any(f"Round {skipped[0].number}: " in text for text in fit.gaps)


@pytest.mark.parametrize("model", ["logistic", "xgboost"])
def test_too_many_failed_rounds_in_a_row_stop_the_run_and_keep_its_history(people, model: str) -> None:
    with pytest.raises(FederationStopped, match="3 rounds in a row were not applied") as stopped:
        run(people, model=model, dropout=1.0, unmet=3, rounds=50)
    fit = stopped.value.fit
    assert len(fit.rounds) == 3 and not any(one.applied for one in fit.rounds)
    assert fit.how.stopped.startswith("The federation stopped")
    assert FederatedFit.from_dict(fit.to_dict()).rounds == fit.rounds


@pytest.mark.slow
def test_a_client_with_too_few_rows_sits_out_and_the_others_go_on(people) -> None:
    ready = make_ready(
        people.table, people.schema, Locally(Mondrian(), seed=1, k=20), Federation(clients=10, split="dirichlet", alpha=0.6, rounds=2, participation=0.5), target="outcome"
    )  # fmt: skip
    out = [part.record for part in ready.parts if part.labels.size == 0]
    assert out and all("fewer than k = 20" in one.gap or "no rows" in one.gap for one in out)
    fit = run_ready(ready, "loop")
    assert all(one.asked == 10 - len(out) and one.applied for one in fit.rounds)
    assert [one.gap for one in fit.clients if one.gap] == [one.gap for one in out]


def test_when_participation_can_never_be_met_nothing_is_started(people) -> None:
    with pytest.raises(
        ParameterError, match=r"of 10 clients can take part; a round needs 10.*fewer than k = 50"
    ):
        run(people, Mondrian(), clients=10, participation=1.0, k=50)


def test_a_share_of_the_clients_is_asked_another_each_round(people) -> None:
    fit = run(people, clients=10, participation=0.3, fraction=0.4, rounds=8)
    assert all(one.asked == one.replied == 4 for one in fit.rounds)


def test_a_target_that_cannot_be_learned_is_one_clear_error(people) -> None:
    with pytest.raises(SchemaError, match="Did you mean 'outcome'"):
        simulate(people.table, people.schema, None, Federation(), target="outcom")
    ill = people.table.with_frame(people.table.frame.filter(people.table.frame["outcome"] == "ill"))
    with pytest.raises(TableError, match="has 1 class"):
        simulate(ill, people.schema, None, Federation(), target="outcome")


def test_a_class_with_one_member_is_trained_on_and_said(people) -> None:
    frame = people.table.frame.with_row_index("at")
    rare = frame.with_columns(
        outcome=pl_when(frame["at"] == 5, "rare", frame["outcome"]),
    ).drop("at")
    schema = replace(
        people.schema,
        columns={
            **people.schema.columns,
            "outcome": replace(people.schema.columns["outcome"], values=("ill", "rare", "well")),
        },
    )
    alone = Federation(clients=3, rounds=2, least_cell=1)  # else a class of one is not summed
    fit = simulate(rare, schema, None, alone, target="outcome", engine="loop")
    assert "1 class of the target has one member" in fit.how.notes[0]
    assert "least_cell = 1" in " ".join(fit.promise.not_promised)
    assert fit.how.classes == 3


def pl_when(mask, value: str, other):
    import polars as pl

    return pl.Series("outcome", [value if yes else one for yes, one in zip(mask, other, strict=True)])


def ready_client(people, **settings) -> TrainingClient:
    terms = make_terms(people.schema, "outcome", Federation(**settings), {})
    return TrainingClient(terms.agreed, prepare(people.table, terms, Locally(), 1))


def test_a_client_with_other_terms_refuses_in_a_clear_sentence(people) -> None:
    client = ready_client(people)
    said, state = answer(lambda: client, Packet({"digest": "f" * 64}), ClientState(), "train")
    assert said.text("error").startswith("This client has other terms")
    assert "schema, method or settings differ" in said.text("error") and not said.arrays
    assert state == ClientState()


def test_an_unexpected_error_leaves_as_its_kind_alone() -> None:
    def broken() -> TrainingClient:
        raise ValueError("could not convert string to float: 'Aldenia'")

    said, _ = answer(broken, Packet({"digest": "x"}), ClientState(), "train")
    assert said.text("error") == "An unexpected ValueError stopped it."


def test_weights_that_are_broken_are_answered_with_an_error_not_a_model(people) -> None:
    client = ready_client(people)
    for weights in (np.full((len(client.prepared.features[0]) + 1, 1), np.nan), np.zeros((2, 2))):
        packet = Packet({"digest": client.agreed.digest}, {"weights": weights})
        said, _ = answer(lambda: client, packet, ClientState(), "train")
        assert said.text("error") and not said.arrays


@pytest.mark.parametrize("model", ["logistic", "xgboost"])
def test_a_client_whose_model_does_not_fit_is_named_and_does_not_spoil_the_round(people, model: str) -> None:
    client = ready_client(people, model=model, clients=3, participation=0.6, aggregation="mean")
    holder = holder_of(client.agreed, client.prepared.test_features)
    asked = holder.packet_for(1)
    asked = replace(asked, facts={**asked.facts, "digest": client.agreed.digest})
    good, _ = answer(lambda: client, asked, ClientState(), "train")
    spoilt = {
        name: np.full_like(array, np.nan) for name, array in good.arrays.items() if array.dtype.kind == "f"
    }
    answers = {1: good, 2: good, 3: Packet(good.facts, {**good.arrays, **spoilt})}
    found = take_round(holder, client.agreed.federation, 1, [1, 2, 3], answers)
    assert found.applied and found.missing == ("client 3",)
    assert found.gap == "Without client 3 (its model does not fit)."
    assert np.isfinite(holder.scores()).all()
    found = take_round(holder, client.agreed.federation, 2, [1, 2, 3], {1: good, 3: answers[3]})
    assert not found.applied and found.gap.startswith("1 of 3 replied, 2 are needed")


def test_what_travels_holds_no_row(people) -> None:
    """Everything a client sends is counted: no array has as many entries as it has rows, and no text is a cell."""
    for model in ("logistic", "xgboost"):
        client = ready_client(people, model=model, aggregation="mean")
        first = {"weights": np.zeros((client.agreed.features + 1, 1))}
        if model == "xgboost":
            from velado.learning.flower._boosting import Trees

            first = Trees.none().packed()
        packet = Packet({"digest": client.agreed.digest, "first": 0, "evaluate": 1}, first)
        said, _ = answer(lambda client=client: client, packet, ClientState(), "train")
        rows = client.prepared.labels.size
        assert said.arrays and all(rows not in np.asarray(one).shape for one in said.arrays.values())
        assert said.size < 4000
        texts = {value for value in said.facts.values() if isinstance(value, str)}
        assert texts <= {"client 1", ""}
