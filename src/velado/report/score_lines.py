"""What a release cost and bought, measure by measure, as the terminal shows it."""

from __future__ import annotations

from collections.abc import Iterator

from velado.measures import measure_registry
from velado.measures.declared import Measure
from velado.measures.measured import Scores
from velado.measures.risk.disclosure import Disclosure
from velado.measures.risk.household_risk import SampleRisk
from velado.measures.risk.population_uniqueness import PopulationUniqueness
from velado.measures.risk.reidentification import Reidentification
from velado.report.blocks import Table
from velado.text import NOTHING, join, number, percent, say

# How records were linked, as flags and results write it.
_LINKED_BY = {
    str(word): word
    for word in (
        say("released-to-original"),
        say("original-to-released"),
        say("expected"),
        say("first"),
        say("any"),
        say("range"),
        say("standard"),
        say("manhattan"),
        say("euclidean"),
    )
}

_ESTIMATES = {
    "counted": say("counted"),
    "zayatz": say("Zayatz's estimate"),
    "pitman": say("Pitman's model"),
    "slide negative binomial": say("slide negative binomial"),
}
_NAMES = {
    "ncp": say("information loss"),
    "false_cells": say("false cells"),
    "false cells": say("false cells"),
    "risk by person": say("risk by person"),
    "record linkage": say("record linkage"),
    "partial knowledge": say("partial knowledge"),
    "attribute disclosure": say("attribute disclosure"),
    "risk of the sample": say("risk of the sample"),
    "risk of the sample where a blank matches anything": say(
        "risk of the sample where a blank matches anything"
    ),
}


def score_lines(scores: Scores) -> Iterator[str | Table]:
    """Every measure on a line, before and after; then what was not measured and why, and the notes.

    >>> from velado.measures.measured import measure_files
    >>> from velado.testing.examples import small_table
    >>> table = small_table(age=("quasi", "numeric", "31 35 31"), ill=("sensitive", "categorical", "a b a"))
    >>> lines = next(score_lines(measure_files(table, table.frame)))
    >>> lines.rows[0], lines.rows[1]
    (['rows', '3', '3'], ['NCP (leaves-1)', '', '0.0%'])
    """
    yield Table(
        say("What the release cost and bought"),
        [say("measure"), say("original"), say("release")],
        [*_utility(scores), *_risk(scores), *_disclosure(scores.disclosure)],
    )
    for name, reason in scores.not_measured.items():
        yield say("Not measured: {name}. {reason}", name=_NAMES.get(name, name), reason=reason)
    yield from scores.notes


def _utility(scores: Scores) -> Iterator[list[str]]:
    yield [say("rows"), number(scores.original_rows), number(scores.published_rows)]
    ncp, size = scores.ncp, scores.average_group_size
    if ncp is not None:
        yield [f"NCP ({ncp.variant})", "", percent(ncp.overall)]
        yield from ([f"  {name}", "", percent(share)] for name, share in ncp.by_column.items())
    if scores.false_cells is not None:
        yield [say("false cells"), "", percent(scores.false_cells.share)]
    yield [say("mean group"), "", number(size.mean, 2)]
    if size.normalized is not None:
        yield [f"C_avg (k = {size.k})", "", number(size.normalized, 3)]
    yield [say("discernibility"), "", number(scores.discernibility.value)]
    yield from further_lines(scores, measure_registry.UTILITY)


def _risk(scores: Scores) -> Iterator[list[str]]:
    before, after = scores.before, scores.after
    yield from _chances(say("rows"), before.rows, after.rows)
    unique = say("unique")
    counts = before.uniqueness.unique_rows, after.uniqueness.unique_rows
    yield [say("{name} ({unit})", name=unique, unit=say("rows")), *map(number, counts)]
    if before.people is not None:
        yield from _chances(say("people"), before.people, after.people)
        old = number(before.uniqueness.unique_people)
        new = "" if after.people is None else number(after.uniqueness.unique_people)
        yield [say("{name} ({unit})", name=unique, unit=say("people")), old, new]
    found = scores.linkage
    if found is not None:
        scaling = say("no scaling") if found.scaling == "none" else _LINKED_BY[found.scaling]
        rules = [_LINKED_BY[found.direction], _LINKED_BY[found.ties], scaling, _LINKED_BY[found.metric]]
        yield [say("linkage ({rules})", rules=join(rules, ", ")), "", percent(found.share)]
    yield from further_lines(scores, measure_registry.RISK)


def further_lines(scores: Scores, part: tuple[Measure, ...]) -> Iterator[list[str]]:
    """A line for each measure of *part* that is one number, known, and told nowhere else.

    >>> from velado.measures.measured import measure_files
    >>> from velado.testing.examples import four_people
    >>> table = four_people()
    >>> print(*next(further_lines(measure_files(table, table.frame), measure_registry.UTILITY)))
    variance inside groups (SSE)  0.0%
    """
    for one in measure_registry.further(part):
        value = scores.numbers.get(one.name)
        if value is not None:
            yield [one.title, "", percent(value) if one.decimals is None else number(value, one.decimals)]


def _chances(unit: str, old: Reidentification, new: Reidentification | None) -> Iterator[list[str]]:
    names = (
        say("risk of being found, highest"),
        say("risk of being found, mean"),
        say("journalist's risk, highest"),
        say("share a marketer finds"),
    )
    sides = (["" for _ in names] if side is None else _shares(side) for side in (old, new))
    for name, *shown in zip(names, *sides, strict=True):
        yield [say("{name} ({unit})", name=name, unit=unit), *shown]


def _shares(found: Reidentification) -> list[str]:
    prosecutor, journalist = found.prosecutor, found.journalist
    return [percent(one) for one in (prosecutor.highest, prosecutor.mean, journalist.highest, found.marketer)]


def _disclosure(found: Disclosure | None) -> Iterator[list[str]]:
    """Guessing of sensitive values and partial knowledge, and what was measured on request."""
    if found is None:
        return
    for one in found.attributes:
        yield [
            say("'{column}' guessed right: from the whole table, from the release", column=one.column),
            percent(one.baseline.share),
            percent(one.guessed.share),
        ]
    if found.partial is not None:
        subsets = found.partial.subsets
        yield [
            say("sets of up to 3 columns that single somebody out (of {subsets})", subsets=len(subsets)),
            number(sum(part.before.unique_rows > 0 for part in subsets)),
            number(sum(part.after.unique_rows > 0 for part in subsets)),
        ]
    if found.special is not None:
        yield [say("rows with a special unique (SUDA)"), *(number(one.special_rows) for one in found.special)]
    if found.population is not None:
        yield [say("unique in the population (estimate)"), *map(_estimate, found.population)]
    if found.sample is not None:
        yield from _sample(*found.sample)
    if found.sample_wildcard is not None:
        for name, *values in _sample(*found.sample_wildcard):
            yield [say("{measure} (if a blank matches anything)", measure=name), *values]


def _sample(before: SampleRisk, after: SampleRisk) -> Iterator[list[str]]:
    sides = (before, after)
    if before.weighted:
        yield [
            say("rows expected to be found, by sampling weights"),
            *(number(one.expected, 1) for one in sides),
        ]
        yield [say("highest risk of a row, by sampling weights"), *(percent(one.highest) for one in sides)]
    if before.households is not None:
        name = say(
            "households of which somebody is found, of {households}", households=number(before.households)
        )
        yield [name, *(number(one.expected_households, 1) for one in sides)]
        yield [say("highest risk of a household"), *(percent(one.highest_household) for one in sides)]


def _estimate(found: PopulationUniqueness) -> str:
    if not found.chosen:
        return NOTHING
    return join((number(round(found.estimate.uniques)), join(("(", _ESTIMATES[found.chosen], ")"), "")))


def further_measures(scores: Scores, part: tuple[Measure, ...]) -> list[Table]:
    """The measures of one number that have no words of their own, in a table; nothing where there are none.

    >>> from velado.testing.examples import small_release
    >>> further_measures(small_release().scores, ())
    []
    """
    rows = [[name, shown] for name, _, shown in further_lines(scores, part)]
    return (
        [Table(say("What the release cost and bought"), [say("measure"), say("release")], rows)]
        if rows
        else []
    )
