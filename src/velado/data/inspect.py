"""inspect(): which columns identify, what kind each is, how exposed people are now, and a first schema.

Everything it says is a proposal for a person to review. It names columns, counts and shares, never a cell.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from velado.data.exposure import (
    Codes,
    ColumnSet,
    Exposure,
    best_sets,
    exposure,
    repeats,
    sample_codes,
    separation,
)
from velado.data.identifiers import Found, IdentifierKind, find_identifier, header_says
from velado.data.kinds import LOOKS_LIKE_DATES, Inferred, infer_kind, missing_tokens
from velado.data.schema import Column, Kind, Role, Schema
from velado.data.table import Table

SHAPE_SAMPLE = 5_000
_PERSON_ORDER: tuple[IdentifierKind, ...] = ("cpf", "cns", "document", "record", "email", "name", "phone")


@dataclass(frozen=True)
class ColumnFinding:
    """What was found about one column and what is proposed for it.

    *identifier* is the direct identifier it seems to be; *valid* the share of sampled values whose check digits
    are right. *distinction* is different values / rows, *separation* the share of pairs of rows told
    apart; a blank counts as a value in both. *why* gives the reasons as phrases.
    """

    name: str
    role: Role
    kind: Kind
    why: tuple[str, ...]
    identifier: IdentifierKind | None
    valid: float | None
    missing: int
    distinct: int
    distinction: float
    separation: float
    person: bool = False
    publish: bool = True
    format: str = "%Y-%m-%d"

    def to_dict(self) -> dict[str, Any]:
        """All fields."""
        return asdict(self) | {"why": list(self.why)}


@dataclass(frozen=True)
class Inspection:
    """What was found in a table: its columns, the sets that tell most, who is unique now, a proposed schema.

    *ranking* lists the columns that are no direct identifiers by separation, most telling first. *sets* are
    the best one, two and three of them. *exposure* is None when no quasi-identifier is proposed.
    """

    source: str
    rows: int
    columns: tuple[ColumnFinding, ...]
    schema: Schema
    person: str | None
    ranking: tuple[str, ...]
    sets: tuple[ColumnSet, ...]
    exposure: Exposure | None

    def to_dict(self) -> dict[str, Any]:
        """The inspection as plain values, without any cell."""
        return {
            "source": self.source,
            "rows": self.rows,
            "columns": [column.to_dict() for column in self.columns],
            "person": self.person,
            "ranking": list(self.ranking),
            "sets": [best.to_dict() for best in self.sets],
            "exposure": None if self.exposure is None else self.exposure.to_dict(),
            "schema": self.schema.to_dict(),
        }


def inspect(table: Table) -> Inspection:
    """What *table* seems to hold and a schema for it; the roles it already has are not looked at.

    Shapes are judged on 5,000 values of each column, sets on 100,000 evenly spaced rows; numbers, dates,
    counts and uniqueness on all rows. O(n log n) for each column.
    """
    settings = replace(table.schema, missing_values=missing_tokens(table.frame))
    table = table.with_schema(settings)
    found: list[ColumnFinding] = []
    comma = False
    for name in table.frame.columns:
        finding, inferred = _column(table, name)
        comma |= inferred.decimal_comma
        found.append(finding)
    found = _with_person(found, table.rows)
    open_columns = [f for f in found if f.identifier is None and f.distinct > 1 and f.kind != "text"]
    ranked = sorted(open_columns, key=lambda finding: -finding.separation)
    coded = sample_codes(table, [finding.name for finding in open_columns])
    sets = best_sets(coded)
    if sets and not any(finding.role == "quasi" for finding in found):
        why = "no header names a quasi-identifier; this one is among the columns that tell rows apart best"
        found = [
            replace(f, role="quasi", why=(*f.why[:-1], why)) if f.name in sets[-1].columns else f
            for f in found
        ]
    found = _without_copies(found, coded)
    schema = replace(
        settings.with_columns(_proposed(finding) for finding in found),
        decimal="," if comma else settings.decimal,
        separator=None if table.separator == "," else table.separator,
    )
    person = schema.person.name if schema.person else None
    quasi = [column.name for column in schema.quasi]
    return Inspection(
        table.source,
        table.rows,
        tuple(found),
        schema,
        person,
        tuple(finding.name for finding in ranked),
        sets,
        exposure(table, quasi, person) if quasi else None,
    )


def _column(table: Table, name: str) -> tuple[ColumnFinding, Inferred]:
    texts = table.text(name)
    filled = texts.drop_nulls()
    sizes = texts.alias("value").value_counts(parallel=True, name="rows").get_column("rows")
    counts = sizes.to_numpy().astype(np.int64)
    missing = texts.len() - filled.len()
    distinct = counts.size - (missing > 0)
    step = max(1, -(-filled.len() // SHAPE_SAMPLE))
    sample = filled.gather_every(step)
    inferred = infer_kind(name, filled, table.frame.schema[name], distinct, sample)
    identifier = find_identifier(name, sample, table.rows, filled.len(), distinct)
    role, why, publish = _role(name, inferred, identifier)
    finding = ColumnFinding(
        name=name,
        role=role,
        kind="text" if identifier is not None else inferred.kind,
        why=why,
        identifier=None if identifier is None else identifier.kind,
        valid=None if identifier is None else identifier.valid,
        missing=missing,
        distinct=distinct,
        distinction=counts.size / table.rows,
        separation=separation(counts),
        publish=publish,
        format=inferred.format,
    )
    return finding, inferred


def _role(name: str, inferred: Inferred, identifier: Found | None) -> tuple[Role, tuple[str, ...], bool]:
    if identifier is not None:
        return "identifier", (identifier.why,), True
    if inferred.kind == "text":
        if inferred.why.startswith("free text"):
            why = "names and places hide in free text: read it before it is published"
            return "other", (inferred.why, why), False
        return "other", (inferred.why,), True
    if inferred.kind == "date" or inferred.why == LOOKS_LIKE_DATES:
        return "quasi", (inferred.why, "outsiders often know the day of an event in somebody's life"), True
    if header_says(name, "sensitive"):
        return "sensitive", (inferred.why, "the header names something private"), True
    if header_says(name, "quasi"):
        return "quasi", (inferred.why, "the header names something outsiders may know"), True
    return "other", (inferred.why, 'if outsiders may know it, set role = "quasi"'), True


def _with_person(found: list[ColumnFinding], rows: int) -> list[ColumnFinding]:
    # Repeats show that a column follows people over rows; without any, each row is a person all the same.
    ordered = [f for kind in _PERSON_ORDER for f in found if f.identifier == kind]
    repeated = [f for f in ordered if f.distinct < rows - f.missing]
    chosen = next(iter(repeated or ordered), None)
    if chosen is None:
        return found
    why = "rows that share it are taken for one person"
    return [replace(f, person=True, why=(*f.why, why)) if f is chosen else f for f in found]


def _without_copies(found: list[ColumnFinding], coded: Mapping[str, Codes]) -> list[ColumnFinding]:
    out: list[ColumnFinding] = []
    quasi = [f for f in found if f.role == "quasi"]
    kept: list[ColumnFinding] = []
    for finding in found:
        rivals = kept if finding.role == "quasi" else quasi
        twin = next((other for other in rivals if _are_copies(finding, other, coded)), None)
        if twin is not None:
            why = f"it repeats {_quoted(twin.name)} one to one, so it would undo its generalization"
            finding = replace(finding, publish=False, why=(*finding.why, why))
        elif finding.role == "quasi":
            kept.append(finding)
        out.append(finding)
    return out


def _are_copies(one: ColumnFinding, other: ColumnFinding, coded: Mapping[str, Codes]) -> bool:
    if one.distinct != other.distinct or one.name not in coded or other.name not in coded:
        return False
    return repeats(coded[one.name], coded[other.name])


def _proposed(finding: ColumnFinding) -> Column:
    return Column(
        finding.name,
        finding.role,
        finding.kind,
        person=finding.person,
        publish=finding.publish,
        format=finding.format,
    )


def schema_toml(inspection: Inspection) -> str:
    """The proposed schema as a TOML file to read and edit: one comment on each column says why.

    Parsed again it is the same schema. There is no cell in it, not even bounds: those of the data would be
    the smallest and largest cell.
    """
    lines = [
        f"# Proposed by velado from {inspection.rows} rows. Review every role before you publish:",
        "# identifier (never published), quasi (outsiders may know it), sensitive (must not be learnt), other.",
        "",
    ]
    document = inspection.schema.to_dict()
    if "table" in document:
        lines += ["[table]", *(f"{key} = {_value(value)}" for key, value in document["table"].items()), ""]
    for finding in inspection.columns:
        share = f"{finding.distinct} different values"
        blank = f", {finding.missing} blank" if finding.missing else ""
        lines.append(f"# {'; '.join(finding.why)} ({share}{blank}).")
        if finding.valid is not None:
            lines.append(f"# Check digits are right in {finding.valid:.0%} of the values looked at.")
        lines.append(f"[columns.{_key(finding.name)}]")
        entry = document["columns"][finding.name]
        lines += [f"{key} = {_value(value)}" for key, value in entry.items()]
        if finding.role == "quasi" and finding.kind == "numeric":
            lines.append(
                "# bounds = [LEAST, GREATEST]  # public limits of the column, by which loss is measured"
            )
        lines.append("")
    return "\n".join(lines)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, list):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    return str(value)


def _quoted(text: str) -> str:
    # JSON strings are TOML basic strings, except that TOML also wants DEL escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
