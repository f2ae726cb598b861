"""What the regression protocols share: the result's form, and the roles around one Paillier key.

`RegressionRole` takes a result, `KeyHolder` is a provider that announces its key, `Encryptor` a client that sends its sums under
it, `Collector` an evaluator that gathers them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import ClassVar

import numpy as np

from velado.errors import InputError, KeyRefused, VeladoError
from velado.learning.crypto.fixed_point import Columns
from velado.learning.crypto.obfuscators import FullPower, ObfuscatorPool, ShortPower
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
from velado.learning.regression.census import refuse_small_own_cells
from velado.learning.regression.design_matrix import flatten, moments_of
from velado.learning.regression.fit import Fit, Solved
from velado.learning.regression.job import Job
from velado.learning.regression.penalty_path import PenaltyPath
from velado.learning.regression.private_sums import noisy_sums
from velado.randomness import Tape
from velado.text import say

RESULT = {"result": 1 << 20}
"""The most bytes a result message may have."""
FEW = 8
"""Up to so many ciphertexts full powers are cheaper for a client."""
KEY = {"key": 4096}
"""The most bytes a key message may have."""
KEY_STEPS = tuple(Step("start", "provider", "key", who, "keyed", KEY) for who in ("client", "evaluator"))
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
    "and encrypted; Paillier's encryption is secure (decisional composite residuosity), with the short exponents of "
    "Damgard, Jurik and Nielsen (2010) for clients that send many ciphertexts."
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
    *,
    evaluator: Seen,
    coalitions: tuple[str, ...],
    hides: str,
    provider: Seen | None = None,
    client: Seen = CLIENT_SEEN,
    computed: str = "",
    census: bool = False,
) -> Facts:
    """The facts of a protocol around a Paillier key, whose clients see the key and what is told at the end.

    >>> nothing = Seen(saw="Ciphertexts.", infers="Nothing.")
    >>> key_facts(evaluator=nothing, provider=nothing, coalitions=(), hides="all").parties["client"].saw
    'The public key, and at the end {told}.'
    """
    return Facts(
        assumptions=_PAILLIER_MODEL,
        parties={
            "client": client,
            "evaluator": evaluator,
            **({} if provider is None else {"provider": provider}),
        },
        coalitions=coalitions,
        hides=hides,
        computed=computed,
        census=census,
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


def result_bytes(solved: Solved) -> bytes:
    """The result as it is told to who may know it: coefficients rounded once to floats, exactly written.

    >>> result_bytes(Solved(coefficients=(0.5,), rows=40))[:45]
    b'{"coefficients":["0x1.0000000000000p-1"],"sta'
    """

    def written(values: Sequence[float] | None) -> list[str] | None:
        return None if values is None else [float(value).hex() for value in values]

    return json.dumps(
        {
            "coefficients": written(solved.coefficients),
            "standard_errors": written(solved.errors),
            "rows": solved.rows,
            "inflation": written(solved.inflation),
            "facts": {name: float(value).hex() for name, value in solved.facts.items()},
            # JSON's numbers are written so that the same floats are read again.
            **({} if solved.path is None else {"path": solved.path.to_dict()}),
        },
        separators=(",", ":"),
    ).encode()


_FACTS = ("r_squared", "condition", "deviance", "rounds", "ridge", "noise", "held_back")


def result_in(data: bytes, job: Job) -> Solved:
    """What a result message says, or ProtocolError.

    >>> from velado.learning.regression.simulate import small_job
    >>> result_in(result_bytes(Solved(coefficients=(1.0, 0.5), rows=40)), small_job()).coefficients
    (1.0, 0.5)
    """

    def read(name: str) -> tuple[float, ...] | None:
        return None if document[name] is None else tuple(map(float.fromhex, document[name]))

    try:
        document = json.loads(data)
        coefficients, errors, inflation = map(read, ("coefficients", "standard_errors", "inflation"))
        facts = {name: float.fromhex(text) for name, text in document["facts"].items()}
        rows = document["rows"]
        path = None if job.path == "none" else PenaltyPath.from_dict(document["path"])
        good = (
            coefficients is not None and len(document) == 5 + (path is not None) and set(facts) <= set(_FACTS)
        )
        good = good and (path is None or (path.kind == job.path and len(path.best) == job.width))
        good = good and (path is None or bool(path.held_out) == bool(job.folds))
        for values in (coefficients, errors, inflation):
            good = good and (values is None or (len(values) == job.width and all(map(math.isfinite, values))))
        good = good and all(map(math.isfinite, facts.values()))
        good = good and (errors is None or (tells_errors(job) and min(errors) >= 0))
        # JSON's true is an int to Python.
        good = good and (rows is None or (type(rows) is int and 0 <= rows <= job.most_rows))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        good = False
    if not good or coefficients is None:
        raise refused(say("holds no result of this job"))
    return Solved(
        coefficients=coefficients, errors=errors, rows=rows, inflation=inflation, facts=facts, path=path
    )


def tells_errors(job: Job) -> bool:
    """Whether the job's result has standard errors: as asked, and always with noise or in rounds, where they cost nothing.

    >>> from velado.learning.regression.simulate import small_job
    >>> tells_errors(small_job()), tells_errors(small_job(moments=True))
    (False, True)
    """
    return job.moments or job.noise is not None or (job.iterated and job.ridge == 0)


def fit_of(job: Job, solved: Solved, summed: Sequence[str] = ()) -> Fit:
    """The outcome a party holds: result, promise, cost, how.

    >>> from velado.learning.regression.simulate import small_job
    >>> fit_of(small_job(), Solved(coefficients=(1.0, 0.5), rows=40)).predict({"x": [2.0]}).tolist()
    [2.0]
    """
    return Fit(
        target=job.target.name,
        names=job.unknowns,
        coefficients=solved.coefficients,
        promise=promise(job),
        learned=learned(job),
        standard_errors=solved.errors,
        how={
            "job": job.to_dict(),
            "digest": job.digest(),
            "rows": solved.rows,
            "summed": list(summed),
            "not_summed": [party.name for party in job.of("client") if summed and party.name not in summed],
        },
        family=job.family,
        inflation=solved.inflation,
        facts=solved.facts,
        path=solved.path,
    )


@dataclass(frozen=True, kw_only=True)
class EarlierJob:
    """A job in which this client's sums were let out: whose were added up, and a keyed digest of each of its columns.

    >>> EarlierJob(job="0a", roster=("c0", "c1"), columns={"age": "77"}).exact
    True
    """

    job: str
    roster: tuple[str, ...]
    columns: Mapping[str, str]
    exact: bool = True
    rows: str = ""
    """What `row_sketch` made of its rows; empty where none was made, and nothing is said of them then."""
    sketches: Mapping[str, str] = field(default_factory=dict)
    """What `column_sketches` made of each column."""


def refuse_difference(
    earlier: Sequence[EarlierJob], job: EarlierJob, minimum_clients: int, name: str, least_rows: int = 0
) -> None:
    """Nothing, or InputError: the difference of *job* and of an earlier one is the sums of fewer than *minimum_clients*.

    Of a job that shares a column with an exact earlier one, whatever the column is called and whichever room either was made in. Or it is what
    fewer than *least_rows* people of this client have: over the same columns and clients, with a few rows changed in between.

    >>> one = EarlierJob(job="0a", roster=("a", "b", "c"), columns={"age": "77"})
    >>> refuse_difference([one], EarlierJob(job="0b", roster=("a", "b", "c"), columns={"years": "77"}), 3, "a")
    >>> refuse_difference([one], EarlierJob(job="0b", roster=("a", "b"), columns={"years": "77"}), 3, "a")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.InputError: a refuses: an earlier job over the same rows had 1 client more or fewer...
    """
    if any(one.job == job.job and set(one.roster) == set(job.roster) for one in earlier):
        return
    for one in earlier:
        # By what they hold: a column that was given another name is the same column.
        shared = bool(set(job.columns.values()) & set(one.columns.values()))
        apart = len(set(one.roster) ^ set(job.roster))
        if job.exact and one.exact and shared and 0 < apart < minimum_clients:
            raise InputError(
                say(
                    "{name} refuses: an earlier job over the same rows had {apart} client more or fewer.",
                    name=name,
                    apart=apart,
                )
                if apart == 1
                else say(
                    "{name} refuses: an earlier job over the same rows had {apart} clients more or fewer.",
                    name=name,
                    apart=apart,
                ),
                "The difference of the two results is the sums of so few.",
                "Agree on noise (epsilon), on the same clients, or on other rows.",
            )
        refit = job.exact and one.exact and not apart and set(one.columns) == set(job.columns)
        if refit and 0 < rows_apart(one.rows, job.rows) < least_rows:
            raise InputError(
                say(
                    "{name} refuses: some but fewer than {least} of its rows have changed since an earlier job over the same columns.",
                    name=name,
                    least=least_rows,
                ),
                "The difference of the two results is what these few people have.",
                "Agree on noise (epsilon), take the earlier rows, or wait until more have changed.",
            )
        if job.exact and one.exact and not apart:
            _refuse_near_columns(one, job, name, least_rows)
    kin = [one for one in earlier if one.exact and set(job.columns.values()) & set(one.columns.values())]
    if job.exact and shows_few([*(one.roster for one in kin), job.roster], minimum_clients):
        raise InputError(
            say(
                "{name} refuses: earlier jobs over the same rows and this one together show the sums of fewer than {fewest} clients.",
                name=name,
                fewest=minimum_clients,
            ),
            "Sums and differences of the results are these clients' own sums.",
            "Agree on noise (epsilon), on the same clients, or on other rows.",
        )


def _refuse_near_columns(one: EarlierJob, job: EarlierJob, name: str, least_rows: int) -> None:
    """Nothing, or InputError: a column of *job* is one of the earlier job's but for a few rows, which the difference of the two sums is about."""
    for column, sketch in job.sketches.items():
        for before, other in one.sketches.items():
            if near_columns(sketch, other, least_rows):
                raise InputError(
                    say(
                        "{name} refuses: '{column}' differs from '{before}' of an earlier job in some but fewer than {least} of its rows.",
                        name=name,
                        column=column,
                        before=before,
                        least=least_rows,
                    ),
                    "The difference of the two results is what these few people have.",
                    "Agree on noise (epsilon), take the earlier column, or fit both in one job, where all clients' rows are counted.",
                )


def near_columns(one: str, other: str, least_rows: int) -> bool:
    """Whether two columns differ in some but fewer rows than *least_rows*, and agree in more than in their commonest values.

    Two rare things that nobody has together differ in as many rows as have either, so that their difference shows nobody more than they do.

    >>> alike = "2:" + "00000000" * SKETCH
    >>> near_columns("9|" + alike, "9|" + alike, 10), near_columns("9|" + alike, "8|2:00000001" + "00000000" * (SKETCH - 1), 10)
    (False, True)
    """
    (moved, rows, *_), (others, *sketches) = (text.split("|") for text in (one, other))
    most = min(least_rows, max(int(moved), int(others)))
    return any(0 < rows_apart(rows, against) < most for against in sketches)


SKETCH = 256
"""How many sums a sketch of rows has: up to a few dozen changed rows are told almost exactly, and more as many."""


def rows_apart(one: str, other: str) -> int:
    """How many people's rows differ between two sketches, about; 0 where a sketch is missing.

    Of d rows that are in one alone each changes one of the sums, so that d follows from how many differ (linear counting); a row that was
    corrected is in both lists, and counts once: (d + the difference of their numbers) / 2.

    >>> rows_apart("", "3:" + "00000000" * SKETCH)
    0
    >>> rows_apart("2:" + "00000000" * SKETCH, "3:" + "00000001" + "00000000" * (SKETCH - 1))
    1
    """
    if not one or not other:
        return 0
    (rows, sums), (others, against) = (text.split(":") for text in (one, other))
    moved = sum(sums[at : at + 8] != against[at : at + 8] for at in range(0, 8 * SKETCH, 8))
    if moved == SKETCH:
        return max(int(rows), int(others))
    apart = math.log1p(-moved / SKETCH) / math.log1p(-1 / SKETCH)
    return max(round((apart + abs(int(rows) - int(others))) / 2), int(one != other))


MOST_TRIED = 20_000
"""Sets of groups of clients that are tried, of each size."""


def shows_few(rosters: Sequence[Sequence[str]], fewest: int) -> bool:
    """Whether some combination of sums over *rosters* is one over fewer than *fewest* clients.

    Clients that were always summed together stay together in every combination, so that small sets of such groups are tried: one of them
    is shown where the others' columns have a smaller rank than all have. Where there are too many to try, it may be.

    >>> shows_few(["ABC", "ABCDEF"], 3), shows_few(["ABCD", "AEFG", "ABCDEFG"], 3)
    (False, True)
    """
    groups: dict[tuple[bool, ...], int] = {}
    sets = [frozenset(one) for one in rosters if one]
    for client in frozenset().union(*sets):
        seen = tuple(client in one for one in sets)
        groups[seen] = groups.get(seen, 0) + 1
    matrix, sizes = np.array(list(groups), dtype=float).T, list(groups.values())
    small = [place for place, size in enumerate(sizes) if size < fewest]
    if not small:
        return False
    rank = np.linalg.matrix_rank(matrix)
    for count in range(1, fewest):
        if math.comb(len(small), count) > MOST_TRIED:
            return True  # too many to look at: what cannot be ruled out is not let out
        for tried in combinations(small, count):
            if sum(sizes[place] for place in tried) < fewest:
                others = np.delete(matrix, tried, axis=1)
                if not others.size or np.linalg.matrix_rank(others) < rank:
                    return True
    return False


class RegressionRole(Role):
    """A role that ends with the coefficients, or knows that others have them.

    >>> from velado.learning.regression.simulate import small_job
    >>> role = RegressionRole(small_job(), "c0", Tape(bytes(32)))
    >>> _ = role._hold(Solved(coefficients=(1.0, 0.5), rows=40))
    >>> role.outcome.fit.coefficients
    (1.0, 0.5)
    """

    earlier: Sequence[EarlierJob] = ()
    own_columns: Mapping[str, str] = {}
    own_rows: str = ""
    own_sketches: Mapping[str, str] = {}
    register: Callable[[EarlierJob, Callable[[Sequence[EarlierJob]], None]], None] | None = None
    """Enters a job once the check of the entries there are has passed, both before anybody else of the identity does; *earlier* stands in where none is kept."""
    released: tuple[str, ...] = ()
    """Whose sums are added up with this client's own, once it lets them out."""

    def _agree(self, roster: Sequence[str]) -> None:
        """This client's sums may be added up with those of *roster*, or InputError: an earlier job gives it away."""
        exact = self.job.noise is None
        now = EarlierJob(
            job=self._id,
            roster=tuple(roster),
            columns=self.own_columns,
            exact=exact,
            rows=self.own_rows,
            sketches=self.own_sketches,
        )

        def check(earlier: Sequence[EarlierJob]) -> None:
            refuse_difference(earlier, now, self.job.minimum_clients, self.name, self.job.least_cell)

        if self.register is None:
            check(self.earlier)
        else:
            self.register(now, check)
        self.released = tuple(roster)

    def _hold(self, solved: Solved, summed: Sequence[str] = ()) -> bytes:
        """The fit is this role's outcome; *summed* are the clients whose rows it counts, all where nobody may leave."""
        names = tuple(summed) or self._all_clients()
        self._outcome = Outcome(fit=fit_of(self.job, solved, names), summed=names)
        return result_bytes(solved)

    def _all_clients(self) -> tuple[str, ...]:
        return tuple(party.name for party in self.job.of("client"))

    def _take_finished(self, message: Message) -> Sequence[Message]:
        """The others have the result, and this role is not to know it."""
        self._outcome = Outcome(summed=self._all_clients())
        return ()

    def _take_result(self, message: Message) -> Sequence[Message]:
        self._hold(result_in(message.fields["result"], self.job))
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
        self._figures = (
            flatten(moments_of(columns, job))
            if job.noise is None
            else noisy_sums(columns, job, tape.fork("noise"))
        )
        if job.protocol.pooled is None and job.protocol.facts.hides:
            refuse_small_own_cells(columns, job)

    def takes(self) -> Mapping[str, Take]:
        """The key, then the result."""
        return {"key": self._take_key, "result": self._take_result}

    def _plaintexts(self, key: PublicKey) -> Sequence[int]:
        """The numbers that are encrypted one by one."""
        raise AssertionError("a protocol says which")

    def _take_key(self, message: Message) -> Sequence[Message]:
        return self._encrypted(key_in(message, self.job))

    def _encrypted(self, key: PublicKey) -> Sequence[Message]:
        """This client's sums under the key, for the evaluator; or InputError where an earlier job gives them away."""
        self._agree([party.name for party in self.job.of("client")])
        plaintexts = self._plaintexts(key)
        tape = self._tape.fork("obfuscators")
        # The table of short powers pays from a few ciphertexts on; keys of ours are of the kind it asks for.
        many = len(plaintexts) > FEW
        pool = ObfuscatorPool(
            ShortPower(key, tape, accept_short_exponents=True, window=5) if many else FullPower(key, tape)
        )
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
                return self.abort(
                    say("What {sender} sent is not encrypted under the job's key.", sender=sender)
                )
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
