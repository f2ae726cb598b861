"""The sections of a release's report on what it cost: loss, its reasons, what other settings would give, bins that were chosen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from velado.measures import measure_registry
from velado.release.methods.das import DAS, elbow_costs
from velado.release.methods.progressive.progressive import Progressive
from velado.release.recoded import BINS
from velado.report.blocks import Block, Bullets, Code, Drawing, Folded, Section, Table, section, table, text
from velado.report.charts import Bar, BarChart, Box, Scale, axes, colour, group, line, svg
from velado.report.facts import CostlyRow, ReleaseFacts, WhatIf
from velado.report.score_lines import further_measures
from velado.text import NOTHING, count, listed, say, share

_WORTH = 0.05
"""A change of settings is worth a word of advice if it takes so much of the loss away."""


def loss_section(facts: ReleaseFacts) -> Section:
    """What the release gave up; how much in each column stands in the inventory."""
    ncp, false = facts.ncp, facts.scores.false_cells
    ordered = sorted(ncp.by_column.items(), key=lambda item: (-item[1], item[0]))
    if false is None:
        truth = say(
            "False cells were not counted: after the column operations the published texts cannot be compared "
            "with the original values."
        )
    elif false.cells:
        truth = say(
            "{cells:,} published cells ({share}) do not cover the true value of their row: the method "
            "publishes substitutes. Say so wherever the table is used.",
            cells=false.cells,
            share=share(false.share),
        )
    else:
        truth = say("No published cell is false: each one covers the true value of its row.")
    variant: str = ncp.variant
    if variant == "leaves-1":
        variant = say(
            "“leaves-1” (interval width / domain width for numbers; (leaves covered - 1) / (leaves - 1) for "
            "categories; a row left out counts 100%)"
        )
    above = facts.above_best_percent
    near, proven = "", ""
    if above is not None:
        near = say("This is the best possible for this table.")
        if above > 0:
            near = say("At most {above:,}% above the best possible for this table.", above=above)
        proven = say(
            "It was proven by computation that no release of this table in groups of at least this size can "
            "lose less than {bound}, whatever the method. The best possible may lie above that limit, so "
            "the true gap may be smaller.",
            bound=share(facts.lower_bound),
        )
    before, reached = facts.release.loss_before, facts.release.loss
    improved = ""
    if before is not None:
        improved = say(
            "The method's own groups lost {before}; rows were then exchanged between them, which brought the loss to "
            "{after}. The promise was kept all the while.",
            before=share(before),
            after=share(reached),
        )
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
    )
    how = text(say("Measure: normalized certainty penalty, variant {variant}.", variant=variant), proven)
    return section(
        "loss",
        say("What it cost"),
        text(
            near,
            improved,
            truth,
        ),
        Folded(
            say("Loss by column, and how it is measured"),
            (chart, how, *further_measures(facts.scores, measure_registry.UTILITY)),
        ),
    )


def why_section(facts: ReleaseFacts) -> Section:
    """Which columns and rows carry the loss, and what another setting would change."""
    losses = facts.row_losses
    blocks: list[Block | str] = []
    if facts.ncp.overall == 0:
        blocks.append(say("Nothing was lost: the rows were alike enough as they were."))
    else:
        shares = sorted(losses.column_shares().items(), key=lambda item: (-item[1], item[0]))
        blocks += [
            text(
                say(
                    "These columns carry most of the loss: {columns}.",
                    columns=listed(f"{name} ({share(part)})" for name, part in shares[:3] if part > 0),
                ),
                say(
                    "The costliest 1% of the rows carry {one} of the loss, the costliest 5% carry {five}.",
                    one=share(losses.carried_by(0.01)),
                    five=share(losses.carried_by(0.05)),
                ),
                suppression_advice(facts.now, facts.what_ifs.runs),
            ),
        ]
    blocks += _what_ifs(facts)
    if facts.ncp.overall > 0:
        costly = table(
            "",
            _alike(losses.costliest()),
            (
                say("rows (the first row of data is row 1)"),
                lambda rows: ", ".join(count(one.row) for one in rows),
            ),
            (say("columns that cost it most"), lambda rows: listed(rows[0].columns)),
            (say("loss of detail"), lambda rows: share(rows[0].loss)),
            labels=2,
        )
        blocks.append(Folded(say("The costliest published rows"), (costly,)))
    others = say(
        "What the other methods cost at the same promise is shown by this command, which writes nothing:"
    )
    compare = Code(f"velado compare FILE --schema SCHEMA -k {facts.now.k or 5}")
    blocks.append(Folded(say("Other methods"), (text(others), compare)))
    return section("why", say("Why this result"), *blocks)


def suppression_advice(now: WhatIf, runs: Sequence[WhatIf]) -> str:
    """Whether leaving rows out would pay, by the reruns that were made; nothing where none was.

    >>> now = WhatIf(k=5, suppression=0.0, loss=0.2, suppressed=0)
    >>> suppression_advice(now, [WhatIf(k=5, suppression=0.01, changed="suppression", loss=0.15, suppressed=20)])
    'Allowing 1.0% suppression would pay: the loss falls from 20.0% to 15.0%, and 20 rows are left out.'
    >>> suppression_advice(now, [WhatIf(k=5, suppression=0.01, changed="suppression", loss=0.201, suppressed=9)])
    'Allowing suppression would not pay: in the runs below the loss stays at 20.0% or above.'
    """
    tried = [one for one in runs if one.changed == "suppression" and one.loss is not None]
    if not tried or now.loss is None:
        return ""
    # The least suppression that does nearly what the best does: rows left out are people left out.
    least = min(one.loss for one in tried if one.loss is not None)
    if least > now.loss * (1 - _WORTH):
        if share(least) >= share(now.loss) or least >= now.loss:
            return say(
                "Allowing suppression would not pay: in the runs below the loss stays at {loss} or above.",
                loss=share(now.loss),
            )
        return say(
            "Allowing suppression would hardly pay: in the runs below the loss falls from {now} to {then} at best.",
            now=share(now.loss),
            then=share(least),
        )
    half = now.loss - (now.loss - least) / 2
    best = min(
        (one for one in tried if one.loss is not None and one.loss <= half), key=lambda one: one.suppression
    )
    return say(
        "Allowing {suppression} suppression would pay: the loss falls from {now} to {then}, and {rows:,} rows are left out.",
        suppression=share(best.suppression),
        now=share(now.loss),
        then=share(best.loss),
        rows=best.suppressed,
    )


def _alike(rows: Sequence[CostlyRow]) -> list[list[CostlyRow]]:
    """Rows that lose alike, in one line each."""
    out: dict[tuple[str, tuple[str, ...]], list[CostlyRow]] = {}
    for one in rows:
        out.setdefault((share(one.loss), one.columns), []).append(one)
    return list(out.values())


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
        *([say("These runs are shorter: a release made for one may lose less.")] if shortened else []),
        *([Bullets(failed)] if failed else []),
    ]


def bins_section(facts: ReleaseFacts) -> tuple[Section, ...]:
    """How many bins the elbow chose for each number column, and the curves it was read off; nothing for other methods."""
    method, chosen = facts.release.method, facts.release.notes.get(BINS)
    if not isinstance(method, DAS) or not isinstance(chosen, Mapping):
        return ()
    rows = [(name, count(bins)) for name, bins in chosen.items()]
    drawn = () if method.bins is not None else tuple(elbow_drawings(facts, chosen))
    told = (
        say("The number of bins was given.")
        if method.bins is not None
        else say(
            "More bins keep more detail, and each one more gains less: the number of bins is where the curve bends (its elbow)."
        )
    )
    return (
        section(
            "bins",
            say("Bins that were chosen"),
            told,
            Table("", (say("column"), say("bins")), rows),
            *([Folded(say("The elbow of each column"), drawn)] if drawn else []),
        ),
    )


def elbow_drawings(facts: ReleaseFacts, chosen: Mapping[str, int]) -> Iterator[Drawing]:
    """The cost of 2, 3, ... bins in each number column, its elbow marked.

    >>> from velado.testing.examples import small_release
    >>> list(elbow_drawings(small_release().facts, {}))
    []
    """
    for column in facts.release.data.columns:
        if column.name not in chosen or column.points is None:
            continue
        bins = int(chosen[column.name])
        present = np.setdiff1d(column.codes, [column.missing])
        costs = elbow_costs(column.points[present], max(2 * bins, bins + 4))
        if costs.size < 2:
            continue
        places = range(2, 2 + costs.size)
        box = Box(58, 44, 348, 150)
        across = Scale.over([float(k) for k in places], box.left + 8, box.right - 4)
        up = Scale.over([0.0, *costs.tolist()], box.bottom, box.top)
        points = [(across.at(k), up.at(float(cost))) for k, cost in zip(places, costs, strict=True)]
        title = say("{column}: {bins:,} bins", column=column.name, bins=bins)
        told = say(
            "The spread left within {bins:,} bins of {column} is {left} of that within two.",
            bins=bins,
            column=column.name,
            left=share(float(costs[bins - 2])) if bins - 2 < costs.size else NOTHING,
        )
        mark = points[bins - 2] if 0 <= bins - 2 < len(points) else None
        parts = [
            axes(
                box,
                across=[
                    (across.at(k), count(k)) for k in across.ticks(40) if k >= 2 and float(k).is_integer()
                ],
                up=up.marks(30, lambda value: share(value, 0)),
                across_title=say("bins"),
                up_title=say("spread left within bins"),
            ),
            group([line(points)], colour(0)),
            ""
            if mark is None
            else f'<circle cx="{mark[0]}" cy="{mark[1]}" r="5" fill="none" stroke="{colour(1)}" stroke-width="2.5"/>',
        ]
        yield Drawing(svg(title, told, 360, 190, parts), told)
