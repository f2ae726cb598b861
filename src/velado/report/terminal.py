"""What the terminal shows: a release in ten lines, a table looked at, a published file verified.

The lines of a release come from the same facts as its report.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from velado.data.inspect import ColumnFinding, Inspection
from velado.data.kinds import MissingCode
from velado.data.schema import Schema
from velado.release.goal import Goal
from velado.release.guarantees._guarantee import Verdict
from velado.release.release import Release
from velado.release.verify import Verification
from velado.report.blocks import Table
from velado.report.facts import ReleaseFacts
from velado.report.phrases import phrase, promise_named
from velado.text import join, number, percent, say, say_n

if TYPE_CHECKING:  # engines bring Arrow with them, which a release of a file does not need
    from velado.report.engine_facts import EngineFacts


def ten_lines(facts: ReleaseFacts, leaves: Path, stays: Path) -> list[str]:
    """The release in exactly ten lines, the last two being where it and its report are.

    >>> from velado.testing.examples import small_release
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
    if release.over_time is not None:
        promises.append(release.over_time.sentence)
    return [
        say("Table: {source}, {rows:,} rows, {columns:,} columns", **size)
        if before.people is None
        else say(
            "Table: {source}, {rows:,} rows of {people:,} people, {columns:,} columns",
            people=before.people - facts.gone,
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
            mean=release.listed.height / groups,
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
            "Highest risk of being found by the quasi-identifiers alone: {before} before, {after} after",
            before=percent(highest[0]),
            after=percent(highest[1]),
        ),
        say(
            "Information loss (NCP, {variant}): {loss}; most in {column}: {most}",
            variant=facts.ncp.variant,
            loss=join(
                part for part in (percent(facts.ncp.overall), _improved(facts), _near_best(facts)) if part
            ),
            column=most,
            most=percent(facts.ncp.by_column[most]),
        ),
        say(
            "Rows published: {rows:,}; suppressed: {suppressed:,}; side doors named: {doors:,}",
            rows=release.listed.height,
            suppressed=release.suppressed,
            doors=len(release.side_doors),
        ),
        say("May leave: {path}", path=leaves),
        say("For you alone: {path}", path=stays),
    ]


def _improved(facts: ReleaseFacts) -> str:
    before = facts.release.loss_before
    return "" if before is None else say("(before improving: {before})", before=percent(before))


def engine_lines(facts: EngineFacts, leaves: Path, stays: Path) -> list[str]:
    """A release that an engine wrote, in a few lines, the last two being where it and its report are.

    >>> from velado.testing.examples import small_lake
    >>> print(*engine_lines(small_lake().facts, Path("release"), Path("private"))[:2], sep="\\n")
    Table: 2 files, 8 rows, 2 columns
    Engine: DuckDB; plan: compress to 8 distinct tuples, join back, count what was written
    """
    release, plan = facts.release, facts.release.plan
    own, wild = release.checked.readings
    losses = plan.losses
    most = max(losses, key=losses.__getitem__)
    promises = [verdict_line(found) for found in release.verdicts]
    return [
        say(
            "Table: {source}, {rows:,} rows, {columns:,} columns",
            source=facts.source.name,
            rows=facts.source.rows,
            columns=len(facts.source.columns),
        ),
        facts.plan_line,
        say("Method: {title}; {settings}", title=plan.method.title, settings=f"seed = {plan.seed}"),
        say(
            "Promise ({type}): {sentences}",
            type=phrase(plan.promise),
            sentences=join(promises) if promises else say("no guarantee, only measured"),
        ),
        plan.prepared.judged.said,
        say(
            "Groups: {groups:,}, mean size {mean:,.1f}, smallest {smallest:,}; blanks as wildcards: smallest {wild:,}",
            groups=release.checked.partition.count,
            mean=plan.rows / release.checked.partition.count,
            smallest=own.smallest,
            wild=wild.smallest,
        ),
        say(
            "Information loss (NCP, {variant}): {loss}; most in {column}: {most}",
            variant="leaves-1",
            loss=percent(plan.loss),
            column=most,
            most=percent(losses[most]),
        ),
        say(
            "Rows published: {rows:,}; suppressed: {suppressed:,}; side doors named: {doors:,}",
            rows=plan.rows,
            suppressed=plan.suppressed,
            doors=len(plan.prepared.judged.side_doors),
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

    >>> from velado.testing.examples import small_release
    >>> warning_lines(small_release().facts)
    []
    """
    release = facts.release
    out = [*own_warnings(release), *minimality_warnings(release.goal)]
    left_out = int((~release.recoded.kept).sum())
    if release.goal.blind and left_out:
        out.append(
            say_n(
                "{n:,} row was left out because its group broke a promise about sensitive values: who knows the method "
                "sees which group is missing.",
                "{n:,} rows were left out because their groups broke a promise about sensitive values: who knows the method "
                "sees which groups are missing.",
                left_out,
            )
        )
    told = release.notes.get("not_improved")
    out += [told] if isinstance(told, str) else []
    return [*out, *formula_warnings(facts.output.formulas)]


def minimality_warnings(goal: Goal) -> list[str]:
    """The warning for groups that sensitive values decided; none where they were not looked at.

    >>> from velado.testing.examples import small_release
    >>> minimality_warnings(small_release().release.goal)
    []
    """
    if not goal.reads_sensitive:
        return []
    return [
        say(
            "Groups were chosen with the sensitive values in view: who knows the method may infer more than the "
            "promise says (minimality). --blind (of tables in memory) chooses them without, and is recommended."
        )
    ]


def own_warnings(release: Release) -> list[str]:
    """What a release itself warns of, and its side doors that nobody signed for.

    >>> from velado.testing.examples import small_release
    >>> own_warnings(small_release().release)
    []
    """
    return [*release.warnings, *(door.sentence() for door in release.side_doors if not door.accepted)]


def formula_warnings(cells: int, by_engine: bool = False) -> list[str]:
    """The warning for *cells* of a written table that a spreadsheet would run; none where there are none.

    Of a table that an engine wrote it does not name what only memory does.

    >>> formula_warnings(0)
    []
    """
    if not cells:
        return []
    if by_engine:
        return [
            say_n(
                "{n:,} cell begins like a spreadsheet formula and was kept; --formulas refuse publishes no such table.",
                "{n:,} cells begin like a spreadsheet formula and were kept; --formulas refuse publishes no such table.",
                cells,
            )
        ]
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
        "guarantee": promise_named(found),
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


# A table looked at: the roles proposed, and how exposed people are.

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
    >>> from velado.testing.examples import small_table
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
    >>> from velado.testing.examples import small_table
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
            "'{code}' may mean no value, in {rows:,} cells of {columns}; if so, add it to missing_values there.",
            code=text,
            rows=sum(code.rows for code in codes),
            columns=", ".join(names[:SHOWN]) + more,
        )


# A published file verified: what it shows by itself.


def unseen(found: Verification, schema: Schema) -> Iterator[str]:
    """What could not be read from this file, and so was not checked.

    >>> from velado.release.guarantees import KAnonymity
    >>> from velado.release.verify import verify
    >>> from velado.testing.examples import small_table
    >>> table = small_table(age=("quasi", "numeric", "31 31 35 35"))
    >>> list(unseen(verify(table.frame, table.schema, [KAnonymity(2)]), table.schema))
    []
    """
    if found.judged:
        yield found.judged
    if found.people_unseen and schema.person is not None:
        yield say(
            "The person column '{column}' is not in this file, so k per person cannot be checked from it; "
            "rows are counted.",
            column=schema.person.name,
        )
    for name in found.unchecked:
        yield say(
            "Not checked: the sensitive column '{column}' is not in this file; the promise about it cannot be read "
            "from it.",
            column=name,
        )
    for name in found.unread:
        yield say(
            "The values of '{column}' could not be read as intervals: what other columns give away of it was not "
            "fully checked.",
            column=name,
        )


def verification_lines(found: Verification) -> Iterator[str | Table]:
    """The smallest group, every verdict, both readings of blanks, and side doors.

    >>> from velado.release.guarantees import KAnonymity
    >>> from velado.release.verify import verify
    >>> from velado.testing.examples import small_table
    >>> table = small_table(age=("quasi", "numeric", "31 31 35 35"))
    >>> next(verification_lines(verify(table.frame, table.schema, [KAnonymity(2)])))
    'Smallest group: 2.'
    """
    # First the number that counts: what is promised of the published values is not what is left behind a door.
    if found.smallest_behind is None:
        yield say("Smallest group: {smallest:,}.", smallest=found.smallest)
    else:
        yield say(
            "Smallest group: {smallest:,}; {behind:,} for who also reads {columns}.",
            smallest=found.smallest,
            behind=found.smallest_behind,
            columns=" + ".join(f"'{name}'" for name in found.read_behind),
        )
    yield Table(
        say(
            "What the file itself shows ({rows:,} rows, {quasi} quasi-identifiers, {groups:,} groups)",
            rows=found.rows,
            quasi=len(found.table.schema.quasi),
            groups=found.checked.partition.count,
        ),
        [say("guarantee"), say("needed"), say("found"), say("verdict"), say("failing rows")],
        [
            [
                phrase(one.guarantee),
                say("{needed} {unit}", needed=number(one.needed), unit=phrase(one.unit)),
                number(one.achieved),
                say("holds") if one.holds else say("BROKEN"),
                number(one.failing_rows),
            ]
            for one in found.checked.verdicts
        ],
    )
    yield Table(
        say("Both readings of blanks"),
        [say("reading"), say("smallest group"), say("mean group")],
        [[phrase(one.name), number(one.smallest), number(one.mean, 2)] for one in found.checked.readings],
    )
    if found.side_doors:
        yield say("Side doors in this file:")
        yield from (say("  {door}", door=door.sentence()) for door in found.side_doors)


def conclusion(found: Verification) -> str:
    """Whether every promise holds, in one sentence.

    >>> from velado.release.guarantees import KAnonymity
    >>> from velado.release.verify import verify
    >>> from velado.testing.examples import small_table
    >>> table = small_table(age=("quasi", "numeric", "31 31 35 40"))
    >>> conclusion(verify(table.frame, table.schema, [KAnonymity(2)]))
    'A promise does not hold in this file.'
    """
    if not found.holds:
        return say("A promise does not hold in this file.")
    if found.people_unseen:
        return say("Every promise that was asked for holds in this file, counted in rows, not in people.")
    return say("Every promise that was asked for holds in this file.")
