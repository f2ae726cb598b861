"""SparkCut: the coded rows of a Spark frame cut into parts on its workers, round by round, and finished there.

The rows of every round are computed once and kept, so that the next one begins from them. Once parts are small, each lot of
them comes to lie on one worker, and what is decided of it is decided there (`mapInArrow`): the driver sees histograms and, at the
end, cells. Workers need velado for it, as the driver does.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from velado.data.partition import Int64Array
from velado.engines.row_source import ROWS, Coding, TupleKeys
from velado.engines.spark_source import SparkSource, held, tried
from velado.engines.sql_cut import SqlCut, cut_columns


@dataclass(frozen=True, repr=False)
class SparkTables:
    """Frames of a run that SQL knows by a name that nobody else has, for `SqlCut`.

    >>> SparkTables(None).frames
    {}
    """

    source: Any
    frames: dict[str, Any] = field(default_factory=dict)

    @property
    def session(self) -> Any:
        """The session that the source's frame belongs to."""
        return self.source.cells.sparkSession

    def view(self, name: str, frame: Any) -> None:
        """SQL knows *frame* by *name*."""
        frame.createOrReplaceTempView(name)
        self.frames[name] = frame

    def make(self, name: str, select: str) -> None:
        """A table *name* holds the rows of *select*, which may read the one that has the name now."""
        made = held(tried(self.source.name, lambda: self.session.sql(select)))
        self.drop(name)
        self.view(name, made)

    def drop(self, name: str) -> None:
        """There is no table *name* of the run; one of somebody else's stays."""
        frame = self.frames.pop(name, None)
        if frame is not None:
            self.session.catalog.dropTempView(name)
            let_go(frame)

    def hold(self, name: str, table: pa.Table) -> None:
        """A table *name* holds what is handed over."""
        self.view(name, self.source._sent(table))

    def ask(self, sql: str, names: Sequence[str]) -> pa.Table:
        """The answer, columns of whole numbers called *names*."""
        asked = tried(self.source.name, lambda: self.session.sql(sql))
        return self.source._arrow(asked).rename_columns(names)

    def close(self) -> None:
        """Everything that was kept is given back."""
        for name in list(self.frames):
            self.drop(name)


def let_go(frame: Any) -> None:
    """What `held` kept of a frame on the workers' disks is given back.

    >>> let_go(None)
    """
    known = getattr(frame, "_jdf", None)
    plan = None if known is None else known.queryExecution().analyzed()
    if plan is not None and plan.nodeName() == "Scan ExistingRDD":
        plan.rdd().unpersist(False)


@dataclass(frozen=True, repr=False)
class SparkCut(SqlCut):
    """Coded rows in parts on Spark's workers, where they are finished, too.

    >>> SparkCut.__name__
    'SparkCut'
    """

    tables: SparkTables

    def finish(
        self, work: Callable[[pa.Table], pa.Table], lots: Sequence[tuple[int, int]], whole: Sequence[int]
    ) -> None:
        """*work* was done on the rows of each of the *lots* (first and last part); the parts *whole* are cells as they stand."""
        name, session = self.tables.source.name, self.tables.session
        listed = ["part", *self.stored]
        frames = []
        if lots:
            lot = np.repeat(np.arange(len(lots)), [last - first + 1 for first, last in lots])
            part = np.concatenate([np.arange(first, last + 1) for first, last in lots])
            told = {"part": part.astype(np.int32), "lot": lot.astype(np.int32)}
            self.tables.hold(f"{self.prefix}lots", pa.table(told))
            cells = ", ".join(f"r.{column}" for column in listed)
            rows = session.sql(
                f"SELECT {cells}, l.lot FROM {self.rows} AS r JOIN {self.prefix}lots AS l ON l.part = r.part"
            )
            laid = rows.repartitionById(len(lots), rows["lot"]).drop("lot")
            frames.append(laid.mapInArrow(_Finished(work), self._schema(laid)))
        if whole:
            cells, parts = ", ".join(listed), ", ".join(str(part) for part in whole)
            counted = f"SELECT {cells}, count(*) AS {ROWS}, 0 AS cell FROM {self.rows}"
            frames.append(session.sql(f"{counted} WHERE part IN ({parts}) GROUP BY {cells}"))
        made = frames[0] if len(frames) == 1 else frames[0].unionByName(frames[1])
        kept = tried(name, lambda: held(made))
        self.tables.drop(self.kept)
        self.tables.view(self.kept, kept)

    def _schema(self, rows: Any) -> Any:
        from pyspark.sql.types import IntegerType, LongType, StructField, StructType

        return StructType(
            [*rows.schema.fields, StructField(ROWS, LongType()), StructField("cell", IntegerType())]
        )

    def cells(self) -> pa.Table:
        """`part`, `cell`, `rows`, `low0`, ..., `high0`, ... of every cell, in order of part and cell."""
        count = len(self.keys.codings)
        ends = [f"{how}(c{at})" for how in ("min", "max") for at in range(count)]
        names = [f"{end}{at}" for end in ("low", "high") for at in range(count)]
        found = self.tables.ask(
            f"SELECT part, cell, sum({ROWS}), {', '.join(ends)} FROM {self.kept} GROUP BY part, cell "
            "ORDER BY part, cell",
            ["part", "cell", ROWS, *names],
        )
        self.tables.source.kept["cells"] = found.select(["part", "cell"])
        return found

    def held(self, number: int) -> pa.Table:
        """`part`, `cell`, `code`, `rows` of another column's codes in every cell, in order."""
        value = f"v{number}"
        return self.tables.ask(
            f"SELECT part, cell, {value}, sum({ROWS}) FROM {self.kept} GROUP BY part, cell, {value} "
            f"ORDER BY part, cell, {value}",
            ["part", "cell", "code", ROWS],
        )

    def sizes(self) -> tuple[Int64Array, Int64Array]:
        """How many rows a tuple has, and how many tuples have so many; the coded rows are given back."""
        self.tables.drop(self.rows)
        codes = ", ".join(f"c{at}" for at in range(len(self.keys.codings)))
        each = f"SELECT sum({ROWS}) AS {ROWS} FROM {self.kept} GROUP BY {codes}"
        found = self.tables.ask(
            f"SELECT {ROWS}, count(*) FROM ({each}) AS each GROUP BY {ROWS} ORDER BY {ROWS}",
            ["size", "tuples"],
        )
        return found.column("size").to_numpy(), found.column("tuples").to_numpy()

    def groups_of(self, keys: TupleKeys, mapping: pa.Table) -> Any:
        """The keys of every tuple and `grp`, from the groups of numbered cells: a frame; tuples whose cell has none are left out."""
        from pyspark.sql import functions as F

        named = self.tables.source.kept["cells"].take(mapping.column("cell"))
        told = pa.table(
            {
                "part": named.column("part").cast(pa.int32()),
                "cell": named.column("cell").cast(pa.int32()),
                "grp": mapping.column("grp"),
            }
        )
        codes = [f"c{at}" for at in range(len(keys.codings))]
        made = [
            F.expr(key).alias(name) for key, name in zip(keys.expressions(codes), keys.names, strict=True)
        ]
        tuples = self.tables.frames[self.kept].select(*made, "part", "cell")
        if self.more:
            tuples = tuples.distinct()
        return tuples.join(self.tables.source._sent(told), ["part", "cell"]).select(*keys.names, "grp")


@dataclass(frozen=True)
class _Finished:
    """What a worker does with the rows of one lot: they are put together, worked on once, and go back as they are wanted."""

    work: Callable[[pa.Table], pa.Table]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        given = list(batches)
        if not any(batch.num_rows for batch in given):
            return
        rows = pa.Table.from_batches(given)
        more = [pa.field(ROWS, pa.int64()), pa.field("cell", pa.int32())]
        wanted = pa.schema([*(pa.field(f.name, f.type) for f in rows.schema), *more])
        yield from self.work(rows).select(wanted.names).cast(wanted).to_batches()


def cut_spark(
    source: SparkSource, keys: TupleKeys, beside: Sequence[Coding], blanks: Sequence[int]
) -> SparkCut:
    """The coded rows of a source in one part, to be cut further.

    >>> cut_spark.__name__
    'cut_spark'
    """
    joined, codes = source._coded([*keys.codings, *beside])
    prefix = f"velado_{uuid.uuid4().hex}_"
    tables = SparkTables(source)
    made = SparkCut(tables, keys, cut_columns(len(keys.codings), blanks), len(beside), prefix)
    tables.view(f"{prefix}coded", joined)
    made.begin(f"{prefix}coded", codes, beside)
    tables.drop(f"{prefix}coded")
    source.kept["cut"] = made
    return made
