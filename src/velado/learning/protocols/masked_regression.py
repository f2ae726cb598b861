"""Masked regression without a leak to the key holder: ridge regression of Giacomelli, Jha, Joye, Page and Yoon (2018), three parties.

The evaluator holds E(A) and E(b), entry by entry, lambda added on the diagonal. It draws a uniformly random invertible
matrix R and vector r modulo n and sends E(A R) and E(b + A r), re-randomised. The provider decrypts C and d and returns
w = C^-1 d mod n. Since R w - r = A^-1 b mod n, the evaluator recovers the rational coefficients (`exact.reconstruct`)
of the encoded columns, and takes them to the columns' own units (`scaling`).
For invertible A, C and d are uniform whatever A and b are: the provider learns nothing. The evaluator learns beta
exactly, and from exact fractions it can work out the pooled sums (`velado.papers.regression.mask_attacks`): count it as knowing them.

    provider --key--> evaluator, clients       client --entries--> evaluator
    evaluator --masked--> provider             provider --solution--> evaluator
    evaluator --result--> clients              evaluator --finished--> provider

Cost at the evaluator: D (D + 1) products of D powers with exponents of the key's length (`modular.grid_products`), and as
many obfuscators, made at the same time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

from velado.learning.crypto.obfuscators import FullPower, ObfuscatorPool
from velado.learning.crypto.paillier import (
    Ciphertext,
    add,
    add_plain,
    ciphertexts_from_bytes,
    ciphertexts_to_bytes,
    decrypt_many,
    matrix_dots,
    obfuscate,
)
from velado.learning.crypto.paillier_keys import PublicKey
from velado.learning.protocols.parts import (
    KEY_STEPS,
    RESULT,
    Collector,
    Encryptor,
    KeyHolder,
    key_facts,
    most_bytes,
)
from velado.learning.protocols.protocol import Limits, Message, RegressionProtocol, Seen, Step
from velado.learning.protocols.role import Take, refused
from velado.learning.regression.design_matrix import symmetric
from velado.learning.regression.fit import (
    Solved,
    bounds_of,
    reconstruct,
    refuse_overflow,
    ridge_entries,
    scaling_of,
    singular,
    solve_modulo,
)
from velado.learning.regression.job import Job
from velado.randomness import Tape
from velado.text import say


def entries(job: Job) -> int:
    """How many numbers a client sends: the upper triangle of A and b.

    >>> from velado.learning.regression.simulate import small_job
    >>> entries(small_job())  # a_00, a_01, a_11, b_0, b_1
    5
    """
    return job.width * (job.width + 1) // 2 + job.width


class _MaskedClient(Encryptor):
    """Sends its sums encrypted entry by entry, and waits for the result."""

    sends = "entries"

    def _plaintexts(self, key: PublicKey) -> Sequence[int]:
        return self._figures[: entries(self.job)]


class _MaskedEvaluator(Collector):
    """Masks what it cannot read, and unmasks a solution the provider cannot read."""

    def __init__(self, job: Job, name: str, tape: Tape) -> None:
        super().__init__(job, name, tape)
        self._mask: tuple[list[list[int]], list[int]] | None = None
        self.exact: tuple[Fraction, ...] | None = None

    def takes(self) -> Mapping[str, Take]:
        """The key, every client's entries, then the provider's solution."""
        return {"key": self._take_key, "entries": self._take_ciphertexts, "solution": self._take_solution}

    def _expected(self, key: PublicKey) -> int:
        return entries(self.job)

    def _all_are_here(self, key: PublicKey, sums: list[Ciphertext]) -> Sequence[Message]:
        width, rest = self.job.width, iter(sums)
        matrix, vector = symmetric(rest, width), list(rest)
        for i, extra in enumerate(ridge_entries(self.job)):
            if extra:
                matrix[i][i] = add_plain(matrix[i][i], extra)
        full, shift = self._mask = draw_mask(int(key.n), width, self._tape.fork("mask"))
        factors = [[full[k][j] for k in range(width)] for j in range(width)] + [shift]
        pool = ObfuscatorPool(FullPower(key, self._tape.fork("obfuscators"), threads=1))
        with ThreadPoolExecutor(1) as aside:
            # GMP makes these powers without the interpreter's lock: the other core has them ready when they are needed.
            ready = aside.submit(pool.fill, width * (width + 1))
            products = matrix_dots(matrix, factors)
            ready.result()
        masked = [c for row in products for c in row[:width]]
        last = [add(row[width], b) for row, b in zip(products, vector, strict=True)]
        data = ciphertexts_to_bytes(key, obfuscate([*masked, *last], pool))
        return [self._message(self._one("provider"), "masked", ciphertexts=data)]

    def _take_solution(self, message: Message) -> Sequence[Message]:
        assert self._key is not None and self._mask is not None  # the table: nothing was asked before
        n, width, size = int(self._key.n), self.job.width, self.job.key_bits // 8
        data = message.fields["solution"]
        if len(data) != width * size:
            raise refused(say("holds a solution of another length"))
        w = [int.from_bytes(data[i * size : (i + 1) * size], "big") for i in range(width)]
        if any(value >= n for value in w):
            raise refused(say("holds a number beyond the modulus"))
        full, shift = self._mask
        limits = bounds_of(self.job)
        encoded: list[Fraction] = []
        for row, r in zip(full, shift, strict=True):
            residue = (sum(a * b for a, b in zip(row, w, strict=True)) - r) % n
            found = reconstruct(residue, n, limits.numerator, limits.denominator)
            if found is None:
                return self.abort(
                    say("The provider's solution stands for no coefficients within the public bounds.")
                )
            encoded.append(found)
        beta = self.exact = scaling_of(self.job).to_real(encoded)
        told = self._hold(Solved(coefficients=tuple(map(float, beta))))
        out = [self._message(party.name, "result", result=told) for party in self.job.of("client")]
        return [*out, self._message(self._one("provider"), "finished")]


class _MaskedProvider(KeyHolder):
    """Makes the key and solves a system that tells it nothing."""

    def takes(self) -> Mapping[str, Take]:
        """The masked system, then the word that the job is finished."""
        return {"masked": self._take_masked, "finished": self._take_finished}

    def _take_masked(self, message: Message) -> Sequence[Message]:
        key, width = self._private.public, self.job.width
        ciphertexts = ciphertexts_from_bytes(key, message.fields["ciphertexts"], width * (width + 1))
        numbers = decrypt_many(self._private, ciphertexts)
        matrix = [numbers[i * width : (i + 1) * width] for i in range(width)]
        w = solve_modulo(matrix, numbers[width * width :], int(key.n))
        if w is None:
            raise singular(self.job, ())
        size = self.job.key_bits // 8
        data = b"".join(value.to_bytes(size, "big") for value in w)
        return [self._message(self._one("evaluator"), "solution", solution=data)]


def draw_mask(n: int, width: int, tape: Tape) -> tuple[list[list[int]], list[int]]:
    """A uniformly random invertible matrix and a uniformly random vector modulo n; a singular draw is drawn again.

    >>> full, shift = draw_mask(1009, 2, Tape(bytes(32)))
    >>> len(full), len(shift)
    (2, 2)
    """
    import flint

    while True:
        full = [[tape.below(n) for _ in range(width)] for _ in range(width)]
        try:
            determinant = int(flint.fmpz_mod_mat(full, flint.fmpz_mod_ctx(n)).det())
        except ZeroDivisionError:
            continue
        if math.gcd(determinant, n) == 1:
            return full, [tape.below(n) for _ in range(width)]


ENTRIES: Limits = {"ciphertexts": lambda job: most_bytes(job, entries(job))}
LAST_STEPS = (
    Step("summed", "evaluator", "result", "client", "end", RESULT),
    Step("solved", "evaluator", "finished", "provider", "end"),
)
"""How a protocol ends whose provider does not learn the result."""
_MASKED: Limits = {"ciphertexts": lambda job: most_bytes(job, job.width * (job.width + 1))}
_SOLUTION: Limits = {"solution": lambda job: job.width * (job.key_bits // 8)}
_STEPS = (
    *KEY_STEPS,
    Step("start", "client", "entries", "evaluator", "summed", ENTRIES),
    Step("keyed", "evaluator", "masked", "provider", "asked", _MASKED),
    Step("asked", "provider", "solution", "evaluator", "solved", _SOLUTION),
    *LAST_STEPS,
)

_FACTS = key_facts(
    evaluator=Seen(
        saw=say(
            "Every client's encrypted sums, the provider's masked solution, and the exact "
            "rational coefficients."
        ),
        infers=say(
            "The pooled X'X and X'y, by computation: exact coefficients determine them, and "
            "lattice reduction finds them in seconds (velado.papers.regression.mask_attacks does "
            "it). Count the evaluator as knowing every mean, variance and correlation of the "
            "pooled rows; no single client's."
        ),
    ),
    provider=Seen(
        saw=say(
            "C = A R and d = b + A r modulo n, where R is a uniformly random invertible matrix "
            "and r a uniformly random vector."
        ),
        infers=say(
            "Nothing but whether A is invertible: for invertible A, C and d are uniform whatever A and b are."
        ),
    ),
    coalitions=(
        say("Evaluator and provider together learn everything: each client's sums in the clear."),
        say("The evaluator and all clients but one know that one's sums: the pooled ones less their own."),
    ),
    hides=say(
        "each client's rows and sums, from everyone; the pooled sums, from the provider and the clients"
    ),
    computed=say("the pooled sums, to the evaluator, who can compute them from the exact coefficients"),
)

MASKED = RegressionProtocol(
    name="masked",
    steps=_STEPS,
    client=_MaskedClient,
    evaluator=_MaskedEvaluator,
    provider=_MaskedProvider,
    refuse=refuse_overflow,
    facts=_FACTS,
)
"""The default: the provider learns nothing, the evaluator the exact coefficients."""
