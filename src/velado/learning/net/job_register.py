"""The register of an identity: every job in which this client's sums were let out, with whom they were added, and over which rows.

Two exact results over the same rows whose clients differ by one show, by their difference, that one client's sums. So before a
client lets its sums out it looks here, and a roster that differs by fewer than `minimum_clients` from an earlier one over the same
column is refused (`RegressionRole._agree`); what it lets out is entered here before it leaves.

A job that was begun stands here from its beginning, with no roster: it cannot be begun a second time.

One private file in the identity's folder, made with it: where it is gone or changed nothing is let out, since what was let out
before is not known any more. Rows are known by a keyed digest of each column's values in rising order, whatever the column is called,
however the rows are sorted and numbers are written. Two columns with the same values are one to it, which may refuse a job that it
need not. Rows of which a few were changed between two jobs are other rows to it: keep to one table, or agree on noise.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import numpy as np

from velado.data.staging import locked, write_file
from velado.errors import KeyRefused, ProtocolError
from velado.learning.crypto.fixed_point import Columns
from velado.learning.net.identity import JOBS, Identity, read_private, sealed_register
from velado.learning.protocols.parts import EarlierJob

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


def enter(identity: Identity, job: EarlierJob) -> None:
    """The job stands in the register, on the disk; a second time it changes nothing.

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
