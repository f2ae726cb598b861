"""What the regression protocols share: the result's form, and the roles around one Paillier key.

`RegressionRole` takes a result, `KeyHolder` is a provider that announces its key, `Encryptor` a client that sends its sums under
it, `Collector` an evaluator that gathers them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar

from velado.errors import KeyRefused, VeladoError
from velado.learning.crypto.obfuscators import FullPower, ObfuscatorPool
from velado.learning.crypto.paillier import (
    Ciphertext,
    SeenCiphertexts,
    ciphertexts_from_bytes,
    ciphertexts_to_bytes,
    encrypt_many,
    key_from_bytes,
    key_to_bytes,
    sum_ciphertexts,
)
from velado.learning.crypto.paillier_keys import PrivateKey, PublicKey, keygen
from velado.learning.protocols.protocol import Message, Seen
from velado.learning.protocols.role import BaseRole, Outcome, Take, refused
from velado.learning.protocols.who_learns_what import learned, promise
from velado.learning.regression.design_matrix import moments_of
from velado.learning.regression.fit import Fit, Moments, covariance_diagonal
from velado.learning.regression.job import Job
from velado.randomness import Tape
from velado.text import say

KEY_BYTES = 4096
RESULT_BYTES = 1 << 20


def most_bytes(job: Job, count: int) -> int:
    """How large a message of so many ciphertexts is under a key of the job's size."""
    return 64 + count * 2 * (job.key_bits // 8)


PAILLIER_MODEL = say(
    "Parties follow the protocol but look at all they see (semi-honest); channels are authenticated "
    "and encrypted; Paillier's encryption is secure (decisional composite residuosity)."
)
CLIENT_SEEN = Seen(
    saw=say("The public key, and at the end {told}."),
    infers=say(
        "Nothing of another client's rows beyond what these figures say of the pooled rows. Where the"
        " columns are few and hold whole numbers of few digits, the coefficients' 53 bits are enough "
        "to compute the pooled X'X and X'y."
    ),
)


def key_in(message: Message, job: Job) -> PublicKey:
    """The public key a provider sent, if it is sound and of the size the job agreed on."""
    key = key_from_bytes(message.fields["key"], job.key_bits)
    if key.bits != job.key_bits:
        raise KeyRefused(
            say(
                "The provider's key has {bits} bits and the job says {key_bits}.",
                bits=key.bits,
                key_bits=job.key_bits,
            ),
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
        raise refused(say("holds no result of this job"))
    return coefficients, deviations, rows


def standard_errors(moments: Moments, job: Job) -> tuple[float, ...] | None:
    """The square roots of the exact variances, where the textbook formula holds."""
    squares = covariance_diagonal(moments, job)
    return None if squares is None else tuple(math.sqrt(max(0.0, float(value))) for value in squares)


def fit_of(job: Job, coefficients: Sequence[float], errors: Sequence[float] | None, rows: int | None) -> Fit:
    """The outcome a party holds: result, promise, cost, how."""
    return Fit(
        target=job.target.name,
        names=job.unknowns,
        coefficients=tuple(coefficients),
        promise=promise(job),
        learned=learned(job),
        standard_errors=None if errors is None else tuple(errors),
        how={"job": job.to_dict(), "digest": job.digest(), "rows": rows},
    )


class RegressionRole(BaseRole):
    """A role that ends with the coefficients, or knows that others have them."""

    def _hold(
        self,
        coefficients: Sequence[float | Fraction],
        errors: Sequence[float] | None,
        rows: int | None,
        summed: Sequence[str] = (),
    ) -> None:
        """The fit is this role's outcome; *summed* are the clients whose rows it counts, where some may have left."""
        fit = fit_of(self.job, [float(value) for value in coefficients], errors, rows)
        self._outcome = Outcome(fit=fit, summed=tuple(summed))

    def _take_result(self, message: Message) -> Sequence[Message]:
        self._hold(*result_in(message.fields["result"], self.job))
        return ()


class KeyHolder(RegressionRole):
    """A provider: it makes the key, or is handed one, and tells everyone the public part."""

    def __init__(self, job: Job, name: str, tape: Tape, private: PrivateKey | None = None) -> None:
        super().__init__(job, name, tape)
        self._private = private or keygen(job.key_bits, tape.fork("key"), job.protocol.least_key_bits)

    def start(self) -> Sequence[Message]:
        """The public key, to everyone."""
        data = key_to_bytes(self._private.public)
        return [self._message(name, "key", key=data) for name in self._others()]


class Encryptor(RegressionRole):
    """A client: it sends its sums, encrypted once the key is there, and waits for the result."""

    sends: ClassVar[str]

    def __init__(self, job: Job, name: str, tape: Tape, columns: Mapping[str, Any]) -> None:
        super().__init__(job, name, tape)
        self._moments = moments_of(columns, job)

    def takes(self) -> Mapping[str, Take]:
        """The key, then the result."""
        return {"key": self._take_key, "result": self._take_result}

    def _plaintexts(self, key: PublicKey) -> Sequence[int]:
        """The numbers that are encrypted one by one."""
        raise AssertionError("a protocol says which")

    def _take_key(self, message: Message) -> Sequence[Message]:
        key = key_in(message, self.job)
        plaintexts = self._plaintexts(key)
        pool = ObfuscatorPool(FullPower(key, self._tape.fork("obfuscators")))
        data = ciphertexts_to_bytes(key, encrypt_many(key, plaintexts, pool))
        return [self._message(self._one("evaluator"), self.sends, ciphertexts=data)]


class Collector(RegressionRole):
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
        self._key = key = key_in(message, self.job)
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
