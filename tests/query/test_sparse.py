"""Counts above a threshold over a large domain: the distribution of noise on every key, at the cost of the keys that hold rows."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from velado.data.schema import Column, Schema
from velado.data.table import Table
from velado.errors import QueryRefused
from velado.query import noise
from velado.query.budget import Budget
from velado.query.session import Session
from velado.query.sparse import DRAWN_ALL, check_threshold, draw_above
from velado.query.sql import parse
from velado.query.store import create_ledger

KEYS = 20_000
SCHEMA = Schema(
    {
        "code": Column("code", values=tuple(f"c{i:05d}" for i in range(KEYS))),
        "zip": Column("zip", kind="numeric", bounds=(0, KEYS - 1), step=1),
        "sex": Column("sex", values=("F", "M")),
    }
)
ABOVE = "SELECT code, COUNT(*) AS n FROM stays GROUP BY code HAVING COUNT(*) >= 30"
# Mechanism, scale, threshold: noise alone shows about one empty cell in thirty.
NOISES = [("laplace", 3.0, 8), ("gaussian", 5.0, 10)]


def stays() -> Table:
    codes = [f"c{i:05d}" for i in range(40) for _ in range(10 * i)] + ["nowhere"] * 100
    frame = pl.DataFrame({"code": codes, "zip": ["7"] * len(codes), "sex": ["F"] * len(codes)})
    return Table.of(frame, SCHEMA, "stays")


def chances(kind: str, scale: float, numbers: np.ndarray) -> np.ndarray:
    """P(noise = x), up to one factor."""
    x = numbers.astype(np.float64)
    return np.exp(-np.abs(x) / scale) if kind == "laplace" else np.exp(-(x**2) / (2 * scale**2))


@pytest.mark.parametrize(("kind", "scale", "least"), NOISES)
def test_empty_keys_are_shown_as_often_where_and_with_what_as_if_each_had_noise(kind, scale, least) -> None:
    cells, draws = 2 * DRAWN_ALL, 6
    measure = "epsilon" if kind == "laplace" else "rho"
    tally = np.zeros(cells, dtype=np.int64)
    tally[::100] = 40
    empty = np.flatnonzero(tally == 0)
    every = np.arange(-400, 401)
    weights = chances(kind, scale, every)
    p = float(weights[every >= least].sum() / weights.sum())
    assert math.isclose(p, noise.chance_at_least(kind, scale, least), rel_tol=1e-9)
    numbers, where, values = [], np.zeros(20), []
    for seed in range(draws):
        places, shown = draw_above(kind, measure, scale, tally, least, bits=random.Random(seed).getrandbits)
        assert (np.diff(places) > 0).all() and places.max() < cells and shown.min() >= least
        lifted = np.isin(places, empty)
        numbers.append(int(lifted.sum()))
        where += np.bincount(places[lifted] * 20 // cells, minlength=20)
        values.append(shown[lifted])
    expected = draws * len(empty) * p
    assert abs(sum(numbers) - expected) < 4.5 * math.sqrt(expected * (1 - p))
    # Neighbours in the order are shown independently: the numbers in the twenty parts vary as those of coins do.
    apart = ((where - expected / 20) ** 2).sum() / (expected / 20 * (1 - p))
    assert 4 < apart < 50
    found = np.concatenate(values)
    tail = np.arange(least, least + 400)
    exact = chances(kind, scale, tail) / chances(kind, scale, tail).sum()
    kept = exact * len(found) >= 10
    seen = np.bincount(found - least, minlength=400)[:400]
    wanted = exact[kept] * len(found)
    chi = float(((seen[kept] - wanted) ** 2 / wanted).sum())
    degrees = int(kept.sum())
    assert chi < degrees + 4.5 * math.sqrt(2 * degrees)


@pytest.mark.parametrize(("kind", "scale", "least"), NOISES)
def test_held_keys_have_the_noise_of_every_count(kind, scale, least) -> None:
    measure = "epsilon" if kind == "laplace" else "rho"
    cells = 2 * DRAWN_ALL
    tally = np.zeros(cells, dtype=np.int64)
    tally[:8000] = least
    places, shown = draw_above(kind, measure, scale, tally, least, bits=random.Random(1).getrandbits)
    held = shown[places < 8000] - least
    # Noise of 0 or more leaves them there.
    p = 1 - noise.chance_at_least(kind, scale, 1)
    assert abs(len(held) - 8000 * p) < 4.5 * math.sqrt(8000 * p * (1 - p))


def test_a_gap_is_the_floor_of_two_logarithms_however_many_digits_it_takes() -> None:
    """The first shown cell from known bits, beside floating point; all ones, then all zeros, ask for more bits and end."""

    class Bits(random.Random):
        def __init__(self, first: int) -> None:
            super().__init__(3)
            self._next = [first]

        def getrandbits(self, k: int, /) -> int:
            return self._next.pop() if self._next else super().getrandbits(k)

    tally = np.zeros(2 * DRAWN_ALL, dtype=np.int64)
    p = noise.chance_at_least("laplace", 3.0, 20)
    for first in (1 << 63, 12345 << 48, (1 << 64) - 1, 0):
        places, _ = draw_above("laplace", "epsilon", 3.0, tally, 20, bits=Bits(first).getrandbits)
        gap = (
            0
            if first + 1 == 1 << 64
            else None
            if first == 0
            else math.floor(math.log(first / 2**64) / math.log1p(-p))
        )
        if gap is not None and gap < len(tally):
            assert places[0] == gap
        else:
            assert len(places) == 0


def test_a_key_chosen_beforehand_is_told_truly_as_often_as_stated() -> None:
    least, scale, cells = 12, 4.0, 2 * DRAWN_ALL
    tally = np.zeros(cells, dtype=np.int64)
    tally[:4000] = np.arange(4000) % 30
    half = noise.half_width("laplace", scale, Fraction(19, 20))
    told = trials = 0
    for seed in range(4):
        places, shown = draw_above(
            "laplace", "epsilon", scale, tally, least, bits=random.Random(seed).getrandbits
        )
        noisy = np.full(cells, -1)
        noisy[places] = shown
        kept = noisy >= least
        true = np.where(kept, np.abs(noisy - tally) <= half, tally < least + half)
        told, trials = told + int(true[:4000].sum()), trials + 4000
    assert told / trials > 0.95 - 4 * math.sqrt(0.95 * 0.05 / trials)


def test_only_declared_keys_are_shown_the_full_ones_surely_and_it_is_paid_once(tmp_path: Path) -> None:
    ledger = create_ledger(tmp_path / "stays.ledger", "stays", Budget.epsilon(4), seal=tmp_path / "seal")
    with Session(stays(), budget=ledger, name="stays") as session:
        price = session.price(ABOVE, within=5)
        assert ledger.state().spent == 0 and 0 < price.to_dict()["values"][0]["lifted"] < 1
        answer = session.answer(ABOVE, within=5)
        assert ledger.state().spent == price.charge
        again = session.answer(ABOVE, within=5)
        assert again.stored and again.frame.equals(answer.frame) and ledger.state().spent == price.charge
        two = session.answer(
            "SELECT COUNT(*) AS n FROM stays GROUP BY sex, zip HAVING n > 99", spend=1, confidence=0.9
        )
    ledger.close()
    found = dict(zip(answer.frame["code"].to_list(), answer.frame["n"].to_list(), strict=True))
    assert {f"c{i:05d}" for i in range(6, 40)} <= set(found) and min(found.values()) >= 30
    # The rows whose value nobody declared stand together, in the cell of the missing.
    assert None in found and abs(found[None] - 100) < 20 and "nowhere" not in found
    assert two.frame.columns == ["sex", "zip", "n", "n_low", "n_high"] and two.frame.rows()[0][:2] == (
        "F",
        "7",
    )


def test_a_threshold_that_noise_alone_reaches_too_often_is_refused_before_it_is_paid() -> None:
    with Session(stays(), budget=1, name="stays") as session:
        with pytest.raises(QueryRefused, match="Noise alone"):
            session.answer(ABOVE.replace("30", "1"), spend="0.1")
        assert session.state().spent == 0
    assert check_threshold("laplace", 10.0, 1, 100) < 100  # few keys: noise is drawn for each


@pytest.mark.parametrize(
    "having",
    [
        "AVG(zip) > 5",
        "COUNT(*) < 5",
        "COUNT(*) >= 0",
        "COUNT(*) >= 2.5",
        "COUNT(zip) >= 5",
        "m >= 5",
        "5 <= n",
        "n >= 5 AND n > 6",
    ],
)
def test_having_is_a_least_count_of_the_count_that_is_asked(having: str) -> None:
    with pytest.raises(QueryRefused):
        parse(f"SELECT COUNT(*) AS n FROM stays GROUP BY sex HAVING {having}", SCHEMA, "stays")


def test_without_having_so_many_keys_are_refused_with_the_way_out() -> None:
    with pytest.raises(QueryRefused) as caught:
        parse("SELECT COUNT(*) FROM stays GROUP BY code", SCHEMA, "stays")
    assert "HAVING" in caught.value.fix
    asked = parse("SELECT COUNT(*) AS n FROM stays GROUP BY sex HAVING n > 29", SCHEMA, "stays")
    assert asked == parse(
        "SELECT COUNT(*) AS n FROM stays GROUP BY sex HAVING COUNT(*) >= 30", SCHEMA, "stays"
    )
    assert '"least":30' in asked.canonical()
