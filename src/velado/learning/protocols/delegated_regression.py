"""Delegated regression (Method 2 of Nascimento 2023, after Chen and Zheng 2022), with the key away from the evaluator.

Clients encrypt their packed sums E(upper triangle of A_k, b_k, rows_k); the evaluator adds them without being able to
read them; the provider, who holds the key, decrypts the total alone and solves it exactly. It learns the pooled second
moments: say so to everyone who takes part.

    provider --key--> evaluator, clients      client --sums--> evaluator
    evaluator --total--> provider             provider --result--> evaluator, clients
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from velado.errors import InputError
from velado.learning.crypto.obfuscators import FullPower, ObfuscatorPool
from velado.learning.crypto.paillier import (
    Ciphertext,
    Packing,
    ciphertexts_from_bytes,
    ciphertexts_size,
    ciphertexts_to_bytes,
    decrypt_many,
    encrypt_many,
    obfuscate,
)
from velado.learning.crypto.paillier_keys import PrivateKey, PublicKey
from velado.learning.protocols.parts import (
    KEY_BYTES,
    RESULT_BYTES,
    Collector,
    KeyHolder,
    fit_of,
    key_in,
    result_bytes,
    result_in,
    standard_errors,
)
from velado.learning.protocols.role import BaseRole, Kind, Message, refused
from velado.learning.regression.design_matrix import flat_bounds, flatten, unflatten
from velado.learning.regression.fit import Moments, solve
from velado.learning.regression.job import Job
from velado.learning.regression.regression_noise import noisy
from velado.randomness import Tape


def packing_for(job: Job, key: PublicKey) -> Packing:
    """The layout all parties work out for themselves: one term for each client."""
    return Packing.for_key(key, flat_bounds(job), len(job.of("client")))


def most_bytes(job: Job, count: int) -> int:
    """How large a message of so many ciphertexts is under a key of the job's size."""
    return 64 + count * 2 * (job.key_bits // 8)


class Client(BaseRole):
    """Sends its encrypted sums once the key is there, and waits for the result."""

    def __init__(self, job: Job, name: str, tape: Tape, moments: Moments) -> None:
        super().__init__(job, name, tape)
        self._moments = moments

    def kinds(self) -> Mapping[str, Kind]:
        """The key, then the result, both from the provider."""
        return {
            "key": Kind("provider", {"key": KEY_BYTES}, self._take_key),
            "result": Kind("provider", {"result": RESULT_BYTES}, self._take_result),
        }

    def _take_key(self, message: Message) -> Sequence[Message]:
        if self._sent:
            raise refused("brings a second key")
        key = key_in(message, self.job)
        plaintexts = packing_for(self.job, key).pack(flatten(self._moments))
        pool = ObfuscatorPool(FullPower(key, self._tape.fork("obfuscators")))
        sums = ciphertexts_to_bytes(key, encrypt_many(key, plaintexts, pool))
        return [self._message(self._one("evaluator"), "sums", ciphertexts=sums)]

    def _take_result(self, message: Message) -> Sequence[Message]:
        coefficients, errors, rows = result_in(message.fields["result"], self.job)
        self._outcome = {"fit": fit_of(self.job, coefficients, errors, rows).to_dict()}
        return ()


class Evaluator(Collector):
    """Adds what it cannot read, re-randomises the total, and sends it to the provider."""

    def __init__(self, job: Job, name: str, tape: Tape) -> None:
        super().__init__(job, name, tape)
        self._pool: ObfuscatorPool | None = None

    def kinds(self) -> Mapping[str, Kind]:
        """The key, every client's sums, then the result."""
        largest = most_bytes(self.job, len(flat_bounds(self.job)))
        return {
            "key": Kind("provider", {"key": KEY_BYTES}, self._take_key),
            "sums": Kind("client", {"ciphertexts": largest}, self._take_ciphertexts),
            "result": Kind("provider", {"result": RESULT_BYTES}, self._take_result),
        }

    def _expected(self, key: PublicKey) -> int:
        return packing_for(self.job, key).plaintexts

    def _key_is_here(self, key: PublicKey) -> None:
        # Made while the clients work, so that the total leaves as soon as the last sums are there.
        self._pool = ObfuscatorPool(FullPower(key, self._tape.fork("obfuscators")))
        self._pool.fill(self._expected(key))

    def _all_are_here(self, key: PublicKey, sums: list[Ciphertext]) -> Sequence[Message]:
        assert self._pool is not None  # made when the key came
        data = ciphertexts_to_bytes(key, obfuscate(sums, self._pool))
        return [self._message(self._one("provider"), "total", ciphertexts=data)]

    def _take_result(self, message: Message) -> Sequence[Message]:
        coefficients, errors, rows = result_in(message.fields["result"], self.job)
        self._outcome = {"fit": fit_of(self.job, coefficients, errors, rows).to_dict()}
        return ()


class Provider(KeyHolder):
    """Makes the key, decrypts the total alone, solves it exactly, and tells the coefficients."""

    def __init__(self, job: Job, name: str, tape: Tape, private: PrivateKey | None = None) -> None:
        super().__init__(job, name, tape, private)
        packing_for(job, self._private.public)  # a sum that cannot fit is refused before anyone sends

    def kinds(self) -> Mapping[str, Kind]:
        """The encrypted total from the evaluator."""
        largest = most_bytes(self.job, len(flat_bounds(self.job)))
        return {"total": Kind("evaluator", {"ciphertexts": largest}, self._take_total)}

    def _take_total(self, message: Message) -> Sequence[Message]:
        key = self._private.public
        packing = packing_for(self.job, key)
        data = message.fields["ciphertexts"]
        if len(data) != ciphertexts_size(key, packing.plaintexts):
            raise refused("holds another number of ciphertexts than the job needs")
        ciphertexts = ciphertexts_from_bytes(key, data, packing.plaintexts)
        moments = unflatten(packing.unpack(decrypt_many(self._private, ciphertexts)), self.job)
        clients = len(self.job.of("client"))
        if not clients * self.job.minimum_rows <= moments.rows <= self.job.most_rows:
            raise InputError(
                "The pooled rows are fewer or more than the job allows.",
                "The sums of few rows tell much about each of them.",
                "Agree on other limits at all parties.",
            )
        moments = noisy(moments, self.job, self._tape.fork("noise"))
        beta = solve(moments, self.job)
        errors = standard_errors(moments, self.job) if self.job.moments else None
        self._outcome = {
            "fit": fit_of(self.job, [float(value) for value in beta], errors, moments.rows).to_dict()
        }
        told = result_bytes(beta, errors, moments.rows)
        others = [party.name for party in self.job.parties if party.name != self.name]
        return [self._message(name, "result", result=told) for name in others]
