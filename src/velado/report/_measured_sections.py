"""The sections of a release's report on what was measured: risk, guesses, group sizes, distributions, readings of blanks."""

from __future__ import annotations

from velado.measures import measure_registry
from velado.measures.risk.reidentification import ClassSizes
from velado.measures.utility.distribution import Distribution
from velado.report.blocks import Block, Folded, Section, Table, section, table, text
from velado.report.charts import Bar, BarChart
from velado.report.facts import ReleaseFacts
from velado.report.phrases import phrase
from velado.report.score_lines import further_measures
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
    explained = say(
        "The prosecutor knows that the person is in the table, the journalist does not. The marketer wants to match many and "
        "accepts errors."
    )
    alike = (
        ()
        if scores.after.rows.population
        else (
            say(
                "No table of the population was given, so the journalist's risk is taken to be the prosecutor's."
            ),
        )
    )
    thresholds = Table(
        say("Share of {unit} whose risk (prosecutor) is above a threshold", unit=unit),
        (say("risk above"), *series),
        [
            (f"> {share(limit, 0)}", share(part), share(after.prosecutor.share_above[limit]))
            for limit, part in before.prosecutor.share_above.items()
        ],
    )
    chart = BarChart(
        title=say("Chance to pick the right one, before and after"),
        description=risk_change(before.prosecutor.highest, after.prosecutor.highest),
        axis=say("chance in percent"),
        series=series,
        bars=tuple(Bar(*one) for one in shown),
        in_table=True,
    )
    return section(
        "risk",
        say("Risk before and after"),
        text(
            say(
                "The risk is the chance to point at the right one by the quasi-identifiers alone, for one row at a time, counted "
                "in {unit}.",
                unit=unit,
            ),
            say(
                "In the original table {rows:,} rows ({share}) are alone with their combination of "
                "quasi-identifiers; in the published one {after:,}.",
                rows=alone.unique_rows,
                share=share(alone.unique_rows / max(alone.rows, 1)),
                after=scores.after.uniqueness.unique_rows,
            ),
            of_people or "",
        ),
        explained,
        Table("", (say("attacker"), *series), [(name, *texts) for name, _, texts in shown]),
        Folded(
            say("Chart, thresholds, record linkage, and attackers who know only some columns"),
            tuple(
                part if not isinstance(part, str) else text(part)
                for part in (
                    chart,
                    *alike,
                    thresholds,
                    _linkage(facts),
                    *_partial(facts),
                    *further_measures(facts.scores, measure_registry.RISK),
                )
            ),
        ),
    )


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
            "Nobody has to be picked out to be known: an attacker names the most common value of the person's group, the "
            "person's own row aside."
        ),
        table(
            "",
            found,
            (say("sensitive column"), lambda part: part.column),
            (say("from the release"), lambda part: share(part.guessed.share)),
            (say("95% interval"), lambda part: f"{share(part.guessed.low)} – {share(part.guessed.high)}"),
            (say("from the whole table alone"), lambda part: share(part.baseline.share)),
            (say("rows in groups with one value only"), lambda part: share(part.homogeneous[1.0])),
        ),
        say(
            "The release helps to guess {columns}: the difference is larger than chance.",
            columns=listed(better),
        )
        if better
        else say(
            "With the release nothing is guessed better than by naming the most common value of the whole "
            "table, as far as chance lets one say."
        ),
    )


def _partial(facts: ReleaseFacts) -> list[Block | str]:
    """What an attacker achieves who knows only some of the quasi-identifiers."""
    known = None if facts.scores.disclosure is None else facts.scores.disclosure.partial
    if known is None:
        return [say("There are too many sets of columns to try them all on a table of this size.")]
    return [
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


def details_section(facts: ReleaseFacts) -> Section:
    """Group sizes, distributions and readings of blanks, each to be unfolded."""
    groups = groups_section(facts.scores.after.class_sizes)
    spread: list[Block] = [
        text(
            say(
                "How the published table shows each quasi-identifier. A published range is spread evenly over the "
                "values it covers, as a reader who knows no more would do."
            )
        )
    ]
    for found in facts.scores.distributions:
        spread += (part if not isinstance(part, str) else text(part) for part in _distribution(found))
    return section(
        "details",
        say("Details"),
        Folded(groups.title, groups.blocks),
        Folded(say("Distributions before and after"), tuple(spread)),
        _blanks(facts),
    )


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


def _blanks(facts: ReleaseFacts) -> Folded:
    """The two readings of blanks and stars."""
    intro = say(
        "A blank or * can be read as a value of its own, or as matching anything. The promise is checked with the "
        "first, stricter reading."
    )
    sizes = table(
        "",
        facts.release.checked.readings,
        (say("reading"), lambda reading: phrase(reading.name)),
        (say("smallest group"), lambda reading: count(reading.smallest)),
        (say("mean group"), lambda reading: number(reading.mean, 1)),
    )
    return Folded(say("Two readings of blanks"), (text(intro), sizes))
