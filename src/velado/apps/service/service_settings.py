"""What service.toml says, as frozen values. A misspelt key is an error with its place, never passed over."""

from __future__ import annotations

import difflib
import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, TypeGuard

from velado.data.io import read_schema
from velado.errors import ParameterError, SchemaError
from velado.query.budget import Budget, exact
from velado.query.unit import Unit
from velado.settings import parse_toml
from velado.text import say

Table = Mapping[str, object]
"""One parsed table of TOML, of which nothing is believed yet."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}\Z")


def _limit(default: float, least: float, most: float, text: str) -> Any:
    return field(default=default, metadata={"min": least, "max": most, "help": text})


@dataclass(frozen=True)
class ServiceLimits:
    """How much one token, one address and all together may ask of the service.

    >>> ServiceLimits(burst=9).part(2).burst
    5
    """

    requests_per_minute: float = _limit(120.0, 0.1, 1e9, "requests of one token, on average")
    burst: int = _limit(30, 1, 10**6, "requests of one token at once")
    failed_tokens_per_minute: float = _limit(10.0, 0.1, 1e6, "wrong tokens tried from one address")
    max_body_bytes: int = _limit(65_536, 256, 1 << 24, "size of a request's body")
    body_seconds: float = _limit(10.0, 0.1, 600, "time a client has to send its request")
    max_query_characters: int = _limit(10_000, 16, 1 << 20, "length of a query")
    query_seconds: float = _limit(30.0, 0.1, 3600, "time one query may take")
    concurrent_queries: int = _limit(4, 1, 256, "queries at work at once")
    waiting_queries: int = _limit(64, 0, 10**5, "queries that may wait; more are turned away")
    connections: int = _limit(512, 1, 10**5, "open connections")
    half_open_connections: int = _limit(32, 1, 10**5, "connections of one address without a whole request")

    def part(self, workers: int) -> ServiceLimits:
        """The limits of one of *workers* processes, which add up to these."""
        rates = ("requests_per_minute", "failed_tokens_per_minute")
        counts = ("burst", "concurrent_queries", "waiting_queries", "connections", "half_open_connections")
        shares: dict[str, Any] = {name: getattr(self, name) / workers for name in rates}
        return replace(self, **shares, **{name: -(-getattr(self, name) // workers) for name in counts})


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
    extremes: Literal["quantile", "bound"] = "quantile"
    caps: Mapping[str, Fraction] = field(default_factory=dict)
    title: str = ""
    version: str = "1"


@dataclass(frozen=True)
class ServiceSettings:
    """The whole service: data sets by name, limits, and the files of tokens and audit.

    *shared* is a folder in which several processes of one service tell one another their counts.

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


def read_settings(path: str | Path) -> ServiceSettings:
    """The settings of a service.toml; paths in it are relative to the file.

    >>> read_settings("missing.toml")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.SchemaError: There is no file 'missing.toml'...
    """
    path = Path(path)
    return settings_from(parse_toml(path, say("The service file")), path.parent)


def settings_from(document: Table, folder: Path) -> ServiceSettings:
    """From parsed TOML. Every mistake is named with its place.

    >>> settings_from({"titel": "x"}, Path())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.SchemaError: Unknown key 'titel' in the service file. ... Did you mean 'title'?
    """
    _known(document, ("title", "tokens", "audit", "limits", "datasets"), "the service file")
    entries = document.get("datasets")
    if not isinstance(entries, Mapping) or not entries:
        raise _wrong("The service file names no data set.", "Add a [datasets.NAME] table for each.")
    return ServiceSettings(
        datasets={name: _dataset(name, entry, folder) for name, entry in entries.items()},
        tokens=folder / _text(document, "tokens", "the service file", "tokens.json"),
        audit=folder / _text(document, "audit", "the service file", "audit.jsonl"),
        limits=_limits(document.get("limits", {})),
        title=_text(document, "title", "the service file", "velado"),
    )


def _limits(said: object) -> ServiceLimits:
    entry: Mapping[str, Any] = _table(said, "[limits]")
    known = {item.name: item for item in fields(ServiceLimits)}
    _known(entry, known, "[limits]")
    for key, value in entry.items():
        low, high = known[key].metadata["min"], known[key].metadata["max"]
        whole = known[key].type == "int"
        if not _is_number(value) or (whole and not isinstance(value, int)) or not low <= value <= high:
            raise _wrong(
                f"'{key}' in [limits] must be a {'whole ' if whole else ''}number from {low:g} to {high:g}.",
                f"Write for example {key} = {known[key].default}.",
            )
    return ServiceLimits(**entry)


_DATASET_KEYS = tuple(item.name for item in fields(DatasetSettings) if item.name != "name")


def _dataset(name: str, said: object, folder: Path) -> DatasetSettings:
    where = f"[datasets.{name}]"
    entry = _table(said, where)
    _known(entry, _DATASET_KEYS, where)
    if not _NAME.match(name):
        raise _wrong(
            f"{where} has a name that a query cannot write.",
            "Use letters, digits and underscores, beginning with a letter: it stands after FROM.",
        )
    if "ledger" not in entry and (named := _ledger_in_schema(entry.get("schema"), folder)):
        entry = {**entry, "ledger": named}
    for key in ("schema", "ledger", "budget"):
        if key not in entry:
            raise _wrong(f"{where} lacks '{key}'.", f"Add {key}; nothing is answered without it.")
    if ("file" in entry) == ("url" in entry) or ("url" in entry) != ("relation" in entry):
        raise _wrong(
            f"{where} needs either 'file', or 'url' with 'relation'.", "Say in one way where the rows are."
        )
    extremes = _text(entry, "extremes", where, "quantile")
    if extremes not in ("quantile", "bound"):
        raise _wrong(f"'extremes' in {where} must be quantile or bound.", 'Write extremes = "quantile".')
    return DatasetSettings(
        name=name,
        schema=folder / _text(entry, "schema", where),
        ledger=_place(_text(entry, "ledger", where), folder, f"'ledger' in {where}"),
        budget=_budget(entry["budget"], where),
        file=folder / _text(entry, "file", where) if "file" in entry else None,
        url=_secret(_text(entry, "url", where), f"'url' in {where}") if "url" in entry else None,
        relation=_text(entry, "relation", where) if "relation" in entry else None,
        seal=folder / _text(entry, "seal", where) if "seal" in entry else None,
        unit=_unit(entry["unit"], where) if "unit" in entry else None,
        each=_positive(entry["each"], f"'each' in {where}") if "each" in entry else None,
        extremes="bound" if extremes == "bound" else "quantile",
        caps=_caps(entry.get("caps", {}), where),
        title=_text(entry, "title", where, ""),
        version=_text(entry, "version", where, "1"),
    )


def _budget(said: object, where: str) -> Budget:
    what = f"'budget' in {where}"
    entry = _table(said, what)
    _known(entry, ("epsilon", "rho", "delta"), what)
    values = {key: _positive(value, f"'{key}' of {what}") for key, value in entry.items()}
    if ("epsilon" in values) == ("rho" in values):
        raise _wrong(f"{what} needs either epsilon or rho.", "Write for example budget = { epsilon = 1 }.")
    if "rho" in values:
        return Budget.rho(values["rho"], values.get("delta"))
    if "delta" in values:
        return Budget.approximate(values["epsilon"], values["delta"])
    return Budget.epsilon(values["epsilon"])


def _unit(entry: object, where: str) -> Unit:
    what = f"'unit' in {where}"
    if entry == "record":
        return Unit()
    if not isinstance(entry, Mapping):
        raise _wrong(
            f"{what} is not known.", 'Write unit = "record", or unit = { column = "ward", rows = 4 }.'
        )
    _known(entry, ("column", "rows", "dependence"), what)
    column, rows = entry.get("column"), entry.get("rows")
    if not isinstance(column, str) or not isinstance(rows, int) or isinstance(rows, bool):
        raise _wrong(f"{what} needs a column and its most rows.", 'Write { column = "ward", rows = 4 }.')
    dependence = entry.get("dependence")
    if dependence is None:
        return Unit(column, rows)
    if not _is_number(dependence):
        raise _wrong(f"'dependence' of {what} must be a number from 0 to 1.", "Leave it out if in doubt.")
    return Unit(column, rows, exact(dependence))


def _caps(said: object, where: str) -> Mapping[str, Fraction]:
    what = f"'caps' in {where}"
    return {
        name: _positive(value, f"the cap of '{name}' of {what}") for name, value in _table(said, what).items()
    }


def _ledger_in_schema(schema: object, folder: Path) -> str | None:
    """The ledger that the schema names for every question about its table, where service.toml names none."""
    path = folder / schema if isinstance(schema, str) else None
    found = read_schema(path).dataset.ledger_file if path is not None and path.is_file() else None
    return None if found is None else str(found)


def _place(text: str, folder: Path, what: str) -> str:
    text = _secret(text, what)
    return text if text.startswith(("postgresql://", "postgres://")) else str(folder / text)


def _secret(text: str, what: str) -> str:
    """The text, or for `env:NAME` what the environment holds: a password need not stand in the file."""
    if not text.startswith("env:"):
        return text
    value = os.environ.get(text.removeprefix("env:"))
    if not value:
        raise _wrong(f"{what} names an environment variable that is not set.", "Set it before the start.")
    return value


def _text(entry: Table, key: str, where: str, default: str | None = None) -> str:
    value = entry.get(key, default)
    if not isinstance(value, str) or (not value and default is None):
        raise _wrong(f"'{key}' in {where} must be a text.", f'Write {key} = "...".')
    return value


def _positive(value: object, what: str) -> Fraction:
    if isinstance(value, str) or _is_number(value):
        try:
            number = exact(value)
        except ParameterError:
            number = Fraction(0)
        if number > 0:
            return number
    raise _wrong(f"{what} must be a number above 0.", 'Write for example 0.5, or "1/3".')


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _table(entry: object, where: str) -> Table:
    if not isinstance(entry, Mapping):
        raise _wrong(f"{where} is not a table.", f"Write {where} with its keys.")
    return entry


def _known(entry: Table, keys: Iterable[str], where: str) -> None:
    keys = tuple(keys)
    for key in entry:
        if key not in keys:
            near = difflib.get_close_matches(str(key), keys, n=1)
            hint = f"Did you mean '{near[0]}'?" if near else f"Known keys: {', '.join(keys)}."
            raise SchemaError(
                f"Unknown key '{key}' in {where}.", "A misspelt key would be passed over.", hint
            )


def _wrong(what: str, fix: str) -> SchemaError:
    return SchemaError(what, "The service starts only with settings that are whole.", fix)
