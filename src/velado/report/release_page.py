"""The report on a release, and the short page that leaves with the table: facts -> pages of blocks, in words.

No figure is computed here. Numbers are written in the language spoken (`velado.text.speaking`), sentences are told
when the page is rendered.
"""

from __future__ import annotations

from statistics import fmean

from velado.measures.utility.distribution import Distribution
from velado.release.release import describe
from velado.report.blocks import (
    Block,
    Bullets,
    Code,
    Figure,
    Notice,
    Page,
    Section,
    State,
    Table,
    VerdictCard,
    section,
    text,
)
from velado.report.charts import Bar, BarChart
from velado.report.facts import ReleaseFacts, WhatIf
from velado.report.phrases import note_rows, phrase, typed, verdict_sentence
from velado.text import NOTHING, count, few_digits, join, listed, number, plain, say, share

SHOWN_SUBSETS = 8


def release_page(facts: ReleaseFacts) -> Page:
    """The report for the steward: what a decision needs first comes first, opening with the verdict."""
    release, risks = facts.release, (facts.risk(facts.scores.before), facts.risk(facts.scores.after))
    highest = [share(risk.prosecutor.highest) for risk in risks]
    return Page(
        title=say("Release report"),
        subtitle=say(
            "{name}: {rows:,} rows, {columns:,} columns. Method: {method}.",
            name=facts.source.name,
            rows=facts.source.rows,
            columns=len(facts.source.columns),
            method=release.method.title,
        ),
        verdict=_verdict(facts, facts.ncp.overall),
        notice=Notice(
            title=say("For the steward of the data only."),
            text=say(
                "This report shows distributions and row numbers of the original table. Do not publish it with "
                "the table."
            ),
        ),
        key_figures=(
            Figure(say("Smallest group (rows)"), count(facts.smallest)),
            Figure(say("Highest chance to pick a person out"), " → ".join(highest)),
            Figure(say("Loss of detail"), share(facts.ncp.overall)),
            Figure(
                say("Rows left out"),
                f"{count(release.suppressed)} ({share(release.suppressed / facts.source.rows)})",
            ),
        ),
        sections=(
            _promise(facts),
            _risk(facts),
            _guesses(facts),
            _partial(facts),
            _loss(facts),
            _why(facts),
            _groups(facts),
            _distributions(facts),
            _blanks(facts),
            _doors(facts),
            _suppressed(facts),
            _limits(facts),
            _repeat(facts),
        ),
        footer=_footer(facts),
    )


def public_page(facts: ReleaseFacts) -> Page:
    """The page that leaves with the table: what was promised, what it cost, what each column is.

    It is made of what the published table shows anyway: sizes of its groups, its loss, its columns. What was
    measured on the original (risks before, distributions, row numbers) stays in the report.
    """
    release = facts.release
    loss = fmean(release.public_losses.values())
    return Page(
        title=say("About this table"),
        subtitle=say(
            "{rows:,} rows, {columns:,} columns. Method: {method}.",
            rows=release.aligned.height,
            columns=release.aligned.width,
            method=release.method.title,
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
            Figure(say("Rows left out"), count(release.suppressed)),
        ),
        sections=(_promise(facts), _columns(facts), _limits(facts)),
        footer=_footer(facts),
    )


def _footer(facts: ReleaseFacts) -> str:
    output = facts.output
    return say("Made by velado. {file} has SHA-256 {sha256}.", file=output.file, sha256=output.sha256)


def _verdict(facts: ReleaseFacts, loss: float) -> VerdictCard:
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
        headline = say(
            "This method promises no group size: the smallest group of look-alikes in the published table has "
            "{smallest:,} row(s).",
            smallest=facts.smallest,
        )
    else:
        state = "caution" if doors else "good"
        if crowd is None:
            headline = say("Every promise that was asked for holds on the published values.")
        elif crowd.unit == "people":
            headline = say(
                "Whoever knows a person's quasi-identifiers still finds at least {found:,} people in the "
                "published table who could be that person.",
                found=int(crowd.achieved),
            )
        else:
            headline = say(
                "Whoever knows a person's quasi-identifiers still finds at least {found:,} rows in the published "
                "table that could be that person's.",
                found=int(crowd.achieved),
            )
    details = [
        say(
            "It costs {loss} of the detail in the quasi-identifiers, and {rows:,} row(s) were left out.",
            loss=share(loss),
            rows=release.suppressed,
        )
    ]
    columns, behind = facts.behind_doors
    if behind is not None:
        details.append(
            say(
                "Smallest group {smallest:,}; {behind:,} for who also reads {columns}.",
                smallest=facts.smallest,
                behind=behind,
                columns=listed(columns),
            )
        )
    if named := sorted({door.column for door in doors if door.column}):
        details.append(
            say(
                "Before you publish, read “Side doors”: other published columns may undo the promise ({columns}).",
                columns=listed(named),
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


# ---- protection: promise, risk, guesses, partial knowledge


def _promise(facts: ReleaseFacts) -> Section:
    """What was promised, on what it was checked, and what was found."""
    release = facts.release
    means = {
        "guaranteed": say(
            "The promise is guaranteed: the published values were grouped again, as a stranger would see them, "
            "and every group was checked. Had one group failed, nothing would have been written."
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
    blocks: list[Block | str] = [means[release.promise]]
    if release.verdicts:
        blocks += [
            Table(
                say("Promises, checked on the published values"),
                (
                    say("promise"),
                    say("needed in every group"),
                    say("found in the weakest group"),
                    say("verdict"),
                ),
                [
                    (
                        phrase(found.guarantee),
                        join((plain(found.needed), phrase(found.unit))),
                        plain(found.achieved),
                        say("holds") if found.holds else say("broken"),
                    )
                    for found in release.verdicts
                ],
            ),
            Bullets([verdict_sentence(found) for found in release.verdicts]),
            say(
                "A group is all rows that show the same values in the quasi-identifiers: {columns}.",
                columns=listed(facts.quasi),
            ),
        ]
    else:
        blocks.append(
            say(
                "No guarantee was asked for. The smallest group in the published table has {smallest:,} row(s).",
                smallest=facts.smallest,
            )
        )
    if facts.true_ends:
        blocks.append(
            say(
                "Interval ends of {columns} are true values of somebody in the group; round = STEP in the "
                "schema (--round-intervals COLUMN=STEP) hides them.",
                columns=listed(facts.true_ends),
            )
        )
    if facts.rounded_ends:
        steps = [
            say("{step} in {column}", step=few_digits(step), column=name)
            for name, step in facts.rounded_ends.items()
        ]
        blocks.append(
            say(
                "Interval ends are multiples of a declared step ({columns}), moved outwards: they are not "
                "read off single rows.",
                columns=listed(steps),
            )
        )
    return section("promise", say("What was promised and checked"), *blocks)


def _risk(facts: ReleaseFacts) -> Section:
    """How exposed people were, and are now, to each attacker."""
    scores = facts.scores
    before, after = facts.risk(scores.before), facts.risk(scores.after)
    alone, unit = scores.before.uniqueness, phrase("people" if facts.by_person else "rows")
    chances = [
        (say("prosecutor, worst case"), before.prosecutor.highest, after.prosecutor.highest),
        (say("prosecutor, mean"), before.prosecutor.mean, after.prosecutor.mean),
        (say("journalist, worst case"), before.journalist.highest, after.journalist.highest),
        (say("marketer, expected share"), before.marketer, after.marketer),
    ]
    shown = [(name, (old, new), (share(old), share(new))) for name, old, new in chances]
    series = (say("before (original)"), say("after (published)"))
    of_people = alone.unique_people is not None and say(
        "Of {of:,} people, {people:,} can be told from everybody else there.",
        people=alone.unique_people,
        of=alone.people,
    )
    blocks: list[Block | str] = [
        text(
            say(
                "The risk is the chance that an attacker who knows the quasi-identifiers points at the right one."
            ),
            say("It is counted in {unit}.", unit=unit),
        ),
        text(
            say(
                "In the original table {rows:,} rows ({share}) are alone with their combination of "
                "quasi-identifiers; in the published one {after:,}.",
                rows=alone.unique_rows,
                share=share(alone.unique_rows / max(alone.rows, 1)),
                after=scores.after.uniqueness.unique_rows,
            ),
            of_people or "",
        ),
        BarChart(
            title=say("Chance to pick the right one, before and after"),
            description=risk_change(before.prosecutor.highest, after.prosecutor.highest),
            axis=say("chance in percent"),
            series=series,
            bars=tuple(Bar(*one) for one in shown),
            in_table=True,
        ),
        Table(
            say("Chance to pick the right one"),
            (say("attacker"), *series),
            [(name, *texts) for name, _, texts in shown],
        ),
        Table(
            say("Share of {unit} whose risk (prosecutor) is above a threshold", unit=unit),
            (say("risk above"), *series),
            [
                (f"> {share(limit, 0)}", share(part), share(after.prosecutor.share_above[limit]))
                for limit, part in before.prosecutor.share_above.items()
            ],
        ),
        text(
            say(
                "The prosecutor knows that the person is in the table. The journalist does not know it. The "
                "marketer wants to match as many as possible and accepts errors."
            ),
            ""
            if scores.after.rows.population
            else say(
                "No table of the population was given, so the journalist's risk is taken to be the prosecutor's."
            ),
        ),
        _linkage(facts),
    ]
    return section("risk", say("Risk before and after"), *blocks)


def risk_change(before: float, after: float) -> str:
    """How the highest chance to pick a person out changed, by the figures that are shown.

    >>> risk_change(1.0, 0.2)
    'For a person known to be in the table, the highest chance falls from 100.0% to 20.0%.'
    """
    old, new = share(before), share(after)
    if old == new:
        return say("For a person known to be in the table, the highest chance stays at {after}.", after=new)
    if after > before:
        return say(
            "For a person known to be in the table, the highest chance rises from {before} to {after}.",
            before=old,
            after=new,
        )
    return say(
        "For a person known to be in the table, the highest chance falls from {before} to {after}.",
        before=old,
        after=new,
    )


def _linkage(facts: ReleaseFacts) -> Block:
    found = facts.scores.linkage
    if found is None:
        reason = facts.scores.not_measured.get("record linkage", "")
        return say("Record linkage was not measured. {reason}", reason=reason)
    directions = {
        "released-to-original": say("from the published table to the original one"),
        "original-to-released": say("from the original table to the published one"),
    }
    ties = {
        "expected": say("among equally near records each counts with its share (1 / number of ties)"),
        "first": say("the first of equally near records counts"),
        "any": say("it counts as found if the right record is among the equally near ones"),
    }
    return text(
        say(
            "Record linkage: matching each record to the nearest one finds the right row for {correct} of {rows:,} "
            "rows ({share}).",
            correct=number(found.correct, 1),
            rows=found.rows,
            share=share(found.share, 2),
        ),
        say(
            "Direction: {direction}. Ties: {ties}.",
            direction=directions[found.direction],
            ties=ties[found.ties],
        ),
        say(
            "This is one attack, in which a published range stands at its middle. It is no limit to what other "
            "attacks may find."
        ),
    )


def _guesses(facts: ReleaseFacts) -> Section:
    """How often each sensitive value is guessed right from the release, and without it."""
    title = say("Guessing sensitive values")
    found = () if facts.scores.disclosure is None else facts.scores.disclosure.attributes
    if not found:
        none = say("No sensitive column is published, so there is nothing to guess.")
        return section("guesses", title, none)
    better = [part.column for part in found if part.beats_baseline]
    return section(
        "guesses",
        title,
        say(
            "Nobody has to be picked out to learn something about them: what is common in a group can be "
            "guessed. The attacker knows the quasi-identifiers and names the most common value of the "
            "person's group."
        ),
        Table(
            say("How often a sensitive value is guessed right"),
            (
                say("sensitive column"),
                say("from the release"),
                say("95% interval"),
                say("from the whole table alone"),
                say("rows in groups with one value only"),
            ),
            [
                (
                    part.column,
                    share(part.guessed.share),
                    f"{share(part.guessed.low)} – {share(part.guessed.high)}",
                    share(part.baseline.share),
                    share(part.homogeneous[1.0]),
                )
                for part in found
            ],
        ),
        text(
            say(
                "The release helps to guess {columns}: the difference is larger than chance.",
                columns=listed(better),
            )
            if better
            else say(
                "With the release nothing is guessed better than by naming the most common value of the whole "
                "table, as far as chance lets one say."
            ),
            say("The row that is guessed is not counted in its own group."),
        ),
    )


def _partial(facts: ReleaseFacts) -> Section:
    """What an attacker achieves who knows only some of the quasi-identifiers."""
    title = say("Knowing only some columns")
    known = None if facts.scores.disclosure is None else facts.scores.disclosure.partial
    if known is None:
        many = say("There are too many sets of columns to try them all on a table of this size.")
        return section("partial", title, many)
    return section(
        "partial",
        title,
        say(
            "All {subsets:,} sets of up to {largest:,} quasi-identifiers were tried. In the original table "
            "{before:,} of them single out at least one row, in the published one {after:,}.",
            subsets=len(known.subsets),
            largest=known.largest,
            before=sum(part.before.unique_rows > 0 for part in known.subsets),
            after=sum(part.after.unique_rows > 0 for part in known.subsets),
        ),
        Table(
            say("The sets of columns that expose most in the published table"),
            (
                say("known columns"),
                say("unique rows before"),
                say("unique rows after"),
                say("smallest group before"),
                say("smallest group after"),
            ),
            [
                (
                    listed(part.columns),
                    count(part.before.unique_rows),
                    count(part.after.unique_rows),
                    count(part.before.smallest_class),
                    count(part.after.smallest_class),
                )
                for part in known.worst(SHOWN_SUBSETS)
            ],
        ),
    )


# ---- cost: loss, why, group sizes, distributions


def _loss(facts: ReleaseFacts) -> Section:
    """What the release gave up, per column and overall."""
    ncp, false = facts.ncp, facts.scores.false_cells
    ordered = sorted(ncp.by_column.items(), key=lambda item: (-item[1], item[0]))
    header = [say("column"), say("loss of detail")]
    rows = [[name, share(value)] for name, value in ordered] + [[say("all columns"), share(ncp.overall)]]
    if false is None:
        truth = say(
            "False cells were not counted: after the column operations the published texts cannot be compared "
            "with the original values."
        )
    else:
        header.append(say("false cells"))
        shares = [*(false.by_column.get(name, 0.0) for name, _ in ordered), false.share]
        rows = [[*row, share(wrong)] for row, wrong in zip(rows, shares, strict=True)]
        truth = say("No published cell is false: each one covers the true value of its row.")
        if false.cells:
            truth = say(
                "{cells:,} published cells ({share}) do not cover the true value of their row: the method "
                "publishes substitutes. Say so wherever the table is used.",
                cells=false.cells,
                share=share(false.share),
            )
    variant: str = ncp.variant
    if variant == "leaves-1":
        variant = say(
            "“leaves-1” (interval width / domain width for numbers; (leaves covered - 1) / (leaves - 1) for "
            "categories; a row left out counts 100%)"
        )
    above, bound = facts.above_best_percent, []
    if above is not None:
        near = say("This is the best possible for this table.")
        if above > 0:
            near = say("At most {above:,}% above the best possible for this table.", above=above)
        bound = [
            text(
                near,
                say(
                    "It was proven by computation that no release of this table in groups of at least this size can "
                    "lose less than {bound}, whatever the method. The best possible may lie above that limit, so "
                    "the true gap may be smaller.",
                    bound=share(facts.release.notes["lower_bound"]),
                ),
            )
        ]
    chart = BarChart(
        title=say("Loss of detail in each quasi-identifier"),
        description=say(
            "The column that loses most is {column} with {loss}.",
            column=ordered[0][0],
            loss=share(ordered[0][1]),
        ),
        axis=say("loss in percent of the column's detail"),
        series=(say("loss of detail"),),
        bars=tuple(Bar(name, (value,), (share(value),)) for name, value in ordered),
        in_table=True,
    )
    intro = text(
        say(
            "On average {loss} of what the quasi-identifiers could say is no longer said (0% = everything as "
            "before, 100% = nothing left).",
            loss=share(ncp.overall),
        ),
        say("Measure: normalized certainty penalty, variant {variant}.", variant=variant),
    )
    table = Table(say("Loss and false cells in each quasi-identifier"), header, rows)
    return section("loss", say("What it cost"), intro, *bound, chart, table, truth)


def _why(facts: ReleaseFacts) -> Section:
    """Which columns and rows carry the loss, and what another setting would change."""
    losses = facts.row_losses
    blocks: list[Block | str] = []
    if facts.ncp.overall == 0:
        blocks.append(say("Nothing was lost: the rows were alike enough as they were."))
    else:
        shares = sorted(losses.column_shares().items(), key=lambda item: (-item[1], item[0]))
        few = losses.carried_by(0.05)
        blocks += [
            say(
                "These columns carry most of the loss: {columns}.",
                columns=listed(f"{name} ({share(part)})" for name, part in shares[:3] if part > 0),
            ),
            say(
                "The costliest 1% of the rows carry {one} of the loss, the costliest 5% carry {five}.",
                one=share(losses.carried_by(0.01)),
                five=share(few),
            ),
            (
                say(
                    "The loss is spread evenly: no few rows force it, and leaving some out would gain little."
                )
                if few < 0.15
                else say("A few unusual rows force much of it: allowing some suppression may pay.")
            ),
            Table(
                say("The costliest published rows (the first row of data is row 1)"),
                (say("row"), say("column(s) that cost it most"), say("loss of detail")),
                [(count(row.row), listed(row.columns), share(row.loss)) for row in losses.costliest()],
                labels=2,
            ),
        ]
    k = facts.now.k or 5
    blocks += [
        *_what_ifs(facts),
        say(
            "This report is about one method. What the other methods cost at the same promise on the same table "
            "is shown by this command, which writes nothing:"
        ),
        Code(f"velado compare FILE --schema SCHEMA -k {k}"),
    ]
    return section("why", say("Why this result"), *blocks)


def _what_ifs(facts: ReleaseFacts) -> list[Block | str]:
    runs, now = facts.what_ifs.runs, facts.now
    if facts.what_ifs.skipped == "large":
        large = say("The table is large, so the method was not run again with other settings.")
        return [large]
    if facts.what_ifs.skipped == "no-k":
        return [say("The method promises no k, so there is no other k to compare with.")]
    if not runs:
        return []

    def row(run: WhatIf) -> tuple[str, ...]:
        same = (run.k, run.suppression) == (now.k, now.suppression)
        figures = (run.suppressed, run.groups, run.smallest)
        return (
            f"{count(run.k)}{' *' if same else ''}",
            share(run.suppression),
            share(run.loss),
            *(count(figure) for figure in figures),
        )

    header = (
        "k",
        say("suppression allowed"),
        say("loss of detail"),
        say("rows left out"),
        say("groups"),
        say("smallest group"),
    )
    done = [row(run) for run in (now, *runs) if not run.failed]
    failed = [
        say(
            "k = {k:,} with suppression up to {suppression} is not possible: {why}",
            k=run.k,
            suppression=share(run.suppression),
            why=run.failed,
        )
        for run in runs
        if run.failed
    ]
    return [
        Table(say("What another k or suppression would change (* = this release)"), header, done),
        say(
            "The same method was run again with only that setting changed. Nothing of these runs is published."
        ),
        *([Bullets(failed)] if failed else []),
    ]


def _groups(facts: ReleaseFacts) -> Section:
    """How large the crowds are."""
    sizes = facts.scores.after.class_sizes
    summary = say(
        "{groups:,} groups: the smallest has {smallest:,} rows, the median {median}, the mean {mean}, the largest "
        "{largest:,}.",
        groups=sizes.classes,
        smallest=sizes.smallest,
        median=plain(sizes.median),
        mean=number(sizes.mean, 1),
        largest=sizes.largest,
    )
    chart = BarChart(
        title=say("Rows by the size of their group"),
        description=summary,
        axis=say("number of rows, by group size"),
        series=(say("rows"),),
        bars=tuple(
            Bar(label, (float(rows),), (count(rows),))
            for label, rows in zip(sizes.labels, sizes.rows_in_bin, strict=True)
        ),
    )
    return section("groups", say("How large the groups are"), summary, chart)


def _distributions(facts: ReleaseFacts) -> Section:
    """Each quasi-identifier before and after."""
    blocks: list[Block | str] = [
        say(
            "How the published table shows each quasi-identifier. A published range is spread evenly over the "
            "values it covers, as a reader who knows no more would do."
        )
    ]
    for found in facts.scores.distributions:
        blocks += _distribution(found)
    return section("distributions", say("Distributions before and after"), *blocks)


def _distribution(found: Distribution) -> list[Block | str]:
    joined = {
        None: "",
        "month": say("The chart shows {column} by month, not by day.", column=found.name),
        "year": say("The chart shows {column} by year, not by day.", column=found.name),
        "decade": say("The chart shows {column} by decade, not by day.", column=found.name),
        "level": say(
            "{column} has many values: the chart shows them by a broader level of its taxonomy.",
            column=found.name,
        ),
    }
    special = {found.blank: say("(blank)"), found.other: say("(all other values)")}
    moved = share(found.total_variation)
    return [
        BarChart(
            title=say("Distribution of {column}", column=found.name),
            description=say(
                "Share of rows per value of {column}, original beside published; {moved} of the rows differ.",
                column=found.name,
                moved=moved,
            ),
            axis=say("share of rows in percent"),
            series=(say("before (original)"), say("after (published)")),
            bars=tuple(
                Bar(special.get(at, label), (old, new), (share(old), share(new)))
                for at, (label, old, new) in enumerate(
                    zip(found.labels, found.before, found.after, strict=True)
                )
            ),
            upright=True,
        ),
        text(
            joined[found.grouped],
            say(
                "In {column}, {moved} of the rows would have to change their value to get the original "
                "distribution back (total variation).",
                column=found.name,
                moved=moved,
            ),
        ),
    ]


# ---- what to know before the table leaves: blanks, side doors, rows left out, limits; and how it was made


def _blanks(facts: ReleaseFacts) -> Section:
    """The two readings of blanks and stars."""
    intro = say(
        "A blank or * can be read as a value of its own, or as matching anything. The promise is checked with the "
        "first, stricter reading."
    )
    table = Table(
        say("Group sizes under both readings"),
        (say("reading"), say("smallest group"), say("mean group")),
        [
            (phrase(reading.name), count(reading.smallest), number(reading.mean, 1))
            for reading in facts.release.checked.readings
        ],
    )
    return section("blanks", say("Two readings of blanks"), intro, table)


def _doors(facts: ReleaseFacts) -> Section:
    """Published columns outside the promise that may undo it."""
    title, doors = say("Side doors"), facts.release.side_doors
    if not doors:
        none = say("No other published column was found to give a quasi-identifier away.")
        return section("side-doors", title, none)
    signed = say("(Signed off in the schema.)")
    return section(
        "side-doors",
        title,
        say(
            "These columns are published but are no quasi-identifiers. An attacker who knows them too faces "
            "smaller groups than promised."
        ),
        Bullets([join((door.sentence(), signed)) if door.accepted else door.sentence() for door in doors]),
        Table(
            say("How far each column opens the promise"),
            (
                say("column"),
                say("gives away"),
                say("guessed right with it"),
                say("without it"),
                say("smallest group if it is known too"),
            ),
            [
                (
                    door.column,
                    door.reveals or NOTHING,
                    share(door.guess) if door.reveals else NOTHING,
                    share(door.baseline) if door.reveals else NOTHING,
                    count(facts.smallest_behind(*door.columns)),
                )
                for door in doors
                if door.column
            ],
            labels=2,
        ),
        say(
            "If outsiders may know such a column, make it a quasi-identifier or do not publish it "
            '(publish = false). If not, sign it off with side_door = "accept".'
        ),
    )


def _suppressed(facts: ReleaseFacts) -> Section:
    """Rows that did not leave, and everything else a steward should know of the run."""
    release = facts.release
    if release.suppressed:
        left = text(
            say(
                "{rows:,} rows ({share}) were left out; the limit was {limit}.",
                rows=release.suppressed,
                share=share(release.suppressed / facts.source.rows),
                limit=share(release.goal.suppression),
            ),
            say(
                "Their row numbers (at most 20 are shown): {numbers}.",
                numbers=", ".join(map(str, facts.suppressed_rows)),
            ),
            say(
                "They are unusual rows, so the published table holds fewer unusual people than the original."
            ),
        )
    else:
        left = say("No row was left out.")
    warnings = facts.warnings
    if facts.output.formulas:
        warnings.append(
            say(
                "{cells:,} cells begin like a spreadsheet formula and were kept as they are: a spreadsheet program "
                "may run them.",
                cells=facts.output.formulas,
            )
        )
    told = Bullets(warnings) if warnings else say("There are no warnings.")
    return section("suppressed", say("Rows left out, and warnings"), left, told)


def _limits(facts: ReleaseFacts) -> Section:
    """What the release does not promise."""
    units = {found.guarantee: found.unit for found in facts.release.verdicts}
    limits = (
        say(
            "Someone who knows more than the quasi-identifiers ({columns}). Which columns these are was the choice of "
            "the table's owner.",
            columns=listed(facts.quasi),
        ),
        "l-diversity" not in units
        and say(
            "Learning what all members of a group share: if everybody in it has the same diagnosis, it is known "
            "(l-diversity would address it)."
        ),
        say("Guessing a sensitive value better than before because it is frequent in a group."),
        units.get("k-anonymity") == "rows"
        and say(
            "A person with several rows: the promise counts rows, so a group may hold fewer people than rows."
        ),
        facts.release.goal.reads_sensitive
        and say(
            "Knowing the method (minimality): groups were chosen with the sensitive values in view, so who knows the "
            "method may infer more than the promise says."
        ),
        say(
            "Combining this release with another one of the same people, made earlier or later or by somebody else."
        ),
        say(
            "What stands in columns that were published as they are, such as free text, dates and exact amounts."
        ),
        say("Finding out that somebody is in the table at all."),
        say(
            "Meeting a law: whether a table counts as anonymous is a decision of people, for which this report is "
            "evidence."
        ),
    )
    intro = say("No release is without risk. This one does not protect against the following.")
    told = Bullets([limit for limit in limits if limit])
    return section("limits", say("What this does not promise"), intro, told)


def _columns(facts: ReleaseFacts) -> Section:
    """What each published column is and what it lost; columns somebody signed for, with the reason."""
    release, losses = facts.release, facts.release.public_losses
    roles = {
        "quasi": say("quasi-identifier, made coarser where needed"),
        "sensitive": say("sensitive, published as it is"),
        "other": say("published as it is"),
    }
    blocks: list[Block | str] = [
        say("Columns that are not listed were not published."),
        Table(
            say("Published columns"),
            (say("column"), say("what it is"), say("loss of detail")),
            [
                (
                    column.name,
                    roles[column.role],
                    share(losses[column.name]) if column.name in losses else NOTHING,
                )
                for column in release.table.schema.columns.values()
                if column.published
            ],
            labels=2,
        ),
    ]
    if release.operations:
        done = "; ".join(f"{operation.name}: {operation.column}" for operation in release.operations)
        blocks.append(say("Before grouping, columns were changed: {operations}.", operations=done))
    if release.signed:
        blocks += [
            say("These columns look like identifiers. The owner of the table signed for publishing them:"),
            Table(
                say("Columns signed for"),
                (say("column"), say("reason")),
                [(one.column, one.reason) for one in release.signed],
                labels=2,
            ),
        ]
    return section("columns", say("What each column is"), *blocks)


def _repeat(facts: ReleaseFacts) -> Section:
    """How the release was made and how to make it again."""
    release, source, output = facts.release, facts.source, facts.output
    parameters = {name: value for name, value in describe(release.method).items() if name != "name"}
    rows = [
        (say("method"), f"{release.method.title} ({release.method.name})"),
        (say("source"), release.method.source),
        (say("parameters"), typed(parameters) or NOTHING),
        (say("suppression allowed"), share(release.goal.suppression)),
        (say("seed"), str(release.seed)),
        (
            say("input"),
            join((f"{source.name},", say("fingerprint under the owner's key"), source.keyed_sha256)),
        ),
        (say("output"), f"{output.file}, SHA-256 {output.sha256}"),
        *((say("operation done first"), typed(describe(operation))) for operation in release.operations),
        *note_rows(release.notes),
    ]
    return section(
        "repeat",
        say("How to repeat it"),
        say(
            "recipe.toml holds every setting. On the same file it gives the same table byte for byte; on "
            "another file of the same form everything is chosen and checked anew."
        ),
        Code("velado apply private/recipe.toml FILE -o FOLDER"),
        Table(say("Settings of this run"), (say("setting"), say("value")), rows, labels=2),
    )
