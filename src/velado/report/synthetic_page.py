"""The page that leaves with a synthetic table: what holds for everybody who was in the data, what it cost, how it was made."""

from __future__ import annotations

from collections.abc import Sequence

from velado.query.budget import measure_word, short
from velado.query.synthetic.synthesize import Synthetic
from velado.report.blocks import Block, Bullets, Figure, Notice, Page, Section, VerdictCard, section, table
from velado.text import Sentence, count, join, listed, number, say

WAYS = {
    "alone": say("every column by itself"),
    "tree": say("a tree of pairs of columns"),
    "adaptive": say("a tree of pairs of columns, and further pairs where it was most wrong"),
    "microaggregate": say("averages of groups formed in a fixed order"),
}
"""What was counted, in words."""


def promise_sentence(made: Synthetic) -> Sentence:
    """What is promised, in one sentence.

    >>> from velado.testing.examples import small_synthetic
    >>> promise_sentence(small_synthetic())
    'epsilon-differential privacy with epsilon 100, for one record.'
    """
    promise = made.guarantee
    return say(
        "{definition} with {measure} {spend}, for {unit}.",
        definition=promise.definition,
        measure=measure_word(made.cost.measure),
        spend=short(made.cost.asked),
        unit=promise.unit,
    )


def synthetic_sections(made: Synthetic) -> tuple[Section, ...]:
    """Promise, making and limits of a synthetic table; none of it says more of the rows than the table does.

    >>> from velado.testing.examples import small_synthetic
    >>> [part.name for part in synthetic_sections(small_synthetic())]
    ['promise', 'made', 'limits']
    """
    return _promise(made), _made(made), _limits()


def synthetic_page(made: Synthetic, sha256: str, sections: Sequence[Section] = ()) -> Page:
    """The page of a synthetic table whose file has this digest.

    >>> from velado.testing.examples import small_synthetic
    >>> synthetic_page(small_synthetic(), "f0").verdict.state
    'good'
    """
    return Page(
        title=say("About this synthetic table"),
        subtitle=say(
            "{rows:,} made-up rows of {columns:,} columns. Counted: {way}.",
            rows=made.frame.height,
            columns=made.frame.width,
            way=WAYS.get(made.how.way, made.how.way),
        ),
        verdict=VerdictCard(
            state="good",
            label=say("Guaranteed: differential privacy"),
            headline=say(
                "No row is anybody's, and hardly anything depends on whether one of them took part."
            ),
            details=(promise_sentence(made),),
        ),
        notice=Notice(
            title=say("This page may leave with the table."),
            text=say("It says nothing of the original rows beyond what the promise covers."),
        ),
        key_figures=(
            Figure(measure_word(made.cost.measure), short(made.cost.asked)),
            Figure(say("Rows drawn"), count(made.frame.height)),
            Figure(say("Pairs of columns counted"), count(len(made.how.pairs))),
        ),
        sections=(*synthetic_sections(made), *sections),
        footer=join(
            (say("Made by velado."), say("{file} has SHA-256 {sha256}.", file="table.csv", sha256=sha256))
        ),
    )


def _promise(made: Synthetic) -> Section:
    promise = made.guarantee
    items = [promise_sentence(made), say("It holds for {what}.", what=promise.holds_for)]
    if promise.enforced is not None and promise.most_rows is not None:
        items.append(
            say(
                "At most {rows:,} rows of one value of '{column}' were counted; further ones were left out.",
                rows=promise.most_rows,
                column=promise.column,
            )
        )
    if promise.implies is not None:
        items.append(
            say(
                "It implies epsilon {epsilon} with delta {delta}.",
                epsilon=number(promise.implies["epsilon"], 4),
                delta=f"{promise.implies['delta']:g}",
            )
        )
    items += [say("Warning: {text}", text=text) for text in promise.warnings or ()]
    items.append(
        say(
            "The cells of every column were declared beforehand; a blank stands for what was missing or undeclared."
        )
    )
    return section("promise", say("What is promised"), Bullets(items))


def _made(made: Synthetic) -> Section:
    how = made.how
    blocks: list[Block | str] = [
        table(
            say("Columns"),
            list(how.cells.items()),
            (say("column"), lambda one: one[0]),
            (say("cells"), lambda one: count(one[1])),
        )
    ]
    if how.pairs:
        told = [join(pair, " × ") for pair in how.pairs]
        blocks += [say("Columns that were counted together, chosen under noise:"), Bullets(told)]
    if how.groups is not None and how.group_size is not None:
        blocks.append(
            say(
                "{groups:,} groups of {size:,} rows each were averaged.",
                groups=how.groups,
                size=how.group_size,
            )
        )
    blocks.append(
        table(
            say("Every draw of noise"),
            list(how.steps),
            (say("what"), lambda step: _WHAT[step.what]),
            (
                say("columns"),
                lambda step: listed([list(how.cells)[at] for at in step.columns]) if step.columns else "–",
            ),
            (say("noise"), lambda step: step.mechanism),
            (say("scale"), lambda step: number(step.scale, 4)),
            (say("cost"), lambda step: number(float(step.charge), 4)),
            labels=3,
        )
    )
    return section("made", say("How it was made"), *blocks)


_WHAT = {
    "counts": say("counts"),
    "choice": say("which pair to count next"),
    "averages": say("sums of groups"),
}


def _limits() -> Section:
    return section(
        "limits",
        say("What this does not promise"),
        Bullets(
            [
                say("It is not k-anonymous: rows may be unique, and a unique row is nobody's."),
                say("Relations of columns that were not counted together are guessed from those that were."),
                say("Small groups drown in noise: do not read single rows or rare combinations as facts."),
                say(
                    "What is true of people in general can be learnt from it, of those who were not in it too."
                ),
                say(
                    "Further answers and tables from the same rows add to the cost; the ledger holds the sum."
                ),
            ]
        ),
    )
