"""Secure sum: pooled moments without homomorphic encryption and without a provider (Bonawitz et al. 2017).

Client u adds to its flattened sums, modulo 2^k, a mask of its own and for every other client v a mask that u adds and v
subtracts: summed over all clients the latter cancel. What is needed to take masks away is shared among the clients, any
*threshold* of which suffice: the seed of the own mask if u's sums arrived, the key of the pairwise ones if they did not.

    client --hello--> clients, evaluator      evaluator --roster--> clients
    client --shares--> evaluator              evaluator --delivered--> clients
    client --masked--> evaluator              evaluator --unmask--> clients
    client --opened--> evaluator              evaluator --next--> clients, or
                                              evaluator --result--> clients

Keys and shares go through the evaluator's hands: keys signed by their clients, so that it cannot put its own in between, and
shares sealed. A client answers *unmask* once, with one kind of share for each other client, and never gives both. Since
threshold = max(minimum_clients, more than half of all clients), an evaluator that tells clients different stories cannot
gather both kinds of anyone either, unless clients help it. The evaluator learns the pooled moments, and solves exactly.

Several rounds: every round has masks of its own, so all of their secrets are shared at the beginning; `next` asks for the sums of the
next one, at a point, and masked, unmask and opened follow again. Exact figures begin with a census (`regression.census`). From
the census on, exact sums are over the same clients in every round, or the job ends: the difference would be one client's. With noise
a client may leave between rounds, as long as the noise of enough others is there.

Dropouts: `SumEvaluator.without(names)`, said by whoever watches the clock, goes on without those it still waits for, at every
stage; a client whose last sums arrived counts in the result even if it leaves after that. Fewer than the threshold: the job ends.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence

from velado.errors import InputError, ProtocolError
from velado.learning.crypto import _sharing as pairwise
from velado.learning.crypto._sharing import SHARE_BYTES, join, split, well_formed
from velado.learning.crypto.fixed_point import Columns
from velado.learning.protocols.parts import CLIENT_SEEN, RESULT, RegressionRole, result_in
from velado.learning.protocols.protocol import Facts, Limits, Message, RegressionProtocol, Seen, Step
from velado.learning.protocols.reasons import reason_of
from velado.learning.protocols.role import Take, refused
from velado.learning.regression.job import Job
from velado.learning.regression.rounds import ClientRounds, PooledRounds, most_rounds, round_bounds
from velado.randomness import Tape
from velado.text import say

# A client's part in the secure sum, and the rules it shares with the evaluator (`secure_sum` says what happens when).

KEY_BYTES = 32


def sealed_bytes(job: Job) -> int:
    """The bytes of one sealed letter: for every round a share of the own mask's seed and one of the pairwise masks' key.

    >>> from velado.learning.regression.simulate import small_job
    >>> sealed_bytes(small_job())
    148
    """
    return 2 * SHARE_BYTES * most_rounds(job) + pairwise.SEAL_BYTES


def threshold_of(job: Job) -> int:
    """How many clients are needed to take masks away: minimum_clients, and more than half of all.

    >>> from velado.learning.regression.simulate import small_job
    >>> threshold_of(small_job())
    3
    """
    return max(job.minimum_clients, len(job.of("client")) // 2 + 1)


def number_bytes(job: Job, number: int) -> int:
    """The bytes of one masked number in a round: room for every client's largest sum, and its sign.

    >>> from velado.learning.regression.simulate import small_job
    >>> number_bytes(small_job(bits=4), 1)  # of 3 clients' sums, up to 10^6 x 256^2 each
    5
    """
    return ((len(job.of("client")) * max(round_bounds(job, number))).bit_length() + 1 + 7) // 8


def places_of(job: Job) -> dict[str, int]:
    """Each client by its place in the job, from 1.

    >>> from velado.learning.regression.simulate import small_job
    >>> places_of(small_job())
    {'c0': 1, 'c1': 2, 'c2': 3}
    """
    return {party.name: place for place, party in enumerate(job.of("client"), start=1)}


def names_to_bytes(names: Collection[str], job: Job) -> bytes:
    """A list of clients as it travels: their places, rising.

    >>> from velado.learning.regression.simulate import small_job
    >>> names_to_bytes(["c2", "c0"], small_job())
    b'\\x00\\x01\\x00\\x03'
    """
    places = places_of(job)
    return b"".join(places[name].to_bytes(2, "big") for name in sorted(names, key=places.__getitem__))


def names_in(data: bytes, job: Job) -> tuple[str, ...]:
    """The clients a list names, in the job's order, or ProtocolError.

    >>> from velado.learning.regression.simulate import small_job
    >>> names_in(bytes([0, 1, 0, 3]), small_job())
    ('c0', 'c2')
    """
    names = [party.name for party in job.of("client")]
    places = [int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2)]
    rising = all(a < b for a, b in itertools.pairwise(places))
    if len(data) % 2 or not places or not rising or places[0] < 1 or places[-1] > len(names):
        raise refused(say("holds no list of clients"))
    return tuple(names[place - 1] for place in places)


def sign_of(job: Job, one: str, other: str) -> int:
    """Whether a client adds the mask it shares with another, or subtracts it: who stands first in the job adds.

    >>> from velado.learning.regression.simulate import small_job
    >>> sign_of(small_job(), "c0", "c2"), sign_of(small_job(), "c2", "c0")
    (1, -1)
    """
    places = places_of(job)
    return 1 if places[one] < places[other] else -1


def _mask_key(secret: bytes, public: bytes, job: str, one: str, other: str) -> bytes:
    """The key of the mask two clients share in a round, whose keys these are; the same from either side."""
    key = pairwise.agreed(secret, public, job, "mask", *sorted((one, other)))
    if key is None:
        raise InputError(
            say("The keys of {one} and {other} agree on nothing.", one=one, other=other),
            "A mask made from them would hide nothing.",
            "Let both start again.",
        )
    return key


class SumClient(RegressionRole):
    """Hides its sums under masks, and helps to take away those of the sum, once.

    >>> from velado.learning.regression.simulate import small_job, small_rows
    >>> client = SumClient(small_job(), "c0", Tape(bytes(32)), small_rows())
    >>> [(message.kind, message.receiver) for message in client.start()]
    [('hello', 'hub'), ('hello', 'c1'), ('hello', 'c2')]
    """

    def __init__(self, job: Job, name: str, tape: Tape, columns: Columns) -> None:
        super().__init__(job, name, tape)
        self._rows = ClientRounds(columns, job, tape.fork("noise"))
        self._letter_secret = tape.fork("letters").bytes(32)
        rounds = range(most_rounds(job))
        self._mask_secrets = [tape.fork(f"masks {number}").bytes(32) for number in rounds]
        self._self_seeds = [tape.fork(f"self {number}").bytes(32) for number in rounds]
        self._hello: dict[str, tuple[bytes, ...]] = {}
        self._roster: tuple[str, ...] = ()
        self._held: dict[str, list[bytes]] = {}
        self._number = 0
        self._members: tuple[str, ...] = ()
        self._counted: tuple[str, ...] = ()

    @property
    def unheard(self) -> tuple[str, ...]:
        """Those on the roster whose keys have not come."""
        if self.done or self._held:
            return ()
        return tuple(name for name in self._but_own(self._roster) if name not in self._hello)

    def takes(self) -> Mapping[str, Take]:
        """The others' keys, then the evaluator's words, the last ones as often as there are rounds."""
        return {
            "hello": self._take_hello,
            "roster": self._take_roster,
            "delivered": self._take_delivered,
            "unmask": self._take_unmask,
            "next": self._take_next,
            "result": self._take_result,
        }

    def start(self) -> Sequence[Message]:
        """The public keys and the own masks' commitments, to everyone."""
        keys = b"".join(map(pairwise.public_of, (self._letter_secret, *self._mask_secrets)))
        fits = b"".join(pairwise.commitment(seed, self._id) for seed in self._self_seeds)
        return [self._message(name, "hello", keys=keys, commitment=fits) for name in self._others()]

    def _take_hello(self, message: Message) -> Sequence[Message]:
        keys = message.fields["keys"]
        if len(keys) != KEY_BYTES * (1 + most_rounds(self.job)):
            raise refused(say("brings no keys"))
        self._hello[message.sender] = _cut(keys, KEY_BYTES)
        return self._share()

    def _take_roster(self, message: Message) -> Sequence[Message]:
        why = say("brings a roster this client cannot take part in")
        self._roster = self._members_in(message, places_of(self.job), why)
        return self._share()

    def _members_in(self, message: Message, among: Collection[str], why: str) -> tuple[str, ...]:
        """The clients a message names: enough of *among*, and this one with them."""
        members = names_in(message.fields["members"], self.job)
        few = len(members) < threshold_of(self.job)
        if self.name not in members or not set(members) <= set(among) or few:
            raise refused(why)
        return members

    def _share(self) -> Sequence[Message]:
        """Shares for everyone on the roster, once their keys are all there."""
        if (
            self._held
            or not self._roster
            or any(name not in self._hello for name in self._but_own(self._roster))
        ):
            return ()
        places, least = places_of(self.job), threshold_of(self.job)
        holders = [places[name] for name in self._roster]
        letters = dict.fromkeys(holders, b"")
        for number, secrets in enumerate(zip(self._self_seeds, self._mask_secrets, strict=True)):
            for secret, use in zip(secrets, ("self", "mask"), strict=True):
                shares = split(secret, least, holders, self._tape.fork(f"{use} shares {number}"))
                letters = {holder: letter + shares[holder] for holder, letter in letters.items()}
        self._held = {self.name: list(_cut(letters[places[self.name]], SHARE_BYTES))}
        sealed = b""
        for name in self._but_own(self._roster):
            key = self._letter_key(name, self.name, name)
            sealed += pairwise.seal(key, letters[places[name]], self._id.encode())
        return [self._message(self._one("evaluator"), "shares", shares=sealed)]

    def _take_delivered(self, message: Message) -> Sequence[Message]:
        members = self._members_in(message, self._roster, say("counts on clients that cannot be counted on"))
        others, data = self._but_own(members), message.fields["shares"]
        each = sealed_bytes(self.job)
        if len(data) != each * len(others):
            raise refused(say("holds another number of shares than it names clients"))
        held = dict(self._held)
        for name, sealed in zip(others, _cut(data, each), strict=True):
            letter = pairwise.unseal(self._letter_key(name, name, self.name), sealed, self._id.encode())
            shares = () if letter is None else _cut(letter, SHARE_BYTES)
            if not shares or not all(map(well_formed, shares)):
                raise refused(say("holds a share that its client did not seal"))
            held[name] = list(shares)
        self._held, self._members = held, members
        return self._masked(b"")

    def _masked(self, point: bytes) -> Sequence[Message]:
        """The figures of this round under its masks."""
        figures = self._rows.figures(self._number, point)
        if figures is None:
            raise refused(say("asks for sums at no point of this job"))
        size, count = number_bytes(self.job, self._number), len(figures)
        seed = pairwise.derived(self._self_seeds[self._number], self._id, "self")
        masks = [(1, pairwise.mask(seed, count, size))]
        for name in self._but_own(self._members):
            public = self._hello[name][1 + self._number]
            key = _mask_key(self._mask_secrets[self._number], public, self._id, self.name, name)
            masks.append((sign_of(self.job, self.name, name), pairwise.mask(key, count, size)))
        numbers = pairwise.masked(figures, masks, size)
        data = b"".join(number.to_bytes(size, "little") for number in numbers)
        return [self._message(self._one("evaluator"), "masked", numbers=data)]

    def _take_next(self, message: Message) -> Sequence[Message]:
        if self._number + 1 >= most_rounds(self.job):
            raise refused(say("asks for more rounds than the job has"))
        before = self._number, self._members
        self._number, self._members = self._number + 1, self._counted
        try:
            return self._masked(message.fields["point"])
        except ProtocolError:
            self._number, self._members = before
            raise

    def _take_result(self, message: Message) -> Sequence[Message]:
        # Whose sums were opened this client knows itself: it helped to open them.
        self._hold(result_in(message.fields["result"], self.job), self._counted)
        return ()

    def _take_unmask(self, message: Message) -> Sequence[Message]:
        why = say("asks to take masks away for too few clients, or for others")
        arrived = self._members_in(message, self._members, why)
        if self.job.noise is None and self._counted and arrived != self._counted:
            raise refused(say("asks for sums over other clients than were counted"))
        missing = len(self.job.of("client")) - len(arrived)
        if self.job.noise is not None and missing > self.job.tolerated:
            raise refused(say("asks for sums with less noise than the job says"))
        self._agree(arrived)
        self._counted = arrived
        # One kind for each: of who arrived the own mask's, of who did not the pairwise masks'.
        shares = b"".join(
            self._held[name][2 * self._number + (0 if name in arrived else 1)]
            for name in sorted(self._members, key=places_of(self.job).__getitem__)
        )
        return [self._message(self._one("evaluator"), "opened", shares=shares)]

    def _but_own(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if name != self.name]

    def _letter_key(self, peer: str, sender: str, receiver: str) -> bytes:
        key = pairwise.agreed(self._letter_secret, self._hello[peer][0], self._id, "letter", sender, receiver)
        if key is None:
            raise InputError(
                say("The key that {peer} sent agrees on nothing.", peer=peer),
                "Anyone could read what is sealed under it.",
                "Let that client start again.",
            )
        return key


HELLO, SHARES, MASKED, OPENED = range(4)


class SumEvaluator(RegressionRole):
    """Carries sealed shares, adds masked sums, takes the sum's masks away, and solves.

    >>> from velado.learning.regression.simulate import small_job
    >>> evaluator = SumEvaluator(small_job(), "hub", Tape(bytes(32)))
    >>> evaluator.without(["c2"])[0]  # three were needed
    Message(abort 0: hub to c0, 125 bytes)
    """

    def __init__(self, job: Job, name: str, tape: Tape) -> None:
        super().__init__(job, name, tape)
        self._stage = HELLO
        self._members = tuple(party.name for party in job.of("client"))
        self._gone: set[str] = set()
        self._got: tuple[dict[str, bytes], ...] = ({}, {}, {}, {})
        self._keys: dict[str, tuple[bytes, ...]] = {}
        self._commitments: dict[str, tuple[bytes, ...]] = {}
        self._roster: tuple[str, ...] = ()
        self._sharers: tuple[str, ...] = ()
        self._summed: tuple[str, ...] = ()
        self._number = 0
        self._pooled = PooledRounds(job)

    def takes(self) -> Mapping[str, Take]:
        """The four words of every client, in their order."""
        return {
            "hello": self._take_hello,
            "shares": self._taker(SHARES, "shares"),
            "masked": self._taker(MASKED, "numbers"),
            "opened": self._taker(OPENED, "shares"),
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
                say(
                    "{left} clients are left, and {needed} are needed to take masks away. Missing: {names}.",
                    left=len(self._members),
                    needed=threshold_of(self.job),
                    names=", ".join(sorted(self._gone)),
                )
            )
        told = [self._abort_to(name, say("The job went on without this client.")) for name in leaving]
        try:
            return [*told, *self._go_on()]
        except InputError as error:
            return [*told, *self.abort(reason_of(error))]

    def _take_hello(self, message: Message) -> Sequence[Message]:
        keys, fits = message.fields["keys"], message.fields["commitment"]
        if message.sender in self._gone:
            return ()
        rounds = most_rounds(self.job)
        if len(keys) != KEY_BYTES * (1 + rounds) or len(fits) != 32 * rounds:
            raise refused(say("brings no keys"))
        self._commitments[message.sender] = _cut(fits, 32)
        self._keys[message.sender] = _cut(keys, KEY_BYTES)[1:]
        self._got[HELLO][message.sender] = keys
        return self._go_on()

    def _taker(self, stage: int, field: str) -> Take:
        def take(message: Message) -> Sequence[Message]:
            data = message.fields[field]
            if message.sender in self._gone:
                return ()  # It came too late: the others have gone on, and nothing is done with it.
            if len(data) != self._due_bytes(stage) or (
                stage == OPENED and not all(map(well_formed, _cut(data, SHARE_BYTES)))
            ):
                raise refused(say("does not hold what its stage needs"))
            self._got[stage][message.sender] = data
            return self._go_on()

        return take

    def _due_bytes(self, stage: int) -> int:
        vector = number_bytes(self.job, self._number) * len(round_bounds(self.job, self._number))
        shares = sealed_bytes(self.job) * (len(self._roster) - 1)
        return (0, shares, vector, SHARE_BYTES * len(self._sharers))[stage]

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
            if self.job.noise is None and self._number and members != self._summed:
                return self._left_after_count()
            self._summed = members
            return [self._message(name, "unmask", members=names) for name in members]
        self._stage = OPENED
        point = self._pooled.take(self._number, self._unmasked(), len(self._summed))
        if point is None:
            return self._finish()
        if self.job.noise is None and members != self._summed:
            return self._left_after_count()
        self._number += 1
        # Clients mask with all whose sums were opened last; of who has left since, the masks are taken away again.
        self._stage, self._sharers = MASKED, self._summed
        self._got[MASKED].clear()
        self._got[OPENED].clear()
        return [self._message(name, "next", point=point) for name in members]

    def _left_after_count(self) -> Sequence[Message]:
        gone = ", ".join(sorted(set(self._summed) - set(self._members)))
        return self.abort(
            say(
                "{names} left after all were counted; exact sums without it would tell its own by difference. "
                "Start a new job, all together or with noise.",
                names=gone,
            )
        )

    def _letters_to(self, receiver: str) -> bytes:
        letters = b""
        for sender in self._sharers:
            if sender != receiver:
                place = [name for name in self._roster if name != sender].index(receiver)
                letters += _cut(self._got[SHARES][sender], sealed_bytes(self.job))[place]
        return letters

    def _finish(self) -> Sequence[Message]:
        assert self._pooled.solved is not None  # no point is left to ask about
        told = self._hold(self._pooled.solved, self._summed)
        return [self._message(name, "result", result=told) for name in self._members]

    def _unmasked(self) -> list[int]:
        """The pooled figures of all whose own arrived: their own masks and the masks of who left are taken away."""
        job, size, bounds = (
            self.job,
            number_bytes(self.job, self._number),
            round_bounds(self.job, self._number),
        )
        masks: list[tuple[int, Sequence[int]]] = []
        for place, name in enumerate(self._sharers):
            secret = self._joined(place)
            if name in self._summed:
                if (
                    secret is None
                    or pairwise.commitment(secret, self._id) != self._commitments[name][self._number]
                ):
                    raise _false_shares(name)
                masks.append(
                    (-1, pairwise.mask(pairwise.derived(secret, self._id, "self"), len(bounds), size))
                )
                continue
            if secret is None or pairwise.public_of(secret) != self._keys[name][self._number]:
                raise _false_shares(name)
            for other in self._summed:
                key = _mask_key(secret, self._keys[other][self._number], self._id, name, other)
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
        return values

    def _joined(self, place: int) -> bytes | None:
        places = places_of(self.job)
        opened = [name for name in self._members if name in self._got[OPENED]][: threshold_of(self.job)]
        return join({places[name]: _cut(self._got[OPENED][name], SHARE_BYTES)[place] for name in opened})


def _cut(data: bytes, size: int) -> tuple[bytes, ...]:
    return tuple(data[at : at + size] for at in range(0, len(data), size))


def _numbers(data: bytes, size: int) -> list[int]:
    return [int.from_bytes(data[at : at + size], "little") for at in range(0, len(data), size)]


def _false_shares(name: str) -> InputError:
    return InputError(
        say("The shares of {name}'s mask do not fit what it announced.", name=name),
        "A client gave a false share, so the sum cannot be told.",
        "Run the job again, without a client that is not trusted.",
    )


_HELLO: Limits = {
    "keys": lambda job: KEY_BYTES * (1 + most_rounds(job)),
    "commitment": lambda job: 32 * most_rounds(job),
}
_MEMBERS: Limits = {"members": lambda job: 2 * len(job.of("client"))}
_SHARES: Limits = {"shares": lambda job: sealed_bytes(job) * len(job.of("client"))}
_NUMBERS: Limits = {
    "numbers": lambda job: max(
        number_bytes(job, number) * len(round_bounds(job, number))
        for number in range(min(2, most_rounds(job)))
    )
}
_OPENED: Limits = {"shares": lambda job: SHARE_BYTES * len(job.of("client"))}
_POINT: Limits = {"point": lambda job: 64 + 40 * job.width}
_STEPS = (
    Step("start", "client", "hello", "client", "end", _HELLO),
    Step("start", "client", "hello", "evaluator", "greeted", _HELLO),
    Step("greeted", "evaluator", "roster", "client", "listed", _MEMBERS),
    Step("listed", "client", "shares", "evaluator", "shared", _SHARES),
    Step("shared", "evaluator", "delivered", "client", "delivered", {**_MEMBERS, **_SHARES}),
    Step("delivered", "client", "masked", "evaluator", "summed", _NUMBERS),
    Step("summed", "evaluator", "unmask", "client", "asked", _MEMBERS),
    Step("asked", "client", "opened", "evaluator", "opened", _OPENED),
    Step("opened", "evaluator", "next", "client", "delivered", _POINT),
    Step("opened", "evaluator", "result", "client", "end", RESULT),
)

_FACTS = Facts(
    assumptions=say(
        "Parties follow the protocol but look at all they see (semi-honest); channels are "
        "authenticated and encrypted; X25519, HKDF-SHA-256 and ChaCha20 are secure."
    ),
    parties={
        "client": Seen(
            saw=say("The other clients' public keys and encrypted shares, and at the end {told}."),
            infers=CLIENT_SEEN.infers,
        ),
        "evaluator": Seen(
            saw=say(
                "Every client's masked sums, and the pooled second moments in the clear: X'X, X'y, "
                "the number of rows and, where asked for, y'y."
            ),
            infers=say("Every mean, variance and correlation of the pooled rows; no single client's."),
        ),
    },
    coalitions=(
        say("The evaluator with enough clients to pass the recovery threshold unmasks any client's sums."),
        say("The evaluator and all clients but one know that one's sums."),
    ),
    hides=say("each client's rows and sums, from everyone; the pooled sums, from all but the evaluator"),
    census=True,
)

SECURE_SUM = RegressionProtocol(
    name="secure-sum",
    steps=_STEPS,
    client=SumClient,
    evaluator=SumEvaluator,
    pooled="evaluator",
    rounds=True,
    facts=_FACTS,
)
"""No key and no provider: masks that cancel; the evaluator learns the pooled sums, and clients may leave on the way."""
