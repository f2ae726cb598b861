"""Codes of other rooms (guarantees, units, readings, notes, settings) as phrases a reader knows, in both languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from velado.text import NOTHING, count, few_digits, join, plain, say, share

if TYPE_CHECKING:
    from velado.release.guarantees._guarantee import Verdict

_PHRASES = {
    str(phrase): phrase
    for phrase in (
        # what a guarantee is called, and what it counts
        say("k-anonymity"),
        say("l-diversity"),
        say("entropy-l-diversity"),
        say("recursive-l-diversity"),
        say("t-closeness"),
        say("beta-likeness"),
        say("k-map"),
        say("delta-presence"),
        say("rows"),
        say("people"),
        say("distinct values"),
        say("effective values"),
        say("people of the population"),
        say("earth mover's distance (or less)"),
        say("of the allowed gain (or less)"),
        say("likelihood of presence (or more)"),
        say("likelihood of presence (or less)"),
        say("times the rarer values (or less)"),
        # promises, and readings of blanks
        say("guaranteed"),
        say("measured"),
        say("as in the paper"),
        say("a blank is a value of its own"),
        say("a blank matches anything"),
    )
}

_NOTES = {
    "groups": say("groups formed"),
    "classes": say("groups formed"),
    "bins": say("intervals per number column"),
    "intervals": say("intervals per column"),
    "levels": say("level of generalization per column"),
    "loss": say("loss that was minimized"),
    "loss_value": say("value of that loss"),
    "level_combinations": say("combinations of levels"),
    "visited": say("combinations looked at"),
    "proven_optimal": say("proven to be the best combination"),
    "generalized_groups": say("groups after generalization"),
    "initial_classes": say("groups large enough from the start"),
    "new_clusters": say("groups formed by clustering"),
    "outlier_groups": say("groups treated as outliers"),
    "cut": say("cut"),
    "categories": say("treatment of categories"),
    "iterations": say("iterations"),
    "evaluations": say("solutions evaluated"),
    "loss_of_the_best_start": say("loss of the best start"),
    "loss_found_by_the_troop": say("loss found by the search"),
    "rows_cut_by_mondrian": say("rows left to Mondrian"),
    "lower_bound": say("proven lower bound of the loss"),
    "lower_bound_reason": say("no lower bound of the loss"),
    "above_best_possible_at_most": say("above the best possible, at most"),
}
_SHARES = ("lower_bound", "above_best_possible_at_most")


def phrase(code: str) -> str:
    """The phrase of a code; one that is not known here stays as its author wrote it.

    >>> from velado.text import told
    >>> told(phrase("rows"), "pt"), phrase("of my own")
    ('linhas', 'of my own')
    """
    return _PHRASES.get(code, code)


def verdict_sentence(verdict: Verdict) -> str:
    """One verdict in plain words.

    >>> from velado.release.guarantees import Verdict
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

    >>> note_rows({"groups": 1234, "lower_bound": 0.25, "my_own": None})
    [('groups formed', '1,234'), ('proven lower bound of the loss', '25.0%')]
    """
    return [
        (
            _NOTES.get(name, name.replace("_", " ")),
            share(value) if name in _SHARES and isinstance(value, float) else readable(value),
        )
        for name, value in notes.items()
        if value is not None and value != {} and value != []
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
