"""What service.toml says, as frozen values. A misspelt key is an error with its place, never passed over."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Literal, Self

from velado.data.io import contained, read_schema
from velado.errors import ParameterError, SchemaError
from velado.query.budget import Budget, CapAmount, Delta, Spend
from velado.query.unit import Dependence, GroupRows, Unit
from velado.settings import Setting, Where, parse_toml, read, settings
from velado.text import say

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}\Z")
_FILE = Where("file", say("the service file"))
_RECORD = "record"


Text = Annotated[str, Setting(items=1)]


@settings(section="limits")
class ServiceLimits:
    """How much one token, one address and all together may ask of the service.

    >>> ServiceLimits(burst=9).part(2).burst
    5
    """

    requests_per_minute: Annotated[float, Setting("requests of one token, on average", gt=0, le=1e9)] = 120.0
    burst: Annotated[int, Setting("requests of one token at once", ge=1, le=10**6)] = 30
    failed_tokens_per_minute: Annotated[
        float, Setting("wrong tokens tried from one address", gt=0, le=1e6)
    ] = 10.0
    max_body_bytes: Annotated[int, Setting("size of a request's body", ge=256, le=1 << 24)] = 65_536
    body_seconds: Annotated[float, Setting("time a client has to send its request", ge=0.1, le=600)] = 10.0
    max_query_characters: Annotated[int, Setting("length of a query", ge=16, le=1 << 20)] = 10_000
    query_seconds: Annotated[float, Setting("time one query may take", ge=0.1, le=3600)] = 30.0
    tick_seconds: Annotated[
        float, Setting("answers are given after a whole number of such times; 0: at once", ge=0, le=60)
    ] = 0.1
    concurrent_queries: Annotated[int, Setting("queries at work at once", ge=1, le=256)] = 4
    waiting_queries: Annotated[
        int, Setting("queries that may wait; more are turned away", ge=0, le=10**5)
    ] = 64
    connections: Annotated[int, Setting("open connections", ge=1, le=10**5)] = 512
    half_open_connections: Annotated[
        int, Setting("connections of one address without a whole request", ge=1, le=10**5)
    ] = 32

    def part(self, workers: int) -> Self:
        """The limits of one of *workers* processes, which add up to these."""
        rates = ("requests_per_minute", "failed_tokens_per_minute")
        counts = ("burst", "concurrent_queries", "waiting_queries", "connections", "half_open_connections")
        shares = {name: getattr(self, name) / workers for name in rates}
        shares |= {name: -(-getattr(self, name) // workers) for name in counts}
        return replace(self, **shares)


@dataclass(frozen=True)
class DatasetSettings:
    """One table that may be asked: where its rows and its ledger are, and what the owner declared.

    Either *file*, or *url* and *relation* of PostgreSQL. *unit* None is the unit the schema declares.
    *version* is the public name of the table's content: a changed table must be given a new one.

    >>> people = DatasetSettings("people", Path("s.toml"), "people.ledger", Budget.epsilon(1), Path("p.csv"))
    >>> people.extremes, people.caps
    ('quantile', {})
    """

    name: str
    schema: Path
    ledger: str
    budget: Budget
    file: Path | None = None
    url: str | None = field(default=None, repr=False)
    relation: str | None = None
    seal: Path | None = None
    unit: Unit | None = None
    each: Fraction | None = None
    least: Fraction | None = None
    extremes: Literal["quantile", "bound"] = "quantile"
    caps: Mapping[str, Fraction] = field(default_factory=dict)
    title: str = ""
    version: str = "1"


@settings
class _BudgetTable:
    """`budget = { epsilon = 1 }`, or rho; a delta beside either."""

    epsilon: Spend | None = None
    rho: Spend | None = None
    delta: Delta | None = None


@settings
class _UnitTable:
    """`unit = { column = "ward", rows = 4 }`."""

    column: Annotated[Text, Setting(example='unit = { column = "ward", rows = 4 }')]
    rows: Annotated[GroupRows, Setting(example='unit = { column = "ward", rows = 4 }')]
    dependence: Dependence | None = None


@settings
class _DatasetTable:
    """[datasets.NAME] as the file has it; a unit is a word or a table, which is settled before."""

    schema: Text
    ledger: Text
    budget: Annotated[_BudgetTable, Setting(example="budget = { epsilon = 1 }")]
    file: Text | None = None
    url: Annotated[Text | None, Setting(secret=True)] = None
    relation: Text | None = None
    seal: Text | None = None
    unit: Annotated[_UnitTable | None, Setting(example='unit = { column = "ward", rows = 4 }')] = None
    each: Spend | None = None
    least: Spend | None = None
    extremes: Literal["quantile", "bound"] = "quantile"
    caps: Annotated[
        Mapping[str, CapAmount], Setting("what each analyst may spend", example="caps = { ana = 0.5 }")
    ] = field(default_factory=dict)
    title: str = ""
    version: str = "1"


@settings
class _ServiceTable:
    """The service file, its data sets aside."""

    title: str = "velado"
    tokens: str = "tokens.json"
    audit: str = "audit.jsonl"
    folder: Annotated[
        str, Setting("the folder of tables and schemas from which the owner may add data sets")
    ] = ""
    added: Annotated[str, Setting("the file that keeps what the owner added and took out")] = "datasets.json"
    limits: ServiceLimits = ServiceLimits()
    datasets: Mapping[str, Mapping[str, object]] = field(default_factory=dict)


@dataclass(frozen=True)
class ServiceSettings:
    """The whole service: data sets by name, limits, and the files of tokens and audit.

    *shared* is a folder in which several processes of one service tell one another their counts. *folder* is where the owner may
    add tables from, and *added* the file that keeps which; without a folder none can be added.

    >>> ServiceSettings({}, Path("tokens.json"), Path("audit.jsonl")).limits.concurrent_queries
    4
    """

    datasets: Mapping[str, DatasetSettings]
    tokens: Path
    audit: Path
    limits: ServiceLimits = field(default_factory=ServiceLimits)
    title: str = "velado"
    secure_transport: bool = False
    shared: Path | None = None
    folder: Path | None = None
    added: Path | None = None


def read_settings(path: str | Path) -> ServiceSettings:
    """The settings of a service.toml; paths in it are relative to the file.

    >>> read_settings("missing.toml")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.SchemaError: There is no file 'missing.toml'...
    """
    path = Path(path)
    return settings_from(parse_toml(path, say("The service file")), path.parent)


def settings_from(document: Mapping[str, object], folder: Path) -> ServiceSettings:
    """From parsed TOML. Every mistake is named with its place.

    >>> settings_from({"titel": "x"}, Path())
    Traceback (most recent call last):
    velado.errors.SchemaError: Unknown key 'titel' in the service file. A misspelt key would be passed over. Did you mean 'title'?
    """
    try:
        whole = read(_ServiceTable, document, _FILE)
        if not whole.datasets:
            raise _wrong(say("The service file names no data set."), "Add a [datasets.NAME] table for each.")
        tables = {name: _dataset_table(name, entry, folder) for name, entry in whole.datasets.items()}
    except ParameterError as wrong:  # in a file it is the file that must be corrected
        raise SchemaError(wrong.what, wrong.why, wrong.fix) from None
    return ServiceSettings(
        datasets={
            name: _dataset(name, table, folder, whole.datasets[name].get("unit") == _RECORD)
            for name, table in tables.items()
        },
        tokens=folder / whole.tokens,
        audit=folder / whole.audit,
        limits=whole.limits,
        title=whole.title,
        folder=folder / whole.folder if whole.folder else None,
        added=folder / whole.added,
    )


def added_dataset(name: str, entry: Mapping[str, object], settings: ServiceSettings) -> DatasetSettings:
    """A data set that the owner added: its table and schema lie in the service's folder, its ledger beside the tokens.

    >>> added_dataset("people", {}, ServiceSettings({}, Path("tokens.json"), Path("audit.jsonl")))
    Traceback (most recent call last):
    velado.errors.ParameterError: No folder was named from which tables may be added. Any file of this machine could be asked about otherwise. Write folder = "tables" in the service file and start the service anew.
    """
    if settings.folder is None:
        raise ParameterError(
            "No folder was named from which tables may be added.",
            "Any file of this machine could be asked about otherwise.",
            'Write folder = "tables" in the service file and start the service anew.',
        )
    for key, what in (("file", say("The table")), ("schema", say("The schema"))):
        try:
            contained(entry.get(key, key), settings.folder, what)
        except SchemaError:
            raise ParameterError(
                say("{what} does not lie in the folder from which tables may be added.", what=what),
                "Any file of this machine could be asked about otherwise.",
                "Put it there, or in a folder below, and name it without '..', a leading slash or a link that leads out.",
            ) from None
    beside = settings.tokens.absolute().parent / f"{name}.ledger"
    named = _ledger_in_schema(entry.get("schema"), settings.folder)
    table = _dataset_table(name, {"ledger": named or str(beside), **entry}, settings.folder)
    return _dataset(name, table, settings.folder, record=False)


def _dataset_table(name: str, entry: Mapping[str, object], folder: Path) -> _DatasetTable:
    place = _FILE.inside("datasets").inside(name)
    if not _NAME.match(name):
        raise _wrong(
            say("{place} has a name that a query cannot write.", place=place.here),
            "Use letters, digits and underscores, beginning with a letter: it stands after FROM.",
        )
    if "ledger" not in entry and (named := _ledger_in_schema(entry.get("schema"), folder)):
        entry = {**entry, "ledger": named}
    table = read(_DatasetTable, {**entry, "unit": None} if entry.get("unit") == _RECORD else entry, place)
    if (table.file is None) == (table.url is None) or (table.url is None) != (table.relation is None):
        raise _wrong(
            say("{place} needs either 'file', or 'url' with 'relation'.", place=place.here),
            "Say in one way where the rows are.",
        )
    if (table.budget.epsilon is None) == (table.budget.rho is None):
        raise _wrong(
            say("{place} needs either epsilon or rho.", place=place.inside("budget").here),
            "Write for example budget = { epsilon = 1 }.",
        )
    return table


def _ledger_in_schema(schema: object, folder: Path) -> str | None:
    """The ledger that the schema names for every question about its table, where service.toml names none."""
    path = folder / schema if isinstance(schema, str) else None
    found = read_schema(path).dataset.ledger_file if path is not None and path.is_file() else None
    return None if found is None else str(found)


def _dataset(name: str, table: _DatasetTable, folder: Path, record: bool) -> DatasetSettings:
    place = _FILE.inside("datasets").inside(name)
    ledger = _secret(table.ledger, place.of("ledger"))
    remote = ledger.startswith(("postgresql://", "postgres://"))
    return DatasetSettings(
        name=name,
        schema=folder / table.schema,
        ledger=ledger if remote else str(folder / ledger),
        budget=_budget(table.budget),
        file=None if table.file is None else folder / table.file,
        url=None if table.url is None else _secret(table.url, place.of("url")),
        relation=table.relation,
        seal=None if table.seal is None else folder / table.seal,
        unit=Unit() if record else None if table.unit is None else Unit(**vars(table.unit)),
        each=table.each,
        least=table.least,
        extremes=table.extremes,
        caps=table.caps,
        title=table.title,
        version=table.version,
    )


def _budget(table: _BudgetTable) -> Budget:
    if table.rho is not None:
        return Budget.rho(table.rho, table.delta)
    assert table.epsilon is not None
    if table.delta is not None:
        return Budget.approximate(table.epsilon, table.delta)
    return Budget.epsilon(table.epsilon)


def _secret(text: str, what: str) -> str:
    """The text, or for `env:NAME` what the environment holds: a password need not stand in the file."""
    if not text.startswith("env:"):
        return text
    value = os.environ.get(text.removeprefix("env:"))
    if not value:
        raise _wrong(
            say("{what} names an environment variable that is not set.", what=what),
            "Set it before the start.",
        )
    return value


def _wrong(what: str, fix: str) -> SchemaError:
    return SchemaError(what, "The service starts only with settings that are whole.", fix)
