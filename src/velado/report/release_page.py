"""The report on a release, and the short page that leaves with the table: facts -> pages of blocks, in words.

No figure is computed here. Numbers are written in the language spoken (`velado.text.speaking`), sentences are told
when the page is rendered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from types import MappingProxyType

from velado.data.schema import AboutDataset, Column, Schema
from velado.release.gate import Signed
from velado.release.goal import Goal
from velado.release.guarantees._guarantee import Verdict
from velado.release.history.together import OverTime
from velado.release.methods._method import Method
from velado.release.operations import columns_of
from velado.report._cost_sections import bins_section, loss_section, why_section
from velado.report._measured_sections import (
    details_section,
    guesses_section,
    risk_section,
)
from velado.report._steward_sections import inventory_section, sample_section, warnings_section
from velado.report.blocks import (
    Block,
    Bullets,
    Code,
    Figure,
    Folded,
    Notice,
    Page,
    Section,
    State,
    Table,
    VerdictCard,
    section,
    table,
    text,
)
from velado.report.code_titles import codes_told
from velado.report.facts import ABOVE_BEST, OutputFacts, ReleaseFacts, SourceFacts
from velado.report.phrases import NEVER_PROMISED, note_rows, operation_told, phrase, promise_named, typed
from velado.settings import describe
from velado.text import NOTHING, count, day, few_digits, join, listed, plain, say, say_n, share


def release_page(facts: ReleaseFacts) -> Page:
    """The report for the steward: what a decision needs first comes first, opening with the verdict.

    >>> from velado.testing.examples import small_release
    >>> page = release_page(small_release().facts)
    >>> page.verdict.label, [part.name for part in page.sections][:3]
    ('The promise holds · guaranteed', ['warnings', 'columns', 'sample'])
    """
    release, risks = facts.release, (facts.risk(facts.scores.before), facts.risk(facts.scores.after))
    highest = [share(risk.prosecutor.highest) for risk in risks]
    _, behind = facts.open_doors
    left_out = f"{count(release.suppressed)} ({share(release.suppressed / facts.source.rows)})"
    return Page(
        title=say("Release report"),
        subtitle=_subtitle(facts),
        verdict=_verdict(facts, facts.ncp.overall),
        notice=Notice(
            title=say("For the steward of the data only."),
            text=say("It shows cells and row numbers of the original table: do not publish it."),
        ),
        key_figures=(
            Figure(_smallest_name(facts), count(facts.crowd)),
            Figure(say("Highest chance to pick a person out"), " → ".join(highest)),
            *(
                ()
                if behind is None
                else (Figure(say("Both through side doors"), f"{count(behind)}, {share(1 / behind)}"),)
            ),
            Figure(say("Loss of detail"), share(facts.ncp.overall)),
            Figure(say("Rows left out"), left_out),
        ),
        sections=(
            warnings_section(facts),
            inventory_section(facts),
            sample_section(facts),
            _promise(facts),
            risk_section(facts),
            guesses_section(facts),
            loss_section(facts),
            why_section(facts),
            *bins_section(facts),
            details_section(facts),
            _limits(facts),
            _repeat(facts),
        ),
        footer=footer(facts.output),
    )


def _subtitle(facts: ReleaseFacts) -> str:
    told = [_read(facts), say("Method: {method}.", method=facts.release.method.title)]
    if facts.made_on is not None:
        made = say("Made {day} with velado {version}.", day=day(facts.made_on), version=facts.version)
        told.append(made)
    return join(told)


def _read(facts: ReleaseFacts) -> str:
    named = {
        "name": facts.source.name,
        "rows": facts.source.rows,
        "columns": len(facts.source.columns),
    }
    people = facts.scores.before.people
    if people is None:
        return say("{name}: {rows:,} rows, {columns:,} columns.", **named)
    return say(
        "{name}: {rows:,} rows of {people:,} people, {columns:,} columns.",
        people=people.units - facts.gone,
        **named,
    )


def _smallest_name(facts: ReleaseFacts) -> str:
    in_people = facts.counted_in == "people"
    return say("Smallest group (people)") if in_people else say("Smallest group (rows)")


def public_page(facts: ReleaseFacts) -> Page:
    """The page that leaves with the table: what was promised, what it cost, what each column is.

    It is made of what the published table shows anyway: sizes of its groups, its loss, its columns. What was
    measured on the original (risks before, distributions, row numbers) stays in the report.

    >>> from velado.testing.examples import small_release
    >>> [part.name for part in public_page(small_release().facts).sections]
    ['promise', 'columns', 'limits']
    """
    release = facts.release
    loss = fmean(release.public_losses.values())
    return Page(
        title=about(release.table.schema.dataset),
        subtitle=say(
            "{rows:,} rows, {columns:,} columns. Method: {method}.",
            rows=release.listed.height,
            columns=release.listed.width,
            method=release.method.title,
        ),
        verdict=_verdict(facts, loss, public=True),
        notice=Notice(
            title=say("This page may leave with the table."),
            text=say(
                "It says what was promised of {file} and what that cost, and nothing else of the original.",
                file=facts.output.file,
            ),
        ),
        key_figures=(
            Figure(_smallest_name(facts), count(facts.crowd)),
            Figure(say("Loss of detail"), share(loss)),
            Figure(say("Rows left out"), count(release.suppressed)),
        ),
        sections=(_promise(facts, public=True), _columns(facts), _limits(facts)),
        footer=footer(facts.output),
    )


def about(dataset: AboutDataset) -> str:
    """The title of the page that leaves with a table.

    >>> about(AboutDataset())
    'About this table'
    """
    if dataset.name and dataset.version:
        return say("About {name}, version {version}", name=dataset.name, version=dataset.version)
    return say("About {name}", name=dataset.name) if dataset.name else say("About this table")


def footer(output: OutputFacts) -> str:
    """The last line of a page: what the file is known by.

    >>> footer(OutputFacts(file="table.csv", sha256="cd"))
    'Made by velado. table.csv has SHA-256 cd.'
    """
    return say("Made by velado. {file} has SHA-256 {sha256}.", file=output.file, sha256=output.sha256)


def _verdict(facts: ReleaseFacts, loss: float, public: bool = False) -> VerdictCard:
    release, altered = facts.release, facts.release.prepared.altered
    doors = [door for door in release.side_doors if not door.accepted]
    crowd = next((found for found in release.verdicts if found.guarantee == "k-anonymity"), None)
    state: State = "caution"
    if release.promise == "as in the paper":
        state = "warning"
        headline = say(
            "This table repeats a published experiment for comparison and gives no protection that was promised "
            "to anyone."
        )
    elif altered:
        headline = say(
            "The values of {columns} were altered at random before they were grouped: groups are as large as "
            "promised, but whoever knows the true values is not sure to be left with such a group.",
            columns=listed(altered),
        )
    elif not release.verdicts:
        headline = say_n(
            "This method promises no group size: the smallest group of look-alikes in the published table has "
            "{n:,} row.",
            "This method promises no group size: the smallest group of look-alikes in the published table has "
            "{n:,} rows.",
            facts.smallest,
        )
    else:
        state = "caution" if doors else "good"
        if crowd is None:
            headline = say("Every promise that was asked for holds on the published values.")
        elif crowd.unit == "people":
            headline = say(
                "Whoever knows a person's {columns} still finds at least {found:,} people in the published table who "
                "could be that person.",
                columns=listed(facts.quasi),
                found=int(crowd.achieved),
            )
        else:
            headline = say(
                "Whoever knows a person's {columns} still finds at least {found:,} rows in the published table that "
                "could be that person's.",
                columns=listed(facts.quasi),
                found=int(crowd.achieved),
            )
    details = [
        say_n(
            "It costs {loss} of the detail in the quasi-identifiers, and {n:,} row was left out.",
            "It costs {loss} of the detail in the quasi-identifiers, and {n:,} rows were left out.",
            release.suppressed,
            loss=share(loss),
        )
    ]
    columns, behind = facts.behind_doors
    if public and behind is not None:
        details.append(
            say(
                "Smallest group {smallest:,}; {behind:,} for who also reads {columns}.",
                smallest=facts.smallest,
                behind=behind,
                columns=listed(columns),
            )
        )
    if public and (named := sorted({door.column for door in doors if door.column})):
        # The public page has no section of side doors, and whoever reads it does not decide.
        details.append(say("Other published columns may undo the promise: {columns}.", columns=listed(named)))
    columns, behind = facts.open_doors
    if not public and behind is not None:
        details.append(
            say_n(
                "Who also reads {columns} finds as few as {n:,} row: decide that first.",
                "Who also reads {columns} finds as few as {n:,} rows: decide that first.",
                behind,
                columns=listed(columns),
            )
        )
    labels = {
        "good": say("The promise holds"),
        "caution": say("Decide with care"),
        "warning": say("Do not publish"),
    }
    return VerdictCard(
        state=state,
        label=join((labels[state], phrase(release.promise)), " · "),
        headline=headline,
        details=tuple(details),
    )


# ---- what was promised


def _promise(facts: ReleaseFacts, public: bool = False) -> Section:
    return promise_section(
        facts.release.promise,
        facts.release.verdicts,
        smallest=facts.smallest,
        true_ends=facts.true_ends,
        rounded_ends=facts.rounded_ends,
        over_time=facts.release.over_time,
        public=public,
    )


def promise_section(
    promise: str,
    verdicts: Sequence[Verdict],
    *,
    smallest: int,
    true_ends: Sequence[str] = (),
    rounded_ends: Mapping[str, float] = MappingProxyType({}),
    over_time: OverTime | None = None,
    public: bool = False,
) -> Section:
    """What was promised, on what it was checked, and what was found; on a *public* page without what its owner could do.

    >>> promise_section("measured", (), smallest=3).name
    'promise'
    """
    means = {
        "guaranteed": say(
            "The promise is guaranteed: the published values were grouped again, as a stranger would see them, "
            "and every group was checked."
        ),
        "measured": say(
            "The promise is measured: attacks were run on the published table and this report says what they "
            "found. Another attack may find more."
        ),
        "as in the paper": say(
            "The result is as in the paper: it repeats what its authors computed, for science. It is no "
            "guarantee."
        ),
    }
    blocks: list[Block | str] = [
        text(
            say("A group is all rows that show the same values in the quasi-identifiers."),
            means[promise],
        )
    ]
    if verdicts:
        blocks += [
            table(
                "",
                verdicts,
                (say("promise"), promise_named),
                (say("needed in every group"), lambda found: join((plain(found.needed), phrase(found.unit)))),
                (say("found in the weakest group"), lambda found: plain(found.achieved)),
                (say("verdict"), lambda found: say("holds") if found.holds else say("broken")),
            ),
        ]
    else:
        blocks.append(
            say_n(
                "No guarantee was asked for. The smallest group in the published table has {n:,} row.",
                "No guarantee was asked for. The smallest group in the published table has {n:,} rows.",
                smallest,
            )
        )
    if over_time is not None:
        blocks.append(over_time.sentence)
    if true_ends and public:
        blocks.append(
            say(
                "Interval ends of {columns} are true values of somebody in the group.",
                columns=listed(true_ends),
            )
        )
    elif true_ends:
        blocks.append(
            say(
                "Interval ends of {columns} are true values of somebody in the group; round = STEP in the "
                "schema (--round-intervals COLUMN=STEP) hides them.",
                columns=listed(true_ends),
            )
        )
    if rounded_ends:
        steps = [
            say("{step} in {column}", step=few_digits(step), column=name)
            for name, step in rounded_ends.items()
        ]
        blocks.append(
            say(
                "Interval ends are multiples of a declared step ({columns}), moved outwards: they are not "
                "read off single rows.",
                columns=listed(steps),
            )
        )
    return section("promise", say("What was promised and checked"), *blocks)


# ---- what to know before the table leaves: blanks, side doors, rows left out, limits; and how it was made


def _limits(facts: ReleaseFacts) -> Section:
    return limits_section(facts.release.verdicts, facts.release.goal)


def limits_section(verdicts: Sequence[Verdict], goal: Goal, not_examined: Sequence[str] = ()) -> Section:
    """What the release does not promise, and what of it was not looked at.

    >>> limits_section((), Goal(())).name
    'limits'
    """
    units = {found.guarantee: found.unit for found in verdicts}
    limits = (
        say("Someone who knows more than the quasi-identifiers, which the table's owner chose."),
        "l-diversity" not in units
        and say(
            "Learning what all of a group share: a diagnosis that everybody has is known (l-diversity would address it)."
        ),
        say("Guessing a sensitive value better than before because it is frequent in a group."),
        units.get("k-anonymity") == "rows"
        and say(
            "A person with several rows: the promise counts rows, so a group may hold fewer people than rows."
        ),
        goal.reads_sensitive
        and say(
            "Knowing the method (minimality): groups were chosen with the sensitive values in view, so who knows the "
            "method may infer more than the promise says. Chosen without them (--blind, recommended) they would not tell that."
        ),
        goal.blind
        and say(
            "Being left out: groups were made without a look at sensitive values, and those that broke a promise about "
            "these are not in the table. Who knows the method and everybody's quasi-identifiers sees which groups are "
            "missing, and so that their values were too much alike."
        ),
        *NEVER_PROMISED,
    )
    intro = say("It does not protect against:")
    told = Bullets([limit for limit in limits if limit])
    return section("limits", say("What this does not promise"), intro, told, *not_examined)


def _columns(facts: ReleaseFacts) -> Section:
    release = facts.release
    altered: dict[str, list[str]] = {}
    for one in release.operations:
        for name in columns_of(one, release.original.schema):
            altered.setdefault(name, []).append(operation_told(one.name))
    codes = codes_told(release.data.columns, release.listed.to_dict())
    return columns_section(release.table.schema, release.public_losses, release.signed, altered, codes)


_PUBLISHED_AS = {
    "quasi": say("quasi-identifier, made coarser where needed"),
    "sensitive": say("sensitive, published as it is"),
    "other": say("published as it is"),
}
_ALTERED_AS = {
    "quasi": say("quasi-identifier, altered, then made coarser where needed"),
    "sensitive": say("sensitive, altered, then published"),
    "other": say("altered, then published"),
}


def _what_it_is(column: Column, done: Sequence[str]) -> str:
    """The role of a published column, and what was done to it before it was grouped."""
    if not done:
        return _PUBLISHED_AS[column.role]
    return say("{fate}: {done}", fate=_ALTERED_AS[column.role], done=join(done))


def columns_section(
    schema: Schema,
    losses: Mapping[str, float],
    signed: Sequence[Signed],
    altered: Mapping[str, Sequence[str]] | None = None,
    codes: Sequence[Block] = (),
) -> Section:
    """What each published column is and what it lost; columns somebody signed for, with the reason; what *codes* stand for.

    *altered* tells of columns what was done to them before they were grouped.

    >>> from velado.testing.examples import four_people
    >>> columns_section(four_people().schema, {"age": 0.25}, ()).name
    'columns'
    """
    blocks: list[Block | str] = [
        say("Columns that are not listed were not published."),
        table(
            say("Published columns"),
            [column for column in schema.columns.values() if column.published],
            (say("column"), lambda column: column.name),
            (say("what it is"), lambda column: _what_it_is(column, (altered or {}).get(column.name, ()))),
            (
                say("loss of detail"),
                lambda column: share(losses[column.name]) if column.name in losses else NOTHING,
            ),
            labels=2,
        ),
    ]
    if signed:
        blocks += [
            say("These columns look like identifiers. The owner of the table signed for publishing them:"),
            table(
                say("Columns signed for"),
                signed,
                (say("column"), lambda one: one.column),
                (say("reason"), lambda one: one.reason),
                labels=2,
            ),
        ]
    return section("columns", say("What each column is"), *blocks, *codes)


def made_with(
    method: Method, goal: Goal, seed: int, source: SourceFacts, output: OutputFacts
) -> list[tuple[str, str]]:
    """The settings of a run, the same whoever ran it: each one's name, and its value.

    >>> from velado.testing.examples import small_release
    >>> facts = small_release().facts
    >>> rows = made_with(facts.release.method, facts.release.goal, 7, facts.source, facts.output)
    >>> [(str(name), value) for name, value in rows if value == "7"]
    [('seed', '7')]
    """
    parameters = {name: value for name, value in describe(method).items() if name != "name"}
    return [
        (say("method"), join((method.title, f"({method.name})"))),
        (say("source"), method.source),
        (say("parameters"), typed(parameters) or NOTHING),
        (say("suppression allowed"), share(goal.suppression)),
        (say("seed"), str(seed)),
        (
            say("input"),
            join((f"{source.name},", say("fingerprint under the owner's key"), source.keyed_sha256)),
        ),
        (say("output"), f"{output.file}, SHA-256 {output.sha256}"),
    ]


def _repeat(facts: ReleaseFacts) -> Section:
    """How the release was made and how to make it again."""
    release = facts.release
    rows = [
        *made_with(release.method, release.goal, release.seed, facts.source, facts.output),
        *((say("operation done first"), typed(describe(operation))) for operation in release.operations),
        # The head tells it rounded upwards; a second figure beside it would read as another one.
        *note_rows({name: one for name, one in release.notes.items() if name != ABOVE_BEST}),
    ]
    return section(
        "repeat",
        say("How to repeat it"),
        say(
            "On the same file this gives the same table; on another of the same form everything is chosen and checked anew."
        ),
        Code("velado apply private/recipe.toml FILE -o FOLDER"),
        Folded(say("Settings of this run"), (Table("", (say("setting"), say("value")), rows, labels=2),)),
    )
