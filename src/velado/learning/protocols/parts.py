"""What the regression protocols share: a client's part up to its sums, the key's arrival, and the result's form."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from velado.errors import KeyRefused, VeladoError
from velado.learning.crypto.paillier import (
    Ciphertext,
    SeenCiphertexts,
    ciphertexts_from_bytes,
    key_from_bytes,
    key_to_bytes,
    sum_ciphertexts,
)
from velado.learning.crypto.paillier_keys import PrivateKey, PublicKey, keygen
from velado.learning.protocols.role import BaseRole, Message, refused
from velado.learning.protocols.who_learns_what import learned, promise
from velado.learning.regression.fit import Fit, Moments, covariance_diagonal
from velado.learning.regression.job import Job
from velado.randomness import Tape

KEY_BYTES = 4096
RESULT_BYTES = 1 << 20


def key_in(message: Message, job: Job) -> PublicKey:
    """The public key a provider sent, if it is sound and of the size the job agreed on."""
    key = key_from_bytes(message.fields["key"], job.key_bits)
    if key.bits != job.key_bits:
        raise KeyRefused(
            f"The provider's key has {key.bits} bits and the job says {job.key_bits}.",
            "Parties must work with the key they agreed on.",
            "Start the job again with a provider that reads the same job file.",
        )
    return key


def result_bytes(coefficients: Sequence[Fraction], errors: Sequence[float] | None, rows: int | None) -> bytes:
    """The result as it is told to who may know it: coefficients rounded once to floats, exactly written."""
    return json.dumps(
        {
            "coefficients": [float(value).hex() for value in coefficients],
            "standard_errors": None if errors is None else [float(value).hex() for value in errors],
            "rows": rows,
        },
        separators=(",", ":"),
    ).encode()


def result_in(data: bytes, job: Job) -> tuple[tuple[float, ...], tuple[float, ...] | None, int | None]:
    """The coefficients, standard errors and rows of a result message, or ProtocolError."""
    try:
        document = json.loads(data)
        coefficients = tuple(float.fromhex(text) for text in document["coefficients"])
        errors = document["standard_errors"]
        deviations = None if errors is None else tuple(float.fromhex(text) for text in errors)
        rows = document["rows"]
        good = len(coefficients) == job.width and all(map(math.isfinite, coefficients))
        if deviations is not None:
            good = good and job.moments and len(deviations) == job.width
            good = good and all(math.isfinite(value) and value >= 0 for value in deviations)
        # JSON's true is an int to Python.
        good = good and (rows is None or (type(rows) is int and 0 <= rows <= job.most_rows))
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
        good = False
    if not good:
        raise refused("holds no result of this job")
    return coefficients, deviations, rows


def standard_errors(moments: Moments, job: Job) -> tuple[float, ...] | None:
    """The square roots of the exact variances, where the textbook formula holds."""
    squares = covariance_diagonal(moments, job)
    return None if squares is None else tuple(math.sqrt(max(0.0, float(value))) for value in squares)


def fit_of(
    job: Job,
    coefficients: Sequence[float],
    errors: Sequence[float] | None,
    rows: int | None,
    cost: Mapping[str, Any] | None = None,
) -> Fit:
    """The outcome a party holds: result, promise, cost, how."""
    return Fit(
        target=job.target.name,
        names=job.unknowns,
        coefficients=tuple(coefficients),
        promise=promise(job),
        learned=learned(job),
        standard_errors=None if errors is None else tuple(errors),
        cost=dict(cost or {}),
        how={"job": job.to_dict(), "digest": job.digest(), "rows": rows},
    )


# What the roles around one Paillier key share: a provider that announces it, an evaluator that collects under it.


class KeyHolder(BaseRole):
    """A provider: it makes the key, or is handed one, and tells everyone the public part."""

    def __init__(self, job: Job, name: str, tape: Tape, private: PrivateKey | None = None) -> None:
        super().__init__(job, name, tape)
        self._private = private or keygen(job.key_bits, tape.fork("key")).private

    def start(self) -> Sequence[Message]:
        """The public key, to everyone."""
        data = key_to_bytes(self._private.public)
        others = [party.name for party in self.job.parties if party.name != self.name]
        return [self._message(name, "key", key=data) for name in others]


class Collector(BaseRole):
    """An evaluator up to the moment when every client's ciphertexts are here, checked, under the provider's key.

    Clients and provider send independently, so ciphertexts may come before the key; they are kept unread until then.
    """

    def __init__(self, job: Job, name: str, tape: Tape) -> None:
        super().__init__(job, name, tape)
        self._key: PublicKey | None = None
        self._waiting: dict[str, bytes] = {}
        self._arrived: dict[str, list[Ciphertext]] = {}
        self._seen = SeenCiphertexts()

    def _expected(self, key: PublicKey) -> int:
        """How many ciphertexts a client sends."""
        raise AssertionError("a protocol says how many")

    def _key_is_here(self, key: PublicKey) -> None:
        """What can be made ready while the clients work."""

    def _all_are_here(self, key: PublicKey, sums: list[Ciphertext]) -> Sequence[Message]:
        """What follows from the clients' ciphertexts, added up place by place."""
        raise AssertionError("a protocol says what follows")

    def _take_key(self, message: Message) -> Sequence[Message]:
        key = key_in(message, self.job)
        if self._key is not None:
            raise refused("brings a second key")
        self._key = key
        self._key_is_here(key)
        for sender, data in self._waiting.items():
            try:
                self._arrived[sender] = self._read(key, data)
            except VeladoError:
                return self.abort(f"What {sender} sent is not encrypted under the job's key.")
        self._waiting.clear()
        return self._go_on(key)

    def _take_ciphertexts(self, message: Message) -> Sequence[Message]:
        data = message.fields["ciphertexts"]
        if message.sender in self._arrived or message.sender in self._waiting:
            raise refused("brings a client's sums a second time")
        if self._key is None:
            self._waiting[message.sender] = data
            return ()
        self._arrived[message.sender] = self._read(self._key, data)
        return self._go_on(self._key)

    def _read(self, key: PublicKey, data: bytes) -> list[Ciphertext]:
        return ciphertexts_from_bytes(key, data, self._expected(key), self._seen)

    def _go_on(self, key: PublicKey) -> Sequence[Message]:
        clients = self.job.of("client")
        if len(self._arrived) < len(clients):
            return ()
        columns = zip(*(self._arrived[party.name] for party in clients), strict=True)
        return self._all_are_here(key, [sum_ciphertexts(column) for column in columns])
