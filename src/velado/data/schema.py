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

Role = Literal["identifier", "quasi", "sensitive", "other"]
Kind = Literal["numeric", "categorical", "date", "text"]
MissingPolicy = Literal["value", "refuse", "suppress"]
SideDoor = Literal["refuse", "accept"]

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
    off a column that gives a quasi-identifier away; *clamp* moves values outside the bounds onto them; *weight* is
    how much a loss in the column counts when a method chooses (not when loss is measured).
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
    format: str = "%Y-%m-%d"
    clamp: bool = False
    weight: float = 1.0

    def __post_init__(self) -> None:
        where = f"[columns.{self.name}]"
        if self.bounds is not None:
            _bounds(list(self.bounds), f"'bounds' in {where}")
        if self.clamp and self.taxonomy is not None:
            raise SchemaError(
                f"{where} has both clamp = true and a taxonomy.",
                "A taxonomy has a place for every value; moving some onto a bound first would publish falsehoods.",
                "Remove clamp, or the taxonomy.",
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
        for name in ("person", "missing", "publish", "side_door", "format", "clamp", "weight"):
            value = getattr(self, name)
            if value != getattr(Column(self.name), name):
                out[name] = value
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
        _known(document, ("table", "columns"), "the schema")
        table = document.get("table", {})
        _mapping(table, "[table]")
        _known(table, _TABLE_KEYS, "[table]")
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
                f"The schema marks {len(people)} columns with person = true: {', '.join(people)}.",
                "Which rows are one person must have one answer.",
                "Keep person = true on a single column.",
            )
        return cls(columns=columns, **settings)


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
    "format",
    "clamp",
    "weight",
)


def _known(entry: Mapping[str, Any], keys: Iterable[str], where: str) -> None:
    keys = tuple(keys)
    for key in entry:
        if key not in keys:
            near = difflib.get_close_matches(str(key), keys, n=1)
            hint = f"Did you mean '{near[0]}'?" if near else f"Known keys: {', '.join(keys)}."
            raise SchemaError(
                f"Unknown key '{key}' in {where}.", "A misspelt key would be passed over.", hint
            )


def _mapping(entry: Any, where: str) -> None:
    if not isinstance(entry, Mapping):
        raise SchemaError(
            f"{where} is not a table.", "Its keys cannot be read.", f"Write it as {where} with keys below."
        )


def _choice(value: Any, choices: tuple[str, ...], what: str) -> Any:
    if value not in choices:
        raise SchemaError(
            f"{what} has a value that is not known.",
            f"It must be one of {', '.join(choices)}.",
            "Correct it.",
        )
    return value


def _of_type(value: Any, kind: type, what: str, example: str) -> Any:
    if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        raise SchemaError(
            f"{what} has the wrong type.", f"A {kind.__name__} is expected.", f"Write for example {example}."
        )
    return value


def _setting(name: str, value: Any) -> Any:
    what = f"'{name}' in [table]"
    if name == "missing":
        return _choice(value, get_args(MissingPolicy), what)
    if name == "constant":
        return _choice(value, ("refuse", "allow"), what)
    if name == "missing_values":
        _of_type(value, list, what, 'missing_values = ["", "NA"]')
        if not all(isinstance(item, str) for item in value):
            raise SchemaError(
                f"{what} holds something that is not text.", "Cells are compared as text.", "Quote each item."
            )
        return tuple(value)
    if name == "max_cell_bytes":
        return _of_type(value, int, what, "max_cell_bytes = 1000000")
    if name == "decimal":
        return _choice(value, (".", ","), what)
    return _of_type(value, str, what, f'{name} = ";"')


def _column(name: str, entry: Any) -> Column:
    where = f"[columns.{name}]"
    _mapping(entry, where)
    _known(entry, _COLUMN_KEYS, where)
    values: dict[str, Any] = {"name": name}
    if "role" not in entry:
        raise SchemaError(
            f"{where} has no role.",
            "Each column is an identifier, quasi, sensitive or other.",
            'Add for example role = "quasi".',
        )
    for key, value in entry.items():
        what = f"'{key}' in {where}"
        if key == "role":
            values[key] = _choice(value, get_args(Role), what)
        elif key == "kind":
            values[key] = _choice(value, get_args(Kind), what)
        elif key == "missing":
            values[key] = _choice(value, get_args(MissingPolicy), what)
        elif key == "side_door":
            values[key] = _choice(value, get_args(SideDoor), what)
        elif key in ("person", "publish", "clamp"):
            values[key] = _of_type(value, bool, what, f"{key} = true")
        elif key == "format":
            values[key] = _of_type(value, str, what, 'format = "%d/%m/%Y"')
        elif key == "bounds":
            values[key] = _bounds(value, what)
        elif key == "weight":
            values[key] = _weight(value, what)
        elif key == "taxonomy":
            values[key] = taxonomy_spec(value, name)
    return Column(**values)


def _weight(value: Any, what: str) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value < 1e6:
        raise SchemaError(
            f"{what} must be a number above 0.",
            "It says how much a loss in this column counts.",
            "Write for example weight = 2.",
        )
    return float(value)


def _bounds(value: Any, what: str) -> tuple[float, float]:
    good = (
        isinstance(value, list)
        and len(value) == 2
        and all(isinstance(item, int | float) and not isinstance(item, bool) for item in value)
    )
    if not good or not value[0] < value[1] or not all(math.isfinite(item) for item in value):
        raise SchemaError(
            f"{what} must be two rising finite numbers.",
            "They are the domain of the column.",
            "Write for example bounds = [0, 120].",
        )
    return float(value[0]), float(value[1])


def check_separator(value: Any, what: str) -> None:
    """A separator is one character that CSV can have between fields, or an error says so."""
    if not isinstance(value, str) or len(value) != 1 or not value.isascii() or value in '"\r\n\0':
        raise SchemaError(
            f"{what} is not a single plain character.",
            "A separator of fields is one ASCII character, and neither a quote nor a line break.",
            'Write for example separator = ";".',
        )


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
    _mapping(value, where)
    builder = value.get("builder")
    if builder not in BUILDERS:
        raise SchemaError(
            f"{where} has no known builder.",
            f"Builders are {', '.join(BUILDERS)}.",
            'Write for example { builder = "prefix", keep = [5, 3] }.',
        )
    options = {key: item for key, item in value.items() if key != "builder"}
    _known(options, _BUILDER_OPTIONS[builder], where)
    required = {"levels": "file", "intervals": "widths", "prefix": "keep"}.get(builder)
    if required and required not in options:
        raise SchemaError(
            f"{where} lacks '{required}'.", f"The builder {builder} needs it.", f"Add {required}."
        )
    if builder == "tree" and ("file" in options) == ("nodes" in options):
        raise SchemaError(
            f"{where} needs either 'file' or 'nodes'.",
            "The tree must come from one place.",
            "Keep one of the two.",
        )
    if "separator" in options:
        check_separator(options["separator"], f"'separator' of {where}")
    file = options.pop("file", None)
    nodes = options.pop("nodes", None)
    return TaxonomySpec(builder, options, file=file, tree=nodes)
