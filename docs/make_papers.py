"""Writes docs/explanation/what-the-papers-measured.md and its figures from the reproductions: what stands there is what the code gives.

`python docs/make_papers.py --data DIR` (`make papers`) runs every reproduction that the record beside the page does not hold yet,
or holds of other files or settings, over all rows; keeps each result in the record as soon as it is there, so that an interrupted
run goes on; and writes page and figures from the record alone: no number on the page is put in by hand, and another run costs
nothing. `--again PATTERN` makes those anew, `--only PATTERN` no others, `--sign PATTERN` declares results of the record to be of the
files and settings of today. `tests/papers/test_page.py` fails when page, figures, record and registry do not agree, or a fast
table comes out otherwise.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from paper_findings import FINDINGS, SECTIONS, Section

from velado.errors import TableError
from velado.papers.paper_registry import Reproduced, Reproduction, reproductions, to_markdown, to_svg
from velado.papers.public_data import data_set_of
from velado.release.goal import silent
from velado.text import duration

PAGE = Path(__file__).parent / "explanation" / "what-the-papers-measured.md"
RECORD = PAGE.with_suffix(".json")
FIGURES = PAGE.parent / "figures"
DIGITS = 6
"""Significant digits that are kept in the record; the page shows four."""
ABSENT = ("hapt", "icu")
"""The data sets that are not at hand."""
MOST_ROWS = 20
"""A longer table is shown as its figure alone."""
INTRODUCTION = """# What the papers measured

velado is built on five sources. This page gets their tables and figures again, over all rows. Each result has what was published,
what comes out in the *paper profile* (the authors' own choices, mistakes included, so that the published number can be
understood), and what comes out when the same thing is [measured honestly](measurement.md). Most figures were published without
numbers: there the column has what the text says, or "figure only". Sections are those of the sources; none of the texts at hand
carries page numbers, so that pages of the three theses are worked out from their contents lists, and of the DAS paper and the
GOK-Privacy paper the section stands alone. What is said of the authors'
*code* was found by running what they publish beside their text.

`make papers` makes this page from data, one result with `velado reproduce das-table-5`, table and figure with `-o out/`;
`velado data get adult` fetches public data into the folder named by `VELADO_DATA` or `--data`. The numbers of every figure are in
[the record](what-the-papers-measured.json).
"""


def names_of(section: Section) -> list[str]:
    """The names of a section's reproductions, in the order of its patterns and of the registry."""
    known = [one.name for one in reproductions()]
    return [name for pattern in section.patterns for name in known if fnmatch(name, pattern)]


def made_of(one: Reproduction, data: Path) -> str:
    """A digest of its files below *data* and of its settings: a result of the same digest need not be made again."""
    digest = hashlib.sha256(repr(one.settings).encode())
    for place in one.needs:
        digest.update(f"\n{place}\n".encode())
        digest.update(hashlib.sha256((data / place).read_bytes()).digest())
    return digest.hexdigest()[:16]


def entry(found: Reproduced, digest: str, seconds: float) -> dict[str, Any]:
    """A result as the record keeps it."""
    rows = [[_rounded(cell) for cell in row] for row in found.rows]
    kept = {"columns": list(found.columns), "rows": rows, "note": found.note, "promise": found.promise}
    return {"made_of": digest, "seconds": round(seconds, 1), **kept}


def _rounded(cell: Any) -> Any:
    return float(f"{cell:.{DIGITS}g}") if isinstance(cell, float) else cell


def _found(kept: Mapping[str, Any]) -> Reproduced:
    rows = tuple(tuple(row) for row in kept["rows"])
    return Reproduced(tuple(kept["columns"]), rows, kept["note"], kept["promise"])


def figures(record: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The text of every figure, by its file's name."""
    known = {one.name: one for one in reproductions()}
    made = {name: to_svg(known[name], _found(kept)) for name, kept in whole(record).items()}
    return {f"{name}.svg": text for name, text in made.items() if text is not None}


def shown_whole(one: Reproduction, kept: Mapping[str, Any]) -> str:
    """A result with its table, where that is short, its figure and its note."""
    lines = to_markdown(one, _found(kept)).splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("|"))
    table = [line for line in lines[start:] if line.startswith("|")]
    promise = f"Promise: {kept['promise']}."
    parts = [f"### {one.title}", "", f"`velado reproduce {one.name}`, {_seconds(kept)}. {promise}", ""]
    if one.drawn is not None:
        parts += [f"![{one.title}](figures/{one.name}.svg)", ""]
    if len(kept["rows"]) <= MOST_ROWS:
        parts += [*table, ""]
    return "\n".join([*parts, kept["note"], ""])


def in_a_line(one: Reproduction, kept: Mapping[str, Any]) -> str:
    """A result as one line of a table: what it is, its figure, its note."""
    picture = f'<img src="figures/{one.name}.svg" width="330" alt="">' if one.drawn is not None else ""
    told = f"**{one.title}**<br>`velado reproduce {one.name}`<br>{_seconds(kept)}"
    return f"| {told} | {picture} | {kept['note'].replace('|', chr(92) + '|')} |"


def _seconds(kept: Mapping[str, Any]) -> str:
    spent = float(kept["seconds"])
    return f"{spent:.1f} CPU s" if spent < 10 else f"{spent:.0f} CPU s"


def whole(record: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """The results of full runs: no other has a place on the page."""
    return {name: kept for name, kept in record.items() if not kept.get("quick")}


def page(record: Mapping[str, Mapping[str, Any]]) -> str:
    """The whole page, from the record; every reproduction is on it, with its result or with why it has none."""
    record = whole(record)
    known = {one.name: one for one in reproductions()}
    parts = [INTRODUCTION, _at_a_glance(record), _times(record)]
    for section in SECTIONS:
        names = [name for name in names_of(section) if name in record]
        first = [name for name in names if any(fnmatch(name, pattern) for pattern in section.whole)]
        brief = [name for name in names if name not in first]
        parts.append(f"<details>\n<summary><b>{section.title}</b></summary>\n")
        parts.append(f"Source: {known[names_of(section)[0]].source}.\n\n{section.text}\n")
        parts += [shown_whole(known[name], record[name]) for name in first]
        if brief:
            head = "| what | figure | why they differ |\n|---|---|---|"
            lines = "\n".join(in_a_line(known[name], record[name]) for name in brief)
            parts.append(f"{head}\n{lines}\n")
        parts.append("</details>\n")
    missing = [one for one in known.values() if one.name not in record]
    if missing:
        lines = "\n".join(f"- `velado reproduce {one.name}` ({one.title}): {reason(one)}" for one in missing)
        parts.append(f"<details>\n<summary><b>Not run</b></summary>\n\n{lines}\n\n</details>\n")
    return "\n".join(parts)


def _at_a_glance(record: Mapping[str, Mapping[str, Any]]) -> str:
    lines = [
        f"| {one.claim} | {one.where} | {one.outcome(record)} | {one.why} |"
        for one in FINDINGS
        if all(name in record for name in one.needs)
    ]
    head = "| the source says | where | what comes out | why |\n|---|---|---|---|"
    return f"## At a glance\n\n{head}\n" + "\n".join(lines) + "\n"


def _times(record: Mapping[str, Mapping[str, Any]]) -> str:
    told = []
    for section in SECTIONS:
        spent = [float(record[name]["seconds"]) for name in names_of(section) if name in record]
        told.append(f"{section.title.split(':')[0]} {len(spent)} in {duration(sum(spent))}")
    total = sum(float(kept["seconds"]) for kept in record.values())
    return (
        f"All {len(record)} results took {duration(total)} of CPU time on one core: {', '.join(told)}. What was made together shares its "
        "time evenly; every result says its own.\n"
    )


def reason(one: Reproduction) -> str:
    """Why a reproduction has no result."""
    if one.not_run is not None:
        return str(one.not_run)
    home = next((found for place in one.needs if (found := data_set_of(place)) is not None), None)
    if home is None or home.name not in ABSENT:
        return "not run: no full run of it has been kept yet; `make papers` makes it."
    how = str(home.by_hand) or f"`velado data get {home.name}` fetches it."
    return f"not run: data not at hand. {how} Page: <{home.page}>."


def main() -> None:
    """Runs what is missing or asked for, and writes record, page and figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("VELADO_DATA"))
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN", help="make no others")
    parser.add_argument("--again", action="append", default=[], metavar="PATTERN", help="make these anew")
    parser.add_argument("--sign", action="append", default=[], metavar="PATTERN", help="these are of today")
    parser.add_argument("--record", type=Path, default=RECORD, help="where results are kept")
    chosen = parser.parse_args()
    if chosen.data is None:
        parser.error("name the data folder by --data or VELADO_DATA")
    data = Path(chosen.data)
    record: dict[str, Any] = json.loads(chosen.record.read_text("utf-8")) if chosen.record.exists() else {}
    for one in reproductions():
        if one.name in record and any(fnmatch(one.name, pattern) for pattern in chosen.sign):
            record[one.name] = {**record[one.name], "made_of": made_of(one, data)}
    made_now: set[str] = set()
    for one in reproductions():
        if one.name not in made_now and _wanted(one, record, chosen, data):
            found = made(one, data)
            made_now |= found.keys()
            record |= found
            _write(chosen.record, record)
    known = {one.name for one in reproductions()}
    record = {name: record[name] for name in sorted(record) if name in known}
    _write(chosen.record, record)
    if chosen.record == RECORD:
        write_page(record)


def write_page(record: Mapping[str, Mapping[str, Any]]) -> None:
    """Page and figures are those of the record, and no other figures are left."""
    PAGE.write_text(page(record), "utf-8")
    FIGURES.mkdir(exist_ok=True)
    wanted = figures(record)
    for place in FIGURES.glob("*.svg"):
        if place.name not in wanted:
            place.unlink()
    for name, text in wanted.items():
        (FIGURES / name).write_text(text, "utf-8")


def _wanted(one: Reproduction, record: Mapping[str, Any], chosen: argparse.Namespace, data: Path) -> bool:
    if one.not_run is not None or (
        chosen.only and not any(fnmatch(one.name, pattern) for pattern in chosen.only)
    ):
        return False
    if one.name not in whole(record) or any(fnmatch(one.name, pattern) for pattern in chosen.again):
        return True
    return _at_hand(one, data) and record[one.name].get("made_of") != made_of(one, data)


def _at_hand(one: Reproduction, data: Path) -> bool:
    return all((data / place).is_file() for place in one.needs)


def made(one: Reproduction, data: Path) -> dict[str, dict[str, Any]]:
    """The reproduction, and those that come with it, as the record keeps them; nothing where its data is missing."""
    try:
        one.check_data(data)
    except TableError as error:
        sys.stderr.write(f"{one.name}: left out. {error.what}\n")
        return {}
    start = time.process_time()
    if one.together is None:
        found = {one.name: one.carry_out(data, silent)}
    else:
        found = dict(one.together(data, silent, False))
    seconds = time.process_time() - start
    sys.stderr.write(f"{one.name}: {seconds:.0f} CPU s for {len(found)}\n")
    by_name = {known.name: known for known in reproductions()}
    return {
        name: entry(result, made_of(by_name[name], data), seconds / len(found))
        for name, result in found.items()
    }


def _write(place: Path, record: Mapping[str, Any]) -> None:
    # A result a line, so that a change shows which table it is of.
    lines = (f"{json.dumps(name)}: {json.dumps(kept, ensure_ascii=False)}" for name, kept in record.items())
    place.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main()
