"""Schema: what each column means. Read from and written to TOML; unknown keys are errors.

Every key is a field of `AboutDataset`, `Schema` or `Column` and stands nowhere else. This module is pure: it turns parsed
TOML into values and back. Files are read by `velado.data.io`.

    >>> schema = Schema.from_dict({"columns": {"age": {"role": "quasi", "kind": "numeric", "bounds": [0, 120]}}})
    >>> schema.quasi[0].bounds, schema.to_dict()["columns"]["age"]
    ((0.0, 120.0), {'role': 'quasi', 'kind': 'numeric', 'bounds': [0.0, 120.0]})
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from velado.data.hierarchies import HIERARCHIES
from velado.data.taxonomy import DateLevel, widths_nest
from velado.errors import ParameterError, SchemaError
from velado.settings import Setting, Where, read, settings, specs, table_of, unknown_key
from velado.text import say

Role = Literal["identifier", "quasi", "sensitive", "other"]
Kind = Literal["numeric", "categorical", "date", "text"]
MissingPolicy = Literal["value", "refuse", "suppress"]
Signature = Literal["refuse", "accept"]
Case = Literal["same", "distinct"]

BUILDERS: Mapping[str, tuple[str, ...]] = {
    "levels": ("file", "separator"),
    "tree": ("file", "nodes"),
    "intervals": ("widths", "origin"),
    "prefix": ("keep", "mask"),
    "dates": ("levels", "format"),
    "flat": (),
    "auto": (),
    **{one.name: () for one in HIERARCHIES},
}
"""How taxonomies are made, and the options of each way."""
_NEEDED = {"levels": "file", "intervals": "widths", "prefix": "keep"}


def _is_separator(value: object) -> bool:
    """Whether a text can stand between the fields of a CSV file: one ASCII character, no quote and no line break.

    >>> _is_separator(";"), _is_separator("::")
    (True, False)
    """
    return isinstance(value, str) and len(value) == 1 and value.isascii() and value not in '"\r\n\0'


@settings
class TaxonomySpec:
    """How a column's taxonomy is made: a builder and its options; *paths* and *tree* hold a file's content.

    >>> TaxonomySpec("prefix", keep=(5, 3)).to_dict()
    {'builder': 'prefix', 'keep': [5, 3]}
    """

    builder: Annotated[str, Setting("how it is made", choices=tuple(BUILDERS))]
    file: Annotated[str | None, Setting("a level file, or a tree in TOML")] = None
    paths: tuple[tuple[str, ...], ...] | None = None
    tree: Annotated[Mapping[str, object] | None, Setting("the tree itself", key="nodes")] = None
    digest: str | None = None
    separator: Annotated[
        str | None, Setting("what stands between the labels of a line", test=_is_separator)
    ] = None
    widths: Annotated[
        tuple[float, ...] | None,
        Setting(
            "ever wider intervals",
            test=widths_nest,
            takes="a list of rising numbers above 0, each of which divides the next",
            why="Otherwise a narrow interval would straddle two wide ones.",
            example="widths = [5, 10, 20]",
        ),
    ] = None
    origin: Annotated[float | None, Setting("where intervals begin")] = None
    keep: Annotated[
        tuple[int, ...] | None,
        Setting(
            "ever shorter prefixes",
            test=lambda lengths: (
                bool(lengths) and min(lengths) > 0 and [*lengths] == sorted({*lengths})[::-1]
            ),
            takes="a list of falling lengths of at least 1",
            why="Each level must be broader than the one before.",
            example="keep = [5, 3, 2]",
        ),
    ] = None
    mask: Annotated[str | None, Setting("what stands for the rest of a code")] = None
    levels: Annotated[
        tuple[DateLevel, ...] | None, Setting("levels of days", example='["month", "year"]')
    ] = None
    format: Annotated[str | None, Setting("how days are written")] = None

    @property
    def options(self) -> dict[str, object]:
        """The builder's own options that were given, without file and nodes."""
        known = set(BUILDERS[self.builder]) - {"file", "nodes"}
        return {key: value for key, value in table_of(self, defaults=False).items() if key in known}

    def to_dict(self) -> str | dict[str, object]:
        """As it stands in the schema file."""
        if self.file is not None and not self.options:
            return self.file
        source = {"file": self.file} if self.file is not None else {"nodes": self.tree} if self.tree else {}
        return {"builder": self.builder, **self.options, **source}


def _taxonomy_spec(value: object, column: str) -> TaxonomySpec:
    """A taxonomy entry of the schema: a file name, or a table with a builder and its options."""
    place = Where("file").inside("columns").inside(column).inside("taxonomy")
    if isinstance(value, str):
        return TaxonomySpec("tree" if value.endswith(".toml") else "levels", file=value)
    spec = read(TaxonomySpec, value, place)
    assert isinstance(value, Mapping)
    for key in value:
        if key not in ("builder", *BUILDERS[spec.builder]):
            raise unknown_key(str(key), BUILDERS[spec.builder], place)
    needed = _NEEDED.get(spec.builder)
    if needed and needed not in value:
        raise SchemaError(
            say("{place} lacks '{key}'.", place=place.here, key=needed),
            say("The builder {builder} needs it.", builder=spec.builder),
            say("Add {key}.", key=needed),
        )
    if spec.builder == "tree" and ("file" in value) == ("nodes" in value):
        raise SchemaError(
            say("{place} needs either 'file' or 'nodes'.", place=place.here),
            "The tree must come from one place.",
            "Keep one of the two.",
        )
    return spec


def check_separator(value: object, what: str) -> None:
    """A separator is one character that CSV can have between fields, or an error says so.

    >>> check_separator(";", "The separator")
    """
    if not _is_separator(value):
        raise SchemaError(
            say("{what} is not a single plain character.", what=what),
            "A separator of fields is one ASCII character, and neither a quote nor a line break.",
            'Write for example separator = ";".',
        )


def _check_encoding(name: object) -> None:
    """Nothing, if Python knows a text encoding of that name; what is no text is refused with the other types."""
    if isinstance(name, str):
        try:
            "a".encode(name)
        except (LookupError, ValueError):  # no codec of that name, or none for texts
            raise SchemaError(
                say("There is no encoding '{name}'.", name=name[:40]),
                "The table cannot be read in it.",
                'Write for example encoding = "latin-1", or leave it out.',
            ) from None


Step = Annotated[
    float,
    Setting(
        ge=1e-6,
        le=1e12,
        test=lambda value: float(value) == round(float(value), 6),
        takes="a number from 0.000001 to 10^12 with at most six decimals",
        why="Published interval ends are its multiples.",
        example="round = 5",
    ),
]
"""A step that published interval ends are rounded to."""


@settings
class Column:
    """What one column means: its role, its kind, and what may be done with it; `name` is its header.

    The column marked *person* has one value for each person, the one marked *group* one for each group of people that
    move together (a household, a ward). What queries need is declared, and never read off the rows.

    >>> Column("age", "quasi", "numeric", bounds=(0, 120)).published
    True
    """

    name: Annotated[str, Setting("its header", items=1)]
    role: Annotated[Role, Setting("what an outsider may do with it", example='role = "quasi"')] = "other"
    kind: Annotated[Kind, Setting("what its values are")] = "categorical"
    bounds: Annotated[
        tuple[float, float] | None,
        Setting(
            "public limits of a number: its domain",
            test=lambda ends: ends[0] < ends[1],
            takes="two rising finite numbers",
            why="They are the domain of the column.",
            example="bounds = [0, 120]",
        ),
    ] = None
    taxonomy: Annotated[TaxonomySpec | None, Setting("a level file, or a builder with its options")] = None
    person: Annotated[bool, Setting("rows that share its value are one person")] = False
    missing: Annotated[MissingPolicy | None, Setting("what a blank is, where it differs from [table]")] = None
    missing_values: Annotated[
        tuple[str, ...] | None,
        Setting(
            "texts that mean no value in it, instead of those of [table]",
            example='missing_values = ["", "-999"]',
        ),
    ] = None
    publish: Annotated[bool, Setting("whether it stands in the release")] = True
    side_door: Annotated[Signature, Setting("sign off that it gives a quasi-identifier away")] = "refuse"
    identifier: Annotated[Signature, Setting("sign off that it looks like an identifier")] = "refuse"
    reason: Annotated[str, Setting("why it was signed off, for manifest and report")] = ""
    case: Annotated[Case, Setting("whether values that differ in case only are told apart")] = "same"
    format: Annotated[str, Setting("how its days are written", example='format = "%d/%m/%Y"')] = "%Y-%m-%d"
    clamp: Annotated[bool, Setting("move values outside the bounds onto them")] = False
    weight: Annotated[
        float,
        Setting(
            "how much a loss in it counts when a method chooses",
            gt=0,
            lt=1e6,
            why="It says how much a loss in this column counts.",
            example="weight = 2",
        ),
    ] = 1.0
    group: Annotated[bool, Setting("rows that share its value move together")] = False
    sampling_weight: Annotated[bool, Setting("how many people of the population each row stands for")] = False
    max_rows: Annotated[
        int | None,
        Setting("the most rows one person or group may count with in an answer", ge=1, le=1_000_000),
    ] = None
    step: Annotated[float | None, Setting("the grid on which it is summed", gt=0)] = None
    round: Annotated[Step | None, Setting("the step whose multiples published interval ends are")] = None
    values: Annotated[
        tuple[str, ...] | None,
        Setting(
            "the public list of its values",
            items=1,
            test=lambda texts: len(set(texts)) == len(texts),
            takes="a list of different texts",
            why="It is the public list of the values the column may have.",
            example='values = ["F", "M"]',
        ),
    ] = None

    def __post_init__(self) -> None:
        where = f"[columns.{self.name}]"
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
        if self.sampling_weight and self.kind != "numeric":
            raise SchemaError(
                say("{where} is marked as the sampling weight, but its kind is not numeric.", where=where),
                "A weight says how many people a row stands for.",
                'Set kind = "numeric", or remove sampling_weight.',
            )
        plain = self.role == "quasi" and self.kind == "numeric" and self.taxonomy is None
        if self.round is not None and not plain:
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

    def to_dict(self) -> dict[str, object]:
        """As it stands in the schema file, defaults left out."""
        out = {"role": self.role, "kind": self.kind, **table_of(self, defaults=False)}
        del out["name"]
        return out if self.taxonomy is None else out | {"taxonomy": self.taxonomy.to_dict()}


@settings(section="dataset")
class AboutDataset:
    """What the table is called in public, which version it is, everyone it was drawn from, and its ledger.

    *folder* is that of the schema file, below which population and ledger lie; it stands in no file.

    >>> AboutDataset(name="admissions", population="census.csv", folder="data").population_file.name
    'census.csv'
    """

    name: Annotated[str, Setting("public name")] = ""
    version: Annotated[str, Setting("which of several versions")] = ""
    population: Annotated[str, Setting("the file of everyone the table was drawn from")] = ""
    ledger: Annotated[str, Setting("the file that accounts for questions about the table")] = ""
    rows: Annotated[
        int | None,
        Setting(
            "about how many rows there are, as may be known in public",
            ge=1,
            le=10**12,
            why=say("Prices of private answers are worked out with it, and shown to whoever asks."),
        ),
    ] = None
    folder: str = ""

    @property
    def population_file(self) -> Path | None:
        """Where the population lies, if one is named."""
        return self._file(self.population)

    @property
    def ledger_file(self) -> Path | None:
        """Where the ledger lies, if one is named."""
        return self._file(self.ledger)

    def _file(self, name: str) -> Path | None:
        return Path(self.folder, name) if name and self.folder else None


@settings(section="table")
class Schema:
    """Columns in order, and how the file as a whole is read.

    *missing* says what a blank quasi-identifier is: a "value" of its own, "refuse" (an error), or "suppress"
    (the row is dropped and counts against the limit). *missing_values* are the texts that mean no value in every column that does
    not list its own: they are blank wherever the table is read, and so in what is published.

    >>> Schema({"age": Column("age", "quasi")}).quasi[0].name
    'age'
    """

    columns: Annotated[Mapping[str, Column], Setting("the columns, in order")]
    missing: Annotated[MissingPolicy, Setting("what a blank quasi-identifier is")] = "value"
    missing_values: Annotated[
        tuple[str, ...], Setting("texts that mean no value", example='missing_values = ["", "NA"]')
    ] = ("",)
    decimal: Annotated[
        Literal[".", ","], Setting("decimal mark", takes='"." or ","', example='decimal = ","')
    ] = "."
    encoding: Annotated[str, Setting("encoding of a text file")] = "utf-8"
    separator: Annotated[
        str | None,
        Setting(
            "what stands between fields",
            test=_is_separator,
            takes="a single plain character",
            why="A separator of fields is one ASCII character, and neither a quote nor a line break.",
            example='separator = ";"',
        ),
    ] = None
    constant: Annotated[Literal["refuse", "allow"], Setting("a quasi-identifier with one value")] = "refuse"
    max_cell_bytes: Annotated[int, Setting("the longest cell")] = 1_000_000
    dataset: AboutDataset = AboutDataset()

    def __post_init__(self) -> None:
        for name, column in self.columns.items():
            if name != column.name:
                raise ParameterError(
                    say(
                        "The column '{column}' stands under the name '{name}'.", column=column.name, name=name
                    ),
                    "Which column of the table is meant cannot be known.",
                    "Put each column under its own name.",
                )

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

    @property
    def sampling_weight(self) -> Column | None:
        """The column that says how many people of the population each row stands for, if one is declared."""
        return next((c for c in self.columns.values() if c.sampling_weight), None)

    def missing_policy(self, column: Column) -> MissingPolicy:
        """The policy in force for one column."""
        return column.missing or self.missing

    def missing_texts(self, name: str) -> tuple[str, ...]:
        """The texts that mean no value in one column, declared or not.

        >>> ages = Column("age", missing_values=("", "999"))
        >>> Schema({"age": ages}, missing_values=("", "NA")).missing_texts("age")
        ('', '999')
        """
        column = self.columns.get(name)
        own = None if column is None else column.missing_values
        return self.missing_values if own is None else own

    @property
    def all_missing_texts(self) -> tuple[object, ...]:
        """What means no value anywhere: two schemas that agree on it find the same cells blank."""
        own = {c.name: c.missing_values for c in self.columns.values() if c.missing_values is not None}
        return self.missing_values, *sorted(own.items())

    def with_columns(self, columns: Iterable[Column]) -> Schema:
        """The same settings with other columns."""
        return replace(self, columns={c.name: c for c in columns})

    def to_dict(self) -> dict[str, dict[str, object]]:
        """As the TOML file has it, defaults left out."""
        plain = table_of(replace(self, columns={}, dataset=replace(self.dataset, folder="")), defaults=False)
        dataset = plain.pop("dataset", None)
        out: dict[str, dict[str, object]] = (
            {"dataset": dataset} if isinstance(dataset, dict) and dataset else {}
        )
        if table := {key: value for key, value in plain.items() if key != "columns"}:
            out["table"] = table
        out["columns"] = {name: column.to_dict() for name, column in self.columns.items()}
        return out

    @classmethod
    def from_dict(cls, document: Mapping[str, object]) -> Schema:
        """From parsed TOML. Every mistake is named with its place; nothing unknown is passed over."""
        try:
            return _schema(document)
        except ParameterError as wrong:  # in a file it is the file that must be corrected
            raise SchemaError(wrong.what, wrong.why, wrong.fix) from None


def _schema(document: Mapping[str, object]) -> Schema:
    file = Where("file", say("the schema"))
    for key in document:
        if key not in ("dataset", "table", "columns"):
            raise unknown_key(str(key), ("dataset", "table", "columns"), file)
    entries = document.get("columns")
    if not isinstance(entries, Mapping) or not entries:
        raise SchemaError(
            "The schema names no columns.",
            "Without roles nothing can be protected.",
            "Add a [columns.NAME] table for each column, or let `velado inspect` write a first version.",
        )
    columns = {name: _column(name, entry) for name, entry in entries.items()}
    _at_most_one(columns, "person", say("Which rows are one person must have one answer."))
    _at_most_one(columns, "group", say("Which rows move together must have one answer."))
    _at_most_one(columns, "sampling_weight", say("How many people a row stands for must have one answer."))
    whole = _own_keys(document.get("table", {}), ("columns", "dataset"), Schema, Where("file", "[table]"))
    _check_encoding(whole.get("encoding", "utf-8"))
    in_dataset = Where("file", "[dataset]")
    about = read(
        AboutDataset,
        _own_keys(document.get("dataset", {}), ("folder",), AboutDataset, in_dataset),
        in_dataset,
    )
    return read(Schema, {**whole, "columns": columns, "dataset": about}, Where("file", "[table]"))


def _column(name: str, entry: object) -> Column:
    where = Where("file", f"[columns.{name}]")
    found = _own_keys(entry, ("name",), Column, where)
    if "role" not in found:
        raise SchemaError(
            say("{where} has no role.", where=where.here),
            "Each column is an identifier, quasi, sensitive or other.",
            'Add for example role = "quasi".',
        )
    if "taxonomy" in found:
        found["taxonomy"] = _taxonomy_spec(found["taxonomy"], name)
    return read(Column, {"name": name, **found}, where)


def _own_keys(entry: object, others: tuple[str, ...], kind: type, where: Where) -> dict[str, object]:
    """A table of the file as a dictionary; the fields that stand elsewhere are no keys of it."""
    if not isinstance(entry, Mapping):
        raise SchemaError(
            say("{where} is not a table.", where=where.here),
            "Its keys cannot be read.",
            say("Write it as {where} with keys below.", where=where.here),
        )
    for key in entry:
        if key in others or key not in specs(kind):
            raise unknown_key(str(key), [name for name in specs(kind) if name not in others], where)
    return dict(entry)


def _at_most_one(columns: Mapping[str, Column], mark: str, why: str) -> None:
    marked = [name for name, column in columns.items() if getattr(column, mark)]
    if len(marked) > 1:
        raise SchemaError(
            say(
                "The schema marks {count} columns with {mark} = true: {columns}.",
                count=len(marked),
                mark=mark,
                columns=", ".join(marked),
            ),
            why,
            say("Keep {mark} = true on a single column.", mark=mark),
        )
