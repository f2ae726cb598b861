"""One bad client: whatever it answers, it alone is missing, the round says why, and the others' model is untouched."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr", reason="federated runs need velado[federated]")

from flwr.app import Array, Context, Message, RecordDict

from velado.learning.flower import Federation
from velado.learning.flower._local_rows import Locally
from velado.learning.flower._packets import ARRAYS, FACTS, to_content
from velado.learning.flower._rounds_kept import write_client
from velado.learning.flower._server import counts_fit, round_fault
from velado.learning.flower.client_app import LoopGrid, from_folder, make_client_app, number_of
from velado.learning.flower.flower_records import ClientRecord, Packet
from velado.learning.flower.server_app import Ended, serve
from velado.learning.flower.simulation import Ready, make_ready
from velado.text import told

from ...covering import one_in

Change = Callable[[Message], None]


class Odd:
    """The client app, but what client 2 answers to a round is changed on its way."""

    def __init__(self, folder: Path, change: Change) -> None:
        self.app, self.change = make_client_app(from_folder(folder)), change

    def __call__(self, message: Message, context: Context) -> Message:
        out = self.app(message, context)
        if number_of(context) == 2 and message.metadata.message_type != "query":
            self.change(out)
        return out


def ready_people(people, **settings) -> Ready:
    settings = {
        "clients": 3,
        "rounds": 3,
        "participation": 0.6,
        "patience": 2.0,
        "aggregation": "mean",
        **settings,
    }
    return make_ready(people.table, people.schema, Locally(), Federation(**settings), target="outcome")


def run(ready: Ready, folder: Path, change: Change, pooled: bool = False, grid_of=LoopGrid) -> Ended:
    for number, part in enumerate(ready.parts, start=1):
        write_client(folder, number, ready.terms.agreed, part)
    tested = None
    if pooled:
        tested = (
            np.concatenate([part.test_features for part in ready.parts]),
            np.concatenate([part.test_labels for part in ready.parts]),
        )
    return serve(grid_of(Odd(folder, change), len(ready.parts)), ready.terms.agreed, 0, tested)


def facts(**values) -> Change:
    def change(message: Message) -> None:
        for name, value in values.items():
            message.content.config_records[FACTS][name] = value

    return change


def arrays(**makers) -> Change:
    def change(message: Message) -> None:
        record = message.content.array_records[ARRAYS]
        for name, make in makers.items():
            if name in record:
                record[name] = Array(np.ascontiguousarray(make(record[name].numpy())))

    return change


def garbage(message: Message) -> None:
    record = message.content.array_records[ARRAYS]
    for name in list(record):
        record[name] = Array(dtype="float64", shape=(3,), stype="numpy.ndarray", data=b"not an array")


def empty(message: Message) -> None:
    message.content = RecordDict()


def leaves(count: int, value: float) -> Change:
    return arrays(
        trees=lambda _: np.tile([1.0, 0, 1.0], (count, 1)),
        links=lambda _: np.tile(np.array([[-1], [0], [0]], np.int32), (1, count)),
        numbers=lambda _: np.tile(np.array([[0], [value]], np.float32), (1, count)),
    )


UNREADABLE = "its answer cannot be read"
UNFIT = "its model does not fit"
ROWS = "its rows are not whole numbers, or none"
CASES: dict[str, tuple[str, Change, str]] = {
    "garbage": ("logistic", garbage, UNREADABLE),
    "bytes": ("logistic", facts(note=b"\x00"), UNREADABLE),
    "a list": ("logistic", facts(rows=[1.0, 2.0]), UNREADABLE),
    "texts as weights": ("logistic", arrays(weights=lambda w: w.astype(str)), UNREADABLE),
    "nothing": ("logistic", empty, ROWS),
    "half a row": ("logistic", facts(rows=0.5), ROWS),
    "rows without end": ("logistic", facts(rows=1e300), ROWS),
    "rows below none": ("logistic", facts(rows=-5), ROWS),
    "a million rows": ("logistic", facts(rows=1_000_000), "it has other rows than when it was greeted"),
    "another client": ("logistic", facts(client=3), "it says that it is another client"),
    "no numbers": ("logistic", arrays(weights=lambda w: w * np.nan), UNFIT),
    "huge weights": ("logistic", arrays(weights=lambda w: np.full_like(w, 1e308)), UNFIT),
    "large weights": ("logistic", arrays(weights=lambda w: np.full_like(w, 2e6)), UNFIT),
    "whole weights": ("logistic", arrays(weights=lambda w: w.astype(np.int64)), UNFIT),
    "thousand trees": ("xgboost", leaves(1000, 0.1), UNFIT),
    "huge leaf": ("xgboost", leaves(1, 3e38), UNFIT),
    "no trees": ("xgboost", leaves(0, 0), UNFIT),
    "a tree deeper than agreed": ("xgboost", arrays(
        trees=lambda _: np.array([[41.0, 0, 1]]),
        links=lambda _: np.array([
            [0 if at % 2 == 0 and at < 40 else -1 for at in range(41)],
            [at + 1 if at % 2 == 0 and at < 40 else 0 for at in range(41)],
            [at + 2 if at % 2 == 0 and at < 40 else 0 for at in range(41)],
        ], np.int32),
        numbers=lambda _: np.zeros((2, 41), np.float32),
    ), UNFIT),
}  # fmt: skip


# Each case is a run of its own; a quick run takes every third.
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (at % 6 > 0)) for at, n in enumerate(CASES)]
)
def test_an_answer_that_cannot_count_is_missing_and_the_others_go_on(
    people, tmp_path: Path, name: str
) -> None:
    model, change, why = CASES[name]
    ready = ready_people(people, model=model, **({"rounds": 2, "depth": 4} if model == "xgboost" else {}))
    ended = run(ready, tmp_path, change, pooled=True)
    records = ended.rounds.records
    assert ended.stopped is None and len(records) == ready.terms.federation.rounds
    for one in records:
        assert one.applied and one.replied == 2 and one.missing == ("client 2",)
        assert one.gap == f"Without client 2 ({why})."
        assert "client" not in told(one.gap, "pt").replace("cliente", "") and why not in told(one.gap, "pt")
        assert np.isfinite(one.loss)

    def refuse(message: Message) -> None:
        message.content = to_content(Packet({"error": "it does not want to"}))

    (tmp_path / "other").mkdir()
    without = run(ready, tmp_path / "other", refuse, pooled=True).rounds.records
    assert [one.loss for one in records] == [one.loss for one in without]


@pytest.mark.parametrize(
    ("change", "why"),
    one_in(
        4,
        [
            (arrays(test_classes=lambda c: c * -1), "its class counts do not add up"),
            (arrays(test_classes=lambda c: c + 1), "its class counts do not add up"),
            (arrays(test_classes=lambda c: c.astype(np.float64)), "its class counts do not add up"),
            (facts(scored=10**9), "it scored other rows than it holds out"),
            (facts(right=10**6), "its scores are out of range"),
            (facts(right=0.5), "its scores are out of range"),
            (facts(loss_sum=float("nan")), "its scores are out of range"),
            (facts(loss_sum=1e300), "its scores are out of range"),
            (facts(loss_sum=-1.0), "its scores are out of range"),
            (facts(auc=7.0), "its scores are out of range"),
            (garbage, UNREADABLE),
        ],
        apart=True,
    ),
)
def test_scores_that_cannot_be_true_enter_no_mean(people, tmp_path: Path, change: Change, why: str) -> None:
    ready = ready_people(people)
    ended = run(ready, tmp_path, change)
    held_out = [part.test_labels.size for part in ready.parts]
    for one in ended.rounds.records:
        assert one.applied and one.missing == ("client 2",) and f"client 2 ({why})" in one.gap
        assert why not in told(one.gap, "pt")
        assert 0 <= one.accuracy <= 1 and 0 <= one.auc <= 1 and np.isfinite(one.loss)
        assert one.test_rows == one.to_dict()["test_rows"] == held_out[0] + held_out[2]
    assert 0.5 <= ended.rounds.majority <= 1


def test_a_client_that_is_gone_is_missing_in_every_round_after_it(people, tmp_path: Path) -> None:
    class Dying(LoopGrid):
        """Node 3 is gone after the first round."""

        def send_and_receive(self, messages, *, timeout=None):
            out = super().send_and_receive(messages, timeout=timeout)
            if any(one.metadata.message_type == "train" for one in out):
                self.contexts.pop(3, None)
            return out

    ready = ready_people(people, rounds=4)
    ended = run(ready, tmp_path, lambda _: None, grid_of=Dying)
    first, *late = ended.rounds.records
    assert first.asked == first.replied == 3 and first.missing == () and first.gap is None
    held_out = [part.test_labels.size for part in ready.parts]
    for one in late:
        assert one.applied and one.asked == one.replied == 2
        assert one.missing == ("client 3",) and one.gap == "Without client 3 (not there)."
        assert one.test_rows == sum(held_out[:2])


def test_a_client_that_comes_back_with_other_rows_misses_one_round_and_is_greeted_again(
    people, tmp_path: Path
) -> None:
    class Changing(LoopGrid):
        """After the first round client 2 says that it has a row more, whatever it is asked."""

        rounds = 0

        def pull_messages(self, message_ids):
            out = super().pull_messages(message_ids)
            self.rounds += any(one.metadata.message_type == "train" for one in out)
            for one in out:
                if one.metadata.src_node_id == 2 and self.rounds > 1:
                    one.content.config_records[FACTS]["rows"] += 1
            return out

    ended = run(ready_people(people, rounds=4), tmp_path, lambda _: None, grid_of=Changing)
    first, second, *late = ended.rounds.records
    assert first.missing == () and all(one.missing == () and one.gap is None for one in late)
    assert second.gap == "Without client 2 (it has other rows than when it was greeted)."


def test_a_second_machine_with_a_clients_number_is_in_the_gap_of_the_round(people, tmp_path: Path) -> None:
    class Crowded(LoopGrid):
        """A node more, which has the number of client 1."""

        def __init__(self, app, clients: int) -> None:
            super().__init__(app, clients)
            config = {"partition-id": 0, "num-partitions": clients}
            self.contexts[9] = Context(1, 9, config, RecordDict(), {})

    ended = run(ready_people(people, rounds=2), tmp_path, lambda _: None, grid_of=Crowded)
    for one in ended.rounds.records:
        assert one.replied == 3 and one.missing == ()
        assert one.gap == "A second machine says that it is client 1. It was turned away."


@pytest.mark.parametrize("pooled", [True, False])
def test_without_an_auc_the_round_says_why(people, tmp_path: Path, pooled: bool) -> None:
    ready = ready_people(people, rounds=2)
    parts = []
    for part in ready.parts:
        ill = part.test_labels == 0
        record = replace(part.record, test_rows=int(ill.sum()))
        parts.append(
            type(part)(part.features, part.labels, part.test_features[ill], part.test_labels[ill], record)
        )
    ended = run(Ready(ready.terms, ready.locally, tuple(parts), ()), tmp_path, lambda _: None, pooled)
    for one in ended.rounds.records:
        assert one.auc is None and one.accuracy is not None and told(one.gap, "pt").startswith("Sem AUC")


def test_numbers_that_would_wrap_around_do_not_pass() -> None:
    assert counts_fit(np.array([3, 4]), 2, 7)
    assert not counts_fit(np.array([2**63 - 1, 2**63 - 1, 9]), 3, 7)
    assert not counts_fit(np.array([3, 4, 0]), 2, 7) and not counts_fit(None, 2, 0)
    greeted = ClientRecord(name="client 1", rows=10, test_rows=2)
    assert round_fault(Packet({"rows": 10**400, "test_rows": 2}), greeted, 2)
    assert Packet({"rows": 10**400}).number("rows") == 0
    assert round_fault(Packet({"rows": 10, "test_rows": 2}), greeted, 2) == ""
    assert Packet({"error": "one\n# two"}).text("error") == "one # two"
