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
from typing import Any, Literal

from velado.errors import ParameterError, SchemaError
from velado.query.budget import Budget, exact
from velado.query.unit import Unit
from velado.settings import parse_toml
from velado.text import say

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}\Z")


@dataclass(frozen=True)
class Limits:
    """How much one token, one address and all together may ask of the service."""

    requests_per_minute: float = field(
        default=120.0, metadata={"min": 0.1, "max": 1e9, "help": "requests of one token, on average"}
    )
    burst: int = field(default=30, metadata={"min": 1, "max": 10**6, "help": "requests of one token at once"})
    failed_tokens_per_minute: float = field(
        default=10.0, metadata={"min": 0.1, "max": 1e6, "help": "wrong tokens tried from one address"}
    )
    max_body_bytes: int = field(
        default=65_536, metadata={"min": 256, "max": 1 << 24, "help": "size of a request's body"}
    )
    body_seconds: float = field(
        default=10.0, metadata={"min": 0.1, "max": 600, "help": "time a client has to send its request"}
    )
    max_query_characters: int = field(
        default=10_000, metadata={"min": 16, "max": 1 << 20, "help": "length of a query"}
    )
    query_seconds: float = field(
        default=30.0, metadata={"min": 0.1, "max": 3600, "help": "time one query may take"}
    )
    concurrent_queries: int = field(
        default=4, metadata={"min": 1, "max": 256, "help": "queries at work at once"}
    )
    waiting_queries: int = field(
        default=64, metadata={"min": 0, "max": 10**5, "help": "queries that may wait; more are turned away"}
    )
    connections: int = field(default=512, metadata={"min": 1, "max": 10**5, "help": "open connections"})
    half_open_connections: int = field(
        default=32,
        metadata={"min": 1, "max": 10**5, "help": "connections of one address without a whole request"},
    )


@dataclass(frozen=True)
class Dataset:
    """One table that may be asked: where its rows and its ledger are, and what the owner declared.

    Either *file*, or *url* and *relation* of PostgreSQL. *unit* None is the unit the schema declares. *version* is the public
    name of the table's content: a changed table must be given a new one.
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
class Settings:
    """The whole service: data sets by name, limits, and the files of tokens and audit.

    *shared* is a folder in which several processes of one service tell one another their counts.
    """

    datasets: Mapping[str, Dataset]
    tokens: Path
    audit: Path
    limits: Limits = field(default_factory=Limits)
    title: str = "velado"
    secure_transport: bool = False
    shared: Path | None = None

    def part(self, workers: int) -> Settings:
        """The settings of one of *workers* processes, whose limits add up to these."""
        limits = self.limits
        return replace(
            self,
            limits=replace(
                limits,
                requests_per_minute=limits.requests_per_minute / workers,
                burst=-(-limits.burst // workers),
                failed_tokens_per_minute=limits.failed_tokens_per_minute / workers,
                concurrent_queries=-(-limits.concurrent_queries // workers),
                waiting_queries=-(-limits.waiting_queries // workers),
                connections=-(-limits.connections // workers),
                half_open_connections=-(-limits.half_open_connections // workers),
            ),
        )


def read_settings(path: str | Path) -> Settings:
    """The settings of a service.toml; paths in it are relative to the file."""
    path = Path(path)
    return settings_from(parse_toml(path, say("The service file")), path.parent)


def settings_from(document: Mapping[str, Any], folder: Path) -> Settings:
    """From parsed TOML. Every mistake is named with its place."""
    _known(document, ("title", "tokens", "audit", "limits", "datasets"), "the service file")
    entries = document.get("datasets")
    if not isinstance(entries, Mapping) or not entries:
        raise _wrong("The service file names no data set.", "Add a [datasets.NAME] table for each.")
    return Settings(
        datasets={name: _dataset(name, entry, folder) for name, entry in entries.items()},
        tokens=folder / _text(document, "tokens", "the service file", "tokens.json"),
        audit=folder / _text(document, "audit", "the service file", "audit.jsonl"),
        limits=_limits(document.get("limits", {})),
        title=_text(document, "title", "the service file", "velado"),
    )


def _limits(entry: Any) -> Limits:
    _mapping(entry, "[limits]")
    known = {item.name: item for item in fields(Limits)}
    _known(entry, known, "[limits]")
    for key, value in entry.items():
        low, high = known[key].metadata["min"], known[key].metadata["max"]
        whole = known[key].type == "int"
        if not _is_number(value) or (whole and not isinstance(value, int)) or not low <= value <= high:
            raise _wrong(
                f"'{key}' in [limits] must be a {'whole ' if whole else ''}number from {low:g} to {high:g}.",
                f"Write for example {key} = {known[key].default}.",
            )
    return Limits(**entry)


_DATASET_KEYS = (
    "file",
    "url",
    "relation",
    "schema",
    "ledger",
    "seal",
    "budget",
    "unit",
    "each",
    "extremes",
    "caps",
    "title",
    "version",
)


def _dataset(name: str, entry: Any, folder: Path) -> Dataset:
    where = f"[datasets.{name}]"
    _mapping(entry, where)
    _known(entry, _DATASET_KEYS, where)
    if not _NAME.match(name):
        raise _wrong(
            f"{where} has a name that a query cannot write.",
            "Use letters, digits and underscores, beginning with a letter: it stands after FROM.",
        )
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
    return Dataset(
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


def _budget(entry: Any, where: str) -> Budget:
    what = f"'budget' in {where}"
    _mapping(entry, what)
    _known(entry, ("epsilon", "rho", "delta"), what)
    values = {key: _positive(value, f"'{key}' of {what}") for key, value in entry.items()}
    if ("epsilon" in values) == ("rho" in values):
        raise _wrong(f"{what} needs either epsilon or rho.", "Write for example budget = { epsilon = 1 }.")
    if "rho" in values:
        return Budget.rho(values["rho"], values.get("delta"))
    if "delta" in values:
        return Budget.approximate(values["epsilon"], values["delta"])
    return Budget.epsilon(values["epsilon"])


def _unit(entry: Any, where: str) -> Unit:
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
    if dependence is not None and not _is_number(dependence):
        raise _wrong(f"'dependence' of {what} must be a number from 0 to 1.", "Leave it out if in doubt.")
    return Unit(column, rows, None if dependence is None else exact(dependence))


def _caps(entry: Any, where: str) -> Mapping[str, Fraction]:
    what = f"'caps' in {where}"
    _mapping(entry, what)
    return {name: _positive(value, f"the cap of '{name}' of {what}") for name, value in entry.items()}


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


def _text(entry: Mapping[str, Any], key: str, where: str, default: str | None = None) -> str:
    value = entry.get(key, default)
    if not isinstance(value, str) or (not value and default is None):
        raise _wrong(f"'{key}' in {where} must be a text.", f'Write {key} = "...".')
    return value


def _positive(value: Any, what: str) -> Fraction:
    if isinstance(value, str) or _is_number(value):
        try:
            number = exact(value)
        except ParameterError:
            number = Fraction(0)
        if number > 0:
            return number
    raise _wrong(f"{what} must be a number above 0.", 'Write for example 0.5, or "1/3".')


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _mapping(entry: Any, where: str) -> None:
    if not isinstance(entry, Mapping):
        raise _wrong(f"{where} is not a table.", f"Write {where} with its keys.")


def _known(entry: Mapping[str, Any], keys: Iterable[str], where: str) -> None:
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
