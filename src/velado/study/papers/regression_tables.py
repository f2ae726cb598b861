"""Tables 7 to 10 of the encrypted-regression source: the errors and times of its two methods, on its four data sets.

The error is that of equation 3.1, |beta~ - beta| / |beta| in Euclidean length, here worked out on exact fractions. Method 1 is not
private (`velado.encrypted.attacks`); it is run to compare figures. Delegated regression gives the exact solution.

The published errors of Method 1 are about four orders of magnitude larger than masks up to 2^10 e give. We tried ranges up to 2,
4, 8, 16, 32, 128 and 1024 e after seeing that, with nine draws for each of the 16 cells with q <= 40: the published figure lies
within the draws in 8, 12, 12, 12, 4, 2 and 0 cells. So 4 to 16 fit about equally, 8 with the smallest mean deviation, and the stated
1024 does not. The cause is not known, since the source's code is not published; that `2^10` is 8 in Python is a guess. The tables
show the stated range and, as a fit made afterwards, 8.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import gmpy2
import numpy as np

from velado.anonymize.goal import Progress
from velado.encrypted.crypto.keys import PrivateKey, keygen
from velado.encrypted.design import moments_of
from velado.encrypted.exact import Moments, solve, solve_encoded
from velado.encrypted.job import Job
from velado.encrypted.protocols import delegated_regression, paper_masked
from velado.encrypted.protocols.messages import Message
from velado.encrypted.protocols.paper_arithmetic import SPREAD, paper_moments, paper_solution
from velado.encrypted.protocols.role import Role
from velado.encrypted.simulate import deliver, make_role
from velado.randomness import Tape
from velado.study.papers.layout import HONEST, PAPER, PUBLISHED
from velado.study.papers.registry import Cell, Reproduced
from velado.study.papers.regression_data import (
    AUTO,
    BITS,
    DATA_SETS,
    FIRES,
    DataSet,
    Floats,
    job_for,
    shares,
)

NONE = "none for Method 1, whose masks cancel; in delegated regression the provider sees the pooled sums and nobody sees a client's"
DELEGATED = f"{HONEST} (delegated)"
NARROWED = f"{PAPER}, masks to 8 e"
STATED = f"{PAPER}, masks to 2^10 e"
KEY_BITS = 2048
NARROW = 3  # masks up to 8 e: fitted to the published figures, see above
EVERY_BIT = 128  # the doubles of these tables are whole multiples of 2^-128
TRIES = 5
_SEED = bytes(32)
_STANDS = "published no longer falls with q as ours does: probably rounding in its reference or arithmetic"
_NOISE = "published is below the rounding unit of doubles, 2^-52"
_MISPRINT = "published does not fit its own slope in q; 9.55e-04 would: perhaps a misprint"

Beta = Sequence[Fraction]


def relative_error(found: Beta, true: Beta) -> Any:
    """Equation 3.1 with 400 bits: differences of differences are wanted in Table 9."""
    with gmpy2.context(precision=400):
        over = sum(((a - b) ** 2 for a, b in zip(found, true, strict=True)), Fraction(0))
        under = sum((b * b for b in true), Fraction(0))
        return gmpy2.sqrt(gmpy2.mpfr(gmpy2.mpq(over.numerator, over.denominator))) / gmpy2.sqrt(
            gmpy2.mpfr(gmpy2.mpq(under.numerator, under.denominator))
        )


def exact_beta(columns: dict[str, Floats], data_set: DataSet) -> tuple[Fraction, ...]:
    """Least squares on the doubles themselves, exactly: beta without conversion."""
    job = job_for(data_set, columns, "delegated", EVERY_BIT, KEY_BITS)
    return solve(moments_of(columns, job), job)


def float_beta(columns: dict[str, Floats]) -> tuple[Fraction, ...]:
    """The same as one writes it in NumPy: inv(X^T X) X^T y, in double precision."""
    *features, y = columns.values()
    design = np.column_stack([np.ones(len(y)), *features])
    found = np.linalg.inv(design.T @ design) @ design.T @ y
    return tuple(Fraction(float(value)) for value in found)


def method_1(moments: Moments, bits: int, spread: int) -> list[tuple[Fraction, ...]]:
    """Results of Method 1 under several draws of its masks."""
    return [
        paper_solution(moments.matrix, moments.vector, bits, Tape(_SEED, f"{k}"), spread=spread)
        for k in range(TRIES)
    ]


def middle(errors: Sequence[Any]) -> float:
    """The median of an odd number of errors, as a float."""
    return float(sorted(errors)[len(errors) // 2])


def run_default(job: Job, columns: dict[str, Floats], private: PrivateKey) -> tuple[float, ...]:
    """The coefficients of a whole run of delegated regression with ten clients, all roles."""
    roles = _roles(job, shares(columns, job), private)
    deliver(roles)
    outcome = roles["evaluator"].outcome
    if outcome is None:
        raise RuntimeError(f"the run ended without a result: {roles['evaluator'].failure}")
    return tuple(outcome["fit"]["coefficients"].values())


def errors(data: Path, progress: Progress, table: int, quick: bool) -> Reproduced:
    """Tables 7 and 8: the error against beta with conversion, or without."""
    private = keygen(KEY_BITS, Tape(_SEED, "key")).private
    rows: list[tuple[Cell, ...]] = []
    used = _used(quick)
    for at, (data_set, places) in enumerate(used):
        progress(at / len(used), data_set.title)
        columns = data_set.read(data)
        plain, noise = exact_beta(columns, data_set), float(0)
        if table == 8:
            noise = float(relative_error(float_beta(columns), plain))
        for place in places:
            bits = BITS[place]
            job = job_for(data_set, columns, "delegated", bits, KEY_BITS)
            floored = paper_moments(columns, job)
            rounded = solve(moments_of(columns, job), job)
            found = run_default(job, columns, private)
            paper = {s: method_1(floored, bits, s) for s in (SPREAD, NARROW)}
            head = (data_set.title, len(columns[data_set.target]), len(columns) - 1, bits)
            if table == 7:
                reference = solve_encoded(floored, job)
                wide, narrow = (
                    middle([relative_error(b, reference) for b in paper[s]]) for s in (SPREAD, NARROW)
                )
                exact = tuple(Fraction(float(value)) for value in rounded)
                default = float(relative_error([Fraction(v) for v in found], exact))
                published = data_set.table_7[place]
                note = _STANDS if published > 100 * narrow else ""
                rows.append((*head, published, narrow, wide, default, note))
            else:
                ours = middle([relative_error(b, plain) for b in paper[SPREAD]])
                default = float(relative_error([Fraction(v) for v in found], plain))
                published = data_set.table_8[place]
                note = _STANDS if published > 1.4 * ours and bits >= 30 else ""
                if data_set is FIRES and bits == 10:
                    note = _MISPRINT
                rows.append((*head, published, ours, default, noise, note))
    if table == 7:
        typical = float(np.median([float(row[4] or 0) / float(row[6] or 1) for row in rows]))
        names = (PUBLISHED, NARROWED, STATED, DELEGATED)
        said = (
            f"Why they differ: by the masks' range; published errors are typically {typical:.0e} times ours at the stated 2^10 e. "
            "Each figure of Method 1 is the median of five draws of its masks; published ones are presumably single draws. The source states "
            "masks up to 2^10 e, which give errors some four orders smaller than it published. Masks up to 8 e are a fit we made after "
            "seeing this, the best of seven ranges tried; 4 and 16 e fit nearly as well, and the cause is not known. Slope: 2^-2q in both. "
            "Ours, delegated, is a run of delegated regression against exact least squares on the encoded rows, both rounded to doubles."
        )
    else:
        better = sum(float(row[6] or 0) < float(row[5] or 0) for row in rows)
        names = (PUBLISHED, PAPER, DELEGATED, "a NumPy reference is off by")
        said = (
            "Why they differ: the source takes floors where delegated regression rounds to nearest, whose error is the smaller "
            f"one in {better} of {len(rows)} lines; both are held against exact least squares on the doubles. NumPy's column is inv(X'X) X'y against the same exact reference; "
            "published errors stop falling near its size on Auto MPG and Forest Fires, and far above it on Wine and Bike, for a reason we cannot see."
        )
    return Reproduced(
        ("table", "rows", "features", "q", *names, "note"), tuple(rows), _noted(said, used, rows), NONE
    )


def difference(data: Path, progress: Progress, quick: bool) -> Reproduced:
    """Table 9: the error of Method 1 less that of Method 2, both against beta without conversion."""
    rows: list[tuple[Cell, ...]] = []
    used = _used(quick)
    for at, (data_set, places) in enumerate(used):
        progress(at / len(used), data_set.title)
        columns = data_set.read(data)
        plain = exact_beta(columns, data_set)
        for place in places:
            bits = BITS[place]
            job = job_for(data_set, columns, "delegated", bits, KEY_BITS)
            floored = paper_moments(columns, job)
            second = relative_error(solve_encoded(floored, job), plain)
            narrow, wide = (
                middle([abs(relative_error(b, plain) - second) for b in method_1(floored, bits, s)])
                for s in (NARROW, SPREAD)
            )
            published = data_set.table_9[place]
            note = _NOISE if abs(published) < 2.0**-52 else ""
            head = (data_set.title, len(columns[data_set.target]), len(columns) - 1, bits)
            rows.append((*head, published, narrow, wide, None, note))
    said = (
        "Why they differ: by the masks' range and draw, and where published is below 2^-52 by the rounding of its doubles. "
        "Sizes of the difference, medians of five draws; its sign depends on the draw. Masks up to 8 e are a fit: see Table 7. Delegated regression is "
        "not measured here: it gives the exact solution of the same encoded rows, so there is nothing to subtract."
    )
    names = (PUBLISHED, NARROWED, STATED, DELEGATED, "note")
    return Reproduced(("table", "rows", "features", "q", *names), tuple(rows), _noted(said, used, rows), NONE)


def times(data: Path, progress: Progress, quick: bool) -> Reproduced:
    """Table 10: the seconds of the regression stage, from the last client's sums to the coefficients."""
    sizes = {"paper-masked": (1024, 3072), "delegated": (2048, 3072)}
    keys = {
        bits: keygen(bits, Tape(_SEED, f"{bits}"), paper=bits < KEY_BITS).private
        for bits in ((1024, 2048) if quick else (1024, 2048, 3072))
    }
    rows: list[tuple[Cell, ...]] = []
    used = _used(quick)
    for at, (data_set, places) in enumerate(used):
        columns = data_set.read(data)
        for place in places:
            progress((at + place / len(BITS)) / len(used), f"{data_set.title}, q = {BITS[place]}")
            for protocol, minutes in (
                ("paper-masked", data_set.minutes_1),
                ("delegated", data_set.minutes_2),
            ):
                # How many clients were added up does not matter for this stage: as few as the protocol takes.
                clients = 1 if protocol == "paper-masked" else 3
                ours: list[Cell] = []
                for bits in sizes[protocol]:
                    if bits not in keys:
                        ours.append(None)
                        continue
                    job = job_for(data_set, columns, protocol, BITS[place], bits, clients)  # type: ignore[arg-type]
                    ours.append(_stage(_roles(job, shares(columns, job), keys[bits])))
                method = "Method 1" if protocol == "paper-masked" else "Method 2"
                small, large = ours
                rows.append((data_set.title, method, BITS[place], minutes[place] * 60, small, large))
    ratios = [float(row[3] or 0) / float(row[4] or 1) for row in rows]
    said = (
        f"Why they differ: published times are {min(ratios):,.0f} to {max(ratios):,.0f} times ours with the shorter key; what they "
        "were measured with is not stated. The source does not state its key size either. Ours are 1024 (Method 1) or 2048 bits (Method 2, the least we accept) and 3072 bits. "
        "Ours are CPU seconds of one thread. Counted: everything from the last client's sums to the coefficients; not counted, as in the source's stage: encryption by "
        "clients; for Method 1 also not the obfuscators, which are made while clients convert their rows."
    )
    names = ("table", "method", "q", f"{PUBLISHED}, s", f"{PAPER}, short key, s", f"{HONEST}, 3072 bits, s")
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


def _roles(job: Job, tables: Mapping[str, Mapping[str, Any]], private: PrivateKey) -> dict[str, Role]:
    """All roles of a job from one seed, with a key made beforehand."""
    roles: dict[str, Role] = {}
    for party in job.parties:
        seed = Tape(_SEED, party.name).bytes(32)
        if party.role == "provider":
            made = paper_masked.Provider if job.protocol == "paper-masked" else delegated_regression.Provider
            roles[party.name] = made(job, party.name, Tape(seed, f"{job.digest()}:{party.name}"), private)
        else:
            roles[party.name] = make_role(job, party.name, seed, tables.get(party.name))
    return roles


def _used(quick: bool) -> list[tuple[DataSet, tuple[int, ...]]]:
    if quick:
        return [(AUTO, (0, 1))]
    return [(data_set, tuple(range(len(BITS)))) for data_set in DATA_SETS]


def _noted(said: str, used: Sequence[tuple[DataSet, Any]], rows: Sequence[tuple[Cell, ...]]) -> str:
    counts = {row[0]: row[1] for row in rows}
    fewer = [
        f"{one.title} has {counts[one.title]} rows without missing cells here, {one.rows} in the source"
        for one, _ in used
        if counts[one.title] != one.rows
    ]
    return f"{said} {'; '.join(fewer)}." if fewer else said
