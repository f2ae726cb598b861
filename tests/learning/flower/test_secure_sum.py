"""Secure sums: the coordinator sees uniform words and learns sums; the sums end at the pooled model, however rows are spread."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr", reason="federated runs need velado[federated]")
from flwr.app import Array, Context, Message
from sklearn.linear_model import LogisticRegression

from velado.errors import ParameterError
from velado.learning.flower import Federation, simulate
from velado.learning.flower._client import OTHER_KEY, ClientState, TrainingClient, answer
from velado.learning.flower._local_rows import Locally
from velado.learning.flower._masking import keys_digest, masked, public_key, summed
from velado.learning.flower._packets import ARRAYS, FACTS
from velado.learning.flower._pooled_newton import figures_at, real
from velado.learning.flower._summed import Summed
from velado.learning.flower.client_app import LoopGrid, make_client_app, number_of
from velado.learning.flower.flower_records import Packet
from velado.learning.flower.server_app import Ended, serve
from velado.learning.flower.simulation import Ready, make_ready
from velado.measures.models.quality import curve_area


def ready_people(people, **settings) -> Ready:
    settings = {"clients": 4, "rounds": 12, "penalty": 1e-3, **settings}
    return make_ready(people.table, people.schema, Locally(), Federation(**settings), target="outcome")


class Seen:
    """The client app; everything clients answer is kept, and changed where a test says how."""

    def __init__(self, ready: Ready, change=None) -> None:
        agreed, parts = ready.terms.agreed, ready.parts
        self.app = make_client_app(lambda context: TrainingClient(agreed, parts[number_of(context) - 1]))
        self.said: list[tuple[int, str, Message]] = []
        self.change, self.changed = change, ("train",)

    def __call__(self, message: Message, context: Context) -> Message:
        out, kind = self.app(message, context), message.metadata.message_type
        if dict(message.content.config_records[FACTS]).get("census"):
            kind = "census"
        if self.change is not None and kind in self.changed:
            self.change(number_of(context), out, context)
        self.said.append((number_of(context), kind, out))
        return out


def run(ready: Ready, pooled: bool = True, change=None) -> tuple[Ended, Seen]:
    tested = None
    if pooled:
        tested = (
            np.concatenate([part.test_features for part in ready.parts]),
            np.concatenate([part.test_labels for part in ready.parts]),
        )
    seen = Seen(ready, change)
    return serve(LoopGrid(seen, len(ready.parts)), ready.terms.agreed, 0, tested), seen


def pooled_weights(ready: Ready) -> np.ndarray:
    """scikit-learn on all clients' training rows in one place."""
    scaling = ready.terms.agreed.scaling
    features = np.concatenate([scaling(part.features) for part in ready.parts])
    labels = np.concatenate([part.labels for part in ready.parts])
    strength = 1 / (ready.terms.federation.penalty * labels.size)
    model = LogisticRegression(C=strength, tol=1e-10, max_iter=10_000).fit(features, labels)
    return np.append(model.coef_[0], model.intercept_[0])


@pytest.mark.parametrize("settings", [{}, {"split": "dirichlet", "alpha": 0.1, "participation": 0.5}])
def test_sums_end_at_the_pooled_model_however_rows_are_spread(people, settings) -> None:
    ready = ready_people(people, **settings)
    assert ready.terms.agreed.aggregation == "secure-sum"
    ended, _ = run(ready)
    assert ended.stopped is None and len(ended.rounds.records) < 10
    found = ended.rounds.holder.learned().weights.ravel()
    assert np.abs(found - pooled_weights(ready)).max() < 1e-3 * np.abs(found).max()


def test_averaging_under_the_same_skew_ends_elsewhere(people) -> None:
    skew = {"split": "dirichlet", "alpha": 0.1, "participation": 0.5, "aggregation": "mean"}
    ready = ready_people(people, **skew)
    ended, _ = run(ready)
    found = ended.rounds.holder.learned().weights.ravel()
    assert np.abs(found - pooled_weights(ready)).max() > 0.1 * np.abs(found).max()


def test_the_coordinator_sees_masked_words_alone(people) -> None:
    ready = ready_people(people, rounds=2)
    _, seen = run(ready, pooled=False)
    agreed = ready.terms.agreed
    start = np.zeros((agreed.features + 1, 1))
    first = {}
    for number, kind, message in seen.said:
        arrays = message.content.array_records[ARRAYS]
        assert set(arrays) <= {"masked"}
        facts = dict(message.content.config_records[FACTS])
        assert not {"right", "loss_sum", "auc", "scored"} & set(facts)
        if kind == "train":
            first.setdefault(number, arrays["masked"].numpy())
    for number, words in first.items():
        part = ready.parts[number - 1]
        exact = figures_at(start, agreed.scaling(part.features), part.labels, agreed)
        # The first figure is the client's rows, which are small; under a mask it is anything.
        hidden = words[: exact.size]
        assert (hidden.view(np.int64) != exact).all()
        top = (hidden >> np.uint64(63)).mean()
        assert 0.3 < top < 0.7
    total = real(summed(first.values())[: exact.size], agreed)
    assert total[0] == sum(part.labels.size for part in ready.parts)


def test_sums_scored_by_clients_are_those_of_the_pooled_rows(people) -> None:
    ready = ready_people(people, rounds=4)
    alone, _ = run(ready, pooled=False)
    together, _ = run(ready)
    for one, other in zip(alone.rounds.records, together.rounds.records, strict=True):
        assert one.accuracy == pytest.approx(other.accuracy) and one.loss == pytest.approx(
            other.loss, rel=1e-6
        )
        assert one.auc == pytest.approx(other.auc, abs=0.005) and one.test_rows == other.test_rows
    assert alone.rounds.majority == together.rounds.majority


def test_more_than_two_classes_are_summed_too(people) -> None:
    city = replace(people.schema.columns["city"], role="other", taxonomy=None)
    schema = people.schema.with_columns([*people.schema.columns.values(), city])
    federation = Federation(clients=3, rounds=15, penalty=1e-3)
    ready = make_ready(people.table.with_schema(schema), schema, Locally(), federation, target="city")
    ended, _ = run(ready)
    scaling = ready.terms.agreed.scaling
    features = np.concatenate([scaling(part.features) for part in ready.parts])
    labels = np.concatenate([part.labels for part in ready.parts])
    model = LogisticRegression(C=1 / (1e-3 * labels.size), tol=1e-9, max_iter=10_000).fit(features, labels)
    ours = ended.rounds.holder.learned().probabilities(
        np.concatenate([part.features for part in ready.parts])
    )
    assert np.abs(ours - model.predict_proba(features)).max() < 1e-3
    assert curve_area(labels, ours) is not None


def test_masks_cancel_in_the_sum_and_only_there() -> None:
    secrets = [bytes([one]) * 32 for one in (1, 2, 3)]
    keys = [public_key(secret) for secret in secrets]
    figures = [np.array([one, -one, 1 << 60], dtype=np.int64) for one in (5, 7, 11)]
    said = [
        masked(vector, secret, [2, 4, 9], keys, "job", "1")
        for vector, secret in zip(figures, secrets, strict=True)
    ]
    assert summed(said).tolist() == np.add.reduce(figures).tolist()
    assert all((one.view(np.int64) != vector).all() for one, vector in zip(said, figures, strict=True))
    other = masked(figures[0], secrets[0], [2, 4, 9], keys, "job", "2")
    assert (other != said[0]).all()
    assert keys_digest([2, 4, 9], keys) != keys_digest([2, 4, 9], keys[::-1])


def greeted(people, counted: bool = True, **settings) -> tuple[TrainingClient, ClientState, Packet]:
    ready = ready_people(people, **settings)
    client = TrainingClient(ready.terms.agreed, ready.parts[0])
    hello, state = answer(lambda: client, Packet({"digest": client.agreed.digest}), ClientState(), "greet")
    holder = Summed(client.agreed, None)
    keys = {one: public_key(bytes([one]) * 32) for one in range(2, 5)} | {
        1: bytes.fromhex(hello.text("mask_key"))
    }
    assert holder.enlist([1, 2, 3, 4], keys) == [1, 2, 3, 4]
    packet = holder.packet_for(1)
    packet = Packet({**packet.facts, "digest": client.agreed.digest, "round": 1}, packet.arrays)
    if counted:
        said, state = answer(lambda: client, asked(packet, census=1), state, "train")
        assert "masked" in said.arrays
    return client, state, packet


def asked(packet: Packet, **facts) -> Packet:
    return Packet({**packet.facts, **facts}, packet.arrays)


def test_a_client_answers_a_round_once_and_with_the_same_clients(people) -> None:
    client, state, packet = greeted(people)
    said, after = answer(lambda: client, packet, state, "train")
    assert "masked" in said.arrays
    again, _ = answer(lambda: client, packet, after, "train")
    assert "asks again" in again.text("error") and not again.arrays
    fewer = Packet(
        {**packet.facts, "round": 2},
        {**packet.arrays, "members": packet.arrays["members"][:-1], "keys": packet.arrays["keys"][:-1]},
    )
    said, _ = answer(lambda: client, fewer, after, "train")
    assert said.text("error") and not said.arrays
    lone = Packet(
        packet.facts, {**packet.arrays, "members": np.array([1]), "keys": packet.arrays["keys"][:1]}
    )
    said, _ = answer(lambda: client, lone, state, "train")
    assert "too short" in said.text("error") and not said.arrays


def test_a_client_is_summed_with_those_it_began_with_and_nobody_else(people) -> None:
    """Though fewer would be enough: the difference of the two sums would be one client's."""
    client, state, packet = greeted(people, counted=False, participation=0.5)
    fewer = {key: packet.arrays[key][:-1] for key in ("members", "keys")}
    later = Packet({**packet.facts, "round": 2}, {**packet.arrays, **fewer})
    assert "masked" in answer(lambda: client, asked(later, census=1), state, "train")[0].arrays
    _, state = answer(lambda: client, asked(packet, census=1), state, "train")
    _, after = answer(lambda: client, packet, state, "train")
    said, _ = answer(lambda: client, later, after, "train")
    assert "sums over other clients" in said.text("error") and not said.arrays


def test_a_client_answers_no_more_rounds_than_were_agreed(people) -> None:
    """Exact sums at points that the coordinator names show single rows: `tests/learning/test_chosen_points.py`."""
    client, state, packet = greeted(people)
    rounds = client.agreed.federation.rounds
    for number, kind, taken in (
        (rounds, "train", True),
        (rounds, "evaluate", True),
        (rounds + 1, "train", False),
    ):
        said, _ = answer(
            lambda: client,
            Packet({**packet.facts, "round": number, "evaluate": 1}, packet.arrays),
            state,
            kind,
        )
        assert ("masked" in said.arrays) == taken
    assert "more rounds than were agreed" in said.text("error")


def test_a_client_that_was_started_again_has_another_key_and_comes_back(people) -> None:
    lost = {"once": False}

    def forget(number: int, message: Message, context: Context) -> None:
        if number == 2 and not lost["once"]:
            lost["once"] = True
            context.state.clear()

    ended, seen = run(ready_people(people, rounds=12), change=forget)
    told = [dict(message.content.config_records[FACTS]).get("error") for _, _, message in seen.said]
    assert OTHER_KEY in told and ended.stopped is None
    assert [one.applied for one in ended.rounds.records][:3] == [True, False, True]
    assert ended.rounds.holder.finished


def wrong(values) -> object:
    """Client 3 puts something else under its masks: the words move by what it adds."""

    def change(number: int, message: Message, context: Context) -> None:
        record = message.content.array_records[ARRAYS]
        if number == 3 and "masked" in record:
            words = record["masked"].numpy()
            record["masked"] = Array(words + values(words.size).astype(np.int64).view(np.uint64))

    return change


def test_a_sum_that_no_rows_could_give_is_refused(people) -> None:
    ready = ready_people(people, rounds=3)

    def million(size: int) -> np.ndarray:
        return np.where(np.arange(size) == 0, 10**6 << 20, 0)

    def curved(size: int) -> np.ndarray:
        return np.where(np.arange(size) == size - 1, -(10**6) << 24, 0)

    for values, why in ((million, "other rows than the clients announced"), (curved, "no rows could have")):
        ended, _ = run(ready, change=wrong(values))
        assert ended.stopped is not None
        assert all(why in one.gap and "cannot be seen" in one.gap for one in ended.rounds.records)


def invented(ready: Ready, times: int) -> Ready:
    """Client 4 has every row so many times, with the other outcome."""
    *others, last = ready.parts
    rows = last.labels.size * times
    false = replace(
        last,
        features=np.repeat(last.features, times, axis=0),
        labels=1 - np.repeat(last.labels, times),
        record=replace(last.record, rows=rows),
    )
    return replace(ready, parts=(*others, false))


def test_a_client_that_announces_many_rows_is_named_and_beyond_the_agreement_turned_away(people) -> None:
    ready = ready_people(people)
    honest, _ = run(ready)
    taken, _ = run(invented(ready, 50))
    # What it invents keeps within what rows could give, so that the sum tells nothing; its weight was announced.
    (said,) = [text for text in taken.rounds.notes() if "times the median" in text]
    assert said.startswith("client 4 announced")
    assert not [text for text in honest.rounds.notes() if "times the median" in text]
    right = [ended.rounds.records[-1].accuracy for ended in (honest, taken)]
    assert right[0] - right[1] > 0.1

    own = ready.parts[-1].labels.size
    agreed = ready_people(people, most_rows=2 * own, participation=0.5)
    ended, seen = run(invented(agreed, 50))
    record = ended.rounds.roster.client_records()[3]
    assert "client 4 was refused: it announces more rows than 'most_rows'" in record.gap
    assert not [number for number, kind, _ in seen.said if number == 4 and kind == "train"]
    assert abs(ended.rounds.records[-1].accuracy - right[0]) <= 0.02


def test_a_client_that_is_missing_voids_the_round_and_the_members_stay(people) -> None:
    def silent(number: int, message: Message, context: Context) -> None:
        if number == 4:
            message.content.array_records.clear()

    ended, _ = run(ready_people(people, participation=0.5, rounds=6), change=silent)
    assert ended.stopped is not None and not any(one.applied for one in ended.rounds.records)
    assert "3 of 4 replied, 4 are needed" in ended.rounds.records[0].gap


@pytest.mark.parametrize(
    "settings",
    [
        {"model": "xgboost", "aggregation": "median"},
        {"aggregation": "secure-sum", "fraction": 0.9},
        {"aggregation": "secure-sum", "clients": 1},
        {"epsilon": 1, "model": "xgboost"},
        {"epsilon": 1, "aggregation": "mean"},
        {"epsilon": 1, "clients": 2},
        {"epsilon": 1, "tolerated": 0},
        {"epsilon": 1, "rounds": 2},
    ],
)
def test_what_cannot_go_together_is_refused_beforehand(settings) -> None:
    with pytest.raises(ParameterError):
        Federation(**settings)


def test_the_promise_says_what_sums_hide_and_what_they_cannot_see(people, tmp_path: Path) -> None:
    fit = simulate(
        people.table, people.schema, None, Federation(clients=3, rounds=8), target="outcome", engine="loop"
    )
    said = " ".join(fit.promise.not_promised)
    assert "nobody can limit a hostile client" in said and "compare the digest of the keys" in said
    assert "could read single rows" in said and "No column is held back" not in said
    assert "fewer than 10 people make up no sum" in " ".join(fit.promise.measured)
    assert fit.how.aggregation == "secure-sum" and len(fit.how.keys.split()) == 6
