"""One hostile client of ten: what it does to the model where nothing is limited, and what is left of that where rows are capped,
updates shortened, or the middle is a median."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("flwr", reason="federated runs need velado[federated]")
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import FedMedian, FedTrimmedAvg

from velado.errors import ParameterError
from velado.learning.flower import Federation
from velado.learning.flower._client import TrainingClient
from velado.learning.flower._local_rows import Locally, LocalRows
from velado.learning.flower._packets import ARRAYS, FACTS
from velado.learning.flower._robust import centre, counted_rows, far_out, shortened
from velado.learning.flower.aggregations import AGGREGATIONS
from velado.learning.flower.client_app import LoopGrid, make_client_app, number_of
from velado.learning.flower.outcome import protection_lines
from velado.learning.flower.server_app import Rounds, serve
from velado.learning.flower.simulation import Ready, make_ready, run_ready
from velado.text import told

from .conftest import make_people

OPEN = {"row_cap": 0.0, "clip": 0.0, "most_rows": 10**12}
HOSTILE = 4


@pytest.fixture(scope="module")
def many(tmp_path_factory) -> Ready:
    """Three thousand people at ten clients, so that a point of accuracy is six held-out rows; prepared once."""
    people = make_people(tmp_path_factory.mktemp("many"), 3000)
    return make_ready(people.table, people.schema, Locally(), Federation(clients=10), target="outcome")


def ready_many(many: Ready, **settings) -> Ready:
    federation = Federation(**{"clients": 10, "rounds": 12, "aggregation": "mean", **settings})
    return replace(many, terms=replace(many.terms, federation=federation))


def claims_rows(number: int, message: Message) -> None:
    """It has 10^12 rows, and its weights point the other way."""
    if number == HOSTILE:
        message.content.config_records[FACTS]["rows"] = 10**12
        _weights(message, -1.0)


def reversed_weights(number: int, message: Message) -> None:
    """-50 times its weights."""
    if number == HOSTILE:
        _weights(message, -50.0)


def _weights(message: Message, factor: float) -> None:
    record = message.content.array_records[ARRAYS]
    for name in ("weights", "numbers"):
        if name in record:
            values = record[name].numpy()
            record[name] = Array(np.ascontiguousarray((values * factor).astype(values.dtype)))


def flipped(part: LocalRows) -> LocalRows:
    """It trains on the opposite of every label."""
    return LocalRows(part.features, 1 - part.labels, part.test_features, part.test_labels, part.record)


def run(ready: Ready, attack: Callable | None) -> Rounds:
    agreed, parts = ready.terms.agreed, list(ready.parts)
    tested = (
        np.concatenate([part.test_features for part in parts]),
        np.concatenate([part.test_labels for part in parts]),
    )
    if attack is flipped:
        parts[HOSTILE - 1] = flipped(parts[HOSTILE - 1])
    app = make_client_app(lambda context: TrainingClient(agreed, parts[number_of(context) - 1]))

    def changed(message: Message, context: Context) -> Message:
        out = app(message, context)
        if attack not in (None, flipped):
            attack(number_of(context), out)
        return out

    return serve(LoopGrid(changed, len(parts)), agreed, 0, tested).rounds


SEEN = [name for name, one in AGGREGATIONS.items() if not one.hidden]
ATTACKS = [claims_rows, reversed_weights, flipped]


@pytest.fixture(scope="module")
def honest(many) -> dict[str, float]:
    """The accuracy without an attack, under each way to put answers together."""
    return {way: run(ready_many(many, aggregation=way), None).records[-1].accuracy for way in SEEN}


@pytest.mark.parametrize("attack", ATTACKS[:2])
def test_without_limits_one_client_of_ten_takes_the_model_over(many, honest, attack) -> None:
    rounds = run(ready_many(many, **OPEN), attack)
    assert rounds.records[-1].accuracy < honest["mean"] - 0.1


@pytest.mark.parametrize("way", SEEN)
@pytest.mark.parametrize("attack", ATTACKS)
def test_with_them_it_moves_accuracy_by_two_points_at_most(many, honest, attack, way) -> None:
    rounds = run(ready_many(many, aggregation=way), attack)
    assert abs(rounds.records[-1].accuracy - honest[way]) <= 0.02


def test_who_lies_far_out_claims_too_much_or_spoils_the_model_is_told(many) -> None:
    said = run(ready_many(many, rounds=4), claims_rows).notes()
    assert any(f"client {HOSTILE} says that it has more rows than are believed" in one for one in said)
    said = run(ready_many(many, rounds=4), reversed_weights).notes()
    assert any(f"client {HOSTILE} lay far from the others in" in one for one in said)
    assert any("ficou longe" in told(one, "pt") for one in said)
    said = run(ready_many(many, rounds=4, **OPEN), reversed_weights).notes()
    assert any("right less often than always answering the most frequent class" in one for one in said)
    assert run(ready_many(many, rounds=4), None).notes() == ()


@pytest.mark.slow
def test_boosted_trees_are_limited_too(many) -> None:
    pytest.importorskip("xgboost")
    ready = ready_many(many, model="xgboost", rounds=6)
    honest = run(ready, None).records[-1].accuracy
    assert all(abs(run(ready, attack).records[-1].accuracy - honest) <= 0.02 for attack in ATTACKS)


@pytest.mark.parametrize("way", SEEN)
def test_every_way_is_one_of_its_own_and_says_so(many, way: str) -> None:
    """A name that fell through to a neighbour would be that neighbour under another name."""
    one = AGGREGATIONS[way]
    assert one.name == way and [other.says for other in AGGREGATIONS.values()].count(one.says) == 1
    clients = max(10, one.fewest)
    federation = Federation(aggregation=way, clients=clients)
    draw = np.random.default_rng(6)
    updates, rows = draw.exponential(size=(clients, 5)), draw.integers(50, 90, clients).astype(float)
    found = centre(updates, rows, federation)
    order = draw.permutation(clients)
    np.testing.assert_allclose(centre(updates[order], rows[order], federation), found)
    np.testing.assert_allclose(centre(np.ones((clients, 5)), rows, federation), np.ones(5))
    assert (found >= updates.min(axis=0)).all() and (found <= updates.max(axis=0)).all()
    for other in SEEN:
        alike = np.allclose(centre(updates, rows, replace(federation, aggregation=other)), found)
        assert alike == (other == way)
    if one.fewest > 1:
        with pytest.raises(ParameterError, match="cannot be left out"):
            Federation(aggregation=way, clients=one.fewest - 1)
    if not one.trees:
        with pytest.raises(ParameterError, match="Trees cannot be put together"):
            Federation(aggregation=way, model="xgboost")
    fit = run_ready(ready_many(many, aggregation=way, rounds=2), "loop")
    assert fit.how.aggregation == way and protection_lines(fit)[0] == one.says
    with pytest.raises(ParameterError, match=way):
        Federation(aggregation=f"{way}s")


def test_median_and_trimmed_mean_are_flowers() -> None:
    draw = np.random.default_rng(5)
    updates = draw.normal(size=(10, 7))
    for strategy, federation in (
        (FedMedian(), Federation(aggregation="median")),
        (FedTrimmedAvg(beta=0.2), Federation(aggregation="trimmed-mean", trim=0.2)),
    ):
        replies = []
        for one in updates:
            ask = Message(RecordDict({"config": ConfigRecord()}), 1, "train")
            ask.metadata.__dict__["_message_id"] = "1"
            content = RecordDict(
                {"arrays": ArrayRecord({"w": Array(one)}), "metrics": MetricRecord({"num-examples": 1})}
            )
            replies.append(Message(content, reply_to=ask))
        theirs, _ = strategy.aggregate_train(1, replies)
        assert np.allclose(theirs["w"].numpy(), centre(updates, np.ones(10), federation), atol=1e-12)


@pytest.mark.parametrize(("clients", "trim"), [(3, 0.2), (4, 0.2), (5, 0.1), (10, 0.05)])
def test_a_small_trim_still_leaves_the_ends_out(clients: int, trim: float) -> None:
    federation = Federation(aggregation="trimmed-mean", trim=trim, clients=clients, participation=1.0)
    updates = np.vstack([np.ones((clients - 1, 2)), [[-50.0, 50.0]]])
    assert np.allclose(centre(updates, np.ones(clients), federation), 1.0)


def test_ends_of_two_answers_are_not_left_out() -> None:
    with pytest.raises(ParameterError, match="The ends of 2 answers cannot be left out"):
        Federation(aggregation="trimmed-mean", clients=3, participation=0.5)


def test_limits_leave_clients_that_agree_alone() -> None:
    updates = np.random.default_rng(1).normal(5.0, 0.5, size=(8, 4))
    assert np.array_equal(shortened(updates, 2.0), updates) and not far_out(updates).any()
    assert counted_rows([10, 20, 29], Federation()).tolist() == [10, 20, 29]
    assert counted_rows([10, 20, 2900], Federation(row_cap=0, most_rows=100)).tolist() == [10, 20, 100]
