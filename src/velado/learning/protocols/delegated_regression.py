"""Delegated regression (Method 2 of Nascimento 2023, after Chen and Zheng 2022), with the key away from the evaluator.

Clients encrypt their packed sums E(upper triangle of A_k, b_k, rows_k); the evaluator adds them without being able to
read them; the provider, who holds the key, decrypts the total alone and solves it exactly. It learns the pooled second
moments: say so to everyone who takes part.

The text gives the key, the opening and the solving to the owner of the data, and of several owners does not say to which. Here a party
without rows has them, since an owner with the key could read the others' sums at the evaluator; `delegated_to_client` has the text's
own roles. Clients multiply, since Paillier's ciphertexts can only be added. `docs/explanation/encrypted-regression.md` has all side by side.

    provider --key--> evaluator, clients      client --sums--> evaluator
    evaluator --total--> provider             provider --result--> evaluator, clients
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from velado.learning.crypto.fixed_point import Columns
from velado.learning.crypto.obfuscators import FullPower, ObfuscatorPool
from velado.learning.crypto.paillier import (
    Ciphertext,
    Packing,
    ciphertexts_from_bytes,
    ciphertexts_size,
    ciphertexts_to_bytes,
    decrypt_many,
    obfuscate,
)
from velado.learning.crypto.paillier_keys import PrivateKey, PublicKey
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
from velado.learning.regression.census import census_of, refuse_small_cells
from velado.learning.regression.design_matrix import flat_bounds, unflatten
from velado.learning.regression.fit import Solved
from velado.learning.regression.job import Job
from velado.learning.regression.private_sums import solve_noisy
from velado.learning.regression.rounds import check_pooled_rows, round_bounds, solve_pooled
from velado.randomness import Tape
from velado.text import say


def packing_for(job: Job, key: PublicKey) -> Packing:
    """The layout all parties work out for themselves: one term for each client.

    >>> from velado.learning.regression.simulate import small_job
    >>> packing_for(small_job(DELEGATED), PublicKey((1 << 2048) - 1)).plaintexts
    1
    """
    return Packing.for_key(key, delegated_bounds(job), len(job.of("client")))


def delegated_bounds(job: Job) -> list[int]:
    """The most each number of a client is in size: its sums and, where they are exact, its census.

    >>> from velado.learning.regression.simulate import small_job
    >>> len(delegated_bounds(small_job(DELEGATED)))
    44
    """
    return round_bounds(job, 0) if job.noise is not None else [*flat_bounds(job), *round_bounds(job, 0)]


class DelegatedClient(Encryptor):
    """Sends its encrypted sums once the key is there, and waits for the result.

    >>> from velado.learning.regression.simulate import small_job, small_rows
    >>> DelegatedClient(small_job(DELEGATED), "c0", Tape(bytes(32)), small_rows()).sends
    'sums'
    """

    sends = "sums"

    def __init__(self, job: Job, name: str, tape: Tape, columns: Columns) -> None:
        super().__init__(job, name, tape, columns)
        self._census = census_of(columns, job) if job.noise is None else []

    def _plaintexts(self, key: PublicKey) -> Sequence[int]:
        return packing_for(self.job, key).pack([*self._figures, *self._census])


class DelegatedEvaluator(Collector):
    """Adds what it cannot read, re-randomises the total, and sends it to who holds the key.

    >>> from velado.learning.regression.simulate import small_job
    >>> DelegatedEvaluator(small_job(DELEGATED), "hub", Tape(bytes(32)))._key_holder()
    'vault'
    """

    def __init__(self, job: Job, name: str, tape: Tape) -> None:
        super().__init__(job, name, tape)
        self._pool: ObfuscatorPool | None = None

    def takes(self) -> Mapping[str, Take]:
        """The key, every client's sums, then the result."""
        return {"key": self._take_key, "sums": self._take_ciphertexts, "result": self._take_result}

    def _key_holder(self) -> str:
        return self._one("provider")

    def _expected(self, key: PublicKey) -> int:
        return packing_for(self.job, key).plaintexts

    def _key_is_here(self, key: PublicKey) -> None:
        # Made while the clients work, so that the total leaves as soon as the last sums are there.
        self._pool = ObfuscatorPool(FullPower(key, self._tape.fork("obfuscators")))
        self._pool.fill(self._expected(key))

    def _all_are_here(self, key: PublicKey, sums: list[Ciphertext]) -> Sequence[Message]:
        assert self._pool is not None  # made when the key came
        data = ciphertexts_to_bytes(key, obfuscate(sums, self._pool))
        return [self._message(self._key_holder(), "total", ciphertexts=data)]


class _DelegatedProvider(KeyHolder):
    """Makes the key, decrypts the total alone, solves it exactly, and tells the coefficients."""

    def __init__(self, job: Job, name: str, tape: Tape, private: PrivateKey | None = None) -> None:
        super().__init__(job, name, tape, private)
        packing_for(job, self._private.public)  # a sum that cannot fit is refused before anyone sends

    def takes(self) -> Mapping[str, Take]:
        """The encrypted total."""
        return {"total": self._take_total}

    def _take_total(self, message: Message) -> Sequence[Message]:
        told = self._hold(opened(self.job, self._private, message))
        return [self._message(name, "result", result=told) for name in self._others()]


def opened(job: Job, private: PrivateKey, message: Message) -> Solved:
    """The solution of the total in *message*, or an error: of a key holder, who sees counts and sums together.

    >>> from velado.learning.regression.simulate import small_job
    >>> job = small_job(DELEGATED)
    >>> opened(job, PrivateKey(1009, 1019), Message(job.digest(), "hub", "vault", 0, "total", {"ciphertexts": b""}))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.PlaintextOverflow: ...
    """
    key = private.public
    packing = packing_for(job, key)
    data = message.fields["ciphertexts"]
    if len(data) != ciphertexts_size(key, packing.plaintexts):
        raise refused(say("holds another number of ciphertexts than the job needs"))
    values = packing.unpack(decrypt_many(private, ciphertexts_from_bytes(key, data, packing.plaintexts)))
    clients = len(job.of("client"))
    if job.noise is not None:
        return solve_noisy(values, job, clients)
    size = len(flat_bounds(job))
    check_pooled_rows(values[size], job, clients)
    refuse_small_cells(values[size:], job)
    return solve_pooled(unflatten(values[:size], job), job, clients)


SUMS: Limits = {"ciphertexts": lambda job: most_bytes(job, len(delegated_bounds(job)))}
"""The most bytes of a client's sums, and of their total."""
_STEPS = (
    *KEY_STEPS,
    Step("start", "client", "sums", "evaluator", "end", SUMS),
    Step("keyed", "evaluator", "total", "provider", "asked", SUMS),
    Step("asked", "provider", "result", "evaluator", "end", RESULT),
    Step("keyed", "provider", "result", "client", "end", RESULT),
)

_FACTS = key_facts(
    evaluator=Seen(
        saw=say("Every client's encrypted sums, their sizes and times, and at the end {told}."),
        infers=say("Who took part; of the rows, what a client can infer."),
    ),
    provider=Seen(
        saw=say(
            "The pooled second moments of all rows in the clear: X'X, X'y, the number of rows "
            "and, where asked for, y'y."
        ),
        infers=say(
            "Every mean, variance and correlation of the pooled rows; no single client's, unless "
            "all others tell theirs."
        ),
    ),
    coalitions=(
        say("Evaluator and provider together decrypt every client's own sums."),
        say("The provider and all clients but one know that one's sums."),
    ),
    hides=say("each client's rows and sums, from everyone; the pooled sums, from all but the provider"),
    census=True,
)

DELEGATED = RegressionProtocol(
    name="delegated",
    steps=_STEPS,
    client=DelegatedClient,
    evaluator=DelegatedEvaluator,
    provider=_DelegatedProvider,
    pooled="provider",
    facts=_FACTS,
)
"""The fastest with a key: the provider learns the pooled sums, and may work out standard errors or add noise."""
