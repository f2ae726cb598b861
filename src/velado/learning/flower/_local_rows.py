"""One client's rows made ready: true rows held out, the rest anonymized on the spot, both encoded by the shared encoder.

Only what this module returns is ever used for training; a client that cannot keep its promise has a gap in place of
rows and sits out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from velado.data.normal import value_codes
from velado.data.table import Table
from velado.errors import TableError, VeladoError
from velado.learning.flower._terms import FederationTerms
from velado.learning.flower.federation import Federation
from velado.learning.flower.flower_records import ClientRecord, FloatMatrix, client_record
from velado.learning.row_marks import equal_before
from velado.measures.measured import MeasureSettings, measure, measure_files
from velado.randomness import seeded
from velado.release.anonymize import anonymize
from velado.release.goal import default_k
from velado.release.guarantees import GUARANTEES
from velado.release.guarantees._guarantee import Guarantee
from velado.release.methods import METHODS
from velado.release.methods._method import Method
from velado.release.run_settings import CrowdSetting, SeedSetting, SuppressionSetting
from velado.settings import Setting, settings
from velado.text import join, say, say_n

# Rows dealt out to the clients of a simulation, and each client's held-out rows. Every row goes to exactly one client.

IntVector = npt.NDArray[np.int64]


def split_rows(
    labels: IntVector, federation: Federation, seed: int, people: IntVector | None = None
) -> tuple[IntVector, ...]:
    """The row numbers of each client, rising; together they are all rows, and no row is in two. O(n log n).

    "iid": people are shuffled and dealt out in parts of equal size (they differ by one at most); classes are *not*
    stratified, so that clients differ as much as chance makes them. "dirichlet": for each class c the shares of the
    clients are drawn, p_c ~ Dirichlet(alpha, ..., alpha), and the class is cut at their cumulative sums (Hsu et al.
    2019); small alpha gives clients that hold few classes and differ in size, and some may be left without rows. All
    rows of a person go to one client; a person counts with the class of their first row.
    """
    unit = np.arange(labels.size) if people is None else np.unique(people, return_inverse=True)[1]
    _, first = np.unique(unit, return_index=True)
    if first.size < federation.clients:
        raise TableError(
            say_n(
                "{n} person cannot be dealt out to {clients} clients.",
                "{n} people cannot be dealt out to {clients} clients.",
                first.size,
                clients=federation.clients,
            ),
            "A client would be empty.",
            "Use more rows, or fewer clients.",
        )
    random = seeded(seed, "federated", "split", federation.split)
    owner = np.empty(first.size, dtype=np.int64)
    if federation.split == "iid":
        order = random.permutation(first.size)
        for client, part in enumerate(np.array_split(order, federation.clients)):
            owner[part] = client
    else:
        of_unit = labels[first]
        for number in np.unique(of_unit):
            members = random.permutation(np.flatnonzero(of_unit == number))
            shares = random.dirichlet(np.full(federation.clients, federation.alpha))
            ends = np.rint(np.cumsum(shares) * members.size).astype(np.int64)
            ends[-1] = members.size  # rounding of the sum must not lose the last member
            owner[members] = np.searchsorted(ends, np.arange(members.size), side="right")
    of_row = owner[unit]
    return tuple(np.flatnonzero(of_row == client) for client in range(federation.clients))


def hold_out(
    labels: IntVector, share: float, random: np.random.Generator, people: IntVector | None = None
) -> tuple[IntVector, IntVector]:
    """(rows to learn from, rows held out): *share* of every class is held out, all rows of a person on one side.

    A person counts with the rarest class among their rows, rare by the number of people who have it. Whoever has a
    class that nobody else has stays in the training part, and every class is taught: no held-out row asks for a class
    that was never seen. A class that two people or more have is held out too, where that leaves all others taught.
    Nothing is held out where that would leave nothing to learn from. O(n log n + n c) for c classes.
    """
    unit = np.arange(labels.size) if people is None else np.unique(people, return_inverse=True)[1]
    units = int(unit.max(initial=-1)) + 1
    classes, number = np.unique(labels, return_inverse=True)
    # One entry for each class of each person; `holders` people have a class.
    pairs = np.unique(unit.astype(np.int64) * max(classes.size, 1) + number)
    holder, held = np.divmod(pairs, max(classes.size, 1))
    holders = np.bincount(held, minlength=classes.size)
    order = np.lexsort((held, holders[held], holder))
    rarest = held[order][np.unique(holder[order], return_index=True)[1]]
    tested = np.zeros(units, dtype=bool)
    for one in np.unique(rarest):
        members = random.permutation(np.flatnonzero(rarest == one))
        if members.size < 2 or holders[one] < 2:
            continue
        tested[members[: min(max(round(share * members.size), 1), members.size - 1)]] = True
    if holder.size > units:  # only where somebody has several classes can one be missing on a side
        _balance(tested, holder, held, classes.size, random)
    on_test = tested[unit]
    return np.flatnonzero(~on_test), np.flatnonzero(on_test)


def own_draws(rows: FloatMatrix, random: np.random.Generator) -> npt.NDArray[np.float64]:
    """A number from 0 to 1 for each row, which follows from what the row holds and from how many equal ones stand before it.

    So a row more or less, wherever it stands, changes no other row's number, and everybody may know the source. By multilinear hashing:
    the upper half of sum_j a_j x_j + a_0, modulo 2^64, is evenly spread, for any two rows independently. O(n m + n log n).

    >>> drawn = own_draws(np.array([[1.0], [2.0], [1.0]], dtype=np.float32), seeded(0, "example"))
    >>> other = own_draws(np.array([[2.0], [1.0]], dtype=np.float32), seeded(0, "example"))
    >>> drawn[:2].tolist() == other[::-1].tolist(), len(set(drawn.tolist()))
    (True, 3)
    """
    bits = np.ascontiguousarray(rows + np.float32(0), dtype=np.float32).view(np.uint32).astype(np.uint64)
    first, further, *factors = random.integers(0, 2**64, bits.shape[1] + 2, dtype=np.uint64)
    marks = bits @ np.array(factors, dtype=np.uint64) + first
    return np.asarray(((marks + further * equal_before(marks)) >> np.uint64(32)).astype(np.float64) / 2.0**32)


def _balance(
    tested: npt.NDArray[np.bool_],
    holder: IntVector,
    held: IntVector,
    classes: int,
    random: np.random.Generator,
) -> None:
    """Every class has somebody in the training part, and in the test part if all classes stay taught without them."""
    for one in range(classes):
        members = holder[held == one]
        if tested[members].all():  # all who have it were drawn: one of them goes back
            tested[random.permutation(members)[0]] = False
    for one in range(classes):
        members = holder[held == one]
        if tested[members].any():
            continue
        taught = np.bincount(held[~tested[holder]], minlength=classes)
        needed = np.unique(holder[taught[held] < 2])  # the last who teach some class
        free = np.setdiff1d(members, needed)
        if free.size:
            tested[random.permutation(free)[0]] = True


# Partial knowledge tries every part of the quasi-identifiers: minutes on a wide table, and nothing a round needs.
_MEASURED = MeasureSettings(partial_knowledge=False)


_METHOD = Setting("how rows are grouped; `original` leaves them", parts=lambda: METHODS, kind="method")
_GUARANTEES = Setting("what each release must keep", parts=lambda: GUARANTEES, kind="guarantee")


@settings(section="anonymization")
class Locally:
    """How a client anonymizes: *method* None trains on original rows, for comparison.

    >>> Locally(seed=3).method is None
    True
    """

    method: Annotated[Method | None, _METHOD] = None
    guarantees: Annotated[tuple[Guarantee, ...], _GUARANTEES] = ()
    suppression: SuppressionSetting = 0.0
    seed: SeedSetting = 0
    k: CrowdSetting = None

    @property
    def promised_k(self) -> int | None:
        """The k of k-anonymity that a client keeps: as asked for, or the default."""
        if self.method is None or self.k is not None:
            return self.k
        return default_k(self.method.promise, self.guarantees)


@dataclass(frozen=True, repr=False)
class LocalRows:
    """Encoded training rows (from the release) and held-out rows (true ones), and what may be said of the client."""

    features: FloatMatrix
    labels: IntVector
    test_features: FloatMatrix
    test_labels: IntVector
    record: ClientRecord

    def __repr__(self) -> str:
        return f"LocalRows({self.record.name}: {self.labels.size} rows, {self.test_labels.size} held out)"

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays by name, for a private file."""
        return {name: getattr(self, name) for name in ("features", "labels", "test_features", "test_labels")}


def prepare(table: Table, terms: FederationTerms, locally: Locally, client: int) -> LocalRows:
    """The rows of client number *client* (from 1) made ready, or LocalRows without rows whose record has the gap.

    Each client draws from a stream of its own, so that a simulation and several machines prepare the same rows alike.
    """
    name = say("client {number}", number=client)
    known = ~table.is_missing(terms.encoder.target)
    table = table.with_frame(table.frame.filter(known)).with_schema(terms.schema)
    if not table.rows:
        gap = say("{client} has no rows with a target; it sits out.", client=name)
        return _without(terms, client_record(client, gap=gap))
    labels = terms.encoder.labels(table.frame)
    person = table.schema.person
    people = None if person is None else value_codes(table, person)[0].astype(np.int64)
    random = seeded(locally.seed, "federated", "held out", str(client))
    if terms.federation.noise is not None:
        if people is not None and np.unique(people).size < people.size:
            gap = say(
                "{client} has several rows of one person, and noise hides single rows; it sits out.",
                client=name,
            )
            return _without(terms, client_record(client, gap=gap))
        rows = np.column_stack([terms.encoder.features(table.frame), labels.astype(np.float32)])
        tested_rows = own_draws(rows, random) < terms.federation.test_share
        train, test = np.flatnonzero(~tested_rows), np.flatnonzero(tested_rows)
    else:
        train, test = hold_out(labels, terms.federation.test_share, random, people)
    record = client_record(
        client, rows=int(train.size), test_rows=int(test.size), classes=int(np.unique(labels[train]).size)
    )
    if train.size > terms.federation.most_rows:
        gap = say("{client} has more rows than 'most_rows' allows; it sits out.", client=name)
        return _without(terms, replace(record, gap=gap))
    tested = table.frame[test]
    part = table.with_frame(table.frame[train])
    least = max([locally.promised_k or 0, *(one.least_rows for one in locally.guarantees)])
    if train.size < least:
        gap = say_n(
            "{client} has {n} training row, fewer than k = {least}; it sits out.",
            "{client} has {n} training rows, fewer than k = {least}; it sits out.",
            int(train.size),
            client=name,
            least=least,
        )
        return _without(terms, replace(record, gap=gap))
    try:
        frame, record = _released(part, locally, record)
    except VeladoError as error:
        # Our own sentences hold no value; others propagate to whoever called.
        gap = say("{client} sits out: {what} {why}", client=name, what=error.what, why=error.why)
        return _without(terms, replace(record, gap=gap))
    return LocalRows(
        terms.encoder.lessons(frame, seeded(locally.seed, "federated", "lessons", str(client))),
        terms.encoder.labels(frame),
        terms.encoder.features(tested, "whole"),
        terms.encoder.labels(tested),
        record,
    )


def _released(part: Table, locally: Locally, record: ClientRecord) -> tuple[Any, ClientRecord]:
    """The published rows, through the same door as every release, and the record with its loss and linkage."""
    if locally.method is None:
        frame = part.frame.select([n for n in part.frame.columns if part.schema.columns[n].published])
        # Nothing was changed, so nothing was lost; how well rows are linked to themselves is measured all the same.
        scores = measure_files(part, frame, settings=_MEASURED) if part.schema.quasi else None
        promised = ""
    else:
        release = anonymize(
            part,
            part.schema,
            locally.method,
            locally.guarantees,
            k=locally.k,
            suppression=locally.suppression,
            seed=locally.seed,
        )
        frame, scores = release.aligned, measure(release, _MEASURED)
        promised = "; ".join(verdict.sentence() for verdict in release.verdicts)
    if scores is None:
        silent = say(
            "{client}: no quasi-identifier, so loss and linkage are not measured.", client=record.name
        )
        return frame, replace(record, gap=silent)
    ncp = None if scores.ncp is None else scores.ncp.overall
    linkage = None if scores.linkage is None else scores.linkage.share
    reasons = [scores.not_measured.get(key, "") for key in ("ncp", "record linkage")]
    gap = join(text for text in reasons if text) or None
    rows = frame.height
    return frame, replace(record, rows=rows, ncp=ncp, linkage=linkage, promised=promised, gap=gap)


def _without(terms: FederationTerms, record: ClientRecord) -> LocalRows:
    empty = np.zeros((0, len(terms.encoder.names)), dtype=np.float32)
    nothing = np.zeros(0, dtype=np.int64)
    return LocalRows(empty, nothing, empty, nothing, record)


def trains(prepared: LocalRows) -> bool:
    """Whether the client has rows to learn from."""
    return prepared.labels.size > 0


def refuse_no_test(parts: list[LocalRows]) -> None:
    """Some client holds rows out, or the run would have nothing to be measured on."""
    if not any(part.test_labels.size for part in parts):
        raise TableError(
            "No client holds out a row.",
            "There would be no true rows to ask the model about.",
            "Use more rows, or raise 'test_share'.",
        )
