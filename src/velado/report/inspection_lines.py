"""What was found in a table: the roles proposed and how exposed people are, as the terminal shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from velado.data.inspect import ColumnFinding, Inspection
from velado.data.missing_codes import MissingCode
from velado.report.blocks import Table
from velado.text import join, number, percent, say

SHOWN = 5
"""How many columns a line about missing codes names."""

# What the library writes as a code in schema files and JSON, as a person reads it.
_WORDS = {
    str(word): word
    for word in (
        say("identifier"),
        say("quasi"),
        say("sensitive"),
        say("other"),
        say("numeric"),
        say("categorical"),
        say("date"),
        say("text"),
        say("cpf"),
        say("cns"),
        say("cnpj"),
        say("rg"),
        say("ip"),
        say("uuid"),
        say("ssn"),
        say("document"),
        say("card"),
        say("account"),
        say("record"),
        say("member"),
        say("email"),
        say("phone"),
        say("name"),
        say("address"),
        say("url"),
        say("mac"),
        say("device"),
        say("plate"),
        say("coordinates"),
        say("photo"),
        say("biometric"),
        say("free text"),
    )
}


def word(code: str) -> str:
    """A role, a kind or the kind of an identifier as a person reads it; one not known here stays as it is.

    >>> from velado.text import told
    >>> told(word("quasi"), "en"), word("of my own")
    ('quasi', 'of my own')
    """
    return _WORDS.get(code, code)


def roles(inspection: Inspection) -> Iterator[Table]:
    """The proposed roles, one column a line, with the reasons for each.

    >>> from velado.data.inspect import inspect
    >>> from velado.testing.factory import small_table
    >>> next(roles(inspect(small_table(sexo=("other", "text", "F M F"))))).rows[0][:3]
    ['sexo', 'quasi', 'categorical']
    """
    yield Table(
        say("Roles proposed"),
        [say("column"), say("role"), say("kind"), say("looks like"), say("why")],
        [
            [
                column.name,
                word(column.role) if column.publish else say("{role}, not published", role=word(column.role)),
                word(column.kind),
                _looks_like(column),
                join(column.why, "; "),
            ]
            for column in inspection.columns
        ],
    )


def _looks_like(column: ColumnFinding) -> str:
    if column.identifier is not None:
        return word(column.identifier)
    return "" if column.suspected is None else say("{identifier}?", identifier=word(column.suspected))


def exposure(inspection: Inspection) -> Iterator[str | Table]:
    """Direct identifiers, how well columns tell rows apart, and how many are unique now.

    >>> from velado.data.inspect import inspect
    >>> from velado.testing.factory import small_table
    >>> list(exposure(inspect(small_table(sexo=("other", "text", "F M F")))))[-1]
    '1 of 3 rows are unique on the proposed quasi-identifiers; smallest group: 1.'
    """
    columns = inspection.columns
    found = [(one.name, one.identifier) for one in columns if one.identifier is not None]
    held = [(one.name, one.suspected) for one in columns if one.suspected is not None]
    yield say("Direct identifiers: {columns}.", columns=_called(found) if found else say("none"))
    if held:
        yield say("In doubt, so held back until somebody has read them: {columns}.", columns=_called(held))
    if inspection.person is not None:
        yield say("Rows that share '{column}' are taken for one person.", column=inspection.person)
        mean = inspection.rows_per_person
        if mean is not None and mean > 1:
            yield say(
                "'{column}' repeats: {mean:,.1f} rows a person in the mean.",
                column=inspection.person,
                mean=mean,
            )
    yield from _missing_codes(inspection)
    by_name = {column.name: column for column in columns}
    ranked = [by_name[name] for name in inspection.ranking]
    yield Table(
        say("How well columns tell rows apart"),
        [say("columns"), say("distinct"), say("distinction"), say("separation")],
        [
            *(
                [
                    one.name,
                    number(one.distinct + (one.missing > 0)),
                    percent(one.distinction),
                    percent(one.separation),
                ]
                for one in ranked
            ),
            *(
                [" + ".join(best.columns), "", percent(best.distinction), percent(best.separation)]
                for best in inspection.sets
                if len(best.columns) > 1
            ),
        ],
    )
    # The sets grow from the column that separates best, so one that does better was not looked at.
    sets = inspection.sets
    if len(sets) > 1 and any(one.separation > sets[0].separation for one in ranked):
        yield say("Sets of several columns: columns in which most values are distinct are left out.")
    if any(one.missing for one in ranked):
        yield say("A blank counts as one value.")
    now = inspection.exposure
    if now is None:
        return
    yield say(
        "{unique:,} of {rows:,} rows are unique on the proposed quasi-identifiers; smallest group: {smallest:,}.",
        unique=now.unique_rows,
        rows=inspection.rows,
        smallest=now.smallest,
    )
    if inspection.person is not None:
        yield say(
            "{unique:,} of {people:,} people are unique on the proposed quasi-identifiers.",
            unique=now.unique_people,
            people=now.people,
        )


def _called(columns: Sequence[tuple[str, str]]) -> str:
    return join([say("{name} ({kind})", name=name, kind=word(kind)) for name, kind in columns], ", ")


def _missing_codes(inspection: Inspection) -> Iterator[str]:
    by_code: dict[str, list[MissingCode]] = {}
    for code in inspection.missing_codes:
        if not code.applied:
            by_code.setdefault(code.code, []).append(code)
    for text, codes in by_code.items():
        names = [code.column for code in codes]
        more = f" (+{len(names) - SHOWN})" if len(names) > SHOWN else ""
        yield say(
            "'{code}' may mean no value, in {rows:,} cells of {columns}; if so, add it to missing_values.",
            code=text,
            rows=sum(code.rows for code in codes),
            columns=", ".join(names[:SHOWN]) + more,
        )
