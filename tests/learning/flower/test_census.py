"""A federation counts before it sums: what few people make up is not summed, and who skips the count gets no sum."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

pytest.importorskip("flwr", reason="federated runs need velado[federated]")
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from velado.data.schema import Schema
from velado.errors import ParameterError
from velado.learning.flower import Federation
from velado.learning.flower._census import census_figures, census_plan, census_size
from velado.learning.flower._client import NOT_COUNTED, answer
from velado.learning.flower._local_rows import Locally
from velado.learning.flower._pooled_newton import (
    figures_at,
    real,
    score_count,
    scores_of,
    summed_area,
    summed_pairs,
)
from velado.learning.flower.client_app import LoopGrid
from velado.learning.flower.flower_records import FederationStopped
from velado.learning.flower.server_app import serve
from velado.learning.flower.simulation import Ready, make_ready, run_ready
from velado.randomness import seeded
from velado.release.methods import Mondrian

from .test_secure_sum import Seen, asked, greeted, pooled_weights, ready_people, run

ROWS = 600
SETTINGS = {"clients": 5, "rounds": 30, "penalty": 1e-3}


def patients(rare: int = 1, role: str = "other", **more) -> tuple[pl.DataFrame, Schema]:
    """Six hundred people, of whom so many have the rare thing; further columns by their name."""
    draw = seeded(4, "tests", "patients")
    age, bmi = draw.integers(20, 90, ROWS), draw.uniform(18, 40, ROWS).round(1)
    died = draw.random(ROWS) < 1 / (1 + np.exp(-(age - 60) / 10))
    # Spread over the rows, so that most of the few are trained on and not held out.
    has = np.isin(np.arange(ROWS), np.linspace(5, ROWS - 5, rare).astype(int))
    columns = {"age": age, "bmi": bmi, "rare": np.where(has, "yes", "no"), **more}
    declared = {
        "age": {"role": "quasi", "kind": "numeric", "bounds": [0, 120]},
        "bmi": {"role": "other", "kind": "numeric", "bounds": [10, 60]},
        "rare": {"role": role, "kind": "categorical", "values": ["no", "yes"]},
        **{name: _declared(values) for name, values in more.items()},
        "died": {"role": "sensitive", "kind": "categorical", "values": ["no", "yes"]},
    }
    frame = pl.DataFrame({**columns, "died": np.where(died, "yes", "no")})
    return frame, Schema.from_dict({"columns": declared})


def _declared(values: np.ndarray) -> dict[str, object]:
    if values.dtype.kind in "if":
        return {"role": "other", "kind": "numeric", "bounds": [10, 60]}
    return {"role": "other", "kind": "categorical", "values": sorted(set(values.tolist()))}


def ready_patients(
    locally: Locally | None = None, rare: int = 1, role: str = "other", more=None, **settings
) -> Ready:
    frame, schema = patients(rare, role, **(more or {}))
    federation = Federation(**{**SETTINGS, **settings})
    return make_ready(frame, schema, locally or Locally(), federation, target="died")


def one_trained_on(**more) -> Ready:
    """The first seed of held-out rows under which the one with the rare thing is trained on."""
    for seed in range(20):
        ready = ready_patients(
            replace(more.get("locally", Locally()), seed=seed),
            **{k: v for k, v in more.items() if k != "locally"},
        )
        agreed = ready.terms.agreed
        at = [place for place, name in enumerate(ready.terms.encoder.names) if name == "rare#1"]
        if sum(part.features[:, at].sum() for part in ready.parts) >= 1:
            assert agreed.aggregation == "secure-sum"
            return ready
    raise AssertionError("never trained on")


@pytest.mark.parametrize(
    "locally", [Locally(), Locally(Mondrian(), k=5)], ids=["original", "other beside k = 5"]
)
def test_the_one_with_a_rare_thing_is_in_no_sum(locally) -> None:
    """Else the sum over the column is that patient's part of it, and the curvature's row is the patient's."""
    ready = one_trained_on(locally=locally)
    ended, seen = run(ready)
    assert isinstance(ended.stopped, FederationStopped)
    assert "In rare fewer than 10 rows differ from all the others" in str(ended.stopped)
    assert "Leave the column out" in ended.stopped.fix and "yes" not in str(ended.stopped)
    # The counts alone were summed.
    assert {kind for _, kind, _ in seen.said} == {"query", "census"}
    assert not ended.rounds.records
    with pytest.raises(FederationStopped, match="In rare fewer than 10"):
        run_ready(ready, "loop")


def test_noise_and_a_cell_of_one_need_no_count() -> None:
    for settings in ({"epsilon": 20}, {"least_cell": 1}):
        ready = one_trained_on(**settings)
        ended, seen = run(ready)
        assert ended.stopped is None and ended.rounds.records[-1].applied
        assert ("census" in {kind for _, kind, _ in seen.said}) == ("epsilon" not in settings)


def test_what_a_release_hides_in_groups_of_k_is_not_counted() -> None:
    """Every value of it that leaves a client is that of k rows there, so that no sum over it is one of fewer."""
    ready = ready_patients(Locally(Mondrian(), k=5), rare=30, role="quasi")
    names = ready.terms.encoder.names
    plan = census_plan(ready.terms.agreed)
    assert set(plan.names) == {"bmi", "died"}
    hidden = [at for at, name in enumerate(names) if not name.startswith("bmi")]
    for part in ready.parts:
        _, sizes = np.unique(part.features[:, hidden], axis=0, return_counts=True)
        assert sizes.min() >= 5
    ended, _ = run(ready)
    assert ended.stopped is None and ended.rounds.holder.finished


def test_two_columns_that_meet_in_one_person_are_never_summed_together() -> None:
    """The curvature of two flags that one person alone has is that person's chance, in every round."""
    flags = {
        name: np.where((np.arange(ROWS) % 11 == rest) | (np.arange(ROWS) == 7), "y", "n")
        for name, rest in (("a", 1), ("b", 4))
    }
    ready = ready_patients(rare=60, more=flags)
    agreed, names = ready.terms.agreed, ready.terms.encoder.names
    column = [name.rpartition("#")[0].rpartition(":")[0] or name.rpartition("#")[0] for name in names]
    pairs = [(one, other) for one, other in zip(*summed_pairs(agreed), strict=True) if other < len(names)]
    assert pairs and all(column[one] == column[other] for one, other in pairs)
    ended, _ = run(ready)
    assert ended.stopped is None and ended.rounds.holder.finished
    # The optimum is that of the pooled rows all the same.
    found = ended.rounds.holder.learned().weights.ravel()
    assert np.abs(found - pooled_weights(ready)).max() < 1e-3 * np.abs(found).max()


def test_columns_that_differ_in_a_few_rows_are_not_summed() -> None:
    frame, _ = patients()
    twin = frame["bmi"].to_numpy().copy()
    twin[[3, 50, 300]] += 1.5
    ended, _ = run(ready_patients(rare=60, more={"bmi2": twin}))
    assert "In bmi, bmi2 fewer than 10 rows differ" in str(ended.stopped)


def test_a_class_that_few_have_and_few_held_out_rows_end_the_run(people) -> None:
    ended, _ = run(ready_people(people, test_share=0.01, clients=3))
    assert "Fewer than 10 rows are held out" in str(ended.stopped)
    city = replace(people.schema.columns["city"], role="other", taxonomy=None)
    schema = people.schema.with_columns([*people.schema.columns.values(), city])
    few = people.table.with_frame(
        people.table.frame.with_columns(
            pl.when(pl.int_range(pl.len()) < 6).then(pl.lit("Gamma")).otherwise(pl.col("city")).alias("city")
        )
    )
    ready = make_ready(few.with_schema(schema), schema, Locally(), Federation(clients=3), target="city")
    assert "In city fewer than 10" in str(run(ready)[0].stopped)


def test_counts_are_those_of_the_pooled_rows() -> None:
    ready = ready_patients(rare=60)
    agreed = ready.terms.agreed
    figures = sum(
        census_figures(one.features, one.labels, one.test_labels.size, agreed) for one in ready.parts
    )
    assert figures.size == census_size(agreed)
    plan, names = census_plan(agreed), list(ready.terms.encoder.names)
    features = np.concatenate([one.features for one in ready.parts])
    labels = np.concatenate([one.labels for one in ready.parts])
    values = np.column_stack([features, labels])
    assert len(plan.names) == len(names) + 1 and figures[0] == labels.size
    counts = iter(figures[1:].tolist())
    for place, (column, point) in enumerate(plan.marked):
        for other, against in plan.marked[place:]:
            both = (values[:, column] != np.float32(point)) & (values[:, other] != np.float32(against))
            assert next(counts) == both.sum()
    for one, other in plan.twins:
        assert next(counts) == (values[:, one] != values[:, other]).sum()
    assert list(counts) == [sum(one.test_labels.size for one in ready.parts)]


def test_a_coordinator_that_does_not_count_gets_no_sum(people) -> None:
    client, state, packet = greeted(people, counted=False)
    for kind in ("train", "evaluate"):
        said, _ = answer(lambda: client, asked(packet, evaluate=1), state, kind)
        assert said.text("error") == NOT_COUNTED and not said.arrays
    noisy, state, packet = greeted(people, counted=False, epsilon=20)
    said, _ = answer(lambda: noisy, asked(packet, census=1), state, "train")
    assert said.text("error") == NOT_COUNTED and not said.arrays  # exact counts were not agreed on


def test_a_count_that_somebody_misses_is_asked_again(people) -> None:
    missed = []

    def silent(number, message, context) -> None:
        if number == 2 and len(missed) < 1:
            missed.append(number)
            message.content.array_records.clear()

    ready = ready_people(people)
    seen = Seen(ready, silent)
    seen.changed = ("census",)
    ended = serve(LoopGrid(seen, 4), ready.terms.agreed, 0)
    assert [one.applied for one in ended.rounds.records][:2] == [False, True]
    assert "client 2" in ended.rounds.records[0].missing and ended.rounds.holder.finished


@pytest.mark.parametrize(("apart", "spread", "base"), [(1.5, 1.0, 0.0), (2.0, 1.0, -4.0), (6.0, 2.0, -1.0)])
def test_the_area_of_summed_cosines_is_that_of_the_scores(
    people, apart: float, spread: float, base: float
) -> None:
    """Where a histogram would count the rows of one class with one score, these are sums over all rows of a class."""
    agreed, draw = ready_people(people).terms.agreed, seeded(2, "tests", "area")
    truth = (draw.random(2000) < 0.3).astype(np.int64)
    likely = 1 / (1 + np.exp(-(base + apart * truth + spread * draw.normal(size=2000))))
    figures = scores_of(np.column_stack([1 - likely, likely]), truth, agreed)
    assert figures.size == score_count(agreed)
    values = real(figures, agreed)
    assert summed_area(values[3:5], values[5:]) == pytest.approx(roc_auc_score(truth, likely), abs=0.005)


@pytest.mark.parametrize(("weight", "fits"), [(2.5, True), (2.4, False)])
def test_a_leaf_over_rows_as_they_are_has_as_many_as_a_sum(people, weight: float, fits: bool) -> None:
    def made(locally: Locally) -> Ready:
        federation = Federation(model="xgboost", clients=3, rounds=2, weight=weight)
        features = ["age", "city", "smokes"]
        return make_ready(
            people.table, people.schema, locally, federation, target="outcome", features=features
        )

    assert made(Locally(Mondrian(), k=5)).parts  # groups of k need no other number
    if fits:
        assert made(Locally()).parts
    else:
        with pytest.raises(ParameterError, match="fewer than 10 rows"):
            made(Locally())


def test_the_pooled_optimum_is_found_where_columns_depend_on_one_another() -> None:
    """Two columns that nearly repeat one another: what independence would say of them is far off."""
    frame, _ = patients()
    close = np.clip(frame["bmi"].to_numpy() + seeded(1, "tests", "close").normal(0, 0.3, ROWS), 10, 60).round(
        3
    )
    ready = ready_patients(rare=60, more={"bmi2": close})
    ended, _ = run(ready)
    assert ended.rounds.holder.finished
    scaling = ready.terms.agreed.scaling
    features = np.concatenate([scaling(one.features) for one in ready.parts])
    labels = np.concatenate([one.labels for one in ready.parts])
    model = LogisticRegression(C=1 / (1e-3 * labels.size), tol=1e-10, max_iter=10_000).fit(features, labels)
    ours = ended.rounds.holder.learned().probabilities(np.concatenate([one.features for one in ready.parts]))
    assert np.abs(ours - model.predict_proba(features)).max() < 1e-3
    first = sum(
        figures_at(
            np.zeros((features.shape[1] + 1, 1)), scaling(one.features), one.labels, ready.terms.agreed
        )
        for one in ready.parts
    )
    assert real(first, ready.terms.agreed)[0] == labels.size
