"""How long do encryption, decryption and the packed sums of a delegated regression take, beside what the powers alone cost?

Seconds are of the clock, best of a few, on two cores. `limit` is the number of modular powers and products times what
one was measured to cost, shared over two cores. The peer is `phe`, if it is installed (velado does not depend on it): one
ciphertext a value, since it does not pack, under the same key and on the same moments.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from benchmarks import paillier_cost as cost
from benchmarks.timing import Row, data_folder, print_rows
from velado.learning.crypto.fixed_point import Bounded, FixedPoint
from velado.learning.crypto.modular import exact_gram
from velado.learning.crypto.obfuscators import FullPower, ObfuscatorPool, OwnerPower, ShortPower
from velado.learning.crypto.paillier import (
    Packing,
    ciphertexts_from_bytes,
    ciphertexts_to_bytes,
    decrypt_many,
    dots,
    encrypt_many,
    obfuscate,
    sum_ciphertexts,
)
from velado.learning.crypto.paillier_keys import PrivateKey, keygen
from velado.randomness import secure

CLIENTS = 10
FRACTIONAL_BITS = 50
MANY = 20


@dataclass(frozen=True)
class Task:
    """A table as columns, the target last, and the bar of its regression stage."""

    name: str
    columns: dict[str, np.ndarray]
    bar: float

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return len(next(iter(self.columns.values())))

    def encoding(self) -> FixedPoint:
        """The fixed point with the observed range as public bounds."""
        bounds = [
            Bounded(n, (Fraction(float(v.min())), Fraction(float(v.max())))) for n, v in self.columns.items()
        ]
        return FixedPoint(tuple(bounds), FRACTIONAL_BITS)


def tasks() -> list[Task]:
    """Auto MPG (seven features) and Bike (twelve), as the source uses them."""
    folder = data_folder() / "regression"
    auto = pl.read_csv(folder / "auto-mpg.csv", null_values=["?", "NA", ""]).drop("name").drop_nulls()
    auto = auto.with_columns(pl.col("origin").rank("dense").cast(pl.Int64))
    bike = pl.read_csv(folder / "bike_hour.csv").drop("instant", "dteday", "casual", "registered")
    order = [name for name in auto.columns if name != "mpg"] + ["mpg"]
    return [
        Task("Auto", {name: auto[name].to_numpy() for name in order}, 0.1),
        Task("Bike", {name: bike[name].to_numpy() for name in bike.columns}, 0.3),
    ]


def clocks(work: Callable[[], Any], repeat: int, before: Callable[[], Any]) -> tuple[float, float]:
    """The least seconds by the clock and of the processor of *repeat* runs; *before* is not counted."""
    times, busy = [], []
    for _ in range(repeat):
        before()
        start, cpu = time.perf_counter(), time.process_time()
        work()
        times.append(time.perf_counter() - start)
        busy.append(time.process_time() - cpu)
    return min(times), min(busy)


def clock(work: Callable[[], Any], repeat: int = 3, before: Callable[[], Any] = lambda: None) -> float:
    """The least seconds by the clock."""
    return clocks(work, repeat, before)[0]


def moments(columns: list[np.ndarray]) -> list[int]:
    """The upper triangle of X^T X and X^T y of encoded columns, intercept first, target last."""
    gram = exact_gram(columns)
    size = len(columns) - 1
    return [gram[i][j] for i in range(size) for j in range(i, size + 1)]


def clients_of(task: Task) -> tuple[list[list[np.ndarray]], list[int]]:
    """Each client's encoded columns, intercept first, and the public bound of each moment of one client."""
    grid = task.encoding()
    encoded = [grid.encode(name, values) for name, values in task.columns.items()]
    encoded = [np.full(task.rows, grid.one), *encoded]
    parts = [[part.copy() for part in np.array_split(column, CLIENTS)] for column in encoded]
    reach = [grid.one, *(grid.reach(name) for name in task.columns)]
    most = -(-task.rows // CLIENTS)
    size = len(encoded) - 1
    bounds = [most * reach[i] * reach[j] for i in range(size) for j in range(i, size + 1)]
    return [[column[k] for column in parts] for k in range(CLIENTS)], bounds


def regression_stage(
    private: PrivateKey, clients: list[list[np.ndarray]], packing: Packing, pool: ObfuscatorPool
) -> list[int]:
    """Moments, packing, encryption, bytes, checks, sum, re-randomisation, decryption, unpacking."""
    key = private.public
    sent = [
        ciphertexts_to_bytes(key, encrypt_many(key, packing.pack(moments(columns)), pool))
        for columns in clients
    ]
    read = [ciphertexts_from_bytes(key, data, packing.plaintexts) for data in sent]
    summed = obfuscate([sum_ciphertexts(column) for column in zip(*read, strict=True)], pool)
    return packing.unpack(decrypt_many(private, summed))


def phe_seconds(private: PrivateKey, values: list[list[int]]) -> float | None:
    """The same sums with the peer, one ciphertext a value; None where it is not installed."""
    try:
        peer = importlib.import_module("phe")
    except ImportError:
        return None
    public = peer.PaillierPublicKey(int(private.public.n))
    secret = peer.PaillierPrivateKey(public, int(private.p), int(private.q))
    start = time.perf_counter()
    sent = [[public.encrypt(value) for value in row] for row in values[:1]]
    # All clients do the same work: one is timed, the others are added up with copies of it.
    encrypting = (time.perf_counter() - start) * len(values)
    start = time.perf_counter()
    summed = [sum(column[1:], column[0]) for column in zip(*(sent * len(values)), strict=True)]
    found = [secret.decrypt(c) for c in summed]
    seconds = encrypting + time.perf_counter() - start
    assert found == [len(values) * value for value in values[0]]
    return seconds


def operations(private: PrivateKey, unit: cost.UnitCost) -> list[Row]:
    """One operation at a time, in milliseconds, averaged over many."""
    key = private.public
    makers = {
        "full power": FullPower(key),
        "by the key's owner": OwnerPower(private),
        "short exponents (not the default)": ShortPower(key, accept_short_exponents=True),
    }
    rows = [
        Row(f"obfuscator, {name}", clock(lambda m=maker: m.make(MANY)) / MANY * 1e3, "ms")
        for name, maker in makers.items()
    ]
    pool = ObfuscatorPool(FullPower(key))
    plain = [secure().randrange(-(2**1000), 2**1000) for _ in range(MANY)]
    sealed = encrypt_many(key, plain, pool)
    without = clock(lambda: encrypt_many(key, plain, pool)) / MANY * 1e3
    pooled = clock(lambda: encrypt_many(key, plain, pool), before=lambda: pool.fill(MANY)) / MANY * 1e3
    decrypted = clock(lambda: decrypt_many(private, sealed)) / MANY * 1e3
    rows += [
        Row("encrypt, no pool", without, "ms", note=f"limit {unit.full_power / 2 * 1e3:.3g} ms"),
        Row("encrypt, filled pool", pooled, "ms", note=f"limit {2 * unit.multiplication * 1e3:.3g} ms"),
        Row("decrypt", decrypted, "ms", note=f"limit {unit.crt_power / 2 * 1e3:.3g} ms"),
    ]
    for size in (8, 13):
        factors = [[secure().randrange(int(key.n)) for _ in range(size)] for _ in range(size)]
        limit = cost.matrix_product(1, size, size, key.bits).seconds(unit)
        seconds = clock(lambda s=size, f=factors: dots(sealed[:s], f), repeat=1)
        rows.append(
            Row(
                f"row of {size} times a random {size} x {size}",
                seconds,
                "s",
                note=f"limit {limit:.3g} s, one core",
            )
        )
    return rows


def main() -> None:
    """Print the tables."""
    work = tasks()
    rows = []
    for task in work:
        grid = task.encoding()
        rows.append(
            Row(
                f"{task.name}: fixed point, {task.rows} x {len(task.columns)} at q = {FRACTIONAL_BITS}",
                clock(lambda t=task, g=grid: [g.encode(name, values) for name, values in t.columns.items()]),
                "s",
                bar=0.5,
            )
        )
    print_rows("Fixed point", rows)
    for bits in (2048, 3072):
        private = keygen(bits)
        unit = cost.measure(private)
        title = f"{bits} bits: one power {unit.full_power * 1e3:.3g} ms, by CRT {unit.crt_power * 1e3:.3g} ms, one product {unit.multiplication * 1e6:.3g} us"
        print_rows(title, operations(private, unit))
        rows = []
        for task in work:
            clients, bounds = clients_of(task)
            packing = Packing.for_key(private.public, bounds, CLIENTS)
            pool = ObfuscatorPool(FullPower(private.public))
            needed = (CLIENTS + 1) * packing.plaintexts
            values = [moments(columns) for columns in clients]
            assert regression_stage(private, clients, packing, pool) == [
                sum(v) for v in zip(*values, strict=True)
            ]
            run = partial(regression_stage, private, clients, packing, pool)
            pooled = clocks(run, 5, partial(pool.fill, needed))
            bare = clocks(run, 2, pool.close)
            peer = phe_seconds(private, values)
            for name, (seconds, busy), filled in (("filled pool", pooled, True), ("no pool", bare, False)):
                limit = cost.packed_sum(CLIENTS, packing.plaintexts, filled).seconds(unit, cores=2)
                rows.append(
                    Row(
                        f"{task.name}, {len(bounds)} moments, {CLIENTS} clients, {name}",
                        seconds,
                        "s",
                        bar=task.bar if filled and bits == 3072 else None,
                        peer=peer,
                        peer_name="phe",
                        note=f"{packing.plaintexts} ciphertexts a client; limit {limit:.3g} s; {busy:.3g} CPU s",
                    )
                )
        print_rows(f"Delegated regression, sums only, {bits} bits, q = {FRACTIONAL_BITS}", rows)


if __name__ == "__main__":
    main()
