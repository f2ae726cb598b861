"""A proposed schema as the TOML file that a person reads, corrects and keeps."""

from __future__ import annotations

from collections.abc import Mapping

from velado.data.inspect import ColumnFinding, Inspection
from velado.data.kinds import MissingCode
from velado.data.schema_domains import as_toml
from velado.data.toml_keys import toml_key
from velado.text import Sentence, join, say, say_n, told


def schema_toml(inspection: Inspection) -> str:
    """The proposed schema as a TOML file to read and edit: one comment on each column says why.

    Parsed again it is the same schema: bounds and values stand in it as remarks, to be confirmed by taking the mark away.
    They are round numbers and what many people have; without those a place is left for them. max_rows of the person is a
    round number to confirm too. Comments are in the language spoken.

    >>> from velado.data.inspect import inspect
    >>> from velado.testing.examples import small_table
    >>> print("\\n".join(schema_toml(inspect(small_table(sexo=("other", "text", "F M F")))).splitlines()[-4:-1]))
    [columns.sexo]
    role = "quasi"
    kind = "categorical"
    """
    lines = [
        _remark(
            say(
                "Proposed by velado from {rows:,} rows. Review every role before you publish:",
                rows=inspection.rows,
            )
        ),
        _remark(
            say(
                "identifier (never published), quasi (outsiders may know it), sensitive (must not be learnt), other."
            )
        ),
        *([_remark(inspection.judged)] if inspection.judged else []),
        "",
    ]
    schema = inspection.schema
    settings = schema.to_dict().get("table")
    if settings:
        lines += [*_table("table", settings), ""]
    for finding in inspection.columns:
        counts = [say_n("{n:,} different value", "{n:,} different values", finding.distinct)]
        if finding.missing:
            counts.append(say_n("{n:,} blank", "{n:,} blanks", finding.missing))
        lines.append(
            _remark(say("{why} ({counts}).", why=join(finding.why, "; "), counts=join(counts, ", ")))
        )
        if finding.valid is not None:
            lines.append(
                _remark(
                    say("Check digits are right in {share:.0%} of the values looked at.", share=finding.valid)
                )
            )
        lines += map(_remark, _asking(finding))
        lines += [_remark(_of_code(code)) for code in inspection.missing_codes if code.column == finding.name]
        key = toml_key(finding.name)
        lines += _table(f"columns.{key}", schema.columns[finding.name].to_dict())
        if schema.columns[finding.name].max_rows is not None:
            confirm = say(
                "Confirm max_rows: how many rows of one person count in a private answer, from what is known of the data."
            )
            lines.insert(-1 - lines[::-1].index(f"[columns.{key}]"), _remark(confirm))
        if finding.kind == "categorical" and finding.role in ("quasi", "sensitive", "other"):
            listed = say("the public list of its values, needed for GROUP BY in private answers")
            lines += _to_confirm(
                inspection.domains.get(finding.name), f'values = ["{told(say("VALUE"))}", ...]', listed
            )
        if finding.kind == "numeric" and finding.role in ("quasi", "sensitive", "other"):
            public = say("public limits, for loss and for SUM and AVG in private answers")
            blank = f"bounds = [{told(say('LEAST'))}, {told(say('GREATEST'))}]"
            lines += _to_confirm(inspection.domains.get(finding.name), blank, public)
        lines.append("")
    return "\n".join(lines)


def _to_confirm(found: str | None, blank: str, what: Sentence) -> list[str]:
    """A declaration that nobody has made yet: as the rows have it, or with a place for it."""
    if found is None:
        return [f"# {blank}  # {told(what)}"]
    return [
        _remark(
            say("Found in the rows. Take the # away only if it is publicly known, and add what is missing:")
        ),
        f"# {found}  # {told(what)}",
    ]


def _remark(sentence: str) -> str:
    # A comment is one line: a name with a line break in it must not become a key of the file.
    return "# " + " ".join(told(sentence).split())


def _of_code(code: MissingCode) -> Sentence:
    parts = {"code": as_toml(code.code), "rows": say_n("{n:,} row", "{n:,} rows", code.rows)}
    if code.applied:
        return say("{code} in {rows} may mean no value (it stands in missing_values).", **parts)
    return say("{code} in {rows} may mean no value; then add it to missing_values of its column.", **parts)


def _asking(finding: ColumnFinding) -> list[Sentence]:
    if finding.identifier is not None:
        return [
            say(
                'If it identifies nobody: give it another role, with identifier = "accept" and reason = "why".'
            )
        ]
    if finding.publish:
        return []
    if finding.suspected is None and finding.kind != "text":
        return [say("Held back. To publish it, read it and set publish = true.")]
    return [
        say(
            "Held back. To publish it, read it, remove publish = false, "
            'add identifier = "accept", reason = "why".'
        )
    ]


def _table(name: str, entry: Mapping[str, object]) -> list[str]:
    return [f"[{name}]", *(f"{key} = {as_toml(value)}" for key, value in entry.items())]
