"""Small tables, what a method or an operation makes of them, and one release: examples in docstrings are two lines long."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import polars as pl

from velado.data.encode import EncodedColumn, EncodedTable, encode
from velado.data.keys import Key
from velado.data.schema import Column, Kind, Role, Schema
from velado.data.table import Table
from velado.measures.recoded_columns import PublishedTable, read_published
from velado.randomness import seeded
from velado.release.goal import Goal, silent
from velado.release.guarantees import KAnonymity
from velado.release.methods._method import Method
from velado.release.operations._operation import Operation
from velado.release.recoded import Cell
from velado.release.stream.stream_settings import StreamSettings, WindowSettings
from velado.release.stream.windows import Stream
from velado.report.evidence.pack import EvidencePack
from velado.study.engine_run import EnginePublished, publish_files
from velado.study.evidence import gather_evidence
from velado.study.run import Published, publish

if TYPE_CHECKING:
    from velado.query.synthetic.synthesize import Synthetic


def small_table(**columns: tuple[Role, Kind, str]) -> Table:
    """A table whose cells are parted by blanks; a lone `_` is a blank cell. An identifier says who is a person.

    >>> small_table(age=("quasi", "numeric", "31 _ 33"), who=("identifier", "text", "a a b"))
    Table(3 rows; 1 identifier, 1 quasi)
    """
    meaning = {
        name: Column(name, role, kind, person=role == "identifier")
        for name, (role, kind, _) in columns.items()
    }
    cells = {name: [None if c == "_" else c for c in text.split()] for name, (_, _, text) in columns.items()}
    return Table.of(pl.DataFrame(cells, schema=dict.fromkeys(cells, pl.String)), Schema(meaning))


def four_people() -> Table:
    """Four people with an age, which others may know, and an illness.

    >>> four_people().frame["age"].to_list()
    ['31', '35', '31', '40']
    """
    return small_table(age=("quasi", "numeric", "31 35 31 40"), ill=("sensitive", "categorical", "a b a b"))


def four_encoded() -> EncodedTable:
    """The quasi-identifiers of `four_people` as codes.

    >>> four_encoded().columns[0].codes.tolist()
    [0, 1, 0, 2]
    """
    return encode(four_people())


def four_published() -> PublishedTable:
    """`four_people` published as they are and read back: nothing is lost, and nothing hidden.

    >>> four_published().rows
    4
    """
    return read_published(four_people(), four_people().frame)


@cache
def small_release() -> Published:
    """Ages and illnesses of eight people by Mondrian with k = 2; the folder it was written to is gone again.

    >>> small_release().release
    Release(8 rows by mondrian; k-anonymity: needs 2 rows, the weakest group has 2; holds.)
    """
    frame = pl.DataFrame({"age": [20, 21, 30, 31, 40, 41, 50, 51], "illness": [*"abcabcab"]})
    columns = {"age": {"role": "quasi", "kind": "numeric"}, "illness": {"role": "sensitive"}}
    schema = Schema.from_dict({"columns": columns})
    with TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        return publish(frame, schema, "mondrian", k=2, out=out, key=Key(bytes(range(40))))


def shown(method: Method, numbers: Sequence[float], k: int = 2) -> list[Cell]:
    """The numbers of one quasi-identifier as *method* publishes them.

    >>> from velado.release.methods import Mondrian
    >>> shown(Mondrian(), [20, 21, 30, 31])
    ['[20..21]', '[20..21]', '[30..31]', '[30..31]']
    """
    data = encode(_table([f"{number:g}" for number in numbers], "numeric"))
    goal = Goal(() if method.promise == "measured" else (KAnonymity(k),))
    (column,) = method.anonymize(data, goal, seeded(0, "example"), silent).columns
    return [column.values[code] for code in column.codes]


def changed(operation: Operation, cells: Sequence[str], kind: Kind = "categorical") -> list[str | None]:
    """The cells of the column `x` after *operation*.

    >>> from velado.release.operations import Mask
    >>> changed(Mask("x", keep=2), ["36570", "36"])
    ['36***', '3*']
    """
    return operation.apply(_table(cells, kind), seeded(0, "example")).frame["x"].cast(pl.String).to_list()


def table(**columns: Sequence[object]) -> Table:
    """A table of quasi-identifiers, but for the columns `person`, `illness` (sensitive) and `note` (other).

    >>> table(age=[20, 30], illness=["flu", "cold"]).schema.sensitive[0].name
    'illness'
    """
    roles: dict[str, Role] = {"person": "identifier", "illness": "sensitive", "note": "other"}
    schema = {
        name: Column(
            name,
            roles.get(name, "quasi"),
            "categorical" if isinstance(cells[0], str) else "numeric",
            person=name == "person",
        )
        for name, cells in columns.items()
    }
    return Table.of(pl.DataFrame(columns), Schema(schema))


def encoded(**columns: Sequence[object]) -> EncodedTable:
    """Such a table as methods see it.

    >>> encoded(age=[30, 20, 30]).columns[0].codes.tolist()
    [1, 0, 1]
    """
    return encode(table(**columns))


def column(cells: Sequence[object]) -> EncodedColumn:
    """One encoded quasi-identifier `x` of these cells.

    >>> column(["b", "a", "b"]).codes.tolist()
    [1, 0, 1]
    """
    return encoded(x=cells).columns[0]


def _table(cells: Sequence[str], kind: Kind) -> Table:
    frame = pl.DataFrame({"x": list(cells), "y": [str(at) for at in range(len(cells))]})
    return Table.of(frame, Schema({"x": Column("x", "quasi", kind), "y": Column("y", "other")}))


@cache
def small_lake() -> EnginePublished:
    """The table of `small_release` in two Parquet files, released by DuckDB; the folder it was written to is gone again.

    >>> small_lake().facts.source.rows
    8
    """
    frame = pl.DataFrame({"age": [20, 21, 30, 31, 40, 41, 50, 51], "illness": [*"abcabcab"]})
    columns = {"age": {"role": "quasi", "kind": "numeric"}, "illness": {"role": "sensitive"}}
    with TemporaryDirectory() as folder:
        for at, part in enumerate((frame[:3], frame[3:])):
            part.write_parquet(Path(folder) / f"part-{at}.parquet")
        return publish_files(
            f"{folder}/*.parquet",
            Schema.from_dict({"columns": columns}),
            "mondrian",
            k=2,
            out=Path(folder) / "out",
            key=Key(bytes(range(40))),
        )


@cache
def small_evidence() -> EvidencePack:
    """The evidence pack of `small_release`, read by Brazil's law and made at a fixed time.

    >>> small_evidence().document["law"]
    'lgpd'
    """
    frame = pl.DataFrame({"age": [20, 21, 30, 31, 40, 41, 50, 51], "illness": [*"abcabcab"]})
    columns = {"age": {"role": "quasi", "kind": "numeric"}, "illness": {"role": "sensitive"}}
    with TemporaryDirectory() as folder:
        out, key = Path(folder) / "out", Key(bytes(range(40)))
        publish(frame, Schema.from_dict({"columns": columns}), "mondrian", k=2, out=out, key=key)
        return gather_evidence(out, "lgpd", key=key, now=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))


@cache
def small_synthetic() -> Synthetic:
    """A synthetic table of a hundred people in two wards.

    >>> small_synthetic().frame.columns
    ['ward', 'age']
    """
    from velado.query.synthetic.synthesize import synthesize

    schema = Schema(
        {
            "ward": Column("ward", "quasi", values=("a", "b")),
            "age": Column("age", "quasi", "numeric", bounds=(0, 99), step=1.0),
        }
    )
    frame = pl.DataFrame({"ward": ["a", "b"] * 50, "age": [str(at) for at in range(100)]})
    return synthesize(frame, schema, epsilon=100)


def stream_of_ages(people: int, windows: int) -> tuple[Stream, list[bytes]]:
    """A stream whose windows have as many records as there are *people*, k = 5, and what fills so many *windows*.

    >>> len(stream_of_ages(people=20, windows=2)[1])
    40
    """
    schema = Schema.from_dict(
        {
            "columns": {
                "who": {"role": "identifier", "person": True},
                "age": {"role": "quasi", "kind": "numeric", "bounds": [0, 120]},
                "pulse": {"role": "sensitive", "kind": "numeric"},
            }
        }
    )
    asked = StreamSettings(schema="schema.toml", window=WindowSettings(by="count", size=people))
    drawn = seeded(0, "stream of ages")
    ages = drawn.integers(18, 90, people).tolist()
    lines = [
        b'{"who": "p%d", "age": %d, "pulse": %d}' % (one, ages[one], drawn.integers(50, 120))
        for _ in range(windows)
        for one in range(people)
    ]
    return Stream(schema, asked, Key(bytes(range(40)))), lines
