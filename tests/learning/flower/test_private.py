"""Differential privacy for each row: the account against another computation, the noise against its plan, and what a client refuses."""

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

pytest.importorskip("flwr", reason="federated runs need velado[federated]")
pytest.importorskip("opendp", reason="ledgers need velado[query]")

from velado.errors import BudgetExceeded, ParameterError
from velado.learning.flower import Federation
from velado.learning.flower._client import ClientState, TrainingClient, answer
from velado.learning.flower._local_rows import Locally, LocalRows, prepare
from velado.learning.flower._masking import noise_tape, public_key
from velado.learning.flower._membership import membership_attack
from velado.learning.flower._packets import ARRAYS, FACTS, keep_state
from velado.learning.flower._private_steps import (
    PrivatePlan,
    clipped_rows,
    noisy,
    plan_for,
    score_figures,
    step_figures,
)
from velado.learning.flower._run_debit import debit_run
from velado.learning.flower._terms import make_terms
from velado.learning.flower.client_app import LoopGrid, make_client_app, number_of
from velado.learning.flower.flower_records import Packet
from velado.learning.flower.server_app import serve
from velado.learning.flower.simulation import Ready, make_ready
from velado.learning.noise_account import NoiseAccount
from velado.measures.models.encoder import EncoderSettings
from velado.query.budget import Budget

from .conftest import make_people


@pytest.fixture(scope="module")
def many(tmp_path_factory) -> Ready:
    """Three thousand people at five clients, with noise; prepared once."""
    people = make_people(tmp_path_factory.mktemp("many"), 3000)
    federation = Federation(clients=5, rounds=20, epsilon=4)
    return make_ready(people.table, people.schema, Locally(), federation, target="outcome")


def run(ready: Ready, pooled: bool = True):
    """The run with secrets that a test fixes, so that its noise is the same every time."""
    agreed, parts, said = ready.terms.agreed, ready.parts, []
    tested = (
        np.concatenate([part.test_features for part in parts]),
        np.concatenate([part.test_labels for part in parts]),
    )
    app = make_client_app(lambda context: TrainingClient(agreed, parts[number_of(context) - 1]))

    def heard(message, context):
        out = app(message, context)
        said.append(out)
        return out

    grid = LoopGrid(heard, len(parts))
    for number, context in grid.contexts.items():
        secret = np.frombuffer(bytes([number]) * 32, dtype=np.uint8)
        keep_state(context, ClientState(0, {"secret": secret}))
    return serve(grid, agreed, 0, tested if pooled else None), said


@pytest.mark.parametrize(("classes", "summands", "steps"), [(2, 9, 8), (4, 2, 3)])
def test_the_account_is_that_of_another_computation(classes: int, summands: int, steps: int) -> None:
    """Composed Gaussians are one Gaussian: mu^2 = sum (Delta / sigma)^2, whose exact delta is Balle and Wang's (2018)."""
    epsilon, delta = 2.0, 1e-6
    plan = PrivatePlan.of(
        Budget.approximate(2, Fraction(1, 10**6)),
        columns=8,
        features=102,
        classes=classes,
        steps=steps,
        summands=summands,
    )
    one = 1 << 14
    gram = (8 + 1) * one**2 / math.sqrt(summands * plan.gram.variance)
    reach = math.sqrt((8 + 1) * (1 if classes == 2 else 2)) * one
    slope = reach / math.sqrt(summands * plan.slope.variance)
    mu = math.sqrt(gram**2 + steps * slope**2)
    assert plan.rho == pytest.approx(mu**2 / 2, rel=1e-3) and plan.rho >= mu**2 / 2
    spent = norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2)
    assert spent <= delta
    # And not far below: rho for which zCDP's own formula gives epsilon is used to the last digits.
    assert plan.rho + 2 * math.sqrt(plan.rho * math.log(1 / delta)) == pytest.approx(epsilon, rel=1e-3)


def test_one_row_moves_a_step_by_no_more_than_the_plan_says(many: Ready) -> None:
    agreed, part = many.terms.agreed, many.parts[0]
    plan = plan_for(agreed, 5)
    scaled = agreed.scaling(part.features) * 3  # far beyond the bounds: rows are shortened
    whole = clipped_rows(scaled, agreed.columns)
    assert ((whole**2).sum(axis=1) <= (agreed.columns + 1) << 28).all()
    weights = np.random.default_rng(3).normal(size=(agreed.features + 1, 1)) * 5
    for step, noise in ((0, plan.gram), (1, plan.slope)):
        with_all = step_figures(step, weights, scaled, part.labels, agreed)
        for row in (0, 7):
            kept = np.arange(part.labels.size) != row
            without = step_figures(step, weights, scaled[kept], part.labels[kept], agreed)
            moved = (with_all - without).astype(np.float64)
            if step == 0:
                width = agreed.features + 1
                one, other = np.triu_indices(width)
                moved = moved * np.where(one == other, 1, math.sqrt(2))
            assert np.linalg.norm(moved) <= noise.sensitivity
    chances = np.tile([0.4, 0.6], (part.test_labels.size, 1))
    with_all = score_figures(chances, part.test_labels, agreed)
    lengths = set()
    for row in range(20):
        kept = np.arange(part.test_labels.size) != row
        without = score_figures(chances[kept], part.test_labels[kept], agreed)
        lengths.add(float(np.linalg.norm(with_all - without)))
    # A wrong answer moves its class alone, a right one two counts.
    assert lengths == {1.0, math.sqrt(2)} and max(lengths) <= plan.score.sensitivity


def test_the_noise_is_as_large_as_planned_and_the_same_again_for_the_same_step(many: Ready) -> None:
    plan = plan_for(many.terms.agreed, 5).slope
    nothing = np.zeros(4000, dtype=np.int64)
    drawn = noisy(nothing, plan, noise_tape(bytes(32), 1))
    # 4,000 draws: the variance of a sample is off by 2.2 % (one deviation); a tenth too little would be seen.
    assert np.var(drawn) == pytest.approx(plan.variance, rel=0.09)
    assert np.array_equal(drawn[:50], noisy(nothing[:50], plan, noise_tape(bytes(32), 1)))
    assert not np.array_equal(drawn[:50], noisy(nothing[:50], plan, noise_tape(bytes(32), 2)))
    square = noisy(np.zeros(45 * 46 // 2, dtype=np.int64), plan, noise_tape(bytes(32), 3), 45)
    one, other = np.triu_indices(45)
    assert np.var(square[one != other]) == pytest.approx(plan.variance / 2, rel=0.2)


def test_a_run_with_noise_learns_and_tells_nothing_of_a_client(many: Ready) -> None:
    ended, said = run(many, pooled=False)
    assert ended.stopped is None and len(ended.rounds.records) == 9
    for message in said:
        assert set(message.content.array_records[ARRAYS]) <= {"masked"}
        assert set(message.content.config_records[FACTS]) == {"client", "mask_key"}
    noiseless = replace(many, terms=replace(many.terms, federation=Federation(clients=5, rounds=20)))
    exact, _ = run(noiseless)
    last = ended.rounds.records[-1]
    assert last.accuracy == pytest.approx(exact.rounds.records[-1].accuracy, abs=0.03)
    assert all(one.accuracy is None for one in ended.rounds.records[:-1])
    assert last.accuracy > ended.rounds.majority + 0.1


def test_too_little_data_for_the_noise_is_said_and_no_model_told(people) -> None:
    federation = Federation(clients=3, rounds=20, epsilon=Fraction(1, 10))
    ready = make_ready(people.table, people.schema, Locally(), federation, target="outcome")
    ended, _ = run(ready)
    assert ended.stopped is not None and "The noise is as large as what it would hide" in ended.stopped.what


def test_a_client_answers_no_step_twice_at_two_points_nor_more_steps_than_paid(many: Ready) -> None:
    agreed = many.terms.agreed
    client = TrainingClient(agreed, many.parts[0])
    hello, state = answer(lambda: client, Packet({"digest": agreed.digest}), ClientState(), "greet")
    assert set(hello.facts) == {"mask_key"}
    keys = [bytes.fromhex(hello.text("mask_key")), *(public_key(bytes([one]) * 32) for one in range(2, 6))]
    arrays = {
        "members": np.arange(1, 6),
        "keys": np.frombuffer(b"".join(keys), dtype=np.uint8).reshape(5, 32),
        "weights": np.zeros((agreed.features + 1, 1)),
    }

    def ask(step: int, number: int, state: ClientState, kind="train", move: float = 0.0):
        facts = {"digest": agreed.digest, "round": number, "step": step}
        packet = Packet(facts, {**arrays, "weights": arrays["weights"] + move})
        return answer(lambda: client, packet, state, kind)

    said, state = ask(1, 1, state)
    assert "masked" in said.arrays
    again, after = ask(1, 2, state)  # lost on its way, and asked again: other masks, the same noise
    assert not np.array_equal(again.arrays["masked"], said.arrays["masked"])
    for step, kind, move in ((1, "train", 0.1), (9, "train", 0.0), (10, "evaluate", 0.0), (-1, "train", 0.0)):
        refused, _ = ask(step, 3, after, kind, move)
        assert refused.text("error") and not refused.arrays


def test_noise_and_groups_do_not_go_together_and_people_have_one_row(people) -> None:
    federation = Federation(clients=3, epsilon=1)
    with pytest.raises(ParameterError, match="both given"):
        make_terms(people.schema, "outcome", federation, {"method": {"name": "mondrian"}})
    person = replace(people.schema.columns["person"], person=True)
    schema = people.schema.with_columns(
        [person if one.name == "person" else one for one in people.schema.columns.values()]
    )
    terms = make_terms(schema, "outcome", federation, {})
    twice = people.table.with_schema(schema).with_frame(people.table.frame[[0, 0, 1, 2]])
    assert "several rows of one person" in prepare(twice, terms, Locally(), 1).record.gap
    assert prepare(people.table.with_schema(schema), terms, Locally(), 1).labels.size > 400


def rows_of(part: LocalRows) -> tuple[Counter[bytes], Counter[bytes]]:
    """How often each row is trained on, and how often it is held out."""
    sides = ((part.features, part.labels), (part.test_features, part.test_labels))
    taught, tested = (
        Counter(np.append(row, label).tobytes() for row, label in zip(*side, strict=True)) for side in sides
    )
    return taught, tested


@pytest.mark.parametrize("at", [0, 1, 299, 598])
def test_one_row_fewer_moves_no_other_row_between_training_and_testing(people, at: int) -> None:
    """Wherever it stood, and though everybody knows the seed; else the promise for one row would be one for all after it."""
    terms = make_terms(people.schema, "outcome", Federation(clients=3, epsilon=1), {})
    frame = people.table.frame
    whole = prepare(people.table, terms, Locally(), 1)
    left = [row for row in range(frame.height) if row != at]
    fewer = prepare(people.table.with_frame(frame[left]), terms, Locally(), 1)
    gone = [more - less for more, less in zip(rows_of(whole), rows_of(fewer), strict=True)]
    assert sum(sum(one.values()) for one in gone) == 1
    assert not [less - more for more, less in zip(rows_of(whole), rows_of(fewer), strict=True) if less - more]


def test_the_order_of_rows_decides_nothing_about_who_is_held_out(people) -> None:
    terms = make_terms(people.schema, "outcome", Federation(clients=3, epsilon=1), {})
    turned = people.table.with_frame(people.table.frame.reverse())
    assert rows_of(prepare(people.table, terms, Locally(), 1)) == rows_of(
        prepare(turned, terms, Locally(), 1)
    )


def test_of_equal_rows_a_share_is_held_out_and_another_seed_holds_out_others(people) -> None:
    """Equal rows have draws of their own, as unlike ones have."""
    terms = make_terms(people.schema, "outcome", Federation(clients=3, epsilon=1), {})
    alike = people.table.with_frame(people.table.frame[[5] * 1000])
    held = prepare(alike, terms, Locally(), 1).test_labels.size
    assert 150 < held < 250  # 200 expected, deviation 12.6
    parts = [rows_of(prepare(people.table, terms, Locally(seed=seed), 1)) for seed in (0, 1)]
    assert parts[0] != parts[1]
    assert 80 < sum(parts[0][1].values()) < 165  # of 600


def test_values_are_not_drawn_where_noise_is_added(people) -> None:
    encoding = EncoderSettings(taught_with="drawn")
    with pytest.raises(ParameterError, match="taught_with"):
        make_terms(people.schema, "outcome", Federation(clients=3, epsilon=1), {}, encoding=encoding)


def test_a_run_is_debited_once_and_a_second_that_is_not_paid_for_is_refused(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "state"))
    table = tmp_path / "rows.csv"
    table.write_text("a\n1\n", "utf-8")
    federation = Federation(clients=3, epsilon=1)
    said = debit_run(table, federation, "outcome", NoiseAccount())
    assert said is not None and said.startswith("Debited: rho ") and "0 is left" in said
    with pytest.raises(BudgetExceeded):
        debit_run(table, federation, "outcome", NoiseAccount())
    with pytest.raises(ParameterError, match="nothing is learned with noise"):
        debit_run(table, Federation(), "outcome", NoiseAccount(budget="1"))
    assert debit_run(table, Federation(), "outcome", NoiseAccount()) is None


def test_a_client_whose_budget_is_spent_makes_no_noise(many: Ready) -> None:
    def broke() -> None:
        raise BudgetExceeded("The budget is spent.", "It was paid before.", "Ask for more.")

    client = TrainingClient(many.terms.agreed, many.parts[0], broke)
    said, state = answer(lambda: client, Packet({"digest": many.terms.agreed.digest}), ClientState(), "greet")
    assert "budget is spent" in said.text("error") and not state.arrays


class Memory:
    """A model that knows by heart which rows it was trained on."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows = rows

    def probabilities(self, features):
        sure = np.where(np.isin(features[:, 0], self.rows), 0.99, 0.6)
        return np.stack([sure, 1 - sure], axis=1)

    def arrays(self):
        return {}


def test_the_membership_attack_finds_a_model_that_remembers_and_only_that_one() -> None:
    draw = np.random.default_rng(2)
    rows, zeros = draw.normal(size=(800, 1)), np.zeros(400, dtype=np.int64)
    trained, held_out = (rows[:400], zeros), (rows[400:], zeros)
    found = membership_attack(Memory(rows[:400, 0]), trained, held_out, draw)
    assert found.found and found.advantage == 1.0
    honest = membership_attack(Memory(rows[::2, 0]), trained, held_out, draw, (1.0, 1e-6))
    assert not honest.found and 0 < honest.null < 0.12
    assert honest.bound == pytest.approx((math.e - 1 + 2e-6) / (math.e + 1))
