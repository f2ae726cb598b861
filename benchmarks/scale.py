"""How does each method's cost grow with the number of rows, and does memory stay bounded at 5,000,000?

`python -m benchmarks scale` prints the table; with `--write` it also writes docs/explanation/cost.md and its chart.
`python -m benchmarks scale --cut [ROWS]` asks instead what cutting first costs on a table whose rows hardly repeat, and whether its
groups are those of memory at a million rows.
"""

from __future__ import annotations

import math
import multiprocessing
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.timing import Row, cpu_seconds, print_rows, run_process, synthetic, velado
from velado.data.encode import EncodedColumn, EncodedTable
from velado.randomness import seeded
from velado.release.goal import Goal, silent
from velado.release.guarantees import KAnonymity
from velado.release.methods import (
    DAS,
    GFKMC,
    GOK,
    MDAV,
    FullDomain,
    KMember,
    Mondrian,
    NearestNeighbours,
    Progressive,
    TopDownGreedy,
)

LARGEST = {"gfkmc": 10**5, "k-member": 10**5, "mdav": 10**5, "nearest-neighbours": 10**5, "gok": 10**5}
"""Quadratic methods and searches are not run on the largest tables: they take minutes in blocks."""


def table(rows: int) -> EncodedTable:
    """The synthetic census extract, encoded: eight numeric quasi-identifiers."""
    columns = []
    for name, values in synthetic(rows).items():
        if name == "disease":
            continue
        points, codes = np.unique(values.astype(np.float64), return_inverse=True)
        columns.append(
            EncodedColumn(
                name, codes.astype(np.int32), points.size, points=points, span=float(points[-1] - points[0])
            )
        )
    return EncodedTable(tuple(columns), rows)


def seconds(method: Any, data: EncodedTable) -> float:
    """CPU seconds of one run, kernels warm."""
    goal = Goal(() if method.promise == "measured" else (KAnonymity(10),))
    return cpu_seconds(
        lambda: method.anonymize(data, goal, seeded(0, "bench"), silent), repeat=1, warm=data.rows <= 1000
    )


def peak(name: str, rows: int, queue: Any) -> None:
    """Peak memory of one method on *rows* rows, beside that of the encoded table alone; runs in its own process."""
    method = {"progressive": Progressive(), "mondrian": Mondrian()}[name]
    small = table(2000)
    goal = Goal((KAnonymity(10),))
    method.anonymize(small, goal, seeded(0, "bench"), silent)
    data = table(rows)
    before = resident()
    size = sum(column.codes.nbytes for column in data.columns) / 2**20
    spent = cpu_seconds(
        lambda: method.anonymize(data, goal, seeded(0, "bench"), silent), repeat=1, warm=False
    )
    queue.put((before, resident("VmHWM"), size, spent))


def resident(what: str = "VmRSS") -> float:
    """Megabytes this process holds now, and forget its peak so far; or, with "VmHWM", the peak since then."""
    status = Path("/proc/self/status").read_text()
    if what == "VmRSS":
        Path("/proc/self/clear_refs").write_text("5")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(what)) / 1024


NEAR_UNIQUE = "".join(
    f'[columns.{name}]\nrole = "{role}"\nkind = "{kind}"\n'
    for name, role, kind in (
        ("town", "quasi", "categorical"),
        ("age", "quasi", "numeric"),
        ("sex", "quasi", "categorical"),
        ("race", "quasi", "categorical"),
        ("admitted", "quasi", "date"),
        ("stay", "quasi", "numeric"),
        ("diagnosis", "sensitive", "categorical"),
    )
)


def admissions(rows: int, path: Path) -> None:
    """Hospital admissions, nearly every one of them distinct: 5,000 towns, a day, an age; nobody in it exists."""
    draw = np.random.default_rng(0)
    day = draw.integers(0, 366, rows)
    town = ((draw.pareto(0.6, rows) + 1) % 5000).astype(np.int64)
    pl.DataFrame(
        {
            "town": pl.Series(town).cast(pl.String).str.zfill(4),
            "age": draw.integers(0, 100, rows),
            "sex": pl.Series(draw.integers(0, 2, rows)).replace_strict({0: "F", 1: "M"}),
            "race": draw.integers(1, 6, rows),
            "admitted": pl.Series(day + 19723).cast(pl.Int32).cast(pl.Date),
            "stay": np.minimum(draw.exponential(5, rows).astype(np.int64), 60),
            "diagnosis": pl.Series(draw.integers(0, 14, rows)).cast(pl.String),
        }
    ).write_parquet(path)


def groups_in(folder: Path) -> pl.DataFrame:
    """The groups of a released table, and how many rows each has."""
    found = pl.read_parquet(folder / "release" / "table.parquet").drop("diagnosis").cast(pl.String)
    return found.group_by(found.columns).len().sort(found.columns)


def cut_first(rows: int) -> list[Row]:
    """Time and memory of a release that is cut first, and the groups of all ways that were run at each size.

    Above a million rows memory is the only other way, since it alone takes a machine of 16 GB there (0.9 kB a row).
    """
    out = []
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        (scratch / "schema.toml").write_text(NEAR_UNIQUE)
        for number in sorted({10**6, rows}):
            admissions(number, scratch / "rows.parquet")
            ways = [
                ("cut", ("--engine", "duckdb", "--plan", "cut", "--memory", "600MB")),
                ("memory", ("--engine", "memory")),
            ]
            if number == 10**6:
                ways[0] = ("cut", ("--engine", "duckdb", "--plan", "cut", "--memory", "100MB"))
                ways.append(("compress", ("--engine", "duckdb", "--plan", "compress")))
            for way, flags in ways:
                words = ("anonymize", str(scratch / "rows.parquet"), "--schema", str(scratch / "schema.toml"))
                how = (
                    "--method",
                    "mondrian",
                    "-k",
                    "5",
                    "--format",
                    "parquet",
                    "-o",
                    str(scratch / f"{way}{number}"),
                )
                _, cpu, peak = run_process(velado(*words, *how, *flags))
                whole = number == 10**7 and way == "cut"
                out.append(Row(f"{number:,} rows, {way}", cpu, "CPU s", 60.0 if whole else None))
                out.append(Row(f"{number:,} rows, {way}: peak", peak, "MB", 3000.0 if whole else None))
            groups = groups_in(scratch / f"cut{number}")
            other = sum(not groups.equals(groups_in(scratch / f"{way}{number}")) for way, _ in ways[1:])
            out.append(
                Row(f"ways whose groups differ at {number:,} rows", float(other), f"of {len(ways) - 1}", 0.0)
            )
    return out


def main(given: Sequence[str] = ()) -> None:
    """Measure, print, and with --write put the page and the chart into the docs; with --cut as said above."""
    if "--cut" in given:
        rows = int(given[1]) if len(given) > 1 else 10**7
        print_rows("Cut first, near-unique rows, six quasi-identifiers, k = 5", cut_first(rows))
        return
    methods = [
        Mondrian(),
        Progressive(),
        FullDomain(search="anytime"),
        DAS(),
        TopDownGreedy(),
        GFKMC(),
        NearestNeighbours(),
        KMember(),
        MDAV(),
        GOK(),
    ]
    sizes = (10**3, 10**4, 10**5, 10**6)
    found: dict[str, dict[int, float]] = {method.name: {} for method in methods}
    for rows in sizes:
        data = table(rows)
        for method in methods:
            if rows <= LARGEST.get(method.name, 10**9):
                found[method.name][rows] = seconds(method, data)
                print(f"{method.name:20s} {rows:>9,} rows {found[method.name][rows]:9.3f} CPU s", flush=True)
    page = render(found, sizes, measured_memory())
    print(page)
    if "--write" in given:
        folder = Path(__file__).parents[1] / "docs" / "explanation"
        (folder / "cost.md").write_text(page, encoding="utf-8")
        (folder / "cost.svg").write_text(chart(found, sizes), encoding="utf-8")


def measured_memory() -> dict[str, Any]:
    """Peak memory of the two methods meant for large tables, at 5,000,000 rows, each in its own process."""
    memory = {}
    for name in ("mondrian", "progressive"):
        queue: Any = multiprocessing.get_context("spawn").Queue()
        process = multiprocessing.get_context("spawn").Process(target=peak, args=(name, 5_000_000, queue))
        process.start()
        memory[name] = queue.get()
        process.join()
        print(name, memory[name], flush=True)
    return memory


def render(found: dict[str, dict[int, float]], sizes: tuple[int, ...], memory: dict[str, Any]) -> str:
    """The page."""
    lines = [
        "# What each method costs",
        "",
        "CPU seconds of the method itself (groups and published values), k = 10, eight numeric quasi-identifiers of a",
        "synthetic census extract, kernels compiled, two shared cores. Made by `python -m benchmarks scale --write`.",
        "",
        "![CPU seconds against rows, both on logarithmic scales](cost.svg)",
        "",
        "| method | " + " | ".join(f"{rows:,} rows" for rows in sizes) + " | growth, last tenfold |",
        "|---|" + "---|" * (len(sizes) + 1),
    ]
    for name, times in found.items():
        cells = [f"{times[rows]:.3g}" if rows in times else "not run" for rows in sizes]
        last = sorted(times)[-2:]
        power = math.log10(times[last[1]] / times[last[0]])
        lines.append(f"| {name} | " + " | ".join(cells) + f" | n^{power:.2f} |")
    lines += [
        "",
        "Mondrian, full-domain, DAS and top-down greedy stay near n log n. Progressive does a number of search rounds that is counted from",
        "the size of the table, so that small tables take seconds too; `--effort fast` takes a fraction. GFKMC, k-member, nearest neighbours and",
        "MDAV are quadratic: above their `--block` rows they work block by block (neighbouring rows together), with the promise intact,",
        "and then grow linearly in the number of blocks. GOK is a search whose cost is its number of evaluations.",
        "",
        "## Memory at 5,000,000 rows",
        "",
        "| method | input (8 columns of 8 bytes) | process before the method | peak | peak / input | CPU s |",
        "|---|---|---|---|---|---|",
    ]
    for name, (before, top, size, spent) in memory.items():
        lines.append(
            f"| {name} | {2 * size:.0f} MB | {before:.0f} MB | {top:.0f} MB | {top / (2 * size):.1f} | {spent:.1f} |"
        )
    return "\n".join(lines) + "\n"


def chart(found: dict[str, dict[int, float]], sizes: tuple[int, ...]) -> str:
    """A log-log chart as SVG."""
    width, height, left, bottom = 720, 420, 70, 50
    low, high = 1e-4, max(max(times.values()) for times in found.values()) * 2
    span = math.log10(high / low)

    def x(rows: int) -> float:
        return left + (math.log10(rows) - math.log10(sizes[0])) / (
            math.log10(sizes[-1]) - math.log10(sizes[0])
        ) * (width - left - 170)

    def y(value: float) -> float:
        return height - bottom - math.log10(max(value, low) / low) / span * (height - bottom - 20)

    colours = [
        "#1b5e8c",
        "#a8611c",
        "#2b7a3d",
        "#8c1b4a",
        "#5b4b9a",
        "#757500",
        "#00767d",
        "#c0392b",
        "#555555",
        "#d17db5",
    ]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" font-family="sans-serif" font-size="12">',
        "<title>CPU seconds of each method against the number of rows</title>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for power in range(-4, math.ceil(math.log10(high)) + 1):
        at = y(10.0**power)
        parts.append(f'<line x1="{left}" x2="{width - 170}" y1="{at:.1f}" y2="{at:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 8}" y="{at + 4:.1f}" text-anchor="end">{10.0**power:g} s</text>')
    for rows in sizes:
        parts.append(
            f'<text x="{x(rows):.1f}" y="{height - bottom + 20}" text-anchor="middle">{rows:,}</text>'
        )
    parts.append(
        f'<text x="{(left + width - 170) / 2:.0f}" y="{height - 10}" text-anchor="middle">rows</text>'
    )
    ends = sorted((y(times[max(times)]), name) for name, times in found.items())
    place = {}
    previous = 0.0
    for at, name in ends:
        previous = max(at, previous + 14)
        place[name] = previous
    for colour, (name, times) in zip(colours, found.items(), strict=True):
        points = " ".join(f"{x(rows):.1f},{y(value):.1f}" for rows, value in sorted(times.items()))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{width - 160}" y="{place[name] + 4:.1f}" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    main(sys.argv[1:])
