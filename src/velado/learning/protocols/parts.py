"""What the regression protocols share: the result's form, and the roles around one Paillier key.

`RegressionRole` takes a result, `KeyHolder` is a provider that announces its key, `Encryptor` a client that sends its sums under
it, `Collector` an evaluator that gathers them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import ClassVar

from velado.errors import InputError, KeyRefused, VeladoError
from velado.learning.crypto.fixed_point import Columns
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
from velado.learning.protocols.protocol import Facts, Message, Seen, Step
from velado.learning.protocols.role import Outcome, Role, Take, refused
from velado.learning.protocols.who_learns_what import learned, promise
from velado.learning.regression.design_matrix import moments_of
from velado.learning.regression.fit import Fit, Moments, covariance_diagonal, solve
from velado.learning.regression.job import Job
from velado.learning.regression.regression_noise import noisy
from velado.randomness import Tape
from velado.text import say

RESULT = {"result": 1 << 20}
"""The most bytes a result message may have."""
_KEY = {"key": 4096}
KEY_STEPS = tuple(Step("start", "provider", "key", who, "keyed", _KEY) for who in ("client", "evaluator"))
"""How every protocol around a Paillier key begins."""


def most_bytes(job: Job, count: int) -> int:
    """How large a message of so many ciphertexts is under a key of the job's size.

    >>> from velado.learning.regression.simulate import small_job
    >>> most_bytes(small_job(), 2)
    1600
    """
    return 64 + count * 2 * (job.key_bits // 8)


_PAILLIER_MODEL = say(
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


def key_facts(
    *, evaluator: Seen, provider: Seen, coalitions: tuple[str, ...], hides: str, computed: str = ""
) -> Facts:
    """The facts of a protocol around a Paillier key, whose clients see the key and what is told at the end.

    >>> nothing = Seen(saw="Ciphertexts.", infers="Nothing.")
    >>> key_facts(evaluator=nothing, provider=nothing, coalitions=(), hides="all").parties["client"].saw
    'The public key, and at the end {told}.'
    """
    return Facts(
        assumptions=_PAILLIER_MODEL,
        parties={"client": CLIENT_SEEN, "evaluator": evaluator, "provider": provider},
        coalitions=coalitions,
        hides=hides,
        computed=computed,
    )


def key_in(message: Message, job: Job) -> PublicKey:
    """The public key a provider sent, if it is sound and of the size the job agreed on.

    >>> from velado.learning.protocols.delegated_regression import DELEGATED
    >>> from velado.learning.regression.simulate import small_job
    >>> job = small_job(DELEGATED, key_bits=2048)
    >>> data = key_to_bytes(keygen(2048, Tape(bytes(32))).public)
    >>> key_in(Message(job.digest(), "vault", "c0", 0, "key", {"key": data}), job).bits
    2048
    """
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
    """The result as it is told to who may know it: coefficients rounded once to floats, exactly written.

    >>> result_bytes([Fraction(1, 2)], None, 40)
    b'{"coefficients":["0x1.0000000000000p-1"],"standard_errors":null,"rows":40}'
    """
    return json.dumps(
        {
            "coefficients": [float(value).hex() for value in coefficients],
            "standard_errors": None if errors is None else [float(value).hex() for value in errors],
            "rows": rows,
        },
        separators=(",", ":"),
    ).encode()


def result_in(data: bytes, job: Job) -> tuple[tuple[float, ...], tuple[float, ...] | None, int | None]:
    """The coefficients, standard errors and rows of a result message, or ProtocolError.

    >>> from velado.learning.regression.simulate import small_job
    >>> result_in(result_bytes([Fraction(1), Fraction(1, 2)], None, 40), small_job())
    ((1.0, 0.5), None, 40)
    """
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
    """The square roots of the exact variances, where the textbook formula holds.

    >>> from velado.learning.regression.simulate import small_job
    >>> job = small_job(bits=4, moments=True)
    >>> standard_errors(Moments(((2560, 0), (0, 1024)), (0, 512), 656, 10), job)
    (0.06987712429686843, 0.2209708691207961)
    """
    squares = covariance_diagonal(moments, job)
    return None if squares is None else tuple(math.sqrt(max(0.0, float(value))) for value in squares)


def fit_of(job: Job, coefficients: Sequence[float], errors: Sequence[float] | None, rows: int | None) -> Fit:
    """The outcome a party holds: result, promise, cost, how.

    >>> from velado.learning.regression.simulate import small_job
    >>> fit_of(small_job(), (1.0, 0.5), None, 40).predict({"x": [2.0]}).tolist()
    [2.0]
    """
    return Fit(
        target=job.target.name,
        names=job.unknowns,
        coefficients=tuple(coefficients),
        promise=promise(job),
        learned=learned(job),
        standard_errors=None if errors is None else tuple(errors),
        how={"job": job.to_dict(), "digest": job.digest(), "rows": rows},
    )


class RegressionRole(Role):
    """A role that ends with the coefficients, or knows that others have them.

    >>> from velado.learning.regression.simulate import small_job
    >>> role = RegressionRole(small_job(), "c0", Tape(bytes(32)))
    >>> role._hold([1, Fraction(1, 2)], None, 40)
    >>> role.outcome.fit.coefficients
    (1.0, 0.5)
    """

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

    def _solve_pooled(self, moments: Moments, clients: int, summed: Sequence[str] = ()) -> bytes:
        """The result of pooled moments, with the job's noise and standard errors, which this role then holds."""
        job = self.job
        if not clients * job.minimum_rows <= moments.rows <= job.most_rows:
            raise InputError(
                "The pooled rows are fewer or more than the job allows.",
                "The sums of few rows tell much about each of them.",
                "Agree on other limits at all parties.",
            )
        moments = noisy(moments, job, self._tape.fork("noise"))
        beta = solve(moments, job)
        errors = standard_errors(moments, job) if job.moments else None
        self._hold(beta, errors, moments.rows, summed)
        return result_bytes(beta, errors, moments.rows)

    def _take_finished(self, message: Message) -> Sequence[Message]:
        """The others have the result, and this role is not to know it."""
        self._outcome = Outcome()
        return ()

    def _take_result(self, message: Message) -> Sequence[Message]:
        self._hold(*result_in(message.fields["result"], self.job))
        return ()


class KeyHolder(RegressionRole):
    """A provider: it makes the key, or is handed one, and tells everyone the public part.

    >>> from velado.learning.protocols.masked_regression import MASKED
    >>> from velado.learning.regression.simulate import small_job
    >>> provider = KeyHolder(small_job(MASKED), "vault", Tape(bytes(32)), PrivateKey(1009, 1019))
    >>> provider.start()[0]
    Message(key 0: vault to hub, 9 bytes)
    """

    def __init__(self, job: Job, name: str, tape: Tape, private: PrivateKey | None = None) -> None:
        super().__init__(job, name, tape)
        self._private = private or keygen(job.key_bits, tape.fork("key"), job.protocol.least_key_bits)

    def start(self) -> Sequence[Message]:
        """The public key, to everyone."""
        data = key_to_bytes(self._private.public)
        return [self._message(name, "key", key=data) for name in self._others()]


class Encryptor(RegressionRole):
    """A client: it sends its sums, encrypted once the key is there, and waits for the result.

    >>> from velado.learning.protocols.delegated_regression import DELEGATED
    >>> from velado.learning.regression.simulate import small_job, small_rows
    >>> sorted(DELEGATED.client(small_job(DELEGATED), "c0", Tape(bytes(32)), small_rows()).takes())
    ['key', 'result']
    """

    sends: ClassVar[str]

    def __init__(self, job: Job, name: str, tape: Tape, columns: Columns) -> None:
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

    >>> from velado.learning.protocols.delegated_regression import DELEGATED
    >>> from velado.learning.regression.simulate import small_job
    >>> evaluator = DELEGATED.evaluator(job := small_job(DELEGATED), "hub", Tape(bytes(32)))
    >>> early = Message(job.digest(), "c0", "hub", 0, "sums", {"ciphertexts": b"not read before the key is here"})
    >>> evaluator.receive(early), evaluator.done
    ([], False)
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
