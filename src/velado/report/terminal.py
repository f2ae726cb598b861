"""A release in ten lines, for the terminal, from the same facts as its report."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from velado.release.guarantees._guarantee import Verdict
from velado.release.release import Release
from velado.report.facts import ReleaseFacts
from velado.report.phrases import phrase
from velado.text import join, number, percent, say, say_n


def ten_lines(facts: ReleaseFacts, leaves: Path, stays: Path) -> list[str]:
    """The release in exactly ten lines, the last two being where it and its report are.

    >>> from velado.testing.small_release import small_release
    >>> print(*ten_lines(small_release().facts, Path("release"), Path("private"))[7:], sep="\\n")
    Rows published: 8; suppressed: 0; side doors named: 0
    May leave: release
    For you alone: private
    """
    release, scores = facts.release, facts.scores
    before, after = scores.before.uniqueness, scores.after.uniqueness
    alone = (
        (before.unique_people, after.unique_people)
        if facts.by_person
        else (before.unique_rows, after.unique_rows)
    )
    highest = [facts.risk(exposure).prosecutor.highest for exposure in (scores.before, scores.after)]
    groups, (own, wild) = release.checked.partition.count, release.checked.readings
    most = max(facts.ncp.by_column, key=facts.ncp.by_column.__getitem__)
    values = {part.name: getattr(release.method, part.name) for part in fields(release.method)}  # type: ignore[arg-type]
    settings = [f"{name} = {value}" for name, value in values.items() if value not in (None, "")]
    size = {"source": facts.source.name, "rows": facts.source.rows, "columns": len(facts.source.columns)}
    promises = [verdict_line(found) for found in release.verdicts]
    return [
        say("Table: {source}, {rows:,} rows, {columns:,} columns", **size)
        if before.people is None
        else say(
            "Table: {source}, {rows:,} rows of {people:,} people, {columns:,} columns",
            people=before.people,
            **size,
        ),
        say(
            "Method: {title}; {settings}",
            title=release.method.title,
            settings=", ".join([*settings, f"seed = {release.seed}"]),
        ),
        say(
            "Promise ({type}): {sentences}",
            type=phrase(release.promise),
            sentences=join(promises) if promises else say("no guarantee, only measured"),
        ),
        say(
            "Groups: {groups:,}, mean size {mean:,.1f}, smallest {smallest:,}; blanks as wildcards: smallest {wild:,}",
            groups=groups,
            mean=release.aligned.height / groups,
            smallest=own.smallest,
            wild=wild.smallest,
        ),
        say(
            "Unique on the quasi-identifiers: {before:,} {unit} before, {after:,} after",
            before=alone[0] or 0,
            after=alone[1] or 0,
            unit=phrase("people" if facts.by_person else "rows"),
        ),
        say(
            "Highest risk of being found: {before} before, {after} after",
            before=percent(highest[0]),
            after=percent(highest[1]),
        ),
        say(
            "Information loss (NCP, {variant}): {loss}; most in {column}: {most}",
            variant=facts.ncp.variant,
            loss=join(part for part in (percent(facts.ncp.overall), _near_best(facts)) if part),
            column=most,
            most=percent(facts.ncp.by_column[most]),
        ),
        say(
            "Rows published: {rows:,}; suppressed: {suppressed:,}; side doors named: {doors:,}",
            rows=release.aligned.height,
            suppressed=release.suppressed,
            doors=len(release.side_doors),
        ),
        say("May leave: {path}", path=leaves),
        say("For you alone: {path}", path=stays),
    ]


def _near_best(facts: ReleaseFacts) -> str:
    above = facts.above_best_percent
    if above is None:
        return ""
    if above <= 0:
        return say("(the best possible)")
    return say("(at most {above:,}% above the best possible)", above=above)


def warning_lines(facts: ReleaseFacts) -> list[str]:
    """What the steward should look at, without any cell: own warnings, side doors, minimality, formulas.

    >>> from velado.testing.small_release import small_release
    >>> warning_lines(small_release().facts)
    []
    """
    release = facts.release
    out = own_warnings(release)
    if release.goal.reads_sensitive:
        out.append(
            say(
                "Groups were chosen with the sensitive values in view: who knows the method may infer more than the "
                "promise says (minimality)."
            )
        )
    return [*out, *formula_warnings(facts.output.formulas)]


def own_warnings(release: Release) -> list[str]:
    """What a release itself warns of, and its side doors that nobody signed for.

    >>> from velado.testing.small_release import small_release
    >>> own_warnings(small_release().release)
    []
    """
    return [*release.warnings, *(door.sentence() for door in release.side_doors if not door.accepted)]


def formula_warnings(cells: int) -> list[str]:
    """The warning for *cells* of a written table that a spreadsheet would run; none where there are none.

    >>> formula_warnings(0)
    []
    """
    if not cells:
        return []
    return [
        say_n(
            "{n:,} cell begins like a spreadsheet formula and was kept; --formulas escape puts an apostrophe before it.",
            "{n:,} cells begin like a spreadsheet formula and were kept; --formulas escape puts an apostrophe before them.",
            cells,
        )
    ]


def verdict_line(found: Verdict) -> str:
    """A verdict in one line, of a kept promise or a broken one.

    >>> verdict_line(Verdict("l-diversity", True, 2, 3, "distinct values"))
    'l-diversity: needs 2 distinct values, the weakest group has 3; holds.'
    """
    parts = {
        "guarantee": phrase(found.guarantee),
        "needed": number(found.needed),
        "unit": phrase(found.unit),
        "achieved": number(found.achieved),
    }
    if found.holds:
        return say("{guarantee}: needs {needed} {unit}, the weakest group has {achieved}; holds.", **parts)
    return say_n(
        "{guarantee}: needs {needed} {unit}, the weakest group has {achieved}; broken in {n:,} group, {rows}.",
        "{guarantee}: needs {needed} {unit}, the weakest group has {achieved}; broken in {n:,} groups, {rows}.",
        found.failing_groups,
        rows=say_n("{n:,} row", "{n:,} rows", found.failing_rows),
        **parts,
    )
