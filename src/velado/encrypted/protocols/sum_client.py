"""A client's part in the secure sum, and the rules it shares with the evaluator (`secure_sum` says what happens when)."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence

from velado.encrypted.crypto import pairwise
from velado.encrypted.crypto.sharing import SHARE_BYTES, split, well_formed
from velado.encrypted.design import flat_bounds, flatten
from velado.encrypted.exact import Moments
from velado.encrypted.job import Job
from velado.encrypted.protocols.base import BaseRole, Kind, refused
from velado.encrypted.protocols.messages import Message
from velado.encrypted.protocols.parts import RESULT_BYTES, fit_of, result_in
from velado.errors import InputError
from velado.randomness import Tape

KEY_BYTES = 32
SEALED_BYTES = 2 * SHARE_BYTES + pairwise.SEAL_BYTES


def threshold_of(job: Job) -> int:
    """How many clients are needed to take masks away: minimum_clients, and more than half of all."""
    return max(job.minimum_clients, len(job.of("client")) // 2 + 1)


def number_bytes(job: Job) -> int:
    """The bytes of one masked number: room for every client's largest sum, and its sign."""
    return ((len(job.of("client")) * max(flat_bounds(job))).bit_length() + 1 + 7) // 8


def places_of(job: Job) -> dict[str, int]:
    return {party.name: place for place, party in enumerate(job.of("client"), start=1)}


def names_to_bytes(names: Collection[str], job: Job) -> bytes:
    places = places_of(job)
    return b"".join(places[name].to_bytes(2, "big") for name in sorted(names, key=places.__getitem__))


def names_in(data: bytes, job: Job) -> tuple[str, ...]:
    """The clients a list names, in the job's order, or ProtocolError."""
    names = [party.name for party in job.of("client")]
    places = [int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2)]
    rising = all(a < b for a, b in itertools.pairwise(places))
    if len(data) % 2 or not places or not rising or places[0] < 1 or places[-1] > len(names):
        raise refused("holds no list of clients")
    return tuple(names[place - 1] for place in places)


def sign_of(job: Job, one: str, other: str) -> int:
    """Whether a client adds the mask it shares with another, or subtracts it: who stands first in the job adds."""
    places = places_of(job)
    return 1 if places[one] < places[other] else -1


def mask_key(secret: bytes, public: bytes, job: str, one: str, other: str) -> bytes:
    """The key of the mask two clients share; the same from either side."""
    key = pairwise.agreed(secret, public, job, "mask", *sorted((one, other)))
    if key is None:
        raise InputError(
            f"The keys of {one} and {other} agree on nothing.",
            "A mask made from them would hide nothing.",
            "Let both start again.",
        )
    return key


class Client(BaseRole):
    """Hides its sums under masks, and helps to take away those of the sum, once."""

    def __init__(self, job: Job, name: str, tape: Tape, moments: Moments) -> None:
        super().__init__(job, name, tape)
        self._values = flatten(moments)
        self._letter_secret = tape.fork("letters").bytes(32)
        self._mask_secret = tape.fork("masks").bytes(32)
        self._self_seed = tape.fork("self").bytes(32)
        self._hello: dict[str, tuple[bytes, bytes]] = {}
        self._roster: tuple[str, ...] | None = None
        self._shared = False
        self._held: dict[str, tuple[bytes, bytes]] | None = None
        self._opened = False

    def kinds(self) -> Mapping[str, Kind]:
        """The others' keys, then the evaluator's four words."""
        clients = len(self.job.of("client"))
        return {
            "hello": Kind("client", {"keys": 2 * KEY_BYTES, "commitment": 32}, self._take_hello),
            "roster": Kind("evaluator", {"members": 2 * clients}, self._take_roster),
            "delivered": Kind(
                "evaluator", {"members": 2 * clients, "shares": SEALED_BYTES * clients}, self._take_delivered
            ),
            "unmask": Kind("evaluator", {"members": 2 * clients}, self._take_unmask),
            "result": Kind("evaluator", {"result": RESULT_BYTES}, self._take_result),
        }

    def start(self) -> Sequence[Message]:
        """The public keys and the own mask's commitment, to everyone."""
        keys = pairwise.public_of(self._letter_secret) + pairwise.public_of(self._mask_secret)
        fits = pairwise.commitment(self._self_seed, self._id)
        others = [party.name for party in self.job.parties if party.name != self.name]
        return [self._message(name, "hello", keys=keys, commitment=fits) for name in others]

    def _take_hello(self, message: Message) -> Sequence[Message]:
        keys = message.fields["keys"]
        if len(keys) != 2 * KEY_BYTES or message.sender in self._hello:
            raise refused("brings no keys, or keys a second time")
        self._hello[message.sender] = keys[:KEY_BYTES], keys[KEY_BYTES:]
        return self._share()

    def _take_roster(self, message: Message) -> Sequence[Message]:
        members = names_in(message.fields["members"], self.job)
        if self._roster is not None or self.name not in members or len(members) < threshold_of(self.job):
            raise refused("brings a second roster, or one this client cannot take part in")
        self._roster = members
        return self._share()

    def _share(self) -> Sequence[Message]:
        """Shares for everyone on the roster, once their keys are all there."""
        if (
            self._shared
            or self._roster is None
            or any(name not in self._hello for name in self._others(self._roster))
        ):
            return ()
        places, least = places_of(self.job), threshold_of(self.job)
        holders = [places[name] for name in self._roster]
        own = split(self._self_seed, least, holders, self._tape.fork("self shares"))
        pair = split(self._mask_secret, least, holders, self._tape.fork("mask shares"))
        self._own_shares = own[places[self.name]], pair[places[self.name]]
        sealed = b""
        for name in self._others(self._roster):
            letter = own[places[name]] + pair[places[name]]
            sealed += pairwise.seal(self._letter_key(name, self.name, name), letter, self._id.encode())
        self._shared = True
        return [self._message(self._one("evaluator"), "shares", shares=sealed)]

    def _take_delivered(self, message: Message) -> Sequence[Message]:
        members = names_in(message.fields["members"], self.job)
        if not self._shared or self._roster is None or self._held is not None:
            raise refused("brings shares out of turn")
        if (
            self.name not in members
            or not set(members) <= set(self._roster)
            or len(members) < threshold_of(self.job)
        ):
            raise refused("counts on clients that cannot be counted on")
        others, data = self._others(members), message.fields["shares"]
        if len(data) != SEALED_BYTES * len(others):
            raise refused("holds another number of shares than it names clients")
        held = {self.name: self._own_shares}
        for at, name in enumerate(others):
            sealed = data[at * SEALED_BYTES : (at + 1) * SEALED_BYTES]
            letter = pairwise.unseal(self._letter_key(name, name, self.name), sealed, self._id.encode())
            if letter is None or not (
                well_formed(letter[:SHARE_BYTES]) and well_formed(letter[SHARE_BYTES:])
            ):
                raise refused("holds a share that its client did not seal")
            held[name] = letter[:SHARE_BYTES], letter[SHARE_BYTES:]
        self._held = held
        size, count = number_bytes(self.job), len(self._values)
        masks = [(1, pairwise.mask(pairwise.derived(self._self_seed, self._id, "self"), count, size))]
        for name in others:
            key = mask_key(self._mask_secret, self._hello[name][1], self._id, self.name, name)
            masks.append((sign_of(self.job, self.name, name), pairwise.mask(key, count, size)))
        numbers = pairwise.masked(self._values, masks, size)
        data = b"".join(number.to_bytes(size, "little") for number in numbers)
        return [self._message(self._one("evaluator"), "masked", numbers=data)]

    def _take_unmask(self, message: Message) -> Sequence[Message]:
        arrived = names_in(message.fields["members"], self.job)
        if self._held is None or self._opened:
            raise refused("asks for shares out of turn or a second time")
        if (
            self.name not in arrived
            or not set(arrived) <= set(self._held)
            or len(arrived) < threshold_of(self.job)
        ):
            raise refused("asks to take masks away for too few clients, or for others")
        self._opened = True
        # One kind for each: of who arrived the own mask's, of who did not the pairwise masks'.
        shares = b"".join(
            self._held[name][0 if name in arrived else 1]
            for name in sorted(self._held, key=places_of(self.job).__getitem__)
        )
        return [self._message(self._one("evaluator"), "opened", shares=shares)]

    def _take_result(self, message: Message) -> Sequence[Message]:
        if not self._opened:
            raise refused("brings a result before anything was summed")
        coefficients, errors, rows = result_in(message.fields["result"], self.job)
        self._outcome = {"fit": fit_of(self.job, coefficients, errors, rows).to_dict()}
        return ()

    def _others(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if name != self.name]

    def _letter_key(self, peer: str, sender: str, receiver: str) -> bytes:
        key = pairwise.agreed(self._letter_secret, self._hello[peer][0], self._id, "letter", sender, receiver)
        if key is None:
            raise InputError(
                f"The key that {peer} sent agrees on nothing.",
                "Anyone could read what is sealed under it.",
                "Let that client start again.",
            )
        return key
