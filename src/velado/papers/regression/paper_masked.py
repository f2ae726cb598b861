"""Method 1 of Nascimento 2023, after Qiu, Gui and Zhao (2020), as three roles. **Unsafe**: made to be repeated and attacked.

Provider and evaluator each learn what they must not, alone and whatever the size of the masks: see
`velado.papers.regression.mask_attacks` and what every run writes under `learned`. The arithmetic stands in `paper_arithmetic`.

    provider --key--> evaluator, clients
    with negative values (Protocol 1):   client --least--> evaluator --minima--> provider --shift--> evaluator, clients
    client --entries--> evaluator        (aggregation)
    evaluator --divide--> provider --divided--> evaluator       (Protocol 2, all D^2 + 2 D divisions in one message)
    evaluator --masked--> provider --solutions--> evaluator     (Protocol 3)
    evaluator --result--> clients        evaluator --finished--> provider

Cost of the regression stage, from the last client's entries on: 2 (D^2 + 2D) decryptions by the provider and D^2 + 2D powers
with exponents of 2q + 21 bits by the evaluator. The 3 (D^2 + 2D) obfuscators are made when the key is, before that stage.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import gmpy2

from velado.errors import VeladoError
from velado.learning.crypto.fixed_point import Columns
from velado.learning.crypto.obfuscators import FullPower, ObfuscatorPool, OwnerPower
from velado.learning.crypto.paillier import (
    Ciphertext,
    SeenCiphertexts,
    add_plain,
    ciphertexts_from_bytes,
    ciphertexts_to_bytes,
    decrypt_many,
    encrypt_many,
    obfuscate,
    sum_ciphertexts,
)
from velado.learning.crypto.paillier_keys import PrivateKey, PublicKey
from velado.learning.protocols.masked_regression import ENTRIES, LAST_STEPS, entries
from velado.learning.protocols.parts import (
    CLIENT_SEEN,
    KEY_STEPS,
    KeyHolder,
    RegressionRole,
    key_in,
    most_bytes,
)
from velado.learning.protocols.protocol import Facts, Limits, Message, RegressionProtocol, Seen, Step
from velado.learning.protocols.protocol_registry import PROTOCOLS
from velado.learning.protocols.role import Take, refused
from velado.learning.regression.design_matrix import flatten, symmetric
from velado.learning.regression.fit import Solved, ridge_entries
from velado.learning.regression.job import Job
from velado.papers.regression.paper_arithmetic import (
    Masks,
    combine,
    draw_addends,
    draw_masks,
    has_negatives,
    hidden_bits,
    own_shift,
    paper_moments,
    refuse,
    solve_both,
    undo_shift,
)
from velado.randomness import Tape
from velado.text import say

# The plain fields of Method 1's messages: how large they may be, and how they are written and read.

Solution = tuple[Fraction, ...]


def _prime_bytes(job: Job) -> int:
    """How many bytes the prime of q bits takes."""
    return (job.bits + 7) // 8


def _shift_bytes(job: Job) -> int:
    """The most bytes a shift takes that follows from values within the public bounds."""
    reach = max(Fraction(0), *(-column.low for column in (*job.features, job.target)))
    return (int(reach * (1 << job.bits)) + 1).bit_length() // 8 + 1


def _shift_in(data: bytes) -> int:
    """The shift, in units of 2^-q."""
    if not data:
        raise refused(say("holds no shift"))
    return int.from_bytes(data, "big")


def _solutions_size(job: Job) -> int:
    """The most bytes both solutions take: by Cramer's rule quotients of determinants of masked sums."""
    digits = job.width * (hidden_bits(job) + job.width.bit_length()) // 4 + 8
    return 64 + 2 * job.width * (2 * digits + 8)


def _solutions_bytes(xi: Sequence[Fraction], eta: Sequence[Fraction]) -> bytes:
    """Both solutions as exact fractions in hexadecimal."""
    texts = [[f"{value.numerator:x}/{value.denominator:x}" for value in part] for part in (xi, eta)]
    return json.dumps(texts, separators=(",", ":")).encode()


def _solutions_in(data: bytes, width: int) -> tuple[Solution, Solution]:
    """Both solutions as the provider wrote them, or ProtocolError."""
    try:
        found = [tuple(_fraction(text) for text in part) for part in json.loads(data)]
        good = len(found) == 2 and all(len(part) == width for part in found)
    except (ValueError, TypeError, AttributeError, ZeroDivisionError, RecursionError):
        good = False
    if not good:
        raise refused(say("holds no solutions of this job"))
    return found[0], found[1]


def _fraction(text: str) -> Fraction:
    over, under = text.split("/")
    return Fraction(int(over, 16), int(under, 16))


def _divisions(job: Job) -> int:
    """How many numbers are masked: D^2 of A and D of b, twice."""
    return job.width * (job.width + 2)


class _PaperClient(RegressionRole):
    """Converts its rows, with the common shift where there are negative values, and sends its encrypted sums."""

    def __init__(self, job: Job, name: str, tape: Tape, columns: Columns) -> None:
        super().__init__(job, name, tape)
        self._columns = columns
        self._key: PublicKey | None = None
        self._pool: ObfuscatorPool | None = None
        paper_moments(columns, job)  # rows that cannot be used are refused before anyone sends

    def takes(self) -> Mapping[str, Take]:
        """The key and, with negative values, the shift; then the result."""
        return {"key": self._take_key, "shift": self._take_shift, "result": self._take_result}

    def _take_key(self, message: Message) -> Sequence[Message]:
        self._key = key = key_in(message, self.job)
        self._pool = ObfuscatorPool(FullPower(key, self._tape.fork("obfuscators")))
        if not has_negatives(self.job):
            return self._send(0)
        least = encrypt_many(key, [own_shift(self._columns, self.job)], self._pool)
        return [self._message(self._one("evaluator"), "least", ciphertexts=ciphertexts_to_bytes(key, least))]

    def _take_shift(self, message: Message) -> Sequence[Message]:
        if not has_negatives(self.job):
            raise refused(say("brings a shift nobody waits for"))
        shift = _shift_in(message.fields["shift"])
        if shift < own_shift(self._columns, self.job):
            raise refused(say("brings a shift that leaves a negative value"))
        return self._send(shift)

    def _send(self, shift: int) -> Sequence[Message]:
        assert self._key is not None and self._pool is not None
        numbers = flatten(paper_moments(self._columns, self.job, shift))[: entries(self.job)]
        data = ciphertexts_to_bytes(self._key, encrypt_many(self._key, numbers, self._pool))
        return [self._message(self._one("evaluator"), "entries", ciphertexts=data)]


class _PaperEvaluator(RegressionRole):
    """Adds and masks what it cannot read, and puts the provider's two solutions together."""

    def __init__(self, job: Job, name: str, tape: Tape) -> None:
        super().__init__(job, name, tape)
        self._key: PublicKey | None = None
        self._pool: ObfuscatorPool | None = None
        self._waiting: dict[str, tuple[str, bytes]] = {}
        self._least: dict[str, list[Ciphertext]] = {}
        self._entries: dict[str, list[Ciphertext]] = {}
        self._seen = SeenCiphertexts()
        self._shift = None if has_negatives(job) else 0
        self._addends: list[int] | None = None
        self.masks: Masks | None = None
        self.solutions: tuple[tuple[Fraction, ...], tuple[Fraction, ...]] | None = None
        self.exact: tuple[Fraction, ...] | None = None

    def takes(self) -> Mapping[str, Take]:
        """The key, clients' least values and entries, and the provider's answers."""
        return {
            "key": self._take_key,
            "least": self._take_from_client,
            "shift": self._take_shift,
            "entries": self._take_from_client,
            "divided": self._take_divided,
            "solutions": self._take_solutions,
        }

    def _take_key(self, message: Message) -> Sequence[Message]:
        self._key = key = key_in(message, self.job)
        self._pool = ObfuscatorPool(FullPower(key, self._tape.fork("obfuscators")))
        # Made while clients convert their rows: not part of the regression stage.
        minima = len(self.job.of("client")) if has_negatives(self.job) else 0
        self._pool.fill(minima + 2 * _divisions(self.job))
        for sender, (kind, data) in self._waiting.items():
            try:
                self._read(sender, kind, data)
            except VeladoError:
                return self.abort(
                    say("What {sender} sent is not encrypted under the job's key.", sender=sender)
                )
        self._waiting.clear()
        return self._go_on()

    def _take_from_client(self, message: Message) -> Sequence[Message]:
        # With negative values every client's entries come after its least value, without them there is none.
        shifted = has_negatives(self.job)
        if message.sender in self._waiting or (message.kind == "least") != (
            shifted and message.sender not in self._least
        ):
            raise refused(say("is out of turn"))
        data = message.fields["ciphertexts"]
        if self._key is None:
            self._waiting[message.sender] = (message.kind, data)
            return ()
        self._read(message.sender, message.kind, data)
        return self._go_on()

    def _read(self, sender: str, kind: str, data: bytes) -> None:
        assert self._key is not None
        count = 1 if kind == "least" else entries(self.job)
        found = ciphertexts_from_bytes(self._key, data, count, self._seen)
        (self._least if kind == "least" else self._entries)[sender] = found

    def _go_on(self) -> Sequence[Message]:
        clients = [party.name for party in self.job.of("client")]
        if self._shift is None and len(self._least) == len(clients) and not self._entries:
            assert self._key is not None and self._pool is not None
            minima = obfuscate([self._least[name][0] for name in clients], self._pool)
            data = ciphertexts_to_bytes(self._key, minima)
            return [self._message(self._one("provider"), "minima", ciphertexts=data)]
        if self._key is None or self._shift is None or len(self._entries) < len(clients):
            return ()
        return self._divide()

    def _take_shift(self, message: Message) -> Sequence[Message]:
        self._shift = _shift_in(message.fields["shift"])
        return self._go_on()

    def _divide(self) -> Sequence[Message]:
        """Protocol 2, first half: E(x c + r) of all D^2 + 2D numbers."""
        assert self._key is not None and self._pool is not None
        key, job, width = self._key, self.job, self.job.width
        columns = zip(*(self._entries[party.name] for party in job.of("client")), strict=True)
        sums = iter([sum_ciphertexts(column) for column in columns])
        matrix, vector = symmetric(sums, width), list(sums)
        for i, extra in enumerate(ridge_entries(job)):
            if extra:
                matrix[i][i] = add_plain(matrix[i][i], extra)
        hidden = [entry for row in matrix for entry in row] + 2 * vector
        self.masks = draw_masks(job.bits, width, self._tape.fork("masks"))
        self._addends = draw_addends(_divisions(job), hidden_bits(job), self._tape.fork("addends"))
        raised = _powers(hidden, self.masks.factors())
        hiding = encrypt_many(key, self._addends, self._pool)
        n2 = key.n2
        sent = [Ciphertext(a.value * b.value % n2, key, True) for a, b in zip(raised, hiding, strict=True)]
        data = ciphertexts_to_bytes(key, sent)
        prime = self.masks.prime.to_bytes(_prime_bytes(job), "big")
        return [self._message(self._one("provider"), "divide", prime=prime, ciphertexts=data)]

    def _take_divided(self, message: Message) -> Sequence[Message]:
        """Protocol 2, second half: take floor(r / d) off again, and send what the provider is to solve."""
        assert self._key is not None and self._pool is not None  # the table: a division was asked for
        assert self.masks is not None and self._addends is not None
        key, d = self._key, self.masks.prime**2
        found = ciphertexts_from_bytes(key, message.fields["ciphertexts"], _divisions(self.job), self._seen)
        off = encrypt_many(key, [-(r // d) for r in self._addends], self._pool)
        n2 = key.n2
        sent = [Ciphertext(a.value * b.value % n2, key, True) for a, b in zip(found, off, strict=True)]
        data = ciphertexts_to_bytes(key, sent)
        return [self._message(self._one("provider"), "masked", ciphertexts=data)]

    def _take_solutions(self, message: Message) -> Sequence[Message]:
        assert self.masks is not None and self._shift is not None  # the table: a solution was asked for
        self.solutions = _solutions_in(message.fields["solutions"], self.job.width)
        beta = undo_shift(combine(self.masks, *self.solutions), self._shift, self.job.bits)
        try:
            told = self._hold(Solved(coefficients=tuple(map(float, beta))))
        except OverflowError:
            return self.abort(say("The provider's solutions stand for no coefficients."))
        self.exact = beta
        out = [self._message(party.name, "result", result=told) for party in self.job.of("client")]
        return [*out, self._message(self._one("provider"), "finished")]


class _PaperProvider(KeyHolder):
    """Makes the key, finds the shift, divides what is hidden by an addend, and solves what is not hidden at all."""

    def __init__(self, job: Job, name: str, tape: Tape, private: PrivateKey | None = None) -> None:
        super().__init__(job, name, tape, private)
        self._pool = ObfuscatorPool(OwnerPower(self._private, tape.fork("obfuscators")))
        self._shifted = False

    def takes(self) -> Mapping[str, Take]:
        """All from the evaluator: clients' least values, the division, the masked systems, the end."""
        return {
            "minima": self._take_minima,
            "divide": self._take_divide,
            "masked": self._take_masked,
            "finished": self._take_finished,
        }

    def start(self) -> Sequence[Message]:
        """The public key, to everyone; the obfuscators of its one answer are made here, ahead of time."""
        self._pool.fill(_divisions(self.job))
        return super().start()

    def _take_minima(self, message: Message) -> Sequence[Message]:
        if not has_negatives(self.job):
            raise refused(say("asks for a shift nobody needs"))
        key, count = self._private.public, len(self.job.of("client"))
        found = ciphertexts_from_bytes(key, message.fields["ciphertexts"], count)
        shift = max(0, *decrypt_many(self._private, found))
        data = shift.to_bytes(max(1, (shift.bit_length() + 7) // 8), "big")
        if len(data) > _shift_bytes(self.job):
            raise refused(say("holds a value below the public bounds"))
        self._shifted = True
        return [self._message(name, "shift", shift=data) for name in self._others()]

    def _take_divide(self, message: Message) -> Sequence[Message]:
        if has_negatives(self.job) and not self._shifted:
            raise refused(say("asks for a division before the shift"))
        prime = int.from_bytes(message.fields["prime"], "big")
        if prime.bit_length() != self.job.bits or not gmpy2.is_prime(prime, 40):
            raise refused(say("holds no prime of the job's bits"))
        key = self._private.public
        found = ciphertexts_from_bytes(key, message.fields["ciphertexts"], _divisions(self.job))
        numbers = [value // prime**2 for value in decrypt_many(self._private, found)]
        data = ciphertexts_to_bytes(key, encrypt_many(key, numbers, self._pool))
        return [self._message(self._one("evaluator"), "divided", ciphertexts=data)]

    def _take_masked(self, message: Message) -> Sequence[Message]:
        key = self._private.public
        found = ciphertexts_from_bytes(key, message.fields["ciphertexts"], _divisions(self.job))
        numbers = decrypt_many(self._private, found)
        xi, eta = solve_both(numbers, self.job.width, self.job)
        data = _solutions_bytes(xi, eta)
        return [self._message(self._one("evaluator"), "solutions", solutions=data)]


def _powers(bases: Sequence[Ciphertext], exponents: Sequence[int]) -> list[Ciphertext]:
    """Every ciphertext to its own short power, on two threads: gmpy2's list form lets go of the interpreter."""
    key = bases[0].key

    def raised(pair: tuple[Ciphertext, int]) -> Ciphertext:
        return Ciphertext(gmpy2.powmod_exp_list(pair[0].value, [pair[1]], key.n2)[0], key)

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(raised, zip(bases, exponents, strict=True)))


_LEAST: Limits = {"ciphertexts": lambda job: most_bytes(job, 1)}
_MINIMA: Limits = {"ciphertexts": lambda job: most_bytes(job, len(job.of("client")))}
_SHIFT: Limits = {"shift": _shift_bytes}
_DIVIDED: Limits = {"ciphertexts": lambda job: most_bytes(job, _divisions(job))}
_DIVIDE: Limits = {"prime": _prime_bytes, **_DIVIDED}
# With negative values `least`, `minima` and `shift` go before; without them they are left out.
_STEPS = (
    *KEY_STEPS,
    Step("start", "client", "least", "evaluator", "told", _LEAST),
    Step("keyed", "evaluator", "minima", "provider", "minima", _MINIMA),
    Step("minima", "provider", "shift", "evaluator", "shifted", _SHIFT),
    Step("keyed", "provider", "shift", "client", "shifted", _SHIFT),
    Step("start", "client", "entries", "evaluator", "summed", ENTRIES),
    Step("told", "client", "entries", "evaluator", "summed", ENTRIES),
    Step("keyed", "evaluator", "divide", "provider", "dividing", _DIVIDE),
    Step("shifted", "evaluator", "divide", "provider", "dividing", _DIVIDE),
    Step("dividing", "provider", "divided", "evaluator", "divided", _DIVIDED),
    Step("divided", "evaluator", "masked", "provider", "asked", _DIVIDED),
    Step("asked", "provider", "solutions", "evaluator", "solved", {"solutions": _solutions_size}),
    *LAST_STEPS,
)

_FACTS = Facts(
    assumptions=say(
        "None is enough: the source's multiplicative masks cancel. Reproduced for science; not private."
    ),
    parties={
        "client": Seen(
            saw=CLIENT_SEEN.saw,
            infers=say("With negative values, the shift M: the least value among all clients."),
        ),
        "evaluator": Seen(
            saw=say("Every client's encrypted sums, and the solutions of both masked systems."),
            infers=say("D linear equations in A with every run: after D - 1 runs all of X'X."),
        ),
        "provider": Seen(
            saw=say(
                "The masked matrix and both masked vectors in the clear; with negative values each "
                "client's least value."
            ),
            infers=say(
                "Every correlation of the design from one run: a~_ij a~_ji / (a~_ii a~_jj) = a_ij^2 /"
                " (a_ii a_jj)."
            ),
        ),
    },
    coalitions=(say("No coalition is needed: provider and evaluator each learn it alone."),),
)

PAPER_MASKED = RegressionProtocol(
    name="paper-masked",
    steps=_STEPS,
    client=_PaperClient,
    evaluator=_PaperEvaluator,
    provider=_PaperProvider,
    least_key_bits=1024,
    least_clients=1,
    scaled=False,
    stored_key=False,
    refuse=refuse,
    facts=_FACTS,
)
"""Method 1 as the source has it: no promise, short keys, one client where figures are repeated."""

WITH_PAPER: Mapping[str, RegressionProtocol] = {**PROTOCOLS, PAPER_MASKED.name: PAPER_MASKED}
"""The protocols of `velado.learning`, and the paper's."""
