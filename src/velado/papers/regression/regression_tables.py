"""Tables 7 to 10 of the encrypted-regression source: the errors and times of its two methods, on its four data sets.

The error is that of equation 3.1, |beta~ - beta| / |beta| in Euclidean length, here worked out on exact fractions. Method 1 is not
private (`velado.papers.regression.mask_attacks`); it is run to compare figures. Delegated regression gives the exact solution.

The published errors of Method 1 are about four orders of magnitude larger than masks up to 2^10 e give. We tried ranges up to 2,
4, 8, 16, 32, 128 and 1024 e after seeing that, with nine draws for each of the 16 cells with q <= 40: the published figure lies
within the draws in 8, 12, 12, 12, 4, 2 and 0 cells. So 4 to 16 fit about equally, 8 with the smallest mean deviation, and the stated
1024 does not. The cause is not known, since the source's code is not published; that `2^10` is 8 in Python is a guess. The tables
show the stated range and, as a fit made afterwards, 8.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import gmpy2
import numpy as np
import polars as pl
from numpy.typing import NDArray

from velado.data.io import read_table
from velado.learning.crypto.fixed_point import Bounded, Columns
from velado.learning.crypto.paillier_keys import PrivateKey, keygen
from velado.learning.protocols.delegated_regression import DELEGATED as DELEGATED_PROTOCOL
from velado.learning.protocols.protocol import Message, RegressionProtocol
from velado.learning.protocols.role import Role, make_role
from velado.learning.regression.design_matrix import moments_of
from velado.learning.regression.fit import Moments, solve, solve_encoded
from velado.learning.regression.job import Job, Party
from velado.learning.regression.simulate import deliver
from velado.papers.paper_figure import Drawn
from velado.papers.paper_registry import HONEST, METHOD, PAPER, PUBLISHED, Cell, Reproduced, Reproduction
from velado.papers.regression.paper_arithmetic import SPREAD, paper_moments, paper_solution
from velado.papers.regression.paper_masked import PAPER_MASKED
from velado.randomness import Tape
from velado.release.goal import Progress
from velado.text import Sentence, join, say

# The four data sets of the encrypted-regression source, and the figures it published for them.
#
# Columns as the source left them: Auto MPG without the name and the 6 rows without horsepower; Forest Fires without the month,
# days as 1 to 7 from Monday; Bike Sharing without index, date, casual and registered. Our Auto MPG has origins as names, coded
# 1 to 3; with that coding Table 8 comes out to its published digits up to q = 30. A row with a missing cell is left out.

Floats = NDArray[np.float64]
BITS = (10, 20, 30, 40, 50)
CLIENTS = 10
_DAYS = {day: str(k + 1) for k, day in enumerate(("mon", "tue", "wed", "thu", "fri", "sat", "sun"))}


@dataclass(frozen=True)
class _RegressionTable:
    """A table of the source: file, target, columns left out, codes of texts, and its published figures by q."""

    name: str
    title: str
    file: str
    target: str
    rows: int
    dropped: tuple[str, ...]
    table_7: tuple[float, ...]
    table_8: tuple[float, ...]
    table_9: tuple[float, ...]
    minutes_1: tuple[float, ...]
    minutes_2: tuple[float, ...]
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def read(self, data: Path) -> dict[str, Floats]:
        """The columns as floats, features in the file's order and the target last."""
        frame = read_table(data / self.file).frame
        features = [name for name in frame.columns if name not in (*self.dropped, self.target)]
        numbers = frame.select(
            pl.col(name).replace(self.codes.get(name, {})).cast(pl.Float64, strict=False)
            for name in (*features, self.target)
        ).drop_nulls()
        return {name: numbers[name].to_numpy() for name in numbers.columns}


def job_for(
    data_set: _RegressionTable,
    columns: dict[str, Floats],
    protocol: RegressionProtocol,
    bits: int,
    key_bits: int,
    clients: int = CLIENTS,
) -> Job:
    """A job over these columns, bounded as somebody who knows their units would: density within 0.98 and 1.04.

    >>> columns = {"x": np.linspace(0.2, 4.1, 600), "y": np.linspace(1.0, 9.0, 600)}
    >>> job = job_for(AUTO, columns, DELEGATED_PROTOCOL, bits=20, key_bits=KEY_BITS)
    >>> float(job.target.low), float(job.target.high), job.most_rows
    (1.0, 9.0, 600)
    """

    def bounded(name: str) -> Bounded:
        low, high = float(columns[name].min()), float(columns[name].max())
        # Outwards to the first digit of the span; for published data that gives nothing away.
        step = Fraction(10) ** math.floor(math.log10(high - low))
        return Bounded(
            name, (math.floor(Fraction(low) / step) * step, math.ceil(Fraction(high) / step) * step)
        )

    *features, target = columns
    parties = (
        Party("evaluator", "evaluator"),
        Party("provider", "provider"),
        *(Party(f"client {k + 1}", "client") for k in range(clients)),
    )
    rows = len(columns[target])
    return Job(
        data_set.name,
        protocol,
        tuple(bounded(name) for name in features),
        bounded(target),
        parties,
        bits=bits,
        key_bits=key_bits,
        most_rows=rows,
        minimum_clients=min(3, clients),
    )


def _shares(columns: dict[str, Floats], job: Job) -> dict[str, dict[str, Floats]]:
    """The rows dealt out to the job's clients in turn."""
    clients = job.of("client")
    return {
        party.name: {name: values[k :: len(clients)] for name, values in columns.items()}
        for k, party in enumerate(clients)
    }


AUTO = _RegressionTable(
    name="auto-mpg",
    title="Auto MPG",
    file="regression/auto-mpg.csv",
    target="mpg",
    rows=392,
    dropped=("name",),
    table_7=(6.34e-8, 3.10e-14, 2.80e-20, 3.14e-26, 1.20e-29),
    table_8=(1.32e-4, 9.94e-8, 1.26e-10, 1.82e-13, 2.75e-13),
    table_9=(2.51e-9, 1.94e-14, 9.28e-17, 2.86e-17, 5.57e-17),
    minutes_1=(5.67, 5.11, 5.28, 5.11, 2.96),
    minutes_2=(9.70e-2, 9.85e-2, 0.101, 0.112, 0.100),
    codes={"origin": {"America": "1", "Europe": "2", "Asia": "3"}},
)
FIRES = _RegressionTable(
    name="forest-fires",
    title="Forest Fires",
    file="regression/forestfires.csv",
    target="area",
    rows=517,
    dropped=("month",),
    table_7=(1.96e-8, 1.33e-15, 7.04e-21, 2.29e-27, 2.72e-29),
    table_8=(9.55e-5, 8.86e-7, 9.13e-10, 2.96e-12, 2.17e-12),
    table_9=(-6.39e-10, 5.52e-14, 8.23e-17, 8.38e-17, -1.76e-17),
    minutes_1=(12.43, 8.05, 10.56, 9.56, 9.86),
    minutes_2=(0.235, 0.218, 0.233, 0.266, 0.270),
    codes={"day": _DAYS},
)
WINE = _RegressionTable(
    name="wine",
    title="Wine Quality",
    file="regression/winequality-white.csv",
    target="quality",
    rows=4898,
    dropped=(),
    table_7=(1.89e-5, 5.25e-13, 5.22e-18, 8.85e-24, 5.00e-27),
    table_8=(0.213, 2.12e-5, 8.48e-8, 5.60e-8, 5.60e-8),
    table_9=(1.49e-5, 5.25e-13, 6.10e-17, 4.32e-17, -3.45e-17),
    minutes_1=(8.99, 7.16, 9.39, 6.83, 6.29),
    minutes_2=(0.242, 0.253, 0.305, 0.337, 0.345),
)
BIKE = _RegressionTable(
    name="bike",
    title="Bike Sharing",
    file="regression/bike_hour.csv",
    target="cnt",
    rows=17379,
    dropped=("instant", "dteday", "casual", "registered"),
    table_7=(1.36e-9, 1.81e-15, 2.51e-21, 3.86e-29, 2.52e-30),
    table_8=(1.52e-2, 1.96e-6, 8.74e-9, 1.04e-11, 1.30e-11),
    table_9=(1.19e-9, -1.59e-17, -2.54e-18, 1.12e-18, 1.84e-17),
    minutes_1=(9.26, 11.17, 10.80, 11.74, 13.87),
    minutes_2=(0.272, 0.357, 0.267, 0.856, 0.944),
)
DATA_SETS = (AUTO, FIRES, WINE, BIKE)


NONE = say(
    "none for Method 1, whose masks cancel; in delegated regression the provider sees the pooled sums and nobody sees a client's"
)
DELEGATED = join([HONEST, say("delegated")], ", ")
NARROWED = join([PAPER, say("masks to 8 e")], ", ")
STATED = join([PAPER, say("masks to 2^10 e")], ", ")
KEY_BITS = 2048
NARROW = 3  # masks up to 8 e: fitted to the published figures, see above
EVERY_BIT = 128  # the doubles of these tables are whole multiples of 2^-128
TRIES = 5
_SEED = bytes(32)
_STANDS = say(
    "published no longer falls with q as ours does: probably rounding in its reference or arithmetic"
)
_NOISE = say("published is below the rounding unit of doubles, 2^-52")
_MISPRINT = say("published does not fit its own slope in q; 9.55e-04 would: perhaps a misprint")
_HEAD = (say("table"), say("rows"), say("features"), "q")
_NOTE = say("note")

Beta = Sequence[Fraction]


def relative_error(found: Beta, true: Beta) -> Any:
    """Equation 3.1 with 400 bits: differences of differences are wanted in Table 9.

    >>> float(relative_error([Fraction(3), Fraction(5)], [Fraction(3), Fraction(4)]))
    0.2
    """
    with gmpy2.context(precision=400):
        over = sum(((a - b) ** 2 for a, b in zip(found, true, strict=True)), Fraction(0))
        under = sum((b * b for b in true), Fraction(0))
        return gmpy2.sqrt(gmpy2.mpfr(gmpy2.mpq(over.numerator, over.denominator))) / gmpy2.sqrt(
            gmpy2.mpfr(gmpy2.mpq(under.numerator, under.denominator))
        )


def _exact_beta(columns: dict[str, Floats], data_set: _RegressionTable) -> tuple[Fraction, ...]:
    """Least squares on the doubles themselves, exactly: beta without conversion."""
    job = job_for(data_set, columns, DELEGATED_PROTOCOL, EVERY_BIT, KEY_BITS)
    return solve(moments_of(columns, job), job)


def float_beta(columns: dict[str, Floats]) -> tuple[Fraction, ...]:
    """The same as one writes it in NumPy: inv(X^T X) X^T y, in double precision.

    >>> [round(float(b), 6) for b in float_beta({"x": np.array([0.0, 1.0, 2.0]), "y": np.array([1.0, 3.0, 5.0])})]
    [1.0, 2.0]
    """
    *features, y = columns.values()
    design = np.column_stack([np.ones(len(y)), *features])
    found = np.linalg.inv(design.T @ design) @ design.T @ y
    return tuple(Fraction(float(value)) for value in found)


def _method_1(moments: Moments, bits: int, spread: int) -> list[tuple[Fraction, ...]]:
    """Results of Method 1 under several draws of its masks."""
    return [
        paper_solution(moments.matrix, moments.vector, bits, Tape(_SEED, f"{k}"), spread=spread)
        for k in range(TRIES)
    ]


def _middle(errors: Sequence[Any]) -> float:
    """The median of an odd number of errors, as a float."""
    return float(sorted(errors)[len(errors) // 2])


def _run_default(job: Job, columns: dict[str, Floats], private: PrivateKey) -> tuple[float, ...]:
    """The coefficients of a whole run of delegated regression with ten clients, all roles."""
    roles = _roles(job, _shares(columns, job), private)
    deliver(roles)
    outcome = roles["evaluator"].outcome
    if outcome is None or outcome.fit is None:
        raise RuntimeError(f"the run ended without a result: {roles['evaluator'].failure}")
    return outcome.fit.coefficients


def _errors(data: Path, progress: Progress, table: int, quick: bool) -> Reproduced:
    """Tables 7 and 8: the error against beta with conversion, or without."""
    private = keygen(KEY_BITS, Tape(_SEED, "key"))
    rows: list[tuple[Cell, ...]] = []
    used = _used(quick)
    for at, (data_set, places) in enumerate(used):
        progress(at / len(used), data_set.title)
        columns = data_set.read(data)
        plain, noise = _exact_beta(columns, data_set), float(0)
        if table == 8:
            noise = float(relative_error(float_beta(columns), plain))
        for place in places:
            bits = BITS[place]
            job = job_for(data_set, columns, DELEGATED_PROTOCOL, bits, KEY_BITS)
            floored = paper_moments(columns, job)
            rounded = solve(moments_of(columns, job), job)
            found = _run_default(job, columns, private)
            paper = {s: _method_1(floored, bits, s) for s in (SPREAD, NARROW)}
            head = (data_set.title, len(columns[data_set.target]), len(columns) - 1, bits)
            if table == 7:
                reference = solve_encoded(floored, job)
                wide, narrow = (
                    _middle([relative_error(b, reference) for b in paper[s]]) for s in (SPREAD, NARROW)
                )
                exact = tuple(Fraction(float(value)) for value in rounded)
                default = float(relative_error([Fraction(v) for v in found], exact))
                published = data_set.table_7[place]
                note = _STANDS if published > 100 * narrow else ""
                rows.append((*head, published, narrow, wide, default, note))
            else:
                ours = _middle([relative_error(b, plain) for b in paper[SPREAD]])
                default = float(relative_error([Fraction(v) for v in found], plain))
                published = data_set.table_8[place]
                note = _STANDS if published > 1.4 * ours and bits >= 30 else ""
                if data_set is FIRES and bits == 10:
                    note = _MISPRINT
                rows.append((*head, published, ours, default, noise, note))
    if table == 7:
        typical = float(np.median([float(row[4] or 0) / float(row[6] or 1) for row in rows]))
        names = (PUBLISHED, NARROWED, STATED, DELEGATED)
        said = say(
            "Why they differ: by the masks' range; published errors are typically {typical:.0e} times ours at the stated 2^10 e (section "
            "4.1.3.3, p. 38). Each figure of Method 1 is the median of five draws of its masks; published ones are presumably single "
            "draws. Masks up to 8 e are a fit we made after seeing this, the best of seven ranges tried; 4 and 16 e fit nearly as well, "
            "and the cause is not known. Slope: 2^-2q in both. Ours, delegated, is a run of delegated regression against exact least "
            "squares on the encoded rows, both rounded to doubles.",
            typical=typical,
        )
    else:
        better = sum(float(row[6] or 0) < float(row[5] or 0) for row in rows)
        names = (PUBLISHED, PAPER, DELEGATED, say("a NumPy reference is off by"))
        said = say(
            "Why they differ: the source takes floors (section 4.1.1, p. 35) where delegated regression rounds to nearest, whose error "
            "is the smaller one in {better} of {all} lines; both are held against exact least squares on the doubles. NumPy's column is "
            "inv(X'X) X'y against the same exact reference; published errors stop falling near its size on Auto MPG and Forest Fires, and "
            "far above it on Wine and Bike, for a reason we cannot see.",
            better=better,
            all=len(rows),
        )
    return Reproduced((*_HEAD, *names, _NOTE), tuple(rows), _noted(said, used, rows), NONE)


def _difference(data: Path, progress: Progress, quick: bool) -> Reproduced:
    """Table 9: the error of Method 1 less that of Method 2, both against beta without conversion."""
    rows: list[tuple[Cell, ...]] = []
    used = _used(quick)
    for at, (data_set, places) in enumerate(used):
        progress(at / len(used), data_set.title)
        columns = data_set.read(data)
        plain = _exact_beta(columns, data_set)
        for place in places:
            bits = BITS[place]
            job = job_for(data_set, columns, DELEGATED_PROTOCOL, bits, KEY_BITS)
            floored = paper_moments(columns, job)
            second = relative_error(solve_encoded(floored, job), plain)
            narrow, wide = (
                _middle([abs(relative_error(b, plain) - second) for b in _method_1(floored, bits, s)])
                for s in (NARROW, SPREAD)
            )
            published = data_set.table_9[place]
            note = _NOISE if abs(published) < 2.0**-52 else ""
            head = (data_set.title, len(columns[data_set.target]), len(columns) - 1, bits)
            rows.append((*head, published, narrow, wide, None, note))
    said = say(
        "Why they differ: by the masks' range and draw, and where published is below 2^-52 by the rounding of its doubles. "
        "Sizes of the difference, medians of five draws; its sign depends on the draw. Masks up to 8 e are a fit: see Table 7. Delegated regression is "
        "not measured here: it gives the exact solution of the same encoded rows, so there is nothing to subtract."
    )
    names = (PUBLISHED, NARROWED, STATED, DELEGATED, _NOTE)
    return Reproduced((*_HEAD, *names), tuple(rows), _noted(said, used, rows), NONE)


def _times(data: Path, progress: Progress, quick: bool) -> Reproduced:
    """Table 10: the seconds of the regression stage, from the last client's sums to the coefficients."""
    keys = {
        bits: keygen(bits, Tape(_SEED, f"{bits}"), least_bits=1024)
        for bits in ((1024, 2048) if quick else (1024, 2048, 3072))
    }
    rows: list[tuple[Cell, ...]] = []
    used = _used(quick)
    for at, (data_set, places) in enumerate(used):
        columns = data_set.read(data)
        for place in places:
            progress(
                (at + place / len(BITS)) / len(used),
                say("{data}, q = {bits}", data=data_set.title, bits=BITS[place]),
            )
            for protocol, method, minutes in (
                (PAPER_MASKED, say("Method 1"), data_set.minutes_1),
                (DELEGATED_PROTOCOL, say("Method 2"), data_set.minutes_2),
            ):
                ours: list[Cell] = []
                for bits in (protocol.least_key_bits, 3072):
                    if bits not in keys:
                        ours.append(None)
                        continue
                    # How many clients were added up does not matter for this stage: as few as the protocol takes.
                    job = job_for(data_set, columns, protocol, BITS[place], bits, protocol.least_clients)
                    ours.append(_stage(_roles(job, _shares(columns, job), keys[bits])))
                small, large = ours
                rows.append((data_set.title, method, BITS[place], minutes[place] * 60, small, large))
    ratios = [float(row[3] or 0) / float(row[4] or 1) for row in rows]
    said = say(
        "Why they differ: published times are {least:,.0f} to {most:,.0f} times ours with the shorter key. The source measured minutes "
        "of Python, NumPy, Pandas and SymPy in notebooks (section 3, p. 33) on an Intel i5-1135G7 with 8 GB (section 5, p. 41); it states "
        "no key size. Ours are CPU seconds of one thread with keys of 1024 (Method 1) or 2048 bits (Method 2, the least we accept) and of 3072 "
        "bits. Counted: everything from the last client's sums to the coefficients; not counted, as in the source's stage: encryption "
        "by clients; for Method 1 also not the obfuscators, which are made while clients convert their rows.",
        least=min(ratios),
        most=max(ratios),
    )
    names = (
        say("table"),
        METHOD,
        "q",
        join([PUBLISHED, say("s")], ", "),
        join([PAPER, say("short key"), say("s")], ", "),
        join([HONEST, say("3072 bits"), say("s")], ", "),
    )
    return Reproduced(names, tuple(rows), said, NONE)


def _stage(roles: Mapping[str, Role]) -> float:
    moments: dict[str, float] = {}

    def watch(message: Message) -> Sequence[Message]:
        if message.kind in ("entries", "sums"):
            moments["start"] = time.process_time()
        elif message.kind == "result":
            moments.setdefault("end", time.process_time())
        return (message,)

    deliver(roles, watch)
    return moments["end"] - moments["start"]


def _roles(job: Job, tables: Mapping[str, Columns], private: PrivateKey) -> dict[str, Role]:
    """All roles of a job from one seed, with a key made beforehand."""
    roles: dict[str, Role] = {}
    for party in job.parties:
        seed = Tape(_SEED, party.name).bytes(32)
        if party.role == "provider" and job.protocol.provider is not None:
            tape = Tape(seed, f"{job.digest()}:{party.name}")
            roles[party.name] = job.protocol.provider(job, party.name, tape, private)
        else:
            roles[party.name] = make_role(job, party.name, seed, tables.get(party.name))
    return roles


def _used(quick: bool) -> list[tuple[_RegressionTable, tuple[int, ...]]]:
    if quick:
        return [(AUTO, (0, 1))]
    return [(data_set, tuple(range(len(BITS)))) for data_set in DATA_SETS]


def _noted(
    said: Sentence, used: Sequence[tuple[_RegressionTable, Any]], rows: Sequence[tuple[Cell, ...]]
) -> Sentence:
    counts = {row[0]: row[1] for row in rows}
    fewer = [
        say(
            "{table} has {rows} rows without missing cells here, {published} in the source (section 3, p. 32).",
            table=one.title,
            rows=int(counts[one.title] or 0),
            published=one.rows,
        )
        for one, _ in used
        if counts[one.title] != one.rows
    ]
    return join([said, *fewer])


# Tables 7 to 10 of the encrypted-regression source, by name; what they need is imported when one is run.

SOURCE = (
    "Nascimento 2023, Privacidade em algoritmos de aprendizado de máquina: comparação de duas implementações de "
    "regressão linear usando criptografia homomórfica (UFC)"
)


def _reproduction(number: int, title: Sentence, made: Callable[..., Reproduced], **more: int) -> Reproduction:
    run = partial(made, **more)
    return Reproduction(
        f"regression-table-{number}",
        SOURCE,
        say("Table {number}: {title}", number=number, title=title),
        tuple(one.file for one in DATA_SETS),
        partial(run, quick=False),
        partial(run, quick=True),
        drawn=Drawn(across=2, panels=(0, 1))
        if number == 10
        else Drawn(across=3, panels=(0,), lines=(4, 5, 6, 7)),
        settings=(BITS, CLIENTS, TRIES, KEY_BITS, NARROW, SPREAD),
    )


REPRODUCTIONS = (
    _reproduction(7, say("the error of Method 1 against beta with conversion"), _errors, table=7),
    _reproduction(8, say("the error of Method 1 against beta without conversion"), _errors, table=8),
    _reproduction(9, say("the errors of Methods 1 and 2 compared"), _difference),
    _reproduction(10, say("the time of the regression stage"), _times),
)
