"""Schema: what each column means. Read from and written to TOML; unknown keys are errors.

This module is pure: it turns parsed TOML into values and back. Files are read by `velado.data.io`.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from velado.errors import SchemaError
from velado.text import say

Role = Literal["identifier", "quasi", "sensitive", "other"]
Kind = Literal["numeric", "categorical", "date", "text"]
MissingPolicy = Literal["value", "refuse", "suppress"]
SideDoor = Literal["refuse", "accept"]
Signature = Literal["refuse", "accept"]
Case = Literal["same", "distinct"]

BUILDERS = ("levels", "tree", "intervals", "prefix", "dates", "flat", "auto")


@dataclass(frozen=True)
class TaxonomySpec:
    """How a column's taxonomy is made: a builder and its options; *paths* and *tree* hold a file's content."""

    builder: str
    options: Mapping[str, Any] = field(default_factory=dict)
    file: str | None = None
    paths: tuple[tuple[str, ...], ...] | None = None
    tree: Mapping[str, Any] | None = None
    digest: str | None = None

    def to_dict(self) -> str | dict[str, Any]:
        """As it stands in the schema file."""
        if self.file is not None and not self.options:
            return self.file
        out: dict[str, Any] = {"builder": self.builder, **self.options}
        if self.file is not None:
            out["file"] = self.file
        elif self.tree is not None:
            out["nodes"] = dict(self.tree)
        return out


@dataclass(frozen=True)
class Column:
    """What one column means.

    *bounds* are public limits of a number, used for its domain; *person* marks the column whose equal
    values are one person; *publish* False keeps the column out of the release; *side_door* "accept" signs
    off a column that gives a quasi-identifier away; *identifier* "accept" signs off a published column that looks like
    an identifier, and *reason* says why, for the manifest and the report; *case* "distinct" tells values apart that
    differ in case only; *clamp* moves values outside the bounds onto them; *weight* is how much a loss in the column
    counts when a method chooses (not when loss is measured). *round* is the step whose multiples the published
    interval ends of a number are.

    For queries: *group* marks the column whose equal values move together (a household, a ward), *max_rows* is the
    declared most rows one person or group may count with, *values* the public list of a category's values, and
    *step* the grid on which a number is summed. None of them is ever read off the rows.
    """

    name: str
    role: Role = "other"
    kind: Kind = "categorical"
    bounds: tuple[float, float] | None = None
    person: bool = False
    taxonomy: TaxonomySpec | None = None
    missing: MissingPolicy | None = None
    publish: bool = True
    side_door: SideDoor = "refuse"
    identifier: Signature = "refuse"
    reason: str = ""
    case: Case = "same"
    format: str = "%Y-%m-%d"
    clamp: bool = False
    weight: float = 1.0
    group: bool = False
    max_rows: int | None = None
    values: tuple[str, ...] | None = None
    step: float | None = None
    round: float | None = None

    def __post_init__(self) -> None:
        where = f"[columns.{self.name}]"
        if self.bounds is not None:
            rising_bounds(list(self.bounds), f"'bounds' in {where}")
        if self.clamp and self.taxonomy is not None:
            raise SchemaError(
                say("{where} has both clamp = true and a taxonomy.", where=where),
                "A taxonomy has a place for every value; moving some onto a bound first would publish falsehoods.",
                "Remove clamp, or the taxonomy.",
            )
        if self.identifier == "accept" and not self.reason.strip():
            raise SchemaError(
                say('{where} has identifier = "accept" without a reason.', where=where),
                "Publishing a column that looks like an identifier is a decision that somebody must answer for.",
                'Add for example reason = "numbers of rooms, not of people".',
            )
        if self.round is not None:
            a_rounding_step(self.round, f"'round' in {where}")
            if self.role != "quasi" or self.kind != "numeric" or self.taxonomy is not None:
                raise SchemaError(
                    say("{where} has round, but is no plain numeric quasi-identifier.", where=where),
                    "Only the intervals of such a column have ends that can be rounded; its values would leave as they are.",
                    "Remove round, or declare the column as quasi and numeric, without a taxonomy or an operation that "
                    "makes categories of it.",
                )

    @property
    def published(self) -> bool:
        """Whether the column stands in the release."""
        return self.publish and self.role != "identifier"

    def to_dict(self) -> dict[str, Any]:
        """As it stands in the schema file, defaults left out."""
        out: dict[str, Any] = {"role": self.role, "kind": self.kind}
        if self.bounds is not None:
            out["bounds"] = list(self.bounds)
        if self.taxonomy is not None:
            out["taxonomy"] = self.taxonomy.to_dict()
        for name in _PLAIN_KEYS:
            value = getattr(self, name)
            if value != getattr(Column(self.name), name):
                out[name] = value
        if self.group:
            out["group"] = True
        for name in ("max_rows", "step", "round"):
            if getattr(self, name) is not None:
                out[name] = getattr(self, name)
        if self.values is not None:
            out["values"] = list(self.values)
        return out


@dataclass(frozen=True)
class Schema:
    """Columns in order, and how the file as a whole is read.

    *missing* says what a blank quasi-identifier is: a "value" of its own, "refuse" (an error), or "suppress"
    (the row is dropped and counts against the limit). *missing_values* are the texts that mean no value.
    """

    columns: Mapping[str, Column]
    missing: MissingPolicy = "value"
    missing_values: tuple[str, ...] = ("",)
    decimal: str = "."
    encoding: str = "utf-8"
    separator: str | None = None
    constant: Literal["refuse", "allow"] = "refuse"
    max_cell_bytes: int = 1_000_000

    def __post_init__(self) -> None:
        if self.separator is not None:
            check_separator(self.separator, "'separator' in [table]")

    @property
    def quasi(self) -> tuple[Column, ...]:
        """The quasi-identifiers that are published, in column order."""
        return tuple(c for c in self.columns.values() if c.role == "quasi" and c.publish)

    @property
    def sensitive(self) -> tuple[Column, ...]:
        """The sensitive columns, in column order."""
        return tuple(c for c in self.columns.values() if c.role == "sensitive")

    @property
    def person(self) -> Column | None:
        """The column whose equal values are one person, if one is declared."""
        return next((c for c in self.columns.values() if c.person), None)

    @property
    def group(self) -> Column | None:
        """The column whose equal values move together, if one is declared."""
        return next((c for c in self.columns.values() if c.group), None)

    def missing_policy(self, column: Column) -> MissingPolicy:
        """The policy in force for one column."""
        return column.missing or self.missing

    def with_columns(self, columns: Iterable[Column]) -> Schema:
        """The same settings with other columns."""
        return replace(self, columns={c.name: c for c in columns})

    def to_dict(self) -> dict[str, Any]:
        """As the TOML file has it, defaults left out."""
        table: dict[str, Any] = {}
        plain = Schema({})
        for name in _TABLE_KEYS:
            value = getattr(self, name)
            if value != getattr(plain, name):
                table[name] = list(value) if isinstance(value, tuple) else value
        out: dict[str, Any] = {"table": table} if table else {}
        out["columns"] = {name: column.to_dict() for name, column in self.columns.items()}
        return out

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Schema:
        """From parsed TOML. Every mistake is named with its place; nothing unknown is passed over."""
        refuse_unknown(document, ("table", "columns"), "the schema")
        table = document.get("table", {})
        refuse_non_table(table, "[table]")
        refuse_unknown(table, _TABLE_KEYS, "[table]")
        entries = document.get("columns")
        if not isinstance(entries, Mapping) or not entries:
            raise SchemaError(
                "The schema names no columns.",
                "Without roles nothing can be protected.",
                "Add a [columns.NAME] table for each column, or let `velado inspect` write a first version.",
            )
        settings: dict[str, Any] = {}
        for name, value in table.items():
            settings[name] = _setting(name, value)
        columns = {name: _column(name, entry) for name, entry in entries.items()}
        people = [name for name, column in columns.items() if column.person]
        if len(people) > 1:
            raise SchemaError(
                say(
                    "The schema marks {people} columns with person = true: {people_2}.",
                    people=len(people),
                    people_2=", ".join(people),
                ),
                "Which rows are one person must have one answer.",
                "Keep person = true on a single column.",
            )
        groups = [name for name, column in columns.items() if column.group]
        if len(groups) > 1:
            raise SchemaError(
                say(
                    "The schema marks {groups} columns with group = true: {groups_2}.",
                    groups=len(groups),
                    groups_2=", ".join(groups),
                ),
                "Which rows move together must have one answer.",
                "Keep group = true on a single column.",
            )
        return cls(columns=columns, **settings)


_PLAIN_KEYS = (
    "person",
    "missing",
    "publish",
    "side_door",
    "identifier",
    "reason",
    "case",
    "format",
    "clamp",
    "weight",
)
_TABLE_KEYS = (
    "missing",
    "missing_values",
    "decimal",
    "encoding",
    "separator",
    "constant",
    "max_cell_bytes",
)
_COLUMN_KEYS = (
    "role",
    "kind",
    "bounds",
    "person",
    "taxonomy",
    "missing",
    "publish",
    "side_door",
    "identifier",
    "reason",
    "case",
    "format",
    "clamp",
    "weight",
    "group",
    "max_rows",
    "values",
    "step",
    "round",
)


def _setting(name: str, value: Any) -> Any:
    what = f"'{name}' in [table]"
    if name == "missing":
        return one_of(value, get_args(MissingPolicy), what)
    if name == "constant":
        return one_of(value, ("refuse", "allow"), what)
    if name == "missing_values":
        of_type(value, list, what, 'missing_values = ["", "NA"]')
        if not all(isinstance(item, str) for item in value):
            raise SchemaError(
                say("{what} holds something that is not text.", what=what),
                "Cells are compared as text.",
                "Quote each item.",
            )
        return tuple(value)
    if name == "max_cell_bytes":
        return of_type(value, int, what, "max_cell_bytes = 1000000")
    if name == "decimal":
        return one_of(value, (".", ","), what)
    return of_type(value, str, what, f'{name} = ";"')


def _column(name: str, entry: Any) -> Column:
    where = f"[columns.{name}]"
    refuse_non_table(entry, where)
    refuse_unknown(entry, _COLUMN_KEYS, where)
    values: dict[str, Any] = {"name": name}
    if "role" not in entry:
        raise SchemaError(
            say("{where} has no role.", where=where),
            "Each column is an identifier, quasi, sensitive or other.",
            'Add for example role = "quasi".',
        )
    for key, value in entry.items():
        what = f"'{key}' in {where}"
        if key == "role":
            values[key] = one_of(value, get_args(Role), what)
        elif key == "kind":
            values[key] = one_of(value, get_args(Kind), what)
        elif key == "missing":
            values[key] = one_of(value, get_args(MissingPolicy), what)
        elif key == "side_door":
            values[key] = one_of(value, get_args(SideDoor), what)
        elif key == "identifier":
            values[key] = one_of(value, get_args(Signature), what)
        elif key == "case":
            values[key] = one_of(value, get_args(Case), what)
        elif key == "reason":
            values[key] = of_type(value, str, what, 'reason = "numbers of rooms, not of people"')
        elif key in ("person", "publish", "clamp", "group"):
            values[key] = of_type(value, bool, what, f"{key} = true")
        elif key == "format":
            values[key] = of_type(value, str, what, 'format = "%d/%m/%Y"')
        elif key == "bounds":
            values[key] = rising_bounds(value, what)
        elif key == "weight":
            values[key] = a_weight(value, what)
        elif key == "max_rows":
            values[key] = a_row_limit(value, what)
        elif key == "values":
            values[key] = a_value_list(value, what)
        elif key == "step":
            values[key] = a_step(value, what)
        elif key == "round":
            values[key] = a_rounding_step(value, what)
        elif key == "taxonomy":
            values[key] = taxonomy_spec(value, name)
    return Column(**values)


_BUILDER_OPTIONS = {
    "levels": ("file", "separator"),
    "tree": ("file", "nodes"),
    "intervals": ("widths", "origin"),
    "prefix": ("keep", "mask"),
    "dates": ("levels", "format"),
    "flat": (),
    "auto": (),
}


def taxonomy_spec(value: Any, column: str) -> TaxonomySpec:
    """A taxonomy entry of the schema: a file name, or a table with a builder and its options."""
    where = f"'taxonomy' in [columns.{column}]"
    if isinstance(value, str):
        return TaxonomySpec("tree" if value.endswith(".toml") else "levels", file=value)
    refuse_non_table(value, where)
    builder = value.get("builder")
    if builder not in BUILDERS:
        raise SchemaError(
            say("{where} has no known builder.", where=where),
            say("Builders are {builders}.", builders=", ".join(BUILDERS)),
            'Write for example { builder = "prefix", keep = [5, 3] }.',
        )
    options = {key: item for key, item in value.items() if key != "builder"}
    refuse_unknown(options, _BUILDER_OPTIONS[builder], where)
    required = {"levels": "file", "intervals": "widths", "prefix": "keep"}.get(builder)
    if required and required not in options:
        raise SchemaError(
            say("{where} lacks '{required}'.", where=where, required=required),
            say("The builder {builder} needs it.", builder=builder),
            say("Add {required}.", required=required),
        )
    if builder == "tree" and ("file" in options) == ("nodes" in options):
        raise SchemaError(
            say("{where} needs either 'file' or 'nodes'.", where=where),
            "The tree must come from one place.",
            "Keep one of the two.",
        )
    if "separator" in options:
        check_separator(options["separator"], f"'separator' of {where}")
    file = options.pop("file", None)
    nodes = options.pop("nodes", None)
    return TaxonomySpec(builder, options, file=file, tree=nodes)


# Single values of a schema file: each is what it must be, or a SchemaError names its place and never its content.


def refuse_unknown(entry: Mapping[str, Any], keys: Iterable[str], where: str) -> None:
    """Every key is known, or the nearest known one is suggested."""
    keys = tuple(keys)
    for key in entry:
        if key not in keys:
            near = difflib.get_close_matches(str(key), keys, n=1)
            hint = f"Did you mean '{near[0]}'?" if near else f"Known keys: {', '.join(keys)}."
            raise SchemaError(
                say("Unknown key '{key}' in {where}.", key=key, where=where),
                "A misspelt key would be passed over.",
                hint,
            )


def refuse_non_table(entry: Any, where: str) -> None:
    """The entry is a table of keys."""
    if not isinstance(entry, Mapping):
        raise SchemaError(
            say("{where} is not a table.", where=where),
            "Its keys cannot be read.",
            say("Write it as {where} with keys below.", where=where),
        )


def one_of(value: Any, choices: tuple[str, ...], what: str) -> Any:
    """The value is one of the choices."""
    if value not in choices:
        raise SchemaError(
            say("{what} has a value that is not known.", what=what),
            say("It must be one of {choices}.", choices=", ".join(choices)),
            "Correct it.",
        )
    return value


def of_type(value: Any, kind: type, what: str, example: str) -> Any:
    """The value has the type; true and false are no numbers."""
    if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        raise SchemaError(
            say("{what} has the wrong type.", what=what),
            say("A {kind} is expected.", kind=kind.__name__),
            say("Write for example {example}.", example=example),
        )
    return value


def a_weight(value: Any, what: str) -> float:
    """A number above 0 and under a million."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value < 1e6:
        raise SchemaError(
            say("{what} must be a number above 0.", what=what),
            "It says how much a loss in this column counts.",
            "Write for example weight = 2.",
        )
    return float(value)


def a_row_limit(value: Any, what: str) -> int:
    """A whole number of rows, 1 to 1,000,000."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 1_000_000:
        raise SchemaError(
            say("{what} must be a whole number from 1 to 1,000,000.", what=what),
            "It says with how many rows one person or group may count in an answer.",
            "Write for example max_rows = 4.",
        )
    return value


def a_value_list(value: Any, what: str) -> tuple[str, ...]:
    """A list of different texts, at least one."""
    texts = isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value)
    if not texts or len(set(value)) != len(value):
        raise SchemaError(
            say("{what} must be a list of different texts.", what=what),
            "It is the public list of the values the column may have.",
            'Write for example values = ["F", "M"].',
        )
    return tuple(value)


def a_step(value: Any, what: str) -> float:
    """A finite number above 0."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not value > 0:
        raise SchemaError(
            say("{what} must be a finite number above 0.", what=what),
            "It is the grid on which the column is summed.",
            "Write for example step = 1.",
        )
    return float(value)


def a_rounding_step(value: Any, what: str) -> float:
    """A number from 0.000001 to 10^12 with at most six decimals."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 1e-6 <= value <= 1e12 or float(value) != round(float(value), 6):
        raise SchemaError(
            say("{what} must be a number above 0 with at most six decimals.", what=what),
            "Published interval ends are its multiples.",
            "Write for example round = 5.",
        )
    return float(value)


def rising_bounds(value: Any, what: str) -> tuple[float, float]:
    """Two finite numbers, the first below the second."""
    good = (
        isinstance(value, list)
        and len(value) == 2
        and all(isinstance(item, int | float) and not isinstance(item, bool) for item in value)
    )
    if not good or not value[0] < value[1] or not all(math.isfinite(item) for item in value):
        raise SchemaError(
            say("{what} must be two rising finite numbers.", what=what),
            "They are the domain of the column.",
            "Write for example bounds = [0, 120].",
        )
    return float(value[0]), float(value[1])


def check_separator(value: Any, what: str) -> None:
    """A separator is one character that CSV can have between fields, or an error says so."""
    if not isinstance(value, str) or len(value) != 1 or not value.isascii() or value in '"\r\n\0':
        raise SchemaError(
            say("{what} is not a single plain character.", what=what),
            "A separator of fields is one ASCII character, and neither a quote nor a line break.",
            'Write for example separator = ";".',
        )
