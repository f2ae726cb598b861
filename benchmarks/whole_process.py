"""How long does a user wait: `velado --help`, and `velado anonymize` from start to written report?"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tomli_w

from benchmarks.adult import nine_dict, schema_dict
from benchmarks.timing import Row, data_folder, print_rows, run_process, velado

_EIGHT = "adult/adult_clean.csv"
_NINE = "adult/adult_arx.csv"
_ASKED: tuple[tuple[str, int, tuple[str, ...], float], ...] = (
    (_EIGHT, 10, ("--method", "gfkmc"), 8.0),
    (_EIGHT, 10, ("--method", "mondrian"), 8.0),
    (_EIGHT, 10, (), 4.0),
    (_EIGHT, 10, ("--effort", "fast"), 2.0),
    (_NINE, 5, (), 4.0),
    (_NINE, 5, ("--effort", "fast"), 2.0),
    (_NINE, 10, (), 4.0),
    (_NINE, 10, ("--effort", "fast"), 2.0),
)
"""Table, k, flags and the CPU seconds they may take, all in."""


def _schema(document: dict[str, Any], folder: Path) -> Path:
    """The schema written into *folder*, with the taxonomies it names: it reads them from its own folder."""
    folder.mkdir()
    for column in document["columns"].values():
        if "taxonomy" in column:
            file = data_folder() / column["taxonomy"]
            column["taxonomy"] = shutil.copy(file, folder / file.name).name
    path = folder / "schema.toml"
    path.write_text(tomli_w.dumps(document))
    return path


def _row(table: str, schema: Path, k: int, flags: Sequence[str], bar: float) -> Row:
    release = schema.parent / "release"
    given = ["--schema", str(schema), "-k", str(k), "-o", str(release)]
    command = velado("anonymize", str(data_folder() / table), *given, *flags)
    runs = []
    for _ in range(3):
        shutil.rmtree(release, ignore_errors=True)
        # An installed velado has its modules compiled, whatever the environment of the benchmark says.
        wall, cpu, peak = run_process(command, PYTHONDONTWRITEBYTECODE="")
        runs.append((cpu, wall, peak))
    cpu, wall, peak = min(runs)
    columns = "nine columns" if table == _NINE else "eight columns"
    what = f"velado anonymize -k {k} {' '.join(flags)} on Adult, {columns}".replace("  ", " ")
    return Row(what, cpu, bar=bar, note=f"{wall:.1f} s, {peak:.0f} MB")


def main() -> None:
    """Print the table."""
    rows = []
    run_process(velado("--help"))
    rows.append(Row("velado --help", min(run_process(velado("--help"))[0] for _ in range(5)), "wall s", 0.5))
    with tempfile.TemporaryDirectory() as name:
        schemas = {
            _EIGHT: _schema(schema_dict(), Path(name) / "eight"),
            _NINE: _schema(nine_dict(), Path(name) / "nine"),
        }
        rows += [_row(table, schemas[table], k, flags, bar) for table, k, flags, bar in _ASKED]
    print_rows("Whole processes", rows)


if __name__ == "__main__":
    main()
