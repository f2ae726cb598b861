"""The report on a release that an engine wrote, and the page that leaves with it: made of counts, never of rows."""

from __future__ import annotations

from statistics import fmean

from velado.report._measured_sections import groups_section
from velado.report.blocks import (
    Block,
    Bullets,
    Figure,
    Notice,
    Page,
    Section,
    Table,
    VerdictCard,
    section,
    table,
)
from velado.report.code_titles import codes_told
from velado.report.engine_facts import EngineFacts
from velado.report.phrases import note_rows, phrase
from velado.report.release_page import (
    about,
    columns_section,
    footer,
    limits_section,
    made_with,
    promise_section,
)
from velado.text import count, duration, join, listed, say, say_n, share


def engine_page(facts: EngineFacts) -> Page:
    """The report for the steward.

    >>> from velado.testing.examples import small_lake
    >>> [part.name for part in engine_page(small_lake().facts).sections]
    ['promise', 'loss', 'groups', 'doors', 'engine', 'limits', 'repeat']
    """
    plan = facts.release.plan
    return Page(
        title=say("Release report"),
        subtitle=say(
            "{name}: {rows:,} rows, {columns:,} columns. Method: {method}.",
            name=facts.source.name,
            rows=facts.source.rows,
            columns=len(facts.source.columns),
            method=plan.method.title,
        ),
        verdict=_verdict(facts, plan.loss),
        notice=Notice(
            title=say("For the steward of the data only."),
            text=say("This report shows counts of the original table. Do not publish it with the table."),
        ),
        key_figures=(
            Figure(say("Smallest group (rows)"), f"{count(facts.before.smallest)} → {count(facts.smallest)}"),
            Figure(say("Loss of detail"), share(plan.loss)),
            Figure(
                say("Rows left out"),
                f"{count(plan.suppressed)} ({share(plan.suppressed / facts.source.rows)})",
            ),
        ),
        sections=(
            _promise(facts),
            _loss(facts),
            groups_section(facts.after),
            _doors(facts),
            _engine(facts),
            _limits(facts),
            _repeat(facts),
        ),
        footer=footer(facts.output),
    )


def engine_public_page(facts: EngineFacts) -> Page:
    """The page that leaves with the table: what was promised, what it cost, what each column is.

    >>> from velado.testing.examples import small_lake
    >>> [part.name for part in engine_public_page(small_lake().facts).sections]
    ['promise', 'columns', 'limits']
    """
    plan = facts.release.plan
    loss = fmean(plan.public_losses.values())
    return Page(
        title=about(plan.prepared.schema.dataset),
        subtitle=say(
            "{rows:,} rows, {columns:,} columns. Method: {method}.",
            rows=plan.rows,
            columns=len(facts.release.columns),
            method=plan.method.title,
        ),
        verdict=_verdict(facts, loss),
        notice=Notice(
            title=say("This page may leave with the table."),
            text=say(
                "It says what was promised of {file} and what that cost, and nothing else of the original.",
                file=facts.output.file,
            ),
        ),
        key_figures=(
            Figure(say("Smallest group (rows)"), count(facts.smallest)),
            Figure(say("Loss of detail"), share(loss)),
            Figure(say("Rows left out"), count(plan.suppressed)),
        ),
        sections=(
            _promise(facts, public=True),
            columns_section(
                plan.prepared.schema,
                plan.public_losses,
                plan.prepared.judged.signed,
                codes=codes_told(plan.prepared.data.columns, plan.shown.to_dict()),
            ),
            _limits(facts),
        ),
        footer=footer(facts.output),
    )


def _verdict(facts: EngineFacts, loss: float) -> VerdictCard:
    release = facts.release
    doors = [door for door in release.plan.prepared.judged.side_doors if not door.accepted]
    good = bool(release.verdicts) and not doors
    headline = (
        say("Every promise that was asked for holds on the written rows, counted anew.")
        if release.verdicts
        else say_n(
            "This method promises no group size: the smallest group of look-alikes in the published table has "
            "{n:,} row.",
            "This method promises no group size: the smallest group of look-alikes in the published table has "
            "{n:,} rows.",
            facts.smallest,
        )
    )
    details = [
        say_n(
            "It costs {loss} of the detail in the quasi-identifiers, and {n:,} row was left out.",
            "It costs {loss} of the detail in the quasi-identifiers, and {n:,} rows were left out.",
            release.plan.suppressed,
            loss=share(loss),
        )
    ]
    if named := sorted({door.column for door in doors if door.column}):
        details.append(say("Other published columns may undo the promise: {columns}.", columns=listed(named)))
    label = say("The promise holds") if good else say("Decide with care")
    return VerdictCard(
        state="good" if good else "caution",
        label=join((label, phrase(release.plan.promise)), " · "),
        headline=headline,
        details=tuple(details),
    )


def _promise(facts: EngineFacts, public: bool = False) -> Section:
    release, ends = facts.release, facts.ends
    return promise_section(
        release.plan.promise,
        release.verdicts,
        smallest=facts.smallest,
        true_ends=[name for name, step in ends.items() if step is None],
        rounded_ends={name: step for name, step in ends.items() if step is not None},
        public=public,
    )


def _limits(facts: EngineFacts) -> Section:
    return limits_section(facts.release.verdicts, facts.release.plan.goal, facts.not_examined)


def _loss(facts: EngineFacts) -> Section:
    return section(
        "loss",
        say("What it cost"),
        table(
            say("Loss of detail by column"),
            facts.release.plan.losses.items(),
            (say("column"), lambda pair: pair[0]),
            (say("loss of detail"), lambda pair: share(pair[1])),
        ),
        *codes_told(facts.release.plan.prepared.data.columns, facts.release.plan.shown.to_dict()),
    )


def _doors(facts: EngineFacts) -> Section:
    judged, behind = facts.release.plan.prepared.judged, facts.release.behind
    blocks: list[Block | str] = [judged.said]
    if judged.side_doors:
        blocks.append(Bullets([door.sentence() for door in judged.side_doors]))
    else:
        blocks.append(say("No published column was found to give a quasi-identifier away."))
    if behind is not None:
        blocks.append(
            say(
                "Counted on the written rows, the smallest group for who also reads these columns has {n:,} rows.",
                n=behind,
            )
        )
    if facts.warnings:
        blocks.append(Bullets(facts.warnings))
    return section("doors", say("Side doors and warnings"), *blocks)


def _engine(facts: EngineFacts) -> Section:
    return section(
        "engine",
        say("How the engine did it"),
        *facts.plan_told,
        table(
            say("Time by step"),
            facts.steps,
            (say("step"), lambda step: step.name),
            (say("time"), lambda step: duration(step.seconds)),
        ),
    )


def _repeat(facts: EngineFacts) -> Section:
    plan = facts.release.plan
    rows = [
        *made_with(plan.method, plan.goal, plan.seed, facts.source, facts.output),
        *note_rows(plan.recoded.notes),
    ]
    return section(
        "repeat",
        say("How to repeat it"),
        Table(say("Settings of this run"), (say("setting"), say("value")), rows, labels=2),
    )
