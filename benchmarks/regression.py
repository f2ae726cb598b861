"""How long does the regression stage take, from the last client's sums to the coefficients, beside what its arithmetic alone costs?

Ten clients, a key of 3,072 bits, two cores, all parties in one process; the key is made beforehand, as are the clients'
ciphertexts. `limit` is the number of modular powers and products of the stage times what one was measured to cost here
and now, shared over two cores. Seconds are of the clock; seconds of the processor stand in the note, since other work on the
machine does not count in them. The peer is `phe`, if it is installed (it is GPL: velado is timed beside it and does not
depend on it), on Method 2's work under the same key: it does not pack, so it decrypts one ciphertext a sum.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl

from benchmarks import paillier_cost as cost
from benchmarks.timing import Row, data_folder, print_rows
from velado.learning.crypto.fixed_point import Bounded
from velado.learning.crypto.modular import plan
from velado.learning.crypto.paillier_keys import PrivateKey, keygen
from velado.learning.protocols.delegated_regression import packing_for
from velado.learning.protocols.protocol import Message
from velado.learning.protocols.role import make_role
from velado.learning.regression.design_matrix import flatten, moments_of, total
from velado.learning.regression.fit import solve
from velado.learning.regression.job import Job, Party
from velado.learning.regression.simulate import deliver
from velado.papers.regression.paper_masked import WITH_PAPER
from velado.randomness import Tape

CLIENTS, KEY_BITS = 10, 3072
SEED = b"benchmarks of regression: a seed"


@dataclass(frozen=True)
class Task:
    """A table, the protocol and q it is fitted with, and the bar of its regression stage in seconds."""

    table: str
    protocol: str
    bits: int
    bar: float | None


TASKS = (
    Task("Auto", "delegated", 50, 0.1),
    Task("Bike", "delegated", 50, 0.3),
    Task("Auto", "masked", 20, 12.0),
    Task("Bike", "masked", 10, 60.0),
    Task("Auto", "paper-masked", 50, 4.0),
    Task("Bike", "paper-masked", 50, 8.0),
    Task("Auto", "secure-sum", 50, None),
    Task("Bike", "secure-sum", 50, None),
)


def multiplications(bases: int, rows: int, inner: int, columns: int, bits: int) -> int:
    """How many products modulo the modulus `grid_products` does at most, for exponents of so many bits."""
    window, groups = plan(rows, inner, columns, bits)
    steps = -(-bits // window)
    folding = sum((2 << (window * len(group))) + 2 * window * len(group) for group in groups)
    return bases * (steps - 1) * window + rows * (inner * steps * len(groups) + folding)


def table_of(name: str) -> tuple[pl.DataFrame, str]:
    """Auto MPG (seven features) or Bike (twelve), as the source uses them, and the target."""
    folder = data_folder() / "regression"
    if name == "Bike":
        frame = pl.read_csv(folder / "bike_hour.csv").drop("instant", "dteday", "casual", "registered")
        return frame, "cnt"
    frame = pl.read_csv(folder / "auto-mpg.csv", null_values=["?", "NA", ""]).drop("name").drop_nulls()
    return frame.with_columns(pl.col("origin").rank("dense").cast(pl.Int64)), "mpg"


def job_of(task: Task, frame: pl.DataFrame, target: str) -> Job:
    """The job with whole numbers around the observed range as public bounds."""

    def bounded(name: str) -> Bounded:
        values = frame[name].to_numpy()
        return Bounded(name, (Fraction(int(np.floor(values.min()))), Fraction(int(np.ceil(values.max())))))

    parties = [Party("e", "evaluator"), *(Party(f"c{i}", "client") for i in range(CLIENTS))]
    if task.protocol != "secure-sum":
        parties.append(Party("p", "provider"))
    features = tuple(bounded(name) for name in frame.columns if name != target)
    return Job(
        task.table, WITH_PAPER[task.protocol], features, bounded(target), tuple(parties),
        bits=task.bits, key_bits=KEY_BITS, most_rows=frame.height,
    )  # fmt: skip


def stage(job: Job, tables: Mapping[str, Any], private: PrivateKey) -> tuple[float, float, list[float]]:
    """Seconds of the clock and of the processor from the last word of a client on, and the coefficients."""
    roles = {
        party.name: job.protocol.provider(job, party.name, Tape(SEED, "p"), private)
        if party.role == "provider"
        else make_role(job, party.name, Tape(SEED, party.name).bytes(32), tables.get(party.name))
        for party in job.parties
    }
    began = [0.0, 0.0]

    def watch(message: Message) -> Sequence[Message]:
        if job.party(message.sender).role == "client" and message.receiver == "e":
            began[:] = time.perf_counter(), time.process_time()
        return (message,)

    start = time.perf_counter(), time.process_time()
    deliver(roles, watch)
    if (
        job.protocol.name == "secure-sum"
    ):  # there is no stage after the sum but the solution: the whole run counts
        began[:] = start
    wall, busy = time.perf_counter() - began[0], time.process_time() - began[1]
    outcome = roles["e"].outcome
    assert outcome is not None and outcome.fit is not None, roles["e"].failure
    return wall, busy, list(outcome.fit.coefficients)


def operations(job: Job, private: PrivateKey) -> cost.Operations | None:
    """The powers and products of the stage; None where there are none, or the protocol is not ours."""
    width = job.width
    if job.protocol.name == "delegated":
        return cost.decryptions(packing_for(job, private.public).plaintexts)
    if job.protocol.name == "masked":
        entries = width * (width + 1)
        products = multiplications(entries // 2, width, width, width + 1, KEY_BITS)
        return cost.Operations(entries, entries, products)
    return None


def phe_seconds(private: PrivateKey, sums: Sequence[int]) -> float | None:
    """Method 2's stage with the peer: every sum decrypted by itself; None where it is not installed."""
    try:
        peer = importlib.import_module("phe")
    except ImportError:
        return None
    public = peer.PaillierPublicKey(int(private.public.n))
    secret = peer.PaillierPrivateKey(public, int(private.p), int(private.q))
    sealed = [peer.EncryptedNumber(public, public.raw_encrypt(value % public.n), 0) for value in sums]
    start = time.perf_counter()
    found = [secret.decrypt_encoded(c).encoding for c in sealed]
    seconds = time.perf_counter() - start
    assert found == [value % public.n for value in sums]
    return seconds


def measured(task: Task, private: PrivateKey, unit: cost.UnitCost) -> Row:
    """One line of the table; a default protocol whose coefficients are not exactly least squares stops the benchmark."""
    frame, target = table_of(task.table)
    job = job_of(task, frame, target)
    tables = {
        f"c{i}": {name: frame[name].to_numpy()[i::CLIENTS] for name in frame.columns} for i in range(CLIENTS)
    }
    sums = total([moments_of(table, job) for table in tables.values()])
    repeat = 3 if task.protocol in ("delegated", "secure-sum") else 1
    wall, busy, found = min(stage(job, tables, private) for _ in range(repeat))
    if task.protocol != "paper-masked":
        assert found == [float(value) for value in solve(sums, job)]
    note = f"{busy:.3g} s of the processor"
    work = operations(job, private)
    if work is not None:
        note += (
            f"; limit {work.seconds(unit, 2):.3g} s ({work.full_powers} powers, {work.crt_powers} decryptions, "
            f"{work.multiplications} products)"
        )
    peer = phe_seconds(private, flatten(sums)) if task.protocol == "delegated" else None
    what = f"{task.table}: {task.protocol}, q = {task.bits}, D = {job.width}"
    if task.protocol == "secure-sum":
        what += ", the whole run"
    return Row(what, wall, "s", task.bar, peer, "phe", note)


def main() -> None:
    """Print the table."""
    private = keygen(KEY_BITS)
    unit = cost.measure(private)
    title = (
        f"Regression stage, {CLIENTS} clients, {KEY_BITS} bits: one power {unit.full_power * 1e3:.3g} ms, one decryption "
        f"{unit.crt_power * 1e3:.3g} ms, one product {unit.multiplication * 1e6:.3g} us"
    )
    print_rows(title, [measured(task, private, unit) for task in TASKS])


if __name__ == "__main__":
    main()
