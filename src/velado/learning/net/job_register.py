"""The register of an identity: every job in which this client's sums were let out, with whom they were added, and over which rows.

Two exact results over the same rows whose clients differ by one show, by their difference, that one client's sums. So before a
client lets its sums out it looks here, and a roster that differs by fewer than `minimum_clients` from an earlier one over the same
column is refused (`RegressionRole._agree`); what it lets out is entered here before it leaves.

A job that was begun stands here from its beginning, with no roster: it cannot be begun a second time.

One private file in the identity's folder, made with it: where it is gone or changed nothing is let out, since what was let out
before is not known any more. Rows are known by a keyed digest of each column's values in rising order, whatever the column is called,
however the rows are sorted and numbers are written. Two columns with the same values are one to it, which may refuse a job that it
need not. Of the rows of a job a keyed sketch is kept as well: a second exact job over the same columns and clients is refused where some but
fewer than `least_cell` rows have changed. And of every column, row by row in the table's order: a column that is one of an earlier job of the same clients but for so few rows
is refused too, under whatever other columns. Of tables that were sorted otherwise in between the latter is not seen: keep to one table, or agree on noise.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import numpy as np
import numpy.typing as npt

from velado.data.staging import locked, write_file
from velado.errors import KeyRefused, ProtocolError
from velado.learning.crypto.fixed_point import Columns
from velado.learning.net.identity import JOBS, Identity, read_private, sealed_register
from velado.learning.protocols.parts import SKETCH, EarlierJob
from velado.learning.row_marks import equal_before
from velado.randomness import KeyedDraws

LARGEST = 1 << 26


def column_marks(columns: Columns, identity: Identity, *, ordered: bool = False) -> dict[str, str]:
    """A digest of every column under the identity's key: equal for equal values, in any order unless *ordered*, and of no use to others.

    >>> from velado.learning.net.identity import Ed25519PrivateKey
    >>> own = Identity("clinic", Path("nowhere"), b"", Ed25519PrivateKey.generate(), bytes(32), b"")
    >>> column_marks({"age": [31, 4]}, own) == column_marks({"age": ["4.0", "31"]}, own)
    True
    """

    def mark(values: object) -> str:
        cells = np.asarray(values).ravel()
        try:
            texts = cells.astype(np.float64).astype(str).tolist()
        except ValueError:
            texts = np.char.strip(cells.astype(str)).tolist()
        text = "\n".join(texts if ordered else sorted(texts))
        return hmac.new(identity.journal_key, b"column" + text.encode(), hashlib.sha256).hexdigest()

    return {name: mark(values) for name, values in columns.items()}


def row_sketch(columns: Columns, identity: Identity) -> str:
    """The number of rows and, of their keyed marks, so many sums, which tell how many rows two tables differ in (`rows_apart`) and nothing else.

    Each row, told from equal ones before it, adds its mark to the one of `SKETCH` sums that the mark names. Any order of rows and columns gives
    the same. O(n m + n log n).

    >>> from velado.learning.net.identity import Ed25519PrivateKey
    >>> from velado.learning.protocols.parts import rows_apart
    >>> own = Identity("clinic", Path("nowhere"), b"", Ed25519PrivateKey.generate(), bytes(32), b"")
    >>> rows_apart(row_sketch({"age": [31, 4, 4]}, own), row_sketch({"age": ["4.0", "31", "4", "8"]}, own))
    1
    """
    rows = max((np.asarray(values).size for values in columns.values()), default=0)
    marks = np.zeros(rows, dtype=np.uint64)
    for name in sorted(columns):
        first, low, high = (_words(identity, f"{name} {use}") for use in ("first", "low", "high"))
        bits = _bits(columns[name], identity)
        marks += first + low * (bits & np.uint64(0xFFFFFFFF)) + high * (bits >> np.uint64(32))
    marks = marks + _words(identity, "equal before") * equal_before(marks)
    return _summed(marks)


def column_sketches(columns: Columns, identity: Identity) -> dict[str, str]:
    """Of each column how many rows hold another than its commonest value, and sums of keyed marks of row and value, which tell in how many rows two columns differ.

    Of a column of two values it is the same however they are written, and whichever of the two is called 1. O(n log n) for each.

    >>> from velado.learning.net.identity import Ed25519PrivateKey
    >>> from velado.learning.protocols.parts import near_columns
    >>> own = Identity("clinic", Path("nowhere"), b"", Ed25519PrivateKey.generate(), bytes(32), b"")
    >>> found = column_sketches({"a": [1] * 30 + [0] * 40, "b": ["y"] * 29 + ["n"] * 41, "c": [0, 1] * 35}, own)
    >>> near_columns(found["a"], found["b"], 10), near_columns(found["a"], found["c"], 10)
    (True, False)
    """
    return {name: _column_sketch(values, identity) for name, values in columns.items()}


def _column_sketch(values: object, identity: Identity) -> str:
    bits = _bits(values, identity)
    distinct, first, places, counts = np.unique(
        bits, return_index=True, return_inverse=True, return_counts=True
    )
    moved = bits.size - int(counts.max(initial=0))
    if distinct.size != 2:
        return f"{moved}|{_by_place(bits, identity)}"
    # Which of two values is called 1 is left open: the column is known by either.
    either = [(places == at).astype(np.uint64) for at in np.argsort(first)]
    return "|".join([str(moved), *(_by_place(one, identity) for one in either)])


def _by_place(bits: npt.NDArray[np.uint64], identity: Identity) -> str:
    marks = np.arange(bits.size, dtype=np.uint64) * _words(identity, "place")
    for use, half in (("low", bits & np.uint64(0xFFFFFFFF)), ("high", bits >> np.uint64(32))):
        marks = marks + half * _words(identity, f"cell {use}")
    return _summed(marks + _words(identity, "column"))


def _summed(marks: npt.NDArray[np.uint64]) -> str:
    sums = np.zeros(SKETCH, dtype=np.uint32)
    np.add.at(sums, (marks >> np.uint64(56)).astype(np.intp), (marks >> np.uint64(24)).astype(np.uint32))
    return f"{marks.size}:" + sums.astype(">u4").tobytes().hex()


def _words(identity: Identity, use: str) -> npt.NDArray[np.uint64]:
    """One secret word for a use, as an array: sums and products of arrays may run over."""
    return KeyedDraws(hmac.digest(identity.journal_key, b"rows" + use.encode(), "sha256")).words(1)


def _bits(values: object, identity: Identity) -> npt.NDArray[np.uint64]:
    """64 bits for each cell: those of its number, or a keyed digest of its text."""
    cells = np.asarray(values).ravel()
    try:
        return (cells.astype(np.float64) + 0.0).view(np.uint64)
    except ValueError:
        distinct, places = np.unique(np.char.strip(cells.astype(str)), return_inverse=True)
        found = [
            int.from_bytes(hmac.digest(identity.journal_key, b"text" + text.encode(), "sha256")[:8], "big")
            for text in distinct.tolist()
        ]
        return np.array(found, dtype=np.uint64)[places]


def read_register(identity: Identity) -> tuple[EarlierJob, ...]:
    """The jobs of an identity, oldest first; KeyRefused where the register is lost or was changed.

    >>> from velado.learning.net.identity import make_identity, open_identity
    >>> from velado.learning.regression.job import Party
    >>> _ = make_identity(Path("listed"), Party("clinic", "client"), "four words", log2_n=15)
    >>> read_register(open_identity(Path("listed"), "four words"))
    ()
    """
    path = identity.folder / JOBS
    if not path.exists():
        raise KeyRefused(
            "The identity's register of jobs is gone.",
            "Without it nobody knows which sums were let out before, and a difference could show one client's.",
            "Put it back from a copy. If it is lost, or the identity is older than registers, make a new identity.",
        )
    try:
        document = json.loads(read_private(path, LARGEST))
        jobs = [
            EarlierJob(
                job=str(one["job"]),
                roster=tuple(map(str, one["roster"])),
                columns=dict(one["columns"]),
                exact=bool(one["exact"]),
                rows=str(one.get("rows", "")),
                sketches=dict(one.get("sketches", {})),
            )
            for one in document["jobs"]
        ]
        good = hmac.compare_digest(sealed_register(document["jobs"], identity.journal_key), _again(document))
    except (ValueError, KeyError, TypeError, RecursionError):
        good = False
    if not good:
        raise KeyRefused(
            "The identity's register of jobs was changed or damaged.",
            "What was let out before is not known any more.",
            "Put it back from a copy, or make a new identity.",
        )
    return tuple(jobs)


def _again(document: dict[str, object]) -> bytes:
    return json.dumps(document, sort_keys=True).encode()


def enter(
    identity: Identity, job: EarlierJob, check: Callable[[Sequence[EarlierJob]], None] | None = None
) -> None:
    """The job stands in the register, on the disk; a second time it changes nothing.

    *check* is asked about the entries there are, while no other process can enter anything; what it raises leaves the register as it was. So of
    two jobs that run at once the later one knows of the earlier.

    >>> from velado.learning.net.identity import make_identity, open_identity
    >>> from velado.learning.regression.job import Party
    >>> _ = make_identity(Path("entered"), Party("clinic", "client"), "four words", log2_n=15)
    >>> own = open_identity(Path("entered"), "four words")
    >>> enter(own, EarlierJob(job="0a", roster=("clinic",), columns={}))
    >>> read_register(own)[0].roster
    ('clinic',)
    """
    with _alone(identity.folder / (JOBS + ".lock")):
        known = read_register(identity)
        if check is not None:
            check(known)
        if job not in known:
            entries = [asdict(one) for one in (*known, job)]
            data = sealed_register(json.loads(json.dumps(entries)), identity.journal_key)
            write_file(identity.folder / JOBS, data, force=True, private=True)


def refuse_second(identity: Identity, job: str) -> None:
    """Nothing, if this identity has not begun this job before; ProtocolError else: whoever goes on has the journal.

    Two runs of one job bear the same digest, so that somebody who carries messages could mix what was said in the one into
    the other, and with noise the second would be a second answer.

    >>> from velado.learning.net.identity import make_identity, open_identity
    >>> from velado.learning.regression.job import Party
    >>> _ = make_identity(Path("begun"), Party("clinic", "client"), "four words", log2_n=15)
    >>> refuse_second(own := open_identity(Path("begun"), "four words"), "0a")
    >>> enter(own, EarlierJob(job="0a", roster=(), columns={}))
    >>> refuse_second(own, "0a")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.ProtocolError: This job was begun before with this identity...
    """
    if any(one.job == job for one in read_register(identity)):
        raise ProtocolError(
            "This job was begun before with this identity, and its journal is not in the output folder.",
            "What was said in two runs of one job could be mixed up, and a second result asked for.",
            "Give the folder it was begun with to go on, or agree on a new name for the job at all parties.",
        )


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """No other process of this identity enters anything meanwhile."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        locked(handle, wait=True)
        yield
    finally:
        os.close(handle)
