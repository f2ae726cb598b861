"""Files that Spark reads on this machine, in a session of our own that nobody outside reaches, and the file it writes.

On a cluster the frame is the door: `velado.anonymize(spark.read.parquet(...), ...)` in a program of one's own.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import polars as pl
import pyarrow as pa

from velado.data.blanks import is_text
from velado.data.formulas import formula_cells
from velado.data.schema import Schema
from velado.engines.duckdb_files import Scan, need, scan_files, stamp, threads
from velado.engines.lake_files import lake_files, lake_root
from velado.engines.piecewise import joined
from velado.engines.places import PARQUET
from velado.engines.row_source import ROWS, FileSink, Recoding, Sink
from velado.engines.spark_source import DRIVER_ROOM, SparkSource, of_spark, tried
from velado.errors import EngineError, MissingExtra, OutputError, ParameterError, TableError
from velado.text import say, say_n

_SIZE = re.compile(r"(\d+)\s*([GM])B?", re.IGNORECASE)
# More than `formula_cells` takes for a formula, whatever stands before the sign; plain numbers left out.
_SIGNS = r"[=+\-@\x{2212}\x{FE62}\x{FE63}\x{FE66}\x{FE6B}\x{FF0B}\x{FF0D}\x{FF1D}\x{FF20}]"
_SIGNED = rf"^[\t\r\n]|(^|[,;\t\r\n])[^A-Za-z0-9]*{_SIGNS}"
_PLAIN_NUMBER = r"^-?[0-9]+([.,][0-9]+)*$"


@dataclass(frozen=True, repr=False)
class SparkFiles(SparkSource):
    """A table in files that Spark reads. *folder* is private; *session* is ours to end, if it is not None.

    >>> issubclass(SparkFiles, SparkSource)
    True
    """

    folder: Path = Path()
    session: Any = None

    def write(self, recoding: Recoding, sink: Sink) -> int:
        """The recoded rows stand in *sink*, in an order made of what is published and the owner's number; how many.

        Spark writes them in parts to the private folder; the parts are joined to one file piece by piece.
        """
        from pyspark.sql import functions as F

        if not isinstance(sink, FileSink):
            return super().write(recoding, sink)
        frame = self.recoded(recoding)
        columns = []
        for at, field in enumerate(frame.schema.fields):
            cell = frame[at]
            # A moment is written as a number of microseconds: Spark's own form of it cannot hold every one.
            cell = F.unix_micros(cell) if field.dataType.typeName() == "timestamp" else cell
            columns.append(cell.alias(f"p{at}"))
        parts = self.folder / "parts"
        tried(self.name, lambda: frame.select(*columns).write.mode("overwrite").parquet(str(parts)))
        labels = set(recoding.labels)
        types = pa.schema(
            [
                pa.field(name, pa.string()) if name in labels else self.types.field(name)
                for name in recoding.columns
            ]
        )
        try:
            return joined(sorted(parts.glob("part-*.parquet")), types, sink, self.separator)
        except OSError:
            raise OutputError(
                say("'{path}' cannot be written.", path=sink.path.name),
                "Nothing was published.",
                "Check the permissions and the space left.",
            ) from None
        finally:
            shutil.rmtree(parts, ignore_errors=True)

    def formulas(self) -> int:
        """How many text cells and names a spreadsheet program would run as a formula.

        Only distinct texts that hold a sign where one could begin come here to be judged.
        """
        from pyspark.sql import functions as F

        cells = int(formula_cells(pl.Series(self.types.names, dtype=pl.String)).sum())
        for at, name in enumerate(self.types.names):
            if not is_text(self.types.field(name).type):
                continue
            text = F.col(f"f{at}")
            signed = self.cells.where(text.rlike(_SIGNED) & ~text.rlike(_PLAIN_NUMBER))
            found = cast(pl.DataFrame, pl.from_arrow(self.of(signed).domain(name)))
            risky = formula_cells(found.get_column("value").cast(pl.String))
            cells += int(found.get_column(ROWS).filter(risky).sum())
        return cells

    def close(self) -> None:
        """What was kept is given back, and the session is gone, if it was made for this table."""
        super().close()
        if self.session is not None:
            self.session.stop()


def open_spark_files(
    place: str | Path | Sequence[Path], schema: Schema, folder: Path, *, memory: str | None = None
) -> SparkFiles:
    """The table in one or several files, read by Spark on this machine; *folder* is private, and what spills lies there.

    *place* is a path, a folder, a pattern, or files. *memory* is what Spark may hold, e.g. "3GB". Where a session is active
    already, it is used as it is.

    >>> open_spark_files("no/such/*.parquet", Schema({}), Path("."))
    Traceback (most recent call last):
    velado.errors.TableError: No file matches 'no/such/*.parquet'. Nothing was read. Check the path; quote a pattern so that the shell leaves it alone.
    """
    paths = lake_files(place) if isinstance(place, str | Path) else list(place)
    stamps = tuple(stamp(path) for path in paths)
    found = scan_files(paths, schema, folder, lake_root(place) if isinstance(place, str | Path) else None)
    need_spark()
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    session = active or _session(folder, memory)
    try:
        frame = tried(paths[0].name, lambda: _read(session, paths, found))
        name = paths[0].name if len(paths) == 1 else say_n("{n:,} file", "{n:,} files", len(paths))
        rows = of_spark(frame, name=str(name))
    except BaseException:
        if active is None:
            session.stop()
        raise
    return SparkFiles(
        name=rows.name,
        cells=rows.cells,
        types=found.typed(
            pa.schema([f.with_name(own) for f, own in zip(rows.types, found.names, strict=True)])
        ),
        rows=rows.rows,
        files=tuple(paths),
        stamps=stamps,
        separator=found.separator,
        memory=memory,
        folder=folder,
        session=session if active is None else None,
    )


def _read(session: Any, paths: Sequence[Path], found: Scan) -> Any:
    hidden = next((path for path in found.places if path.name[0] in "_."), None)
    if hidden is not None:
        raise TableError(
            say("Spark leaves '{path}' out.", path=hidden.name),
            "To it a name that begins with _ or . belongs to a file of no rows.",
            "Rename the file, or use --engine duckdb.",
        )
    if found.told:
        raise TableError(
            say("The column '{column}' stands in the folders' names only.", column=found.names[-found.told]),
            "Spark is asked to read the files one by one.",
            "Use --engine duckdb, or hand velado.anonymize a frame: spark.read.parquet(folder).",
        )
    if found.handed is not None:
        raise TableError(
            "Spark does not read Arrow files.",
            "They are read by DuckDB.",
            "Use --engine duckdb, or write them as Parquet.",
        )
    places = [path.as_uri() for path in found.places]
    if paths[0].suffix.lower() not in PARQUET:
        cells = ", ".join(f"f{at} STRING" for at in range(len(found.names)))
        return session.read.option("columnPruning", False).csv(
            places,
            schema=cells,
            header=True,
            sep=found.separator,
            quote='"',
            escape='"',
            multiLine=True,
            mode="FAILFAST",
            nullValue="",
            emptyValue="",
            encoding="UTF-8",
        )
    from pyspark.sql import functions as F

    quoted = ["`" + name.replace("`", "``") + "`" for name in found.names]
    read = session.read.parquet(*places)
    return read.select(*[F.col(name).alias(f"f{at}") for at, name in enumerate(quoted)])


def need_spark() -> None:
    """Nothing, if pyspark and Java are here; else the error says what to install.

    >>> need_spark.__name__
    'need_spark'
    """
    need("pyspark", say("Tables beyond one machine are read by it."), "spark")
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java", path=None if home is None else str(Path(home) / "bin")) is None:
        raise MissingExtra(
            "Java is not installed, or JAVA_HOME does not lead to it.",
            "Spark runs on it.",
            "Install Java 17 or later (e.g. openjdk-17-jre-headless), or use --engine duckdb.",
        )


def _session(folder: Path, memory: str | None) -> Any:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    size = _SIZE.fullmatch((memory or DRIVER_ROOM).strip())
    if size is None:
        raise ParameterError(
            "--memory is not a size that Spark understands.",
            "It takes a whole number of GB or MB.",
            "Use for example --memory 3GB.",
        )
    settings = {
        "spark.driver.memory": f"{size[1]}{size[2].lower()}",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(folder / "spark"),
        "spark.sql.warehouse.dir": (folder / "warehouse").absolute().as_uri(),
        "spark.sql.caseSensitive": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(8 * threads()),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master(f"local[{threads()}]").appName("velado")
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        with _log_to(folder / "spark.log"):
            session = builder.getOrCreate()
            session.sparkContext.setLogLevel("OFF")
            # On this machine workers run what the driver runs, whatever python3 is elsewhere.
            session.sparkContext.pythonExec = os.environ.get("PYSPARK_PYTHON", sys.executable)
    except (PySparkException, OSError):
        raise EngineError(
            "Spark could not be started.",
            "Java is too old, or there is less memory than it was allowed.",
            "Use Java 17 or later, and say less with --memory.",
        ) from None
    return session


@contextmanager
def _log_to(path: Path) -> Iterator[None]:
    """What a program started meanwhile says goes to a private file for as long as it lives: it may quote cells."""
    kept = os.dup(2)
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(log)
