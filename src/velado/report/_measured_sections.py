"""The sections of a release's report on what was measured: risk, guesses, loss and its reasons, group sizes, distributions."""

from __future__ import annotations

from velado.measures import measure_registry
from velado.measures.declared import Measure
from velado.measures.risk.reidentification import ClassSizes
from velado.measures.utility.distribution import Distribution
from velado.release.methods.progressive.progressive import Progressive
from velado.report.blocks import Block, Bullets, Code, Section, Table, section, table, text
from velado.report.charts import Bar, BarChart
from velado.report.facts import ReleaseFacts, WhatIf
from velado.report.phrases import phrase
from velado.report.score_lines import further_lines
from velado.text import count, listed, number, plain, say, share

SHOWN_SUBSETS = 8


def risk_section(facts: ReleaseFacts) -> Section:
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
        *_further(facts, measure_registry.RISK),
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


def _further(facts: ReleaseFacts, part: tuple[Measure, ...]) -> list[Block]:
    """The measures of one number that have no words of their own, in a table; nothing where there are none."""
    rows = [[name, shown] for name, _, shown in further_lines(facts.scores, part)]
    return (
        [Table(say("What the release cost and bought"), [say("measure"), say("release")], rows)]
        if rows
        else []
    )


def _linkage(facts: ReleaseFacts) -> Block | str:
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


def guesses_section(facts: ReleaseFacts) -> Section:
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
        table(
            say("How often a sensitive value is guessed right"),
            found,
            (say("sensitive column"), lambda part: part.column),
            (say("from the release"), lambda part: share(part.guessed.share)),
            (say("95% interval"), lambda part: f"{share(part.guessed.low)} – {share(part.guessed.high)}"),
            (say("from the whole table alone"), lambda part: share(part.baseline.share)),
            (say("rows in groups with one value only"), lambda part: share(part.homogeneous[1.0])),
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


def partial_section(facts: ReleaseFacts) -> Section:
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
        table(
            say("The sets of columns that expose most in the published table"),
            known.worst(SHOWN_SUBSETS),
            (say("known columns"), lambda part: listed(part.columns)),
            (say("unique rows before"), lambda part: count(part.before.unique_rows)),
            (say("unique rows after"), lambda part: count(part.after.unique_rows)),
            (say("smallest group before"), lambda part: count(part.before.smallest_class)),
            (say("smallest group after"), lambda part: count(part.after.smallest_class)),
        ),
    )


# ---- cost: loss, why, group sizes, distributions


def loss_section(facts: ReleaseFacts) -> Section:
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
                    bound=share(facts.lower_bound),
                ),
            )
        ]
    before, reached = facts.release.loss_before, facts.release.loss
    improved = []
    if before is not None:
        improved = [
            say(
                "The method's own groups lost {before}; rows were then exchanged between them, which brought the loss to "
                "{after}. The promise was kept all the while.",
                before=share(before),
                after=share(reached),
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
    losses = Table(say("Loss and false cells in each quasi-identifier"), header, rows)
    further = _further(facts, measure_registry.UTILITY)
    return section("loss", say("What it cost"), intro, *improved, *bound, chart, losses, truth, *further)


def why_section(facts: ReleaseFacts) -> Section:
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
            table(
                say("The costliest published rows (the first row of data is row 1)"),
                losses.costliest(),
                (say("row"), lambda row: count(row.row)),
                (say("columns that cost it most"), lambda row: listed(row.columns)),
                (say("loss of detail"), lambda row: share(row.loss)),
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
    method = facts.release.method
    shortened = isinstance(method, Progressive) and method.effort != "fast"
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
        *(
            [say("These runs search for a shorter time: a release made for one of them may lose less.")]
            if shortened
            else []
        ),
        *([Bullets(failed)] if failed else []),
    ]


def groups_section(sizes: ClassSizes) -> Section:
    """How large the crowds are."""
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


def distributions_section(facts: ReleaseFacts) -> Section:
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
