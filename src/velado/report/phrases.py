"""Codes of other rooms (guarantees, units, readings, notes, settings) as phrases a reader knows, in both languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from velado.release.guarantees import GUARANTEES, Verdict
from velado.release.operations import OPERATIONS
from velado.release.recoded import NoteName
from velado.release.side_doors.decisions import DECISIONS
from velado.text import NOTHING, count, few_digits, join, plain, say, share

_PHRASES = {
    **{guarantee.name: guarantee.title for guarantee in GUARANTEES},
    **{str(guarantee.measured_in): guarantee.measured_in for guarantee in GUARANTEES},
} | {
    str(phrase): phrase
    for phrase in (
        say("rows"),
        say("people"),
        # promises, and readings of blanks
        say("guaranteed"),
        say("measured"),
        say("as in the paper"),
        say("a blank is a value of its own"),
        say("a blank matches anything"),
        # what a preset does with a column
        say("held back"),
        say("changed"),
        say("as the schema says"),
    )
}

FATES = {
    "published": say("published as it was"),
    "generalized": say("generalized"),
    "altered": say("altered, then published"),
    "held back": say("held back"),
    "dropped": say("dropped: the schema does not name it"),
}
ROLES = {
    "identifier": say("identifier"),
    "quasi": say("quasi-identifier"),
    "sensitive": say("sensitive"),
    "other": say("other"),
    "undeclared": say("undeclared"),
}
"""Roles of columns and what became of them, in words."""

NEVER_PROMISED = (
    say("Combining releases of the same people, unless that is promised above."),
    say("What stands in columns published as they are, such as free text, dates and exact amounts."),
    say(
        "Joining a person's rows by columns that stay the same within a person: a value certain in one group is then certain."
    ),
    say("Finding out that somebody is in the table at all."),
    say("Meeting a law: people decide whether a table counts as anonymous, with this report as evidence."),
)
"""What no release protects against, of one table or of several."""


def phrase(code: str) -> str:
    """The phrase of a code; a sentence, or a code that is not known here, stays as its author wrote it.

    >>> type(phrase("rows")).__name__, type(phrase("of my own")).__name__
    ('Sentence', 'str')
    """
    return _PHRASES.get(code, code)


def verdict_of(told: Mapping[str, Any]) -> Verdict:
    """The verdict that a manifest tells.

    >>> verdict_of({"guarantee": "k-anonymity", "holds": True, "needed": 5, "achieved": 7, "unit": "rows"}).achieved
    7
    """
    return Verdict(**{one.name: told[one.name] for one in fields(Verdict) if one.name in told})


def promise_named(verdict: Verdict) -> str:
    """The promise of a verdict by its title, and its column where it was asked for one.

    >>> str(promise_named(Verdict("l-diversity", True, 2, 3, "distinct values", parameters={"column": "illness"})))
    "l-diversity in 'illness'"
    """
    name, column = phrase(verdict.guarantee), verdict.parameters.get("column")
    return name if column is None else say("{promise} in '{column}'", promise=name, column=column)


def verdict_sentence(verdict: Verdict) -> str:
    """One verdict in plain words.

    >>> verdict_sentence(Verdict("k-anonymity", True, 5, 7, "rows"))
    'k-anonymity with k = 5, counted in rows: the smallest group holds 7 rows.'
    """
    needed, found = plain(verdict.needed), plain(verdict.achieved)
    if verdict.guarantee == "k-anonymity" and verdict.unit == "people":
        return say(
            "k-anonymity with k = {k}, counted in people: the smallest group holds {found} different people.",
            k=needed,
            found=found,
        )
    if verdict.guarantee == "k-anonymity":
        return say(
            "k-anonymity with k = {k}, counted in rows: the smallest group holds {found} rows.",
            k=needed,
            found=found,
        )
    if verdict.guarantee == "l-diversity":
        column = verdict.parameters.get("column")
        return say(
            "l-diversity with l = {l} in {column}: the least diverse group holds {found} distinct values.",
            l=needed,
            column=say("each sensitive column") if column is None else column,
            found=found,
        )
    return say(
        "{guarantee}: {needed} {unit} needed, the weakest group has {found}.",
        guarantee=phrase(verdict.guarantee),
        needed=needed,
        unit=phrase(verdict.unit),
        found=found,
    )


def note_rows(notes: Mapping[str, object]) -> list[tuple[str, str]]:
    """What a method notes about its run, as names and values; notes without a value are left out.

    >>> from velado.release.recoded import GROUPS
    >>> note_rows({GROUPS: 1234, NoteName("kept", say("rows kept"), share=True): 0.25, "my_own": None})
    [('groups formed', '1,234'), ('rows kept', '25.0%')]
    """
    return [
        (
            name.words if isinstance(name, NoteName) else name.replace("_", " "),
            share(value) if getattr(name, "share", False) and isinstance(value, float) else readable(value),
        )
        for name, value in notes.items()
        if value is not None and not (isinstance(value, Mapping | list) and not value)
    ]


def readable(value: object) -> str:
    """A note or a setting as text: numbers as the language writes them, tables as name: value; ...

    >>> readable({"age": 14, "sex": [True, 0.123456]})
    'age: 14; sex: yes, 0.1235'
    """
    match value:
        case None:
            return NOTHING
        case bool():
            return say("yes") if value else say("no")
        case int():
            return count(value)
        case float():
            return few_digits(value)
        case Mapping():
            named = [join((f"{name}:", readable(part))) for name, part in value.items()]
            return join(named, "; ") or NOTHING
        case Sequence() if not isinstance(value, str):
            return join((readable(part) for part in value), ", ") or NOTHING
    return value if isinstance(value, str) else str(value)


def typed(values: Mapping[str, object]) -> str:
    """Settings as a person would type them again; only tables and lists are put into words.

    >>> typed({"k": 10000, "cut": "strict", "weights": None})
    'k = 10000, cut = strict'
    """
    told = (bool, Mapping, list, tuple)
    pairs = [
        join((f"{name} =", readable(value) if isinstance(value, told) else str(value)))
        for name, value in values.items()
        if value is not None and value != ""
    ]
    return join(pairs, ", ")


_TRACES = {one.trace: one.done for one in DECISIONS.values() if one.trace} | {
    "identifier": say("looks like an identifier, signed for")
}


def decision_told(decision: str, about: float | None = None) -> str:
    """What was decided about a column, by the word that a pack has for it: a decision's, or an operation's name.

    >>> decision_told("round", 10.0), decision_told("held back")
    ('numbers rounded: about 10', 'held back')
    """
    told = operation_told(decision)
    return told if about is None else say("{done}: about {about:,g}", done=told, about=about)


def operation_told(name: str) -> str:
    """What an operation did to a column: a decision's words where it is one, else what the operation does.

    >>> operation_told("round"), operation_told("permute")
    ('numbers rounded', 'Deal the values out anew among the rows.')
    """
    return _TRACES.get(name) or next((one.title for one in OPERATIONS if one.name == name), name)
