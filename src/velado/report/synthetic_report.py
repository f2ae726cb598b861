"""The owner's page of a synthetic table: the same, and what it is worth beside k-anonymous tables of the same rows."""

from __future__ import annotations

from dataclasses import replace

from velado.measures.risk.membership import Membership
from velado.measures.utility.two_way import TwoWay
from velado.query.synthetic.synthesize import Synthetic
from velado.report.blocks import Block, Bullets, Notice, Page, Section, section, table
from velado.report.charts import Bar, BarChart
from velado.report.synthetic_page import synthetic_page
from velado.report.synthetic_tried import Trial, Tried
from velado.text import NOTHING, number, say, share


def synthetic_report(made: Synthetic, sha256: str, trial: Trial) -> Page:
    """The page for the owner alone: what true rows say about the table.

    >>> from velado.testing.examples import small_synthetic
    >>> from velado.report.synthetic_tried import Trial
    >>> page = synthetic_report(small_synthetic(), "f0", Trial(tables=(), target=None, rows=7, held_out=3, no_models=""))
    >>> page.notice_first, page.sections[-1].name
    (True, 'worth')
    """
    page = synthetic_page(made, sha256, (_worth(trial),))
    return replace(
        page,
        title=say("What this synthetic table is worth"),
        notice=Notice(
            title=say("For the owner only: this page is not differentially private."),
            text=say("Its comparisons read true rows without noise. Do not hand it out with the table."),
        ),
        notice_first=True,
    )


def _worth(trial: Trial) -> Section:
    blocks: list[Block | str] = [
        say(
            "Everything below was made anew from {rows:,} rows at the same spend and compared with true rows; {held:,} rows were held out.",
            rows=trial.rows,
            held=trial.held_out,
        )
    ]
    shown = [one for one in trial.tables if one.fidelity is not None]
    if shown:
        blocks += [_chart(shown), _compared(trial)]
    equal = trial.equal_loss
    if equal is not None:
        blocks.append(
            say(
                "At equal loss: the first k-anonymous table tried that is as far from the true pairs as the synthetic one has {k}.",
                k=equal,
            )
        )
    elif any(one.name.startswith("k=") for one in shown):
        blocks.append(
            say(
                "At equal loss: every k-anonymous table tried is nearer to the true pairs than the synthetic one."
            )
        )
    if trial.no_models:
        blocks.append(say("Models were not tried: {reason}", reason=trial.no_models))
    failed = [
        say("{table}: {reason}", table=one.title, reason=one.failed) for one in trial.tables if one.failed
    ]
    if failed:
        blocks += [say("Not made:"), Bullets(failed)]
    blocks.append(
        Bullets(
            [
                say(
                    "Pairs: mean share of rows in wrong cells over all two-way tables; for the true rows, between the two parts of the split."
                ),
                say("Models: area under the curve on true rows that were held out; 0.5 is guessing."),
                say(
                    "Membership: how well somebody who knows whole rows tells those who were in the table from others; 0.5 is guessing, and the null is where guessing lies 95 times in 100."
                ),
                say(
                    "k-anonymous ranges were replaced by one of their values by lot, for pairs and membership."
                ),
            ]
        )
    )
    return section("worth", say("What it is worth, beside k-anonymous tables"), *blocks)


def _chart(shown: list[Tried]) -> BarChart:
    found = [(one, one.fidelity) for one in shown if one.fidelity is not None]
    return BarChart(
        title=say("Distance of pairs of columns from the true ones"),
        description=say("Shorter is better; the table below has the figures."),
        axis=say("mean share of rows in wrong cells"),
        series=(say("pairs"),),
        bars=tuple(Bar(one.title, (fidelity.mean,), (share(fidelity.mean),)) for one, fidelity in found),
        in_table=True,
    )


def _compared(trial: Trial) -> Block:
    models = list(dict.fromkeys(name for one in trial.tables for name in one.areas))
    return table(
        say("The same rows, published in several ways"),
        [one for one in trial.tables if one.fidelity is not None],
        (say("table"), lambda one: one.title),
        (say("promise"), lambda one: one.promise),
        (say("pairs"), lambda one: _mean(one.fidelity)),
        (say("worst pair"), lambda one: _worst(one.fidelity)),
        *((name, lambda one, name=name: _area(one.areas.get(name))) for name in models),
        (say("membership"), lambda one: _attack(one.attack)),
        labels=2,
    )


def _mean(fidelity: TwoWay | None) -> str:
    return NOTHING if fidelity is None else share(fidelity.mean)


def _worst(fidelity: TwoWay | None) -> str:
    return NOTHING if fidelity is None else share(fidelity.worst)


def _area(area: float | None) -> str:
    return NOTHING if area is None else number(area, 3)


def _attack(attack: Membership | None) -> str:
    if attack is None:
        return NOTHING
    return say(
        "{area} (null {low} to {high})",
        area=number(attack.area, 3),
        low=number(attack.null_low, 3),
        high=number(attack.null_high, 3),
    )
