"""Spark answers for a data frame of its own: counted, recoded and ordered on its workers.

Only aggregates come to the driver: domains, distinct tuples or, of a table that is cut first, its cells, counters, and a sample of stated size. Every answer passes
`_arrow`, which looks at the plan first and refuses one that would bring rows. What is decided goes out as small tables that are
joined to the rows where they lie. No answer, and no order of rows, depends on how the rows are split, or on how many workers there are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import pyarrow as pa

from velado.data.blanks import NoValue, is_text
from velado.data.csv_reading import duplicate_names
from velado.data.frames import is_spark_frame
from velado.data.schema import Schema
from velado.engines.duckdb_files import Stamp, bytes_digest, refuse_changed
from velado.engines.room import room_of
from velado.engines.row_source import (
    CODE,
    ROWS,
    Coding,
    Order,
    Recoding,
    RowSource,
    Sink,
    TupleKeys,
    as_read,
    coding_list,
)
from velado.engines.sql_cut import CutThere
from velado.errors import EngineError, ParameterError, TableError
from velado.text import say

T = TypeVar("T")

DRIVER_ROOM = "1GB"
"""What may be held on Spark's driver where nobody says."""
_PART_ROWS = 500_000
_BROADCAST = 4_000_000
_BITS = 31
_BOUNDED = frozenset({"Aggregate", "LocalRelation"})


@dataclass(frozen=True, repr=False)
class SparkSource:
    """A table that Spark holds. Make one with `of_spark`, or `spark_files.open_spark_files`.

    *cells* is a Spark data frame whose columns are f0, f1, ...; *types* has their true names. *files* are those it was read
    from, where somebody knows them; *told* what was counted already, *kept* what is kept of a table that is cut first. *memory* is what
    may be held on the driver, and of a lot of parts on a worker, e.g. "3GB".

    >>> SparkSource("stays", None, pa.schema([("age", pa.int32())]), 3)
    SparkSource('stays', 3 rows, 1 columns)
    """

    name: str
    cells: Any
    types: pa.Schema
    rows: int
    files: tuple[Path, ...] = ()
    stamps: tuple[Stamp | None, ...] = ()
    separator: str = ","
    engine: str = "Spark"
    order: Order = "none"
    libraries: tuple[str, ...] = ("pyspark", "pyarrow")
    told: dict[tuple[str, ...], pa.Table] = field(default_factory=dict, compare=False)
    memory: str | None = None
    kept: dict[str, Any] = field(default_factory=dict, compare=False)

    def __repr__(self) -> str:
        return f"SparkSource({self.name!r}, {self.rows:,} rows, {len(self.types)} columns)"

    def numbered(self) -> Self:
        """An error: rows without an order have no numbers, and who asks for them overlooked `order`."""
        raise ValueError("rows on Spark stand in no order and cannot be numbered")

    def blanked(self, none: Mapping[str, NoValue]) -> Self:
        """The same rows with nothing in the cells that mean no value, which *none* says by column."""
        from pyspark.sql import functions as F

        changed = []
        for at, one in enumerate(self.types):
            cell = made = F.col(f"f{at}")
            own = none.get(one.name)
            if own is not None and (meant := own.of_type(one.type)):
                made = F.when(~cell.isin(meant), cell)
            if own is not None and own.nan and pa.types.is_floating(one.type):
                made = F.when(~F.isnan(cell), made)
            changed.append(made.alias(f"f{at}"))
        return self.of(self.cells.select(*changed)) if none else self

    def filled(self, columns: Sequence[str], blanks: Sequence[str]) -> Self:
        """The rows that have a value in each of *columns*; *blanks* are texts that mean none."""
        from pyspark.sql import functions as F

        kept = self.cells
        for name in columns:
            cell, type_ = F.col(self._cell(name)), self.types.field(name).type
            kept = kept.where(cell.isNotNull())
            if is_text(type_) and blanks:
                kept = kept.where(~cell.isin(list(blanks)))
            elif pa.types.is_floating(type_) and any(text.lower() == "nan" for text in blanks):
                kept = kept.where(~F.isnan(cell))
        return replace(self.of(kept), rows=tried(self.name, kept.count))

    def sample(self, most: int, whole: str | None = None) -> pa.Table:
        """All rows where there are at most *most*, else about so many, the same each time.

        With *whole*, a column, all rows of some of its values. Rows are chosen by a hash of what they hold, and equal rows
        come as one with their number, so that not even a table of equal rows could flood the driver.
        """
        from pyspark.sql import functions as F

        cells = list(self.cells.columns)
        chosen, rows = self.cells, self.rows
        place = cells if whole is None else [self._cell(whole)]
        if rows > most:
            chosen = chosen.where(_number(place) < int((1 << _BITS) * (most / rows)))
            rows = tried(self.name, chosen.count) if whole is not None else most
        if rows > 4 * most:  # one value may stand in half of all rows
            chosen = chosen.where(_number([*cells, F.lit(1)]) < int((1 << _BITS) * (most / rows)))
        grouped = chosen.groupBy(*cells).agg(F.count(F.lit(1)).alias(ROWS))
        found = self._arrow(grouped.withColumn("place", F.xxhash64(*cells))).sort_by("place")
        copies = np.asarray(found.column(ROWS))
        if copies.sum() > 4 * most:
            copies = np.ceil(copies * (most / copies.sum())).astype(np.int64)
        found = found.drop_columns([ROWS, "place"]).take(pa.array(np.repeat(np.arange(copies.size), copies)))
        return self._named(found, self.types.names)

    def domain(self, column: str) -> pa.Table:
        """The distinct values of a column (`value`, null among them) and their `rows`."""
        return self.counts([column]).rename_columns(["value", ROWS])

    def extremes(self, column: str) -> pa.Table:
        """The least and the greatest `value` of a column of numbers."""
        from pyspark.sql import functions as F

        cell = self._cell(column)
        found = self._arrow(self.cells.agg(F.min(cell).alias("least"), F.max(cell).alias("most")))
        both = pa.concat_arrays([found.column(at).combine_chunks() for at in ("least", "most")])
        return pa.table({"value": both})

    def distinct(self, column: str) -> tuple[int, int]:
        """How many rows have a value in a column, and how many different values they are."""
        from pyspark.sql import functions as F

        cell = self._cell(column)
        found = self._arrow(self.cells.agg(F.count(cell).alias("n"), F.countDistinct(cell).alias("d")))
        return int(found["n"][0].as_py()), int(found["d"][0].as_py())

    def lone(self, column: str) -> int:
        """How many values of a column stand in one row only."""
        from pyspark.sql import functions as F

        cell = self._cell(column)
        each = self.cells.where(F.col(cell).isNotNull()).groupBy(cell).agg(F.count(F.lit(1)).alias("n"))
        found = self._arrow(each.where("n = 1").agg(F.count(F.lit(1)).alias("n")))
        return int(found["n"][0].as_py())

    def tuples(self, keys: TupleKeys, beside: Coding | None = None) -> pa.Table:
        """The distinct tuples of codes as keys, with the `code` of another column *beside* them, and their `rows`."""
        from pyspark.sql import functions as F

        codings = [*keys.codings, *([] if beside is None else [beside])]
        joined, codes = self._coded(codings)
        made = _keys(keys, codes)
        if beside is not None:
            made.append(F.expr(codes[-1]).alias(CODE))
        names = [*keys.names, *([] if beside is None else [CODE])]
        there = joined.select(*made).dropna(subset=names)
        return self._arrow(there.groupBy(*names).agg(F.count(F.lit(1)).alias(ROWS)))

    def about_tuples(self, columns: Sequence[str]) -> int:
        """About how many different combinations of cells *columns* have, a few percent off."""
        from pyspark.sql import functions as F

        cells = [self._cell(name) for name in columns]
        found = self._arrow(self.cells.agg(F.approx_count_distinct(_hash(cells), 0.02).alias("n")))
        return min(int(found["n"][0].as_py()), self.rows)

    def room(self) -> int:
        """How many bytes may be held on the driver."""
        return room_of(self.memory or DRIVER_ROOM)

    def cut_rows(self, keys: TupleKeys, beside: Sequence[Coding], blanks: Sequence[int]) -> CutThere:
        """The coded rows, to be cut into parts; *blanks* has each key column's code of "no value", -1 for none."""
        from velado.engines.spark_cut import cut_spark  # which is made of this module

        self.let_go()
        return cut_spark(self, keys, beside, blanks)

    def let_go(self) -> None:
        """What was kept on the workers of a table that was cut first is given back."""
        made = self.kept.pop("cut", None)
        if made is not None:
            made.tables.close()

    def counts(self, columns: Sequence[str]) -> pa.Table:
        """The distinct combinations of cells of *columns*, as they stand, and their `rows`."""
        from pyspark.sql import functions as F

        if tuple(columns) in self.told:
            return self.told[tuple(columns)]
        cells = [self._cell(name) for name in columns]
        found = self._arrow(self.cells.groupBy(*cells).agg(F.count(F.lit(1)).alias(ROWS)))
        named = self._named(found, columns, pa.field(ROWS, pa.int64()))
        if named.num_rows <= _BROADCAST:
            self.told[tuple(columns)] = named
        return named

    def smallest(self, columns: Sequence[str]) -> int:
        """The fewest rows that share their cells of *columns*: found on the workers, however many groups there are."""
        from pyspark.sql import functions as F

        groups = self.cells.groupBy(*[self._cell(name) for name in columns]).agg(
            F.count(F.lit(1)).alias(ROWS)
        )
        return int(self._arrow(groups.agg(F.min(ROWS).alias("n")))["n"][0].as_py())

    def recoded(self, recoding: Recoding) -> Any:
        """The published rows as a Spark data frame, in an order made of what is published and the owner's number.

        Nothing is computed yet. Rows are spread by the keyed hash that orders them, so no order depends on the parts.
        """
        from pyspark.sql import functions as F

        joined, codes = self._coded(recoding.keys.codings)
        texts = {name: f"t{at}" for at, name in enumerate(recoding.labels)}
        own = [self._cell(name) for name in recoding.columns if name not in texts]
        keyed = joined.select(*own, *_keys(recoding.keys, codes))
        if recoding.entries is None:
            groups = self.kept["cut"].groups_of(recoding.keys, recoding.mapping)
        else:
            groups = self._sent(recoding.mapping)
        grouped = keyed.join(groups, recoding.keys.names).select("grp", *own)
        parts = max(1, -(-self.rows // _PART_ROWS))
        drawn = grouped.withColumn("drawn", _hash([F.lit(_signed(recoding.order)), "grp", *own]))
        spread = F.shiftright(F.shiftrightunsigned("drawn", 64 - _BITS) * F.lit(parts), _BITS).cast("int")
        placed = drawn.repartitionById(parts, spread)
        if texts:  # after the exchange, so that a group's number travels and not its texts; before the sort, which a join may undo
            placed = placed.join(F.broadcast(self._sent(recoding.texts)), "grp")
        ordered = placed.sortWithinPartitions(F.shiftrightunsigned("drawn", 1), "grp", *own)
        # Now rows that are published alike lie together. By their places, which follow from what is published alone, they are scattered.
        numbered = ordered.withColumn("place", F.monotonically_increasing_id())
        scattered = numbered.sortWithinPartitions(_hash([F.lit(_signed(recoding.order)), "place"]), "place")
        shown = [texts.get(name) or self._cell(name) for name in recoding.columns]
        return scattered.select(*shown).toDF(*recoding.columns)

    def write(self, recoding: Recoding, sink: Sink) -> int:
        """An error: what Spark publishes of a frame is a frame, `recoded`, which its owner writes wherever Spark can."""
        raise ParameterError(
            "Spark publishes its rows into a file, or as a data frame.",
            "They cannot be written to a server's table from here.",
            "Hand velado.anonymize the frame, and write the release's frame with Spark.",
        )

    def fingerprint(self) -> bytes:
        """A digest of the files' bytes where they are known, else of all rows, in whatever order they come."""
        from pyspark.sql import functions as F

        if self.files:
            return bytes_digest(self.files)
        cells = [F.col(name) for name in self.cells.columns]
        sums = [
            F.sum(_hash([F.lit(seed), *cells, *[cell.isNull() for cell in cells]]).cast("decimal(20,0)"))
            for seed in (1, 2)
        ]
        found = self._arrow(self.cells.agg(*[s.alias(f"s{at}") for at, s in enumerate(sums)]))
        return hashlib.sha256(repr((self.types.names, self.rows, found.to_pylist())).encode()).digest()

    def unchanged(self) -> None:
        """Nothing, if the files are those that were first counted; else an error. A frame's rows are counted in the result."""
        refuse_changed(self.files, self.stamps)

    def close(self) -> None:
        """Give back what was kept; the session is its owner's."""
        self.let_go()

    def of(self, cells: Any) -> Self:
        """The same table with other rows of it, whose number nobody asks for."""
        return replace(self, cells=cells, told={})

    def _cell(self, name: str) -> str:
        return f"f{self.types.get_field_index(name)}"

    def _coded(self, codings: Sequence[Coding]) -> tuple[Any, list[str]]:
        """The rows joined with the codings, and the SQL of each one's code, NULL where a row has none."""
        from pyspark.sql import functions as F

        joined, codes = self.cells, []
        for at, coding in enumerate(codings):
            cell, code = self._cell(coding.column), f"c{at}"
            typed = pa.schema([(f"v{at}", self.types.field(coding.column).type), (code, pa.int32())])
            listed = coding_list(coding).rename_columns(typed.names).cast(typed)
            if listed.num_rows:
                own = {f"v{at}": self.cells.schema[cell].dataType}
                joined = joined.join(self._sent(listed, own), F.col(cell) == F.col(f"v{at}"), "left")
            else:
                code = "CAST(NULL AS INT)"
            if coding.blank >= 0:
                code = f"CASE WHEN {cell} IS NULL THEN {coding.blank} ELSE {code} END"
            codes.append(code)
        return joined, codes

    def _sent(self, table: pa.Table, typed: dict[str, Any] | None = None) -> Any:
        """A small table for every worker; one too large for that is spread over them."""
        from pyspark.sql import functions as F
        from pyspark.sql.types import (
            BooleanType,
            IntegerType,
            LongType,
            StringType,
            StructField,
            StructType,
        )

        plain = {pa.int32(): IntegerType(), pa.int64(): LongType(), pa.bool_(): BooleanType()}
        fields = [
            StructField(f.name, (typed or {}).get(f.name) or plain.get(f.type) or StringType())
            for f in table.schema
        ]
        known = pa.schema([pa.field(f.name, _sent_type(f.type)) for f in table.schema])
        made = self.cells.sparkSession.createDataFrame(table.cast(known), StructType(fields))
        return F.broadcast(made) if table.num_rows <= _BROADCAST else made

    def _named(self, found: pa.Table, columns: Sequence[str], *more: pa.Field) -> pa.Table:
        """An answer with the columns' own names and types."""
        fields = [*[self.types.field(name) for name in columns], *more]
        return found.rename_columns([field.name for field in fields]).cast(pa.schema(fields))

    def _arrow(self, asked: Any) -> pa.Table:
        """The one place where an answer comes to the driver."""
        refuse_rows(asked)
        found = tried(self.name, asked.toArrow)
        try:
            found.validate(full=True)
        except pa.ArrowInvalid:
            raise TableError(
                say("The rows of '{name}' cannot be read.", name=self.name),
                "A text in them is not in UTF-8.",
                "Decode the column with its true encoding before handing the frame over.",
            ) from None
        return found


def refuse_rows(asked: Any) -> None:
    """Nothing, if on every way from the rows to the answer they are aggregated; else an error: the driver holds no rows.

    >>> refuse_rows.__name__
    'refuse_rows'
    """
    plan = getattr(asked, "_jdf", None)
    if plan is not None and not _aggregated(plan.queryExecution().analyzed()):
        raise EngineError(
            "A plan would bring rows to Spark's driver.",
            "It asks for counts only, whatever the size of the table.",
            "Please report it.",
        )


def _aggregated(plan: Any) -> bool:
    if plan.nodeName() in _BOUNDED:
        return True
    below = plan.children()
    return below.size() > 0 and all(_aggregated(below.apply(at)) for at in range(below.size()))


def of_spark(frame: Any, *, name: str = "pyspark") -> SparkSource:
    """A Spark data frame as a source of counts. It is read once for each question: persist it if that is dear.

    >>> of_spark.__name__
    'of_spark'
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import NullType, StringType

    names = list(frame.columns)
    if len(set(names)) != len(names):
        raise duplicate_names(names)
    _refuse_unsteady(frame)
    cells = frame.toDF(*[f"f{at}" for at in range(len(names))])
    plain = []
    for own in cells.schema.fields:
        cell = F.col(own.name)
        if isinstance(own.dataType, NullType):
            cell = cell.cast("string").alias(own.name)
        elif isinstance(own.dataType, StringType) and own.dataType != StringType():
            # By some collations two different texts are equal; to a reader of the table they are not.
            cell = F.collate(cell, "UTF8_BINARY").alias(own.name)
        plain.append(cell)
    cells = cells.select(*plain)
    shown = tried(name, cells.limit(0).toArrow).schema
    types = pa.schema([pa.field(own, _steady(f.type)) for own, f in zip(names, shown, strict=True)])
    return SparkSource(name, cells, types, tried(name, cells.count))


def as_source(given: Any, schema: Schema | None = None) -> RowSource:
    """A Spark data frame as a source of counts, blank where its *schema* says; a source as it is; anything else is refused.

    >>> as_source([31, 35])
    Traceback (most recent call last):
    velado.errors.ParameterError: Only a Spark data frame can be counted where it lies. Other tables are read into memory. Use velado.inspect, velado.verify or velado.measure_files for them; for files and databases there is the command line.
    """
    if is_spark_frame(given):
        return of_spark(given) if schema is None else as_read(of_spark(given), schema)
    if not isinstance(given, RowSource):
        raise ParameterError(
            "Only a Spark data frame can be counted where it lies.",
            "Other tables are read into memory.",
            "Use velado.inspect, velado.verify or velado.measure_files for them; for files and databases there is the command line.",
        )
    return given


def held(frame: Any) -> Any:
    """The frame with its rows computed once and kept: whatever is read from it later is what is counted now.

    They lie in the session's checkpoint folder where it has one, else on the workers' disks: if a worker is lost then,
    reading fails, and nothing is computed anew.

    >>> held.__name__
    'held'
    """
    from pyspark import StorageLevel

    if frame.sparkSession.conf.get("spark.checkpoint.dir", None) or _checkpoint_folder(frame):
        return tried("pyspark", frame.checkpoint)
    return tried("pyspark", lambda: frame.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY))


def _checkpoint_folder(frame: Any) -> str | None:
    context = getattr(frame.sparkSession, "_sc", None)
    found: str | None = None if context is None else context.getCheckpointDir()
    return found


def _refuse_unsteady(frame: Any) -> None:
    if frame.isStreaming:
        raise TableError(
            "The frame is a stream.",
            "Its rows never end, so they cannot be counted.",
            "Publish a table of it: write it first, or use foreachBatch.",
        )
    plan = getattr(frame, "_jdf", None)
    if plan is not None and not plan.queryExecution().analyzed().deterministic():
        raise TableError(
            "The frame is drawn at random or numbered anew each time it is read.",
            "It is read several times, and what was counted and what would be published could be different rows.",
            "Write it to a table, or call localCheckpoint(), and hand that over.",
        )


def _steady(type_: pa.DataType) -> pa.DataType:
    # What a session calls its time zone does not change when something happened.
    if pa.types.is_timestamp(type_) and type_.tz is not None:
        return pa.timestamp("us", "UTC")
    return type_


def _sent_type(type_: pa.DataType) -> pa.DataType:
    """The Arrow type that Spark takes for a value: short texts, moments in microseconds."""
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us", type_.tz)
    return pa.string() if pa.types.is_large_string(type_) else type_


def _keys(keys: TupleKeys, codes: Sequence[str]) -> list[Any]:
    from pyspark.sql import functions as F

    made = keys.expressions(codes[: len(keys.codings)])
    return [F.expr(key).alias(name) for key, name in zip(made, keys.names, strict=True)]


def _hash(cells: Sequence[Any]) -> Any:
    from pyspark.sql import functions as F

    return F.xxhash64(*cells)


def _number(cells: Sequence[Any]) -> Any:
    """A hash of cells as a number of 31 bits."""
    from pyspark.sql import functions as F

    return F.shiftrightunsigned(_hash(cells), 64 - _BITS)


def _signed(number: int) -> int:
    return number - (1 << 64) if number >= 1 << 63 else number


def tried(name: str, work: Callable[[], T]) -> T:
    """What *work* gives; a fault of Spark's becomes an error that quotes no cell.

    >>> tried.__name__
    'tried'
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        return work()
    except (PySparkException, Py4JError) as error:
        if "No module named 'velado'" in str(error):
            raise EngineError(
                "velado is not installed on Spark's workers.",
                "A table that is cut first is finished there. Nothing was published.",
                "Install it on every worker, or send it along with --archives; or pass plan='compress'.",
            ) from None
        # Spark's own messages may quote cells.
        kind = getattr(error, "getCondition", lambda: None)() or type(error).__name__
        raise EngineError(
            say("Spark could not answer for '{name}' ({kind}).", name=name, kind=kind),
            "A part cannot be read, a worker was lost, or memory or disk ran out. Nothing was published.",
            "Spark's own log says which; check the source, the session and the space left, and run it again.",
        ) from None
