"""What the roles around one Paillier key share: a provider that announces it, an evaluator that collects under it."""

from __future__ import annotations

from collections.abc import Sequence

from velado.encrypted.crypto.keys import PrivateKey, PublicKey, keygen
from velado.encrypted.crypto.paillier import Ciphertext, sum_ciphertexts
from velado.encrypted.crypto.validation import SeenCiphertexts, ciphertexts_from_bytes, key_to_bytes
from velado.encrypted.job import Job
from velado.encrypted.protocols.base import BaseRole, refused
from velado.encrypted.protocols.messages import Message
from velado.encrypted.protocols.parts import key_in
from velado.errors import VeladoError
from velado.randomness import Tape


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
