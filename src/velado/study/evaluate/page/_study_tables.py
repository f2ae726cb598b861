"""The tables and sentences of a study: the same for the page, for Markdown and for the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from velado.measures.measure_registry import all_measures
from velado.measures.models.quality import UNKNOWN
from velado.report.blocks import Block, Bullets, Folded, State, Table, text
from velado.study.evaluate._amounts import (
    amount,
    bare,
    called,
    commas,
    dropped,
    figure,
    is_share,
    number,
    percent,
    promises,
    span,
)
from velado.study.evaluate._choice import Decision, Within, within
from velado.study.evaluate._claims import Best
from velado.study.evaluate._matched import Leader, Rival
from velado.study.evaluate.analysis import Hole, ReleaseSetting, StudyRow
from velado.study.evaluate.protocols import protocol_named
from velado.study.evaluate.study_outcome import StudyFacts
from velado.text import NOTHING, join, say

Column = tuple[str, bool, Callable[..., str]]
"""A column of a table: its heading, whether it is a figure, and what it shows of a row."""


def table_of(columns: Sequence[Column], rows: Iterable[object]) -> Table:
    """The rows under the columns."""
    header, figures = tuple(one[0] for one in columns), tuple(one[1] for one in columns)
    return Table("", header, tuple(tuple(one[2](row) for one in columns) for row in rows), figures=figures)


def k_text(setting: ReleaseSetting) -> str:
    """The k of a setting; a dash where it has none.

    >>> k_text(ReleaseSetting("mdav", 5)), k_text(ReleaseSetting("das"))
    ('5', '–')
    """
    return NOTHING if setting.k is None else str(setting.k)


def _setting_columns(*wanted: str) -> list[Column]:
    known: dict[str, Column] = {
        "protocol": (say("protocol"), False, lambda row: str(row.protocol)),
        "model": (say("model"), False, lambda row: row.model),
        "method": (say("method"), False, lambda row: row.setting.method),
        "k": ("k", True, lambda row: k_text(row.setting)),
        "guarantees": (
            say("further promises"),
            False,
            lambda row: promises(row.setting.guarantees) or NOTHING,
        ),
    }
    return [known[name] for name in wanted]


def _drop_head(main: str) -> str:
    return say("points of {name} lost" if is_share(main) else "rise of {name}", name=called(main))


# ---- the decision


def state_of(facts: StudyFacts) -> State:
    """good: a setting surely keeps the limit; caution: the table leaves it open; warning: none does, or no choice."""
    states: dict[Decision, State] = {"use": "good", "open": "caution", "beyond": "warning", "none": "warning"}
    return states[facts.recommendation.decision]


def tradeoff_table(facts: StudyFacts) -> Table:
    """Loss, risk and drop of every setting."""
    metrics = facts.recipe.metrics
    return table_of(
        [
            *_setting_columns("method", "k", "guarantees"),
            (called(metrics.loss), True, lambda row: span(metrics.loss, row["loss"])),
            (
                say("risk: {name}", name=called(metrics.risk)),
                True,
                lambda row: span(metrics.risk, row["risk"]),
            ),
            (_drop_head(facts.main), True, lambda row: dropped(facts.main, row["drop"], facts.limit)),
        ],
        facts.tradeoff,
    )


_KEPT: dict[Within, str] = {
    "surely": say("kept"),
    "on average": say("kept on average; the interval reaches beyond"),
    "one": say("kept, in seeds too few for an interval"),
    "no": say("not kept"),
}


def limit_blocks(facts: StudyFacts) -> list[Block]:
    """What each model loses with the chosen setting, of the main quality and of accuracy, and which method is best there."""
    if facts.choice is None:
        return []
    parts = [_limit_of(facts, facts.choice, name) for name in dict.fromkeys((facts.main, "accuracy"))]
    found = [block for part in parts for block in part]
    if not found:
        return []
    intro = say(
        "{setting} against the same models on the original rows. The limit is {limit}, set in the study as most_drop. A minus "
        "before what was lost says that the model gained.",
        setting=facts.choice.setting.name,
        limit=amount(facts.main, facts.limit),
    )
    return [text(intro), *found, *_best_blocks(facts, facts.choice.setting)]


def _limit_of(facts: StudyFacts, choice: StudyRow, name: str) -> list[Block]:
    rows = [row for row in facts.quality if row.protocol == facts.protocol]
    before = {row.model: row[name] for row in rows if row.setting.is_original}
    own = [row for row in rows if row.learns and row.setting == choice.setting and row[name].mean is not None]
    if not own:
        return []
    limit = amount(name, facts.limit)

    def held(row: StudyRow) -> str:
        drop = row[f"drop_{name}"]
        return say("not known") if drop.mean is None else _KEPT[within(drop, facts.limit)]

    states = Counter(held(row) for row in own)
    said = say(
        "A loss of at most {limit} of {quality}: kept by {kept} of {all} models with the whole interval, by {mean} on average alone; "
        "{missed} lose more.",
        limit=limit,
        quality=called(name),
        kept=states[_KEPT["surely"]],
        all=len(own),
        mean=states[_KEPT["on average"]] + states[_KEPT["one"]],
        missed=states[_KEPT["no"]],
    )
    columns: list[Column] = [
        *_setting_columns("model"),
        (
            say("{quality}, original data", quality=called(name)),
            True,
            lambda row: span(name, before.get(row.model, UNKNOWN)),
        ),
        (say("{quality}, this release", quality=called(name)), True, lambda row: span(name, row[name])),
        (say("lost"), True, lambda row: dropped(name, row[f"drop_{name}"], facts.limit)),
        (say("limit of {limit}", limit=limit), False, held),
    ]
    return [text(said), table_of(columns, own)]


def _best_blocks(facts: StudyFacts, choice: ReleaseSetting) -> list[Block]:
    same = [
        one for one in facts.best if (one.setting.k, one.setting.guarantees) == (choice.k, choice.guarantees)
    ]
    if not same:
        return []
    at = [say("no k") if choice.k is None else f"k = {choice.k}"]
    at += [promises(choice.guarantees)] if choice.guarantees else []
    return [
        text(say("Which method is best at {setting}, model by model:", setting=commas(at))),
        Bullets(tuple(best_sentence(one, facts.main) for one in same)),
        *([Folded(say("All k"), (best_table(facts),))] if len(facts.best) > len(same) else []),
    ]


def best_sentence(best: Best, main: str) -> str:
    """Which method keeps most, and whether that is sure.

    >>> from velado.measures.models.quality import Interval
    >>> gain = Interval(0.02, 0.01, 0.03)
    >>> best = Best(setting=ReleaseSetting("b", 10), model="m", drop=0.0, second="a", gain=gain, sure=True)
    >>> best_sentence(best, "accuracy")
    'm: b keeps most, 2.0 points more than a (1.0 to 3.0).'
    """
    return say(
        "{model}: {method} comes first, {gain} before {second}; too few seeds to tell that from chance."
        if best.gain.low is None
        else "{model}: {method} keeps most, {gain} more than {second} ({low} to {high})."
        if best.sure
        else "{model}: {method} comes first; a difference from {second} is not shown ({low} to {range_end}).",
        model=best.model,
        method=best.setting.method,
        second=best.second,
        gain=amount(main, best.gain.mean),
        low=bare(main, best.gain.low),
        high=bare(main, best.gain.high),
        range_end=amount(main, best.gain.high),
    )


def best_table(facts: StudyFacts) -> Table:
    """For every k, promise and model: who keeps most, and by how much."""
    head = say("points more than the second" if is_share(facts.main) else "more than the second")
    return table_of(
        [
            *_setting_columns("k", "guarantees", "model", "method"),
            (say("second"), False, lambda one: one.second),
            (head, True, lambda one: dropped(facts.main, one.gain)),
        ],
        facts.best,
    )


def same_risk_blocks(facts: StudyFacts) -> list[Block]:
    """For each k and model the release that loses least, and the other methods where they leave the same risk.

    First at the recommended k and promises, then everywhere; nothing where there is one method only.
    """
    found = [one for one in facts.same_risk if one.beside]
    if not found:
        return []
    choice = found[0].setting if facts.choice is None else facts.choice.setting
    here = [one for one in found if (one.setting.k, one.setting.guarantees) == (choice.k, choice.guarantees)]
    first = same_risk_table(facts, here or found[:4])
    note = say(
        "For each k and model the release from which least is lost, and every other method where it leaves the same risk: "
        "between two of its k where need be, interpolated."
    )
    more = [Folded(say("All k"), (same_risk_table(facts, found),))] if len(found) > len(first.rows) else []
    return [text(note), first, *more]


_SHORT: dict[Within, str] = {
    "surely": say("kept"),
    "on average": say("kept on average"),
    "one": say("kept on average"),
    "no": say("not kept"),
}


def same_risk_table(facts: StudyFacts, leaders: Iterable[Leader]) -> Table:
    """The leaders, and the other methods told apart by what they lose."""
    main, risk = facts.main, facts.recipe.metrics.risk

    def named(*verdicts: str) -> Callable[[Leader], str]:
        def name(other: Rival) -> str:
            less = f"({bare(main, -(other.gain.mean or 0.0), 2)})" if other.verdict == "less" else ""
            if not less:
                return other.method
            return join([other.method, join(["(", bare(main, -(other.gain.mean or 0.0), 2), ")"], "")])

        return lambda one: commas([name(other) for other in one.beside if other.verdict in verdicts])

    less = say("loses less (points)" if is_share(main) else "loses less (by)")
    return table_of(
        [
            *_setting_columns("k", "guarantees", "model", "method"),
            (say("risk: {name}", name=called(risk)), True, lambda one: figure(risk, one.risk)),
            (say("{name} lost", name=called(main)), True, lambda one: dropped(main, one.drop, facts.limit)),
            (say("limit of {limit}", limit=amount(main, facts.limit)), False, lambda one: _SHORT[one.within]),
            (less, False, named("less")),
            (say("no difference shown"), False, named("even", "one")),
            (say("loses more"), False, named("more")),
            (say("only at another risk"), False, named("apart")),
        ],
        leaders,
    )


# ---- what stands behind it


def protocol_blocks(facts: StudyFacts) -> list[Block]:
    """How much of the differences between methods each protocol makes by itself."""
    if len(facts.protocols) < 2:
        said = say(
            "Only {protocol} was run, so how much of a difference is due to the protocol is not known. Add paper-gfkmc or "
            "paper-gok to protocols in [analyses] to see it.",
            protocol=facts.protocol,
        )
        return [text(said)]
    main, share = facts.main, is_share(facts.main)
    columns: list[Column] = [
        (say("protocol"), False, lambda one: one.protocol),
        (say("{name} lost", name=called(main)), True, lambda one: amount(main, one.drop)),
        (
            say("points between two methods" if share else "between two methods"),
            True,
            lambda one: amount(main, one.between),
        ),
        (
            say(
                "points between them under the default protocol"
                if share
                else "between them under the default protocol"
            ),
            True,
            lambda one: amount(main, one.default),
        ),
        (say("moved by the protocol alone"), True, lambda one: amount(main, one.due)),
        (
            say("share due to the protocol: moved / (moved + between them under the default protocol)"),
            True,
            lambda one: percent(one.share, 0),
        ),
        (
            say("comparisons turned round"),
            True,
            lambda one: f"{one.reversed} / {one.pairs}" if one.pairs else NOTHING,
        ),
    ]
    said = say(
        "The same methods and models, asked in different ways. What the protocol moves says nothing about the methods."
    )
    return [text(said), table_of(columns, facts.protocols)]


def gap_blocks(facts: StudyFacts) -> list[Block]:
    """What could not be computed, then what lacks a figure; each reason once with the number of its cells."""
    cells = number(facts.planned, 0)
    missing = facts.planned - facts.done
    if missing:
        said = say(
            "{gaps} of {cells} cells have no result. No average holds them.", gaps=missing, cells=cells
        )
        blocks: list[Block] = [text(said), reasons(facts.gaps)]
    else:
        blocks = [text(say("Nothing: all {cells} cells were computed.", cells=cells))]
    if facts.partial:
        blocks += [text(say("Computed, but with a figure missing:")), reasons(facts.partial)]
    return blocks


def reasons(holes: Iterable[Hole]) -> Table:
    """Cells of the same setting, model and reason as one line."""
    counts = Counter((hole.setting, hole.where, hole.reason) for hole in holes)
    return Table(
        "",
        (say("method"), "k", say("further promises"), say("model"), say("cells"), say("reason")),
        tuple(
            (
                setting.method,
                k_text(setting),
                promises(setting.guarantees) or NOTHING,
                where or NOTHING,
                str(count),
                reason,
            )
            for (setting, where, reason), count in counts.items()
        ),
        figures=(False, True, False, False, True, False),
    )


# ---- every setting, model and protocol with its figures


def lines_of(facts: StudyFacts) -> list[StudyRow]:
    """One line per setting, model and protocol, its release's figures with it; one without any result has 0 seeds."""
    releases = {(row.scope, row.setting): row.numbers for row in facts.releases}
    lines: dict[tuple[object, ...], StudyRow] = {}
    for row in facts.quality:
        released = releases.get((protocol_named(str(row.protocol)).scope, row.setting), {})
        # What a release took stands with the release; this line tells what training took.
        known = {one.name: released[one.name] for one in all_measures() if one.name in released}
        lines[row.protocol, row.model, row.setting] = StudyRow(
            setting=row.setting,
            numbers=known | dict(row.numbers),
            seeds=row.seeds,
            protocol=row.protocol,
            model=row.model,
        )
    for hole in facts.gaps:
        if hole.kind == "model":
            empty = StudyRow(setting=hole.setting, protocol=hole.protocol, model=hole.model)
            lines.setdefault((hole.protocol, hole.model, hole.setting), empty)
    order = {name: at for at, name in enumerate(facts.recipe.analyses.protocols)}
    # Stable: what could not be computed goes after what was, protocol by protocol.
    return sorted(lines.values(), key=lambda row: order.get(str(row.protocol), len(order)))


def line_columns(facts: StudyFacts) -> dict[str, Column]:
    """The columns of the table of all figures by the number they are sorted by."""
    metrics, main, seeds = facts.recipe.metrics, facts.main, facts.reported
    several = len(facts.recipe.analyses.protocols) > 1
    labels = (*(("protocol",) if several else ()), "model", "method", "k", "guarantees")

    def shown(name: str) -> Column:
        return called(name), True, lambda row: span(name, row[name])

    def done(row: StudyRow) -> str:
        return (
            say("{done} of {seeds}", done=row.seeds, seeds=seeds)
            if row.seeds
            else say("{done} of {seeds} – gap", done=0, seeds=seeds)
        )

    def lost(row: StudyRow) -> str:
        return dropped(main, row[f"drop_{main}"], facts.limit)

    return {
        **dict(zip(labels, _setting_columns(*labels), strict=True)),
        **{name: shown(name) for name in (metrics.loss, metrics.risk, *metrics.quality)},
        f"drop_{main}": (say("{name} lost", name=called(main)), True, lost),
        "seeds": (say("seeds done"), True, done),
        "seconds": (say("training, s"), True, lambda row: number(row["seconds"].mean, 2)),
    }


def plain_lines(facts: StudyFacts, lines: Sequence[StudyRow]) -> dict[str, list[object]]:
    """The table as data to save: names of the columns, and one list per line, numbers unrounded by the language."""
    quality = facts.recipe.metrics.quality
    numbers = (
        *(one.name for one in all_measures()),
        *quality,
        *(f"drop_{name}" for name in quality),
        "majority",
    )
    labels = ["protocol", "model", "method", "k", "guarantees", "seeds"]
    return {
        "columns": [
            *labels,
            *(f"{name}{end}" for name in numbers for end in ("", "_low", "_high")),
            "seconds",
            "test_rows",
        ],
        "rows": [
            [
                *(
                    row.protocol,
                    row.model,
                    row.setting.method,
                    row.setting.k,
                    row.setting.guarantees,
                    row.seeds,
                ),
                *(tidy(end) for name in numbers for end in row[name].ends),
                tidy(row["seconds"].mean),
                tidy(row["test_rows"].mean),
            ]
            for row in lines
        ],
    }


def tidy(value: float | None) -> float | None:
    """A number with seven digits, as a file holds it.

    >>> tidy(1 / 3)
    0.3333333
    """
    return None if value is None else float(f"{value:.7g}")
