"""One client's rows made ready: true rows held out, the rest anonymized on the spot, both encoded by the shared encoder.

Only what this module returns is ever used for training; a client that cannot keep its promise has a gap in place of
rows and sits out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from velado.anonymize.anonymize import anonymize
from velado.anonymize.guarantees.base import Guarantee
from velado.anonymize.methods.base import Method
from velado.data.normal import value_codes
from velado.data.table import Table
from velado.errors import TableError, VeladoError
from velado.federated.learned import FloatMatrix
from velado.federated.records import ClientRecord
from velado.federated.split import IntVector, hold_out
from velado.federated.terms import Terms
from velado.measure.measured import Settings, measure, measure_files
from velado.randomness import seeded

# Partial knowledge tries every part of the quasi-identifiers: minutes on a wide table, and nothing a round needs.
_MEASURED = Settings(partial_knowledge=False)


@dataclass(frozen=True)
class Locally:
    """How a client anonymizes: *method* None trains on original rows, for comparison."""

    method: Method | None = None
    guarantees: tuple[Guarantee, ...] = ()
    suppression: float = 0.0
    seed: int = 0


@dataclass(frozen=True, repr=False)
class Prepared:
    """Encoded training rows (from the release) and held-out rows (true ones), and what may be said of the client."""

    features: FloatMatrix
    labels: IntVector
    test_features: FloatMatrix
    test_labels: IntVector
    record: ClientRecord

    def __repr__(self) -> str:
        return f"Prepared({self.record.name}: {self.labels.size} rows, {self.test_labels.size} held out)"

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays by name, for a private file."""
        return {name: getattr(self, name) for name in ("features", "labels", "test_features", "test_labels")}


def prepare(table: Table, terms: Terms, locally: Locally, client: int) -> Prepared:
    """The rows of client number *client* (from 1) made ready, or a Prepared without rows whose record has the gap.

    Each client draws from a stream of its own, so that a simulation and several machines prepare the same rows alike.
    """
    name = f"client {client}"
    known = ~table.is_missing(terms.encoder.target)
    table = table.with_frame(table.frame.filter(known)).with_schema(terms.schema)
    if not table.rows:
        return _without(
            terms, ClientRecord(name, 0, 0, gap=f"{name} has no rows with a target; it sits out.")
        )
    labels = terms.encoder.labels(table.frame)
    person = table.schema.person
    people = None if person is None else value_codes(table, person)[0].astype(np.int64)
    random = seeded(locally.seed, "federated", "held out", str(client))
    train, test = hold_out(labels, terms.federation.test_share, random, people)
    record = ClientRecord(name, int(train.size), int(test.size), int(np.unique(labels[train]).size))
    tested = table.frame[test]
    part = table.with_frame(table.frame[train])
    least = max([getattr(locally.method, "k", None) or 0, *(one.least_rows for one in locally.guarantees)])
    if train.size < least:
        gap = f"{name} has {train.size} training row(s), fewer than k = {least}; it sits out."
        return _without(terms, replace(record, gap=gap))
    try:
        frame, record = _released(part, locally, record)
    except VeladoError as error:
        # Our own sentences hold no value; others propagate to whoever called.
        return _without(terms, replace(record, gap=f"{name} sits out: {error.what} {error.why}"))
    return Prepared(
        terms.encoder.features(frame),
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
            suppression=locally.suppression,
            seed=locally.seed,
        )
        frame, scores = release.aligned, measure(release, _MEASURED)
        promised = "; ".join(verdict.sentence() for verdict in release.verdicts)
    if scores is None:
        return frame, replace(
            record, gap=f"{record.name}: no quasi-identifier, so loss and linkage are not measured."
        )
    ncp = None if scores.ncp is None else scores.ncp.overall
    linkage = None if scores.linkage is None else scores.linkage.share
    reasons = [scores.not_measured.get(key, "") for key in ("ncp", "record linkage")]
    gap = " ".join(text for text in reasons if text) or None
    rows = frame.height
    return frame, replace(record, rows=rows, ncp=ncp, linkage=linkage, promised=promised, gap=gap)


def _without(terms: Terms, record: ClientRecord) -> Prepared:
    empty = np.zeros((0, len(terms.encoder.names)), dtype=np.float32)
    nothing = np.zeros(0, dtype=np.int64)
    return Prepared(empty, nothing, empty, nothing, replace(record, rows=record.rows))


def trains(prepared: Prepared) -> bool:
    """Whether the client has rows to learn from."""
    return prepared.labels.size > 0


def refuse_no_test(parts: list[Prepared]) -> None:
    """Some client holds rows out, or the run would have nothing to be measured on."""
    if not any(part.test_labels.size for part in parts):
        raise TableError(
            "No client holds out a row.",
            "There would be no true rows to ask the model about.",
            "Use more rows, or raise 'test_share'.",
        )
