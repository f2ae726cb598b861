"""Writes docs/explanation/what-the-papers-measured.md from the reproductions, so that its tables are what the code gives.

`python docs/make_papers.py --data DIR` runs every reproduction that the record beside the page does not hold yet, keeps
each result in the record as soon as it is there, and writes the page from the record alone: nothing on it is put in by
hand, and another run costs nothing. `--again PATTERN` makes those anew, `--full` those that were made shortly, `--only
PATTERN` no others; `--quick` makes what is missing shortly.
`tests/study/papers/test_page.py` fails when page, record and registry do not agree, or a fast table comes out otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from velado.errors import TableError
from velado.papers.paper_registry import Reproduced, Reproduction, reproductions, to_markdown
from velado.papers.public_data import data_set_of
from velado.release.goal import silent

PAGE = Path(__file__).parent / "explanation" / "what-the-papers-measured.md"
RECORD = PAGE.with_suffix(".json")
DIGITS = 6
"""Significant digits that are kept in the record; the page shows four."""
INTRODUCTION = """# What the papers measured

velado is built on five sources. This page gets their tables and figures again. Each table shows what was published, what
comes out in the *paper profile* (the authors' own choices, mistakes included, so that the published number can be
understood), and what comes out when the same thing is [measured honestly](measurement.md). Under each table stands why
they differ. Most figures were published without numbers: there the column has what the text says, or "figure only".

The page is made by `docs/make_papers.py`, every table by the command above it:

```sh
velado data get adult
velado data get adult-hierarchies
velado reproduce das-table-5
velado reproduce --list
```

`velado data get` fetches public data into the folder named by `VELADO_DATA` or `--data`.
"""


@dataclass(frozen=True)
class Section:
    """A heading, what is to be said, and which reproductions' tables follow, as patterns of their names."""

    title: str
    text: str
    patterns: tuple[str, ...]


SECTIONS = (
    Section(
        "DAS: dynamic anonymization by separatrices",
        """Every published cell of tables II to VI comes out again, which says how they were computed. Three findings:

- The loss was divided by all columns of the file that was read. On Adult DAS was divided by fifteen, the other methods
  by three, so that DAS looks five times better than by the paper's own equation (1): 0.033 is 0.166, more than
  Mondrian or MDAV at any k of the table.
- Links were counted from original to released records, the other way than the text says. Neither direction is wrong,
  but they are different attacks: on Adult 111 and 170 links.
- MDAV and Mondrian ran on unscaled columns, and every method published means: on WEF more than eight cells in ten are
  false, on Adult from about a fifth to all of them.

DAS makes no class size. On both tables its smallest class is one person.""",
        ("das-table-*",),
    ),
    Section(
        "GFKMC: loss and linkage",
        """The flat curve that the thesis rests on (a loss of about a quarter, whatever k is) comes from measuring after
every class was overwritten with its centroid. Charged for what a class covers, GFKMC in the paper profile loses three
quarters at k = 100 on the whole table and 70 % at k = 20 on ten clients. velado's default, which publishes the tight
cover, loses half of that.""",
        ("gfkmc-figure-6.3", "gfkmc-figure-6.4", "gfkmc-figure-6.5", "gfkmc-figure-6.6"),
    ),
    Section(
        "GFKMC: models",
        """The thesis anonymizes the whole table before it is split, so that a model is asked about rows as blurred as those
it was taught with. Asked about true people instead, it cuts both ways: taught with the tight classes of CB or TDG a model
does nearly as well as with the original data at small k; taught with GFKMC's centroids it finds few of the high incomes.
The paper's way of asking hides that.""",
        ("gfkmc-figure-6.7", "gfkmc-figure-6.8", "gfkmc-figure-6.9", "gfkmc-figure-6.10"),
    ),
    Section(
        "GFKMC: federated models",
        """The thesis draws these figures without numbers; the ones published here are from the result files its authors keep
beside their code, which also says what the text does not:

- Every client numbers its own published words in the order of the alphabet. Clients publish different words, so that the
  same number means different things to them, and the averaged model mixes these meanings.
- A client's release is split after it was made, and the model is asked about that client's own published rows.
- The logistic regression is given unscaled numbers and one step a round. Its accuracy ends **below the majority class**
  (0.751) with every method, and with the original data too: a constant answer would be right more often, and which
  method is ahead among these says nothing of the releases.
- For XGBoost a tenth of the clients is asked per round, which the strategy raises to two, not eight of ten; and each
  point of the curves is the mean of two clients drawn at random, so that they jump from round to round.

velado's federation fixes one encoder before training, asks all clients, and scores on pooled true rows that were held out
before anything was anonymized.""",
        ("gfkmc-figure-6.11", "gfkmc-figure-6.12", "gfkmc-figure-6.13", "gfkmc-figure-6.14"),
    ),
    Section(
        "GOK-Privacy",
        """The paper reports 90 to 95 % for GOK-Privacy against 55 to 75 % for Mondrian, on traffic of an intensive care unit
that is not at hand; here are the public tables. The published code leaves clusters below k raw, so that the promise of
k-anonymity does not hold, and its baselines hardly work; folds that are not shuffled, over rows ordered by cluster, then
decide who wins. One column shows the same releases in folds that are shuffled, and nothing else changed. With methods that
keep k, and models that are asked about true rows, no method wins throughout.""",
        ("gok-figure-*",),
    ),
    Section(
        "Correlated privacy",
        """The source estimates how records move together from the records themselves and scales the noise by it. A lower
error means that fewer rows are taken to move together: less protection, not better engineering. The honest column is what
a guarantee costs: groups of ten rows that are declared to move together. See [correlated privacy](correlated-privacy.md).""",
        ("correlated-*",),
    ),
    Section(
        "Encrypted regression",
        """Method 1 is not private, its masks cancel; it is run to compare figures. The honest column is velado's delegated
regression, which gives the exact solution. See [encrypted regression](encrypted-regression.md).""",
        ("regression-table-*",),
    ),
)


def names_of(section: Section) -> list[str]:
    """The names of a section's reproductions, in the order of its patterns and of the registry."""
    known = [one.name for one in reproductions()]
    return [name for pattern in section.patterns for name in known if fnmatch(name, pattern)]


def entry(found: Reproduced, quick: bool, seconds: float) -> dict[str, Any]:
    """A result as the record keeps it."""
    rows = [[_rounded(cell) for cell in row] for row in found.rows]
    kept = {"columns": list(found.columns), "rows": rows, "note": found.note, "promise": found.promise}
    return {"quick": quick, "seconds": round(seconds, 1), **kept}


def _rounded(cell: Any) -> Any:
    return float(f"{cell:.{DIGITS}g}") if isinstance(cell, float) else cell


def table(reproduction: Reproduction, kept: Mapping[str, Any]) -> str:
    """A kept result as Markdown, one heading lower than by itself."""
    rows = tuple(tuple(row) for row in kept["rows"])
    found = Reproduced(tuple(kept["columns"]), rows, kept["note"], kept["promise"])
    lines = to_markdown(reproduction, found).splitlines()
    # The source stands once for each section; here only the promise is repeated.
    command = f"velado reproduce {reproduction.name}{' --quick' if kept['quick'] else ''}"
    lines[2] = f"`{command}`. Promise: {found.promise}."
    return "\n".join([f"#{lines[0]}", *lines[1:]]).rstrip() + "\n"


def page(record: Mapping[str, Mapping[str, Any]]) -> str:
    """The whole page, from the record; every reproduction is on it, with its table or with why it has none."""
    known = {one.name: one for one in reproductions()}
    parts = [INTRODUCTION + _quick(record)]
    for section in SECTIONS:
        names = names_of(section)
        parts.append(f"## {section.title}\n\nSource: {known[names[0]].source}.\n\n{section.text}\n")
        parts += [table(known[name], record[name]) for name in names if name in record]
    missing = [one for one in known.values() if one.name not in record]
    if missing:
        parts.append("## Not made here\n\nTheir data was not at hand when this page was made.\n")
        parts.append("\n".join(f"- `velado reproduce {one.name}`: {_reason(one)}" for one in missing) + "\n")
    return "\n".join(parts)


def _quick(record: Mapping[str, Mapping[str, Any]]) -> str:
    shortly = sum(bool(kept["quick"]) for kept in record.values())
    if not shortly:
        return "\nEvery table below is of a full run.\n"
    return (
        f"\n{shortly} of the {len(record)} tables are of quick runs (every tenth record, fewer k, rounds or queries), because a full "
        "run of all takes hours on two\ncores; the command above such a table ends in `--quick`, and its note says so. `docs/make_papers.py "
        "--full` makes them in full.\n"
    )


def _reason(one: Reproduction) -> str:
    for place in one.needs:
        home = data_set_of(place)
        if home is not None and home.by_hand:
            return f"{one.title}. {home.by_hand} Page: <{home.page}>."
        if home is not None:
            return f"{one.title}. `velado data get {home.name}` fetches its data."
    return f"{one.title}."


def main() -> None:
    """Runs what is missing or asked for, and writes record and page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("VELADO_DATA"))
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN")
    parser.add_argument("--again", action="append", default=[], metavar="PATTERN")
    parser.add_argument("--quick", action="store_true", help="make what is missing shortly")
    parser.add_argument("--full", action="store_true", help="make anew what the record has of a quick run")
    parser.add_argument("--record", type=Path, default=RECORD, help="where results are kept")
    chosen = parser.parse_args()
    if chosen.data is None:
        parser.error("name the data folder by --data or VELADO_DATA")
    record: dict[str, Any] = json.loads(chosen.record.read_text("utf-8")) if chosen.record.exists() else {}
    made_now: set[str] = set()
    for one in reproductions():
        if one.name not in made_now and _wanted(one.name, record, chosen):
            found = made(one, Path(chosen.data), chosen.quick)
            made_now |= found.keys()
            record |= found
            _write(chosen.record, record)
    known = {one.name for one in reproductions()}
    record = {name: record[name] for name in sorted(record) if name in known}
    _write(chosen.record, record)
    if chosen.record == RECORD:
        PAGE.write_text(page(record), "utf-8")


def _wanted(name: str, record: Mapping[str, Any], chosen: argparse.Namespace) -> bool:
    if chosen.only and not any(fnmatch(name, pattern) for pattern in chosen.only):
        return False
    if name not in record or any(fnmatch(name, pattern) for pattern in chosen.again):
        return True
    return bool(chosen.full and record[name]["quick"])


def made(one: Reproduction, data: Path, quick: bool) -> dict[str, dict[str, Any]]:
    """The reproduction, and those that come with it, as the record keeps them; nothing where its data is missing."""
    try:
        one.check_data(data)
    except TableError as error:
        sys.stderr.write(f"{one.name}: left out. {error.what}\n")
        return {}
    start = time.process_time()
    if one.together is None:
        found = {one.name: one.carry_out(data, silent, quick)}
    else:
        found = dict(one.together(data, silent, quick))
    seconds = time.process_time() - start
    sys.stderr.write(f"{one.name}: {seconds:.0f} CPU s for {len(found)}\n")
    return {name: entry(result, quick, seconds / len(found)) for name, result in found.items()}


def _write(place: Path, record: Mapping[str, Any]) -> None:
    # A result a line, so that a change shows which table it is of.
    lines = (f"{json.dumps(name)}: {json.dumps(kept, ensure_ascii=False)}" for name, kept in record.items())
    place.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main()
