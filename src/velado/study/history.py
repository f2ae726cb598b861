"""What one run adds to a history: entered before the release leaves, confirmed after; figures from the written bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from velado.data.encode import VisibleTexts
from velado.data.formulas import Formulas
from velado.data.history_file import HistoryEntry, HistoryFile
from velado.data.keys import Key
from velado.data.schema import Schema
from velado.data.table_bytes import written_cells
from velado.errors import HistoryError, ParameterError, SchemaError
from velado.release.history.classes import NOBODY
from velado.release.history.record import (
    HeldState,
    Record,
    ToldByReleases,
    entry_of,
    hashes_of,
    places_in,
    told_by,
)
from velado.release.history.together import Held, OverTime
from velado.release.joined import JoinedRelease
from velado.release.release import Release
from velado.study.held_people import people_kept, rows_shown, spelled, whose_rows
from velado.study.held_values import values_file, values_kept


@dataclass(frozen=True, repr=False)
class HistoryDraft:
    """The entry of a release that has not left yet, and what it tells together with the releases before it."""

    file: HistoryFile
    said: Mapping[str, Any]
    body: bytes
    told: ToldByReleases
    again: bool
    over_time: OverTime | None = None
    values: bytes | None = None
    rows: bytes = b""
    like_formulas: int = 0
    """Cells of *values* that look like formulas."""

    @classmethod
    def of(
        cls,
        file: HistoryFile,
        release: Release,
        content: bytes,
        separator: str,
        key: Key,
        held: Held | None = None,
        formulas: Formulas = "keep",
    ) -> HistoryDraft:
        """The rows are regrouped as they stand in the file that will leave, not as the method meant them."""
        cells = written_cells(content, separator)
        columns = release.listed.columns
        quasi = [cells.columns[columns.index(column.name)] for column in release.recoded.columns]
        groups = np.asarray(VisibleTexts.of(cells, quasi).groups.labels, np.int32)
        person = release.original.schema.person
        assert person is not None
        people = whose_rows(release.original)[release.rows]
        sensitive = [one.name for one in release.table.schema.sensitive if one.name in columns]
        values = cells[cells.columns[columns.index(sensitive[0])]] if len(sensitive) == 1 else None
        before = Record.of(file.entries)
        _refuse_mixed(before, held)
        secret = key.seed_for("history people")
        unseen = () if held is None else held.newcomers
        said, body = entry_of(before, people, groups, values, secret, unseen)
        # A run that was killed between its entry and its confirmation, and is done again, is one release: the same bytes, of the
        # same people. The same bytes of others (of equal values, who came as they left) are another one.
        new = int(said["new"])
        digest = _identity(content, body[16 * new : 16 * new + 4 * (len(before.people) + new)])
        again = not new and digest == (before.tables or ("",))[-1]
        if held is not None:
            further, tail = _in_places(before, held, said, body, secret).packed(len(before.people))
            said, body = {**said, "held": further}, body + tail
        said |= {"table": digest, "spelled": spelled(release.original)}
        rows = b""
        if held is not None and held.asked.kind == ("people", "keep"):
            rows = rows_shown(release)
            said |= {"rows": hashlib.sha256(rows).hexdigest(), "person": person.name}
        k = release.goal.k or 2
        pending = before.pending and not again
        after = before
        if not again:
            del before, after  # of a large history only one record is in memory
            after = Record.of([*file.entries, HistoryEntry(said, body, "")])
        told = told_by(after, k, file.trouble, pending)
        over_time, public, like_formulas = None, None, 0
        if held is not None and held.asked.what == "people":
            over_time = people_kept(told, release, k, held)
        elif held is not None:
            public, like_formulas = values_file(after, cells[held.column], separator, formulas)
            assert after.held is not None
            shown, counts = cells[held.column], after.held.counts
            over_time = values_kept(public, shown, held.asked, release, separator, file.trouble, counts)
        if over_time is not None and after.sealed_anew:
            further = {**over_time.further, "history_sealed_anew": after.sealed_anew}
            over_time = replace(over_time, further=further)
        return cls(file, said, body, told, again, over_time, public, rows, like_formulas)

    @classmethod
    def of_joined(
        cls,
        file: HistoryFile,
        release: JoinedRelease,
        contents: Mapping[str, bytes],
        separators: Mapping[str, str],
        key: Key,
    ) -> HistoryDraft:
        """Several tables are one release: a person's group is all who show the same in each of them, by the written files."""
        before = Record.of(file.entries)
        _refuse_mixed(before, None)
        people, groups, above = [], [], 0
        for name, one in release.tables.items():
            cells = written_cells(contents[name], separators[name])
            quasi = [cells.columns[one.frame.columns.index(column)] for column in one.quasi]
            labels = np.zeros(cells.height, np.int32)
            if quasi:
                labels = np.asarray(VisibleTexts.of(cells, quasi).groups.labels, np.int32)
            people.append(one.people)
            groups.append(labels + above)
            above += int(labels.max(initial=-1)) + 1
        secret = key.seed_for("history people")
        said, body = entry_of(before, pl.concat(people), np.concatenate(groups), None, secret)
        new = int(said["new"])
        content = b"".join(hashlib.sha256(contents[name]).digest() for name in release.tables)
        said["table"] = _identity(content, body[16 * new : 16 * new + 4 * (len(before.people) + new)])
        again = not new and said["table"] == (before.tables or ("",))[-1]
        after = before if again else Record.of([*file.entries, HistoryEntry(said, body, "")])
        told = told_by(after, release.goal.k or 2, file.trouble, before.pending and not again)
        return cls(file, said, body, told, again)

    def begin(self) -> None:
        """The entry is on the disk: from here on the release may leave."""
        if not self.again:
            if self.rows:
                self.file.put_rows(self.rows)
            self.file.append(self.said, self.body)

    def confirm(self) -> None:
        """The release has left."""
        self.file.append({"kind": "confirmed", "table": self.said["table"]})
        self.file.sweep()


def _identity(content: bytes, column: bytes) -> str:
    """The digest of what was written, and of whom each group showed."""
    return hashlib.sha256(hashlib.sha256(content).digest() + column).hexdigest()


def _in_places(before: Record, held: Held, said: Mapping[str, Any], body: bytes, secret: bytes) -> HeldState:
    """The state in the order in which the entry knows people."""
    known = len(before.people)
    fresh = np.frombuffer(body, "<u8", 2 * int(said["new"])).reshape(-1, 2)
    places = places_in(fresh, hashes_of(pl.Series(held.newcomers, dtype=pl.String), secret))
    home, standing = np.full(len(fresh), NOBODY, np.int32), np.zeros(len(fresh), bool)
    home[places], standing[places] = held.state.home[known:], held.state.standing[known:]
    return replace(
        held.state,
        home=np.concatenate([held.state.home[:known], home]),
        standing=np.concatenate([held.state.standing[:known], standing]),
    )


# ---- refusals


def refuse_order() -> ParameterError:
    """Held together over time, and rows in the order of the input."""
    return ParameterError(
        "People or values are to be held together over all releases, and rows are to keep the order of the input.",
        "In a file sorted by what is sensitive a row's place in its group gives its value away, and rows of people who left would stand together.",
        "Leave --keep-order out, so that the order is drawn.",
    )


def no_history() -> ParameterError:
    """Held together over time, and no history to hold by."""
    return ParameterError(
        "People or values are to be held together over all releases, and no history was given.",
        "Without it nobody knows who was shown with whom.",
        "Give the history of the first release with --history FILE, or make one with `velado history create FILE`.",
    )


def _refuse_mixed(before: Record, held: Held | None) -> None:
    now = None if held is None else held.asked.kind
    then = None if before.held is None else before.held.kind
    if before.releases and now != then:
        raise HistoryError(
            "The history holds releases that were made with another --together.",
            "What is promised of all of them counts on each being made in the same way.",
            "Use the same --together (and --leavers), or begin a new history.",
        )


def refuse_without_person(schema: Schema) -> None:
    """Nothing, if the schema says which rows are one person; else an error: nobody could be followed.

    >>> refuse_without_person(Schema.from_dict({"columns": {"id": {"role": "identifier", "person": True}}}))
    """
    if schema.person is None:
        raise SchemaError(
            "A history was given, and the schema names no person column.",
            "Without it nobody can be found again in an earlier release.",
            "Mark the column that has one value for each person with person = true.",
        )
