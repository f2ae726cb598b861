"""Every reproduction by name, found in the modules listed here; the modules are imported when a name is asked for.

A module has a tuple `REPRODUCTIONS`. To add one: write it there, and list its module in MODULES.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from velado.data.encode import EncodedTable, encode
from velado.data.io import attach_taxonomies, read_table
from velado.data.schema import Schema
from velado.errors import ParameterError, TableError
from velado.papers.paper_figure import Cell as Cell
from velado.papers.paper_figure import Drawn, figure_svg
from velado.papers.public_data import data_set_of
from velado.release.goal import Progress
from velado.settings import nearest
from velado.text import Sentence, listed, say, say_n, told, written

# What the tables of every paper share: the names of their columns, how the sources print numbers, quick tables.
#
# All of it that a person reads is a sentence of the catalogue (`say`), put together by `join`: a column `join([PAPER, say("links")],
# ", ")`, never an f-string, so that `velado --lang pt reproduce NAME` is Portuguese all through.
#
# Each table has what was *published*, what comes out *as computed* there (the paper profile: the authors' own choices,
# mistakes included), and what comes out *measured honestly* (see docs/explanation/measurement.md); its note says in one
# sentence why they differ.

PUBLISHED = say("published")
PAPER = say("ours: paper profile")
HONEST = say("ours: measured honestly")
FIGURE = say("figure only")
AS_IN_PAPER = say("none: as in the paper")
METHOD = say("method")
PROMISE = say("promise")

ADULT = "adult/adult_clean.csv"
EIGHT = ("sex", "age", "race", "marital_status", "education", "native_country", "workclass", "occupation")
"""The quasi-identifiers of Adult in the GFKMC thesis and in GOK-Privacy."""


def step(method: str, k: int) -> Sentence:
    """What a run is doing: a method at one k.

    >>> step("Mondrian", 5)
    'Mondrian, k = 5'
    """
    return say("{method}, k = {k}", method=method, k=k)


def truncated(value: float, digits: int = 3) -> float:
    """The number as the sources print it: digits are cut off, not rounded.

    >>> truncated(0.1859), truncated(0.185)
    (0.185, 0.185)
    """
    scale = 10.0**digits
    # A product such as 0.185 * 1000 may fall a hair below the whole number that it is.
    return math.floor(value * scale + 1e-9) / scale


def adult_hierarchy(column: str) -> str:
    """The level file of a column of Adult, below the data folder.

    >>> adult_hierarchy("marital_status")
    'adult/hierarchies/adult_hierarchy_marital-status.csv'
    """
    return f"adult/hierarchies/adult_hierarchy_{column.replace('_', '-')}.csv"


ADULT_FILES = (ADULT, *(adult_hierarchy(name) for name in EIGHT))


def encoded(data: Path, file: str, schema: Schema) -> EncodedTable:
    r"""The quasi-identifiers of a file below the data folder, encoded.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "t.csv").write_text("age,name\n20,a\n30,b\n")
    ...     encoded(Path(folder), "t.csv", numeric_schema("age")).rows
    2
    """
    return encode(read_table(data / file, attach_taxonomies(schema, data), "drop"))


def numeric_schema(*columns: str) -> Schema:
    """Numbers that are quasi-identifiers.

    >>> numeric_schema("age", "weight").quasi[1].kind
    'numeric'
    """
    return Schema.from_dict({"columns": {name: {"role": "quasi", "kind": "numeric"} for name in columns}})


def adult_schema(age: str = "numeric") -> Schema:
    """Adult's eight quasi-identifiers with their level files; *age* "numeric", or "categorical" for a tree of years.

    >>> adult_schema().columns["age"].kind, adult_schema("categorical").columns["age"].kind
    ('numeric', 'categorical')
    """
    entries: dict[str, dict[str, str]] = {}
    for name in EIGHT:
        entries[name] = {"role": "quasi", "kind": "categorical", "taxonomy": adult_hierarchy(name)}
    if age == "numeric":
        entries["age"] = {"role": "quasi", "kind": "numeric"}
    return Schema.from_dict({"columns": entries})


MODULES: tuple[str, ...] = (
    "velado.papers.correlated.correlated_tables",
    "velado.papers.das.das_tables",
    "velado.papers.das.elbow_curve",
    "velado.papers.gfkmc.gfkmc_tables",
    "velado.papers.gfkmc.gfkmc_models",
    "velado.papers.gfkmc.gfkmc_federated",
    "velado.papers.gok.gok_tables",
    "velado.papers.regression.regression_tables",
)


@dataclass(frozen=True)
class Reproduced:
    """A table of results: what was *published*, *ours* beside it; a *note* on how, and what it promises people.

    Columns, cells, note and promise are sentences where they are words: they are told when they are shown.

    >>> Reproduced(("k", "loss"), ((3, 0.1),), "A note.", "none").to_dict()["rows"]
    [{'k': 3, 'loss': 0.1}]
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str
    promise: str

    def to_dict(self) -> dict[str, object]:
        """Rows as mappings from column to cell."""
        return {
            "columns": list(self.columns),
            "rows": [dict(zip(self.columns, row, strict=True)) for row in self.rows],
            "note": self.note,
            "promise": self.promise,
        }


Run = Callable[[Path, Progress], Reproduced]
Together = Callable[[Path, Progress, bool], Mapping[str, Reproduced]]


@dataclass(frozen=True)
class Reproduction:
    """One table or figure of *source*. *needs* are files below the data folder; *quick* a shorter run, where there is one.

    *together* makes this one and all that share its work, by name, for whoever wants several (given True: quickly).
    *not_run* says why one is listed and cannot be run; *drawn*, how its table is drawn, None: not at all.
    *settings* are what decides the result beside its files, as values with a lasting `repr`.

    >>> reproduction_named("das-table-1").title
    'Table I (thesis 4.1): raw data'
    """

    name: str
    source: str
    title: str
    needs: tuple[str, ...]
    run: Run
    quick: Run | None = None
    together: Together | None = None
    not_run: str | None = None
    drawn: Drawn | None = field(default_factory=Drawn)
    settings: tuple[object, ...] = ()

    def carry_out(self, data: Path, progress: Progress, quick: bool = False) -> Reproduced:
        """The result, from the files below *data*; says which file is missing and where to put it."""
        if self.not_run is not None:
            raise ParameterError(
                say("'{name}' cannot be run.", name=self.name),
                self.not_run,
                "See `velado reproduce --list` for those that can.",
            )
        self.check_data(data)
        return (self.quick if quick and self.quick is not None else self.run)(data, progress)

    def check_data(self, data: Path) -> None:
        """Every file it needs is below *data*, or an error names those that are not and how to get the first."""
        missing = [name for name in self.needs if not (data / name).is_file()]
        if not missing:
            return
        homes = [data_set_of(name) for name in missing]
        known = list(dict.fromkeys(f"`velado data get {home.name}`" for home in homes if home and home.files))
        first = homes[0]
        if known:
            how = say("Run {commands}, or put the files there by hand.", commands=listed(known))
        elif first is not None:
            how = say("{told} Its page is {page}.", told=first.by_hand, page=first.page)
        else:
            how = say("Put it there, or name another folder by --data or VELADO_DATA.")
        raise TableError(
            say(
                "'{name}' needs {files} below the data folder, which does not hold them all.",
                name=self.name,
                files=listed([*(f"'{file}'" for file in missing[:2]), *_others(len(missing) - 2)]),
            ),
            "The papers' data is not part of velado.",
            how,
        )


def _others(count: int) -> list[str]:
    return [say_n("{n} other file", "{n} other files", count)] if count > 0 else []


def reproductions() -> tuple[Reproduction, ...]:
    """Every reproduction, in the order of MODULES.

    >>> len(reproductions()) > 50
    True
    """
    found: list[Reproduction] = []
    for module in MODULES:
        found += import_module(module).REPRODUCTIONS
    names = [one.name for one in found]
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ParameterError(
            say("Two reproductions are called {twice}.", twice=", ".join(twice)),
            "A name must say which one is meant.",
            "Rename one of them.",
        )
    return tuple(found)


def reproduction_named(name: str) -> Reproduction:
    """The reproduction of this name, or an error that suggests the nearest.

    >>> reproduction_named("das-table-3").needs
    ('wef/wef.csv',)
    """
    known = reproductions()
    by_name = {one.name: one for one in known}
    if name in by_name:
        return by_name[name]
    raise ParameterError(
        say("There is no reproduction '{name}'.", name=name),
        say("{known} are known.", known=len(known)),
        nearest(name, by_name) or say("See `velado reproduce --list`."),
    )


def shown(cell: Cell) -> str:
    """A cell as a person reads it in the language spoken: numbers to four digits, nothing as a dash.

    >>> shown(0.123456), shown(1234567), shown(None)
    ('0.1235', '1,234,567', '-')
    """
    if cell is None:
        return "-"
    if isinstance(cell, float):
        return written(cell, ",.0f" if abs(cell) >= 1000 else ".4g")
    return written(cell, ",") if isinstance(cell, int) else _told(cell)


def _told(text: str) -> str:
    # A plain text is a name, such as a column's or a method's, and no key of the catalogue.
    return told(text) if isinstance(text, Sentence) else text


def to_markdown(reproduction: Reproduction, reproduced: Reproduced) -> str:
    """The result as a Markdown section, in the language spoken.

    >>> table = Reproduced(("k", "loss"), ((3, 0.1),), "A note.", "none")
    >>> print(to_markdown(reproduction_named("das-table-1"), table).splitlines()[6])
    | 3 | 0.1 |
    """
    lines = [
        f"## {_told(reproduction.title)}",
        "",
        told(
            say(
                "Promise: {promise}. Source: {source}.",
                promise=reproduced.promise,
                source=reproduction.source,
            )
        ),
        "",
        "| " + " | ".join(_told(name) for name in reproduced.columns) + " |",
        "|" + "---|" * len(reproduced.columns),
        *(
            "| " + " | ".join(shown(cell).replace("|", "\\|") for cell in row) + " |"
            for row in reproduced.rows
        ),
        "",
        _told(reproduced.note),
        "",
    ]
    return "\n".join(lines)


def to_csv(reproduced: Reproduced) -> str:
    """The result as a CSV file: columns in the language spoken, numbers as they are.

    >>> to_csv(Reproduced(("k", "loss"), ((3, 0.1), (5, None)), "A note.", "none")).splitlines()
    ['k,loss', '3,0.1', '5,']
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_told(name) for name in reproduced.columns)
    for row in reproduced.rows:
        writer.writerow(_told(cell) if isinstance(cell, str) else cell for cell in row)
    return text.getvalue()


def to_svg(reproduction: Reproduction, reproduced: Reproduced) -> str | None:
    """The result as a figure, published and ours over one another; None where it is not drawn.

    >>> table = Reproduced(("k", "published", "ours"), ((3, 0.1, 0.2), (5, 0.2, 0.2)), "A note.", "none")
    >>> to_svg(Reproduction("loss", "a paper", "Loss", (), lambda data, progress: table), table)[:38]
    '<svg xmlns="http://www.w3.org/2000/svg'
    """
    if reproduction.drawn is None:
        return None
    return figure_svg(reproduction.title, reproduced.columns, reproduced.rows, reproduction.drawn)


def to_dict(reproduction: Reproduction, reproduced: Reproduced) -> dict[str, object]:
    """The result with its name and source, as JSON would hold it.

    >>> table = Reproduced(("k", "loss"), ((3, 0.1),), "A note.", "none")
    >>> to_dict(reproduction_named("das-table-1"), table)["name"]
    'das-table-1'
    """
    return {
        "name": reproduction.name,
        "source": reproduction.source,
        "title": reproduction.title,
        **reproduced.to_dict(),
    }
