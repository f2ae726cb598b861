"""Secure sum: pooled moments without homomorphic encryption and without a provider (Bonawitz et al. 2017).

Client u adds to its flattened sums, modulo 2^k, a mask of its own and for every other client v a mask that u adds and v
subtracts: summed over all clients the latter cancel. What is needed to take masks away is shared among the clients, any
*threshold* of which suffice: the seed of the own mask if u's sums arrived, the key of the pairwise ones if they did not.

    client --hello--> clients, evaluator      evaluator --roster--> clients
    client --shares--> evaluator              evaluator --delivered--> clients
    client --masked--> evaluator              evaluator --unmask--> clients
    client --opened--> evaluator              evaluator --result--> clients

Clients send their keys to each other directly, so the evaluator cannot put its own in between; shares go through its
hands sealed. A client answers *unmask* once, with one kind of share for each other client, and never gives both. Since
threshold = max(minimum_clients, more than half of all clients), an evaluator that tells clients different stories cannot
gather both kinds of anyone either, unless clients help it. The evaluator learns the pooled moments, and solves exactly.

Dropouts: `Evaluator.without(names)`, said by whoever watches the clock, goes on without those it still waits for, at every
stage; a client whose sums arrived counts in the result even if it leaves after that. Fewer than the threshold: the job ends.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from velado.encrypted.crypto import pairwise
from velado.encrypted.crypto.sharing import SHARE_BYTES, join, well_formed
from velado.encrypted.design import flat_bounds, unflatten
from velado.encrypted.exact import Moments, solve
from velado.encrypted.job import Job
from velado.encrypted.noise import noisy
from velado.encrypted.protocols.base import BaseRole, Kind, refused
from velado.encrypted.protocols.messages import Message
from velado.encrypted.protocols.parts import fit_of, result_bytes, standard_errors
from velado.encrypted.protocols.sum_client import (
    KEY_BYTES,
    SEALED_BYTES,
    Client,
    mask_key,
    names_to_bytes,
    number_bytes,
    places_of,
    sign_of,
    threshold_of,
)
from velado.errors import InputError
from velado.randomness import Tape

HELLO, SHARES, MASKED, OPENED = range(4)


class Evaluator(BaseRole):
    """Carries sealed shares, adds masked sums, takes the sum's masks away, and solves."""

    def __init__(self, job: Job, name: str, tape: Tape) -> None:
        super().__init__(job, name, tape)
        self._stage = HELLO
        self._members = tuple(party.name for party in job.of("client"))
        self._gone: set[str] = set()
        self._got: tuple[dict[str, bytes], ...] = ({}, {}, {}, {})
        self._commitments: dict[str, bytes] = {}
        self._roster: tuple[str, ...] = ()
        self._sharers: tuple[str, ...] = ()
        self._summed: tuple[str, ...] = ()

    def kinds(self) -> Mapping[str, Kind]:
        """The four words of every client, in their order."""
        clients = len(self.job.of("client"))
        vector = number_bytes(self.job) * len(flat_bounds(self.job))
        return {
            "hello": Kind("client", {"keys": 2 * KEY_BYTES, "commitment": 32}, self._take_hello),
            "shares": Kind("client", {"shares": SEALED_BYTES * clients}, self._taker(SHARES, "shares")),
            "masked": Kind("client", {"numbers": vector}, self._taker(MASKED, "numbers")),
            "opened": Kind("client", {"shares": SHARE_BYTES * clients}, self._taker(OPENED, "shares")),
        }

    @property
    def awaited(self) -> tuple[str, ...]:
        """Whom the job waits for now."""
        if self.done:
            return ()
        return tuple(name for name in self._members if name not in self._got[self._stage])

    def without(self, names: Collection[str]) -> Sequence[Message]:
        """Go on without those of *names* that are still awaited; the job ends where too few are left.

        It is an event like a message: whoever brings a role back must repeat it at the same place.
        """
        leaving = [name for name in self.awaited if name in names]
        if not leaving:
            return ()
        self._gone.update(leaving)
        self._members = tuple(name for name in self._members if name not in leaving)
        if len(self._members) < threshold_of(self.job):
            return self.abort(
                f"{len(self._members)} clients are left, and {threshold_of(self.job)} are needed to take masks away. "
                f"Missing: {', '.join(sorted(self._gone))}."
            )
        reason = b"The job went on without this client."
        told = [self._message(name, "abort", reason=reason) for name in leaving]
        try:
            return [*told, *self._go_on()]
        except InputError as error:
            return [*told, *self.abort(f"{error.what} {error.fix}")]

    def _take_hello(self, message: Message) -> Sequence[Message]:
        keys, fits = message.fields["keys"], message.fields["commitment"]
        if message.sender in self._gone:
            return ()
        if len(keys) != 2 * KEY_BYTES or len(fits) != 32 or message.sender in self._got[HELLO]:
            raise refused("brings no keys, or keys a second time")
        self._commitments[message.sender] = fits
        self._got[HELLO][message.sender] = keys[KEY_BYTES:]
        return self._go_on()

    def _taker(self, stage: int, field: str) -> Callable[[Message], Sequence[Message]]:
        def take(message: Message) -> Sequence[Message]:
            data = message.fields[field]
            if message.sender in self._gone:
                return ()  # It came too late: the others have gone on, and nothing is done with it.
            if self._stage != stage or message.sender in self._got[stage]:
                raise refused("comes out of turn or a second time")
            if len(data) != self._due_bytes(stage) or (
                stage == OPENED and not all(map(well_formed, _cut(data)))
            ):
                raise refused("does not hold what its stage needs")
            self._got[stage][message.sender] = data
            return self._go_on()

        return take

    def _due_bytes(self, stage: int) -> int:
        vector = number_bytes(self.job) * len(flat_bounds(self.job))
        return (0, SEALED_BYTES * (len(self._roster) - 1), vector, SHARE_BYTES * len(self._sharers))[stage]

    def _go_on(self) -> Sequence[Message]:
        """The next word to everyone, once nobody is awaited any more."""
        if self.awaited or self.done:
            return ()
        self._stage += 1
        members, names = self._members, names_to_bytes(self._members, self.job)
        if self._stage == SHARES:
            self._roster = members
            return [self._message(name, "roster", members=names) for name in members]
        if self._stage == MASKED:
            self._sharers = members
            return [
                self._message(name, "delivered", members=names, shares=self._letters_to(name))
                for name in members
            ]
        if self._stage == OPENED:
            self._summed = members
            return [self._message(name, "unmask", members=names) for name in members]
        self._stage = OPENED
        return self._finish()

    def _letters_to(self, receiver: str) -> bytes:
        letters = b""
        for sender in self._sharers:
            if sender != receiver:
                at = [name for name in self._roster if name != sender].index(receiver) * SEALED_BYTES
                letters += self._got[SHARES][sender][at : at + SEALED_BYTES]
        return letters

    def _finish(self) -> Sequence[Message]:
        job = self.job
        moments = self._unmasked()
        if not len(self._summed) * job.minimum_rows <= moments.rows <= job.most_rows:
            raise InputError(
                "The pooled rows are fewer or more than the job allows.",
                "The sums of few rows tell much about each of them.",
                "Agree on other limits at all parties.",
            )
        moments = noisy(moments, job, self._tape.fork("noise"))
        beta = solve(moments, job)
        errors = standard_errors(moments, job) if job.moments else None
        fit = fit_of(job, [float(value) for value in beta], errors, moments.rows)
        self._outcome = {"fit": fit.to_dict(), "summed": list(self._summed)}
        told = result_bytes(beta, errors, moments.rows)
        return [self._message(name, "result", result=told) for name in self._members]

    def _unmasked(self) -> Moments:
        """The pooled moments of all whose sums arrived: their own masks and the masks of who left are taken away."""
        job, size, bounds = self.job, number_bytes(self.job), flat_bounds(self.job)
        masks: list[tuple[int, Sequence[int]]] = []
        for place, name in enumerate(self._sharers):
            secret = self._joined(place)
            if name in self._summed:
                if secret is None or pairwise.commitment(secret, self._id) != self._commitments[name]:
                    raise _false_shares(name)
                masks.append(
                    (-1, pairwise.mask(pairwise.derived(secret, self._id, "self"), len(bounds), size))
                )
                continue
            if secret is None or pairwise.public_of(secret) != self._got[HELLO][name]:
                raise _false_shares(name)
            for other in self._summed:
                key = mask_key(secret, self._got[HELLO][other], self._id, name, other)
                masks.append((-sign_of(job, other, name), pairwise.mask(key, len(bounds), size)))
        vectors = [(1, _numbers(self._got[MASKED][name], size)) for name in self._summed]
        total = pairwise.masked([0] * len(bounds), [*vectors, *masks], size)
        half = 1 << (8 * size - 1)
        values = [value - 2 * half if value >= half else value for value in total]
        if any(abs(value) > len(self._summed) * bound for value, bound in zip(values, bounds, strict=True)):
            raise InputError(
                "The sum is larger than the public bounds allow.",
                "A client broke its bounds or its masks, and the result would mean nothing.",
                "Check every client's rows and run the job again.",
            )
        return unflatten(values, job)

    def _joined(self, place: int) -> bytes | None:
        places = places_of(self.job)
        opened = [name for name in self._members if name in self._got[OPENED]][: threshold_of(self.job)]
        return join({places[name]: _cut(self._got[OPENED][name])[place] for name in opened})


def _cut(data: bytes) -> list[bytes]:
    return [data[at : at + SHARE_BYTES] for at in range(0, len(data), SHARE_BYTES)]


def _numbers(data: bytes, size: int) -> list[int]:
    return [int.from_bytes(data[at : at + size], "little") for at in range(0, len(data), size)]


def _false_shares(name: str) -> InputError:
    return InputError(
        f"The shares of {name}'s mask do not fit what it announced.",
        "A client gave a false share, so the sum cannot be told.",
        "Run the job again, without a client that is not trusted.",
    )


__all__ = ["Client", "Evaluator", "threshold_of"]
