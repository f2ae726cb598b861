"""Bagging: our trees give XGBoost's own numbers, and the federation equals the same bagging computed plainly."""

import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("xgboost", reason="bagging needs velado[federated]")

import xgboost

from velado.errors import ParameterError
from velado.learning.flower import Federation
from velado.learning.flower._boosting import Trees, groups_of, grow, joined, matrix_of
from velado.learning.flower._client import ClientState, TrainingClient, answer
from velado.learning.flower._local_rows import LocalRows
from velado.learning.flower._logistic import FeatureScaling
from velado.learning.flower._server import Bagged
from velado.learning.flower._terms import Agreed
from velado.learning.flower.flower_records import Packet, client_record
from velado.randomness import seeded

from ...covering import one_in

WIDTH = 6


def rows(count: int, classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = seeded(seed, "tests", "boosting")
    features = random.normal(size=(count, WIDTH)).astype(np.float32)
    score = features[:, 0] * features[:, 1] + 0.5 * features[:, 2] + 0.3 * random.normal(size=count)
    return features, np.digitize(score, np.quantile(score, np.arange(1, classes) / classes)).astype(np.int64)


def client(number: int, classes: int, agreed: Agreed) -> TrainingClient:
    features, labels = rows(120 + 40 * number, classes, number)
    record = client_record(number, rows=labels.size - 30, test_rows=30, classes=classes)
    return TrainingClient(agreed, LocalRows(features[30:], labels[30:], features[:30], labels[:30], record))


def agreed(classes: int = 2, **settings) -> Agreed:
    federation = Federation(model="xgboost", clients=3, **settings)
    return Agreed("d", federation, classes, FeatureScaling(np.zeros(WIDTH), np.ones(WIDTH)))


class Rounds:
    """Server and clients in a loop, without any carrier; what travels is counted."""

    def __init__(self, terms: Agreed, tested=None) -> None:
        self.terms, self.server = terms, Bagged(terms, tested)
        self.clients = {number: client(number, terms.classes, terms) for number in (1, 2, 3)}
        self.states = {number: ClientState() for number in self.clients}
        self.down: list[int] = []
        self.up: list[int] = []

    def run(self, asked=(1, 2, 3)) -> dict[int, Packet]:
        answers, down = {}, 0
        for number in asked:
            packet = self.ask(number)
            sent = self.server.packet_for(number)
            down += sent.size
            if packet.number("lost"):
                packet = self.ask(number, everything=True)
            answers[number] = packet
            self.server.acknowledged(number, packet)
        self.server.apply(answers)
        self.down.append(down)
        self.up.append(sum(packet.size for packet in answers.values()))
        return answers

    def ask(self, number: int, everything: bool = False) -> Packet:
        packet = self.server.packet_for(number, everything)
        packet = replace(packet, facts={**packet.facts, "digest": "d", "evaluate": 1})
        out, self.states[number] = answer(lambda: self.clients[number], packet, self.states[number], "train")
        return out


@pytest.mark.parametrize("classes", [2, 4])
def test_our_trees_give_the_margins_of_xgboost_itself(classes: int) -> None:
    features, labels = rows(400, classes, 9)
    groups = groups_of(classes)
    start = seeded(3, "tests").normal(size=(400, groups))
    ours = grow(matrix_of(features, labels), start, classes, Federation(model="xgboost"))
    assert ours.count == groups
    settings = {"max_depth": 4, "eta": 0.3, "min_child_weight": 5, "tree_method": "hist", "nthread": 1}
    settings |= (
        {"objective": "binary:logistic"} if classes == 2 else {"objective": "multi:softprob", "num_class": 4}
    )
    base = start.astype(np.float32)
    data = xgboost.DMatrix(features, label=labels, base_margin=base.ravel() if classes == 2 else base)
    booster = xgboost.train(settings, data, num_boost_round=1)
    theirs = booster.predict(data, output_margin=True).reshape(400, groups)
    assert np.allclose(start + ours.margins(features, groups), theirs, atol=1e-5)


@pytest.mark.parametrize(
    ("classes", "bagging"), one_in(3, [(2, "sum"), (3, "mean"), (2, "mean")], apart=True)
)
def test_the_federation_equals_the_same_bagging_computed_plainly_tree_by_tree(
    classes: int, bagging: str
) -> None:
    terms = agreed(classes, bagging=bagging)
    groups = groups_of(classes)
    run = Rounds(terms)
    for _ in range(6):
        run.run()
    found = run.server.learned().trees  # type: ignore[attr-defined]
    # Plainly: every client's XGBoost is started at margins recomputed from scratch by XGBoost's own predictions.
    parts = {number: one.prepared for number, one in run.clients.items()}
    total = sum(part.labels.size for part in parts.values())
    settings = {"max_depth": 4, "eta": 0.3, "min_child_weight": 5, "tree_method": "hist", "nthread": 1}
    settings |= (
        {"objective": "binary:logistic"}
        if classes == 2
        else {"objective": "multi:softprob", "num_class": classes}
    )
    model: list[tuple[float, object]] = []
    at = 0
    for _ in range(6):
        fresh = []
        for part in parts.values():
            margins = np.zeros((part.labels.size, groups))
            for weight, booster in model:
                zero = np.zeros((part.labels.size, groups), dtype=np.float32)
                asked = xgboost.DMatrix(part.features, base_margin=zero.ravel() if classes == 2 else zero)
                margins += weight * booster.predict(asked, output_margin=True).reshape(-1, groups)
            base = margins.astype(np.float32)
            data = xgboost.QuantileDMatrix(part.features, label=part.labels, nthread=1)
            data.set_base_margin(base.ravel() if classes == 2 else base)
            booster = xgboost.train(settings, data, num_boost_round=1)
            fresh.append((part.labels.size / total if bagging == "mean" else 1.0, booster))
            document = json.loads(booster.save_raw(raw_format="json"))
            for tree in document["learner"]["gradient_booster"]["model"]["trees"]:
                mine = slice(found.first[at], found.first[at + 1])
                left = np.array(tree["left_children"])
                leaf = left < 0
                assert np.array_equal(found.feature[mine] < 0, leaf)
                assert np.array_equal(found.feature[mine][~leaf], np.array(tree["split_indices"])[~leaf])
                numbers = np.where(leaf, found.value[mine], found.threshold[mine])
                assert np.allclose(numbers, tree["split_conditions"], rtol=1e-4, atol=1e-5)
                assert found.weight[at] == pytest.approx(fresh[-1][0])
                at += 1
        model += fresh
    assert at == found.count == 18 * groups


def test_a_rounds_bytes_do_not_grow_with_its_number() -> None:
    run = Rounds(agreed(depth=3))
    for _ in range(51):
        run.run()
    assert abs(run.down[50] - run.down[5]) < 0.5 * run.down[5]
    assert abs(run.up[50] - run.up[5]) < 0.5 * run.up[5]
    everything = run.server.packet_for(1, everything=True).size
    assert run.down[50] / 3 < everything / 20


def test_a_client_that_lost_its_state_asks_for_everything_and_goes_on_as_if_nothing_happened() -> None:
    run, plain = Rounds(agreed()), Rounds(agreed())
    for _ in range(4):
        run.run()
        plain.run()
    run.states[2] = ClientState()
    said = run.ask(2)
    assert said.number("lost") == 1 and "links" not in said.arrays
    run.states[2] = ClientState()
    run.run()
    plain.run()
    assert run.states[2].have == plain.states[2].have == 12
    assert np.allclose(run.states[2].arrays["margins"], plain.states[2].arrays["margins"])
    assert run.server.learned().trees.arrays()["value"].tolist() == (  # type: ignore[attr-defined]
        plain.server.learned().trees.arrays()["value"].tolist()  # type: ignore[attr-defined]
    )


def test_a_client_that_missed_rounds_is_sent_what_it_missed_and_a_repeated_message_counts_once() -> None:
    run = Rounds(agreed())
    run.run()
    run.run(asked=(1, 3))
    run.run(asked=(1, 3))
    assert (
        run.server.packet_for(2).number("first") == 0
    )  # it acknowledged no tree: it was asked before there was one
    assert run.server.packet_for(1).number("first") == 5
    before = run.ask(1)
    again = run.ask(1)
    assert np.array_equal(before.arrays["numbers"], again.arrays["numbers"])
    assert run.states[1].have == 7


def test_the_servers_kept_margins_are_those_of_the_whole_model() -> None:
    tested = rows(50, 2, 77)[0]
    run = Rounds(agreed(), tested)
    for _ in range(5):
        run.run()
    whole = run.server.learned().probabilities(tested)
    assert np.allclose(run.server.scores(), whole)


def _broken(trees: Trees) -> dict[str, dict]:
    inner = trees.feature >= 0
    good = trees.packed()
    return {
        "endless": replace(trees, left=np.zeros_like(trees.left), right=np.zeros_like(trees.right)).packed(),
        "outside": replace(trees, left=np.where(inner, 10_000, 0)).packed(),
        "no such feature": replace(trees, feature=np.where(inner, WIDTH, -1)).packed(),
        "no such group": replace(trees, group=trees.group + 5).packed(),
        "no number": replace(trees, value=np.full_like(trees.value, np.nan)).packed(),
        "no weight": replace(trees, weight=np.full_like(trees.weight, np.inf)).packed(),
        "wrong size": {**good, "trees": good["trees"] + 1},
        "half": {key: value for key, value in good.items() if key != "links"},
        "short": {**good, "numbers": good["numbers"][:, 1:]},
        "half a node": {**good, "trees": good["trees"] + [0.7, 0, 0]},
        "half a group": {**good, "trees": good["trees"] + [0, 0.5, 0]},
        "endless size": {**good, "trees": good["trees"] * 0 + [1e300, 0, 1]},
        "no whole links": {**good, "links": good["links"].astype(np.float64)},
        "links beyond 32 bits": {**good, "links": good["links"].astype(np.int64) + 2**32},
        "huge leaf": {**good, "numbers": np.where([[False], [True]], np.float32(3e38), good["numbers"])},
        "one row": {**good, "links": good["links"].ravel()},
    }


@pytest.mark.parametrize(
    "which",
    [
        "endless",
        "outside",
        "no such feature",
        "no such group",
        "no number",
        "no weight",
        "wrong size",
        "half",
        "short",
        "half a node",
        "half a group",
        "endless size",
        "no whole links",
        "links beyond 32 bits",
        "huge leaf",
        "one row",
    ],
)
def test_trees_that_would_loop_or_point_outside_are_refused(which: str) -> None:
    features, labels = rows(200, 2, 4)
    trees = grow(matrix_of(features, labels), np.zeros((200, 1)), 2, Federation(model="xgboost"))
    assert np.array_equal(Trees.unpacked(trees.packed(), WIDTH, 1).value, trees.value)
    with pytest.raises(ParameterError, match="not sound"):
        Trees.unpacked(_broken(trees)[which], WIDTH, 1)


def test_joined_and_cut_trees_are_the_same_trees() -> None:
    features, labels = rows(200, 2, 4)
    one = grow(matrix_of(features, labels), np.zeros((200, 1)), 2, Federation(model="xgboost"))
    other = grow(matrix_of(features, labels), np.ones((200, 1)), 2, Federation(model="xgboost", depth=2))
    both = joined([one, Trees.none(), other])
    assert np.allclose(both.margins(features, 1), one.margins(features, 1) + other.margins(features, 1))
    assert np.array_equal(both.after(1).value, other.value) and both.after(2).count == 0
