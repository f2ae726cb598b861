"""The sections of a release's report that a steward decides by: warnings and side doors, every column, a few rows."""

from __future__ import annotations

import numpy as np

from velado.data.table_bytes import as_texts
from velado.report.blocks import Block, Bullets, Folded, Section, Table, section, table, text
from velado.report.code_titles import codes_told
from velado.report.facts import ReleaseFacts
from velado.report.phrases import FATES, ROLES, phrase
from velado.text import NOTHING, count, say, say_n, share

SHOWN_ROWS = 4
LONGEST_CELL = 40


def warnings_section(facts: ReleaseFacts) -> Section:
    """What to decide before the table leaves: side doors, rows left out, every warning of the run."""
    release, warnings = facts.release, list(facts.warnings)
    doors = release.side_doors
    if facts.output.formulas:
        warnings.append(
            say(
                "{cells:,} cells begin like a spreadsheet formula and were kept as they are: a spreadsheet program "
                "may run them.",
                cells=facts.output.formulas,
            )
        )
    if release.suppressed:
        warnings.append(
            say_n(
                "{n:,} row ({share}) was left out; the limit was {limit}. Such rows are unusual, so the published table "
                "holds fewer unusual people than the original.",
                "{n:,} rows ({share}) were left out; the limit was {limit}. Such rows are unusual, so the published table "
                "holds fewer unusual people than the original.",
                release.suppressed,
                share=share(release.suppressed / facts.source.rows),
                limit=share(release.goal.suppression),
            )
        )
    if facts.together.alone:
        warnings.append(
            say(
                "{alone:,} of {of:,} {unit} are like nobody else by all published columns together.",
                alone=facts.together.alone,
                of=facts.together.units,
                unit=phrase(facts.together.unit),
            )
        )
    blocks: list[Block | str] = [Bullets(warnings)] if warnings else []
    if doors:
        said = say("accepted"), say("undecided")
        blocks += [
            say(
                "Side doors are published columns that give quasi-identifiers away, or can be matched by themselves. Generalize "
                'them, hold them back (publish = false), or sign for them (side_door = "accept").'
            ),
            table(
                "",
                doors,
                (say("side door"), lambda door: door.sentence()),
                (
                    say("smallest group with it"),
                    lambda door: count(facts.smallest_behind(*door.columns)) if door.columns else NOTHING,
                ),
                (say("decision"), lambda door: said[0] if door.accepted else said[1]),
            ),
        ]
    if not blocks:
        blocks.append(
            say("Nothing: no warning, and no published column was found to give a quasi-identifier away.")
        )
    if release.suppressed:
        numbers = say(
            "Their row numbers (at most 20 are shown): {numbers}.",
            numbers=", ".join(map(str, facts.suppressed_rows)),
        )
        blocks.append(Folded(say("Rows left out"), (text(numbers),)))
    return section("warnings", say("Before it leaves"), *blocks)


def inventory_section(facts: ReleaseFacts) -> Section:
    """Every column of the source, its role and what became of it."""
    false = facts.scores.false_cells
    shown = (
        []
        if false is None or not false.cells
        else [
            (
                say("false cells"),
                lambda one: NOTHING if one.loss is None else share(false.by_column.get(one.name, 0.0)),
            )
        ]
    )
    return section(
        "columns",
        say("Columns"),
        say(
            "A quasi-identifier is what an outsider may know of a person; a sensitive column is what nobody should learn. "
            "Loss of detail: 0% is as before, 100% says nothing any more."
        ),
        table(
            "",
            facts.inventory,
            (say("column"), lambda one: one.name),
            (say("role"), lambda one: ROLES.get(one.role, one.role)),
            (say("what became of it"), lambda one: FATES[one.fate]),
            (say("loss of detail"), lambda one: NOTHING if one.loss is None else share(one.loss)),
            *shown,
            labels=3,
        ),
        *codes_told(facts.release.data.columns, facts.release.listed.to_dict()),
    )


def sample_section(facts: ReleaseFacts) -> Section:
    """A few rows before and after, in the quasi-identifiers alone; for the steward's eyes."""
    release, names = facts.release, facts.quasi
    kept = np.flatnonzero(release.kept)
    at = np.unique(np.linspace(0, kept.size - 1, min(SHOWN_ROWS, kept.size)).round().astype(np.int64))
    before, after = release.original.frame[kept[at]], as_texts(release.listed[at])

    def cell(name: str, row: int) -> str:
        old, new = (NOTHING if v is None else str(v) for v in (before[name][row], after[name][row]))
        return _short(new) if old == new else f"{_short(old)} → {_short(new)}"

    shown = [n for n in names if n in before.columns and n in after.columns]
    rows = [
        (count(int(kept[i]) + 1), *(cell(name, row) for name in shown)) for row, i in enumerate(at.tolist())
    ]
    return section(
        "sample",
        say("A few rows, before → after"),
        Table("", (say("row"), *shown), rows, labels=1 + len(shown)),
    )


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_CELL else f"{text[: LONGEST_CELL - 1]}…"
