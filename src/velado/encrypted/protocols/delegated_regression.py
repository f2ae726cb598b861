"""Delegated regression (Method 2 of Nascimento 2023, after Chen and Zheng 2022), with the key away from the evaluator.

Clients encrypt their packed sums E(upper triangle of A_k, b_k, rows_k); the evaluator adds them without being able to
read them; the provider, who holds the key, decrypts the total alone and solves it exactly. It learns the pooled second
moments: say so to everyone who takes part.

    provider --key--> evaluator, clients      client --sums--> evaluator
    evaluator --total--> provider             provider --result--> evaluator, clients
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from velado.encrypted.crypto.keys import PrivateKey, PublicKey, keygen
from velado.encrypted.crypto.obfuscators import FullPower, ObfuscatorPool
from velado.encrypted.crypto.packing import Packing
from velado.encrypted.crypto.paillier import (
    Ciphertext,
    decrypt_many,
    encrypt_many,
    obfuscate,
    sum_ciphertexts,
)
from velado.encrypted.crypto.validation import (
    SeenCiphertexts,
    ciphertexts_from_bytes,
    ciphertexts_size,
    ciphertexts_to_bytes,
    key_to_bytes,
)
from velado.encrypted.design import flat_bounds, flatten, unflatten
from velado.encrypted.exact import Moments, solve
from velado.encrypted.job import Job
from velado.encrypted.noise import noisy
from velado.encrypted.protocols.base import BaseRole, Kind, refused
from velado.encrypted.protocols.messages import Message
from velado.encrypted.protocols.parts import (
    KEY_BYTES,
    RESULT_BYTES,
    fit_of,
    key_in,
    result_bytes,
    result_in,
    standard_errors,
)
from velado.errors import InputError, VeladoError
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


class Evaluator(BaseRole):
    """Adds what it cannot read, re-randomises the total, and sends it to the provider."""

    def __init__(self, job: Job, name: str, tape: Tape) -> None:
        super().__init__(job, name, tape)
        self._key: PublicKey | None = None
        self._waiting: dict[str, bytes] = {}
        self._sums: dict[str, list[Ciphertext]] = {}
        self._seen = SeenCiphertexts()
        self._pool: ObfuscatorPool | None = None

    def kinds(self) -> Mapping[str, Kind]:
        """The key, every client's sums, then the result."""
        largest = most_bytes(self.job, len(flat_bounds(self.job)))
        return {
            "key": Kind("provider", {"key": KEY_BYTES}, self._take_key),
            "sums": Kind("client", {"ciphertexts": largest}, self._take_sums),
            "result": Kind("provider", {"result": RESULT_BYTES}, self._take_result),
        }

    def _take_key(self, message: Message) -> Sequence[Message]:
        key = key_in(message, self.job)
        if self._key is not None:
            raise refused("brings a second key")
        self._key = key
        # Made while the clients work, so that the total leaves as soon as the last sums are there.
        self._pool = ObfuscatorPool(FullPower(key, self._tape.fork("obfuscators")))
        self._pool.fill(packing_for(self.job, key).plaintexts)
        for sender, data in self._waiting.items():
            try:
                self._sums[sender] = self._read(key, data)
            except VeladoError:
                return self.abort(f"What {sender} sent is not encrypted under the job's key.")
        self._waiting.clear()
        return self._add_up()

    def _take_sums(self, message: Message) -> Sequence[Message]:
        data = message.fields["ciphertexts"]
        if message.sender in self._sums or message.sender in self._waiting:
            raise refused("brings a client's sums a second time")
        if self._key is None:
            self._waiting[message.sender] = data
            return ()
        self._sums[message.sender] = self._read(self._key, data)
        return self._add_up()

    def _read(self, key: PublicKey, data: bytes) -> list[Ciphertext]:
        return ciphertexts_from_bytes(key, data, packing_for(self.job, key).plaintexts, self._seen)

    def _add_up(self) -> Sequence[Message]:
        if self._key is None or self._pool is None or len(self._sums) < len(self.job.of("client")):
            return ()
        key = self._key
        columns = zip(*(self._sums[party.name] for party in self.job.of("client")), strict=True)
        together = obfuscate([sum_ciphertexts(column) for column in columns], self._pool)
        data = ciphertexts_to_bytes(key, together)
        return [self._message(self._one("provider"), "total", ciphertexts=data)]

    def _take_result(self, message: Message) -> Sequence[Message]:
        coefficients, errors, rows = result_in(message.fields["result"], self.job)
        self._outcome = {"fit": fit_of(self.job, coefficients, errors, rows).to_dict()}
        return ()


class Provider(BaseRole):
    """Makes the key, decrypts the total alone, solves it exactly, and tells the coefficients."""

    def __init__(self, job: Job, name: str, tape: Tape, private: PrivateKey | None = None) -> None:
        super().__init__(job, name, tape)
        self._private = private or keygen(job.key_bits, tape.fork("key")).private
        packing_for(job, self._private.public)  # a sum that cannot fit is refused before anyone sends

    def kinds(self) -> Mapping[str, Kind]:
        """The encrypted total from the evaluator."""
        largest = most_bytes(self.job, len(flat_bounds(self.job)))
        return {"total": Kind("evaluator", {"ciphertexts": largest}, self._take_total)}

    def start(self) -> Sequence[Message]:
        """The public key, to everyone."""
        data = key_to_bytes(self._private.public)
        others = [party.name for party in self.job.parties if party.name != self.name]
        return [self._message(name, "key", key=data) for name in others]

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
