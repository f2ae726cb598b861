"""A transformed table as the terminal shows it: what was done, the risk before and after, and that none is promised."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from velado.data.encode import wildcard_sizes
from velado.measures.measured import Scores
from velado.release.operations import columns_of
from velado.release.release import Release
from velado.report.blocks import Table
from velado.settings import describe
from velado.text import NOTHING, join, number, percent, say


def transform_lines(release: Release, scores: Scores) -> Iterator[str | Table]:
    """The operations, a table of the measured risk, and what that is worth.

    >>> import polars as pl
    >>> import velado
    >>> from velado.release.operations import RoundNumbers
    >>> schema = velado.Schema.from_dict({"columns": {"age": {"role": "quasi", "kind": "numeric"}}})
    >>> made = velado.transform(pl.DataFrame({"age": [21, 22, 34]}), schema, [RoundNumbers("age", to=10)])
    >>> lines = list(transform_lines(made, velado.measure(made)))
    >>> lines[1].rows[0], lines[1].rows[1]
    (['rows that nobody else is like', '3 (100.0%)', '1 (33.3%)'], ['smallest group', '1', '1'])
    """
    done = [_done(release, number) for number in range(len(release.operations))]
    yield say("Done, in this order: {operations}.", operations="; ".join(done))
    yield Table(
        say("How exposed people are"),
        [say("measured"), say("original"), say("transformed")],
        [*_risks(release, scores)],
    )
    if scores.ncp is not None:
        yield say("Information loss (NCP): {loss}", loss=percent(scores.ncp.overall))
    yield from (
        say("Not measured: {name}. {reason}", name=name, reason=reason)
        for name, reason in scores.not_measured.items()
    )
    yield say(
        "This is measured, not guaranteed: another attacker, who knows more or works harder, may find more. For a promise "
        "that is checked use velado anonymize."
    )


def _done(release: Release, number: int) -> str:
    operation = release.operations[number]
    said = {key: value for key, value in describe(operation).items() if key not in ("name", "column")}
    if said.get("by") != "neighbours":
        said.pop("neighbours", None)  # rows that no other way of filling blanks looks at
    settings = ", ".join(f"{key} = {value}" for key, value in said.items() if value is not None)
    columns = ", ".join(columns_of(operation, release.original.schema))
    return f"{operation.name} {columns}" + (f" ({settings})" if settings else "")


def _risks(release: Release, scores: Scores) -> Iterator[list[str]]:
    before, after = scores.before, scores.after
    sides = [(side.uniqueness.unique_rows, side.uniqueness.rows) for side in (before, after)]
    alone = [join((number(few), f"({percent(few / rows)})")) if rows else NOTHING for few, rows in sides]
    yield [say("rows that nobody else is like"), *alone]
    sizes = (before.class_sizes.smallest, after.class_sizes.smallest)
    yield [say("smallest group"), *map(number, sizes)]
    wild = _smallest_by_wildcards(release)
    if wild != sizes:
        yield [say("smallest group, if a blank matches anything"), *map(number, wild)]
    pairs = ((before.rows, after.rows, say("rows")), (before.people, after.people, say("people")))
    for old, new, unit in pairs:
        if old is None:
            continue
        found = [(one.marketer, one.prosecutor.highest) if one else (None, None) for one in (old, new)]
        mean, highest = zip(*found, strict=True)
        yield [say("expected re-identification, mean ({unit})", unit=unit), *map(percent, mean)]
        yield [say("expected re-identification, highest ({unit})", unit=unit), *map(percent, highest)]
    if scores.linkage is not None:
        # Each row of the original is nearest to itself and its likes, so that a guess among them is the mean chance.
        yield [
            say("record linkage, share found again"),
            percent(before.rows.marketer),
            percent(scores.linkage.share),
        ]


def _smallest_by_wildcards(release: Release) -> tuple[int, int]:
    original, names = release.original, [column.name for column in release.original.schema.quasi]
    names = [name for name in names if name in release.aligned.columns]
    shown = pl.DataFrame([original.text(name).alias(name) for name in names])
    before, after = (wildcard_sizes(frame, names) for frame in (shown, release.aligned))
    return int(before.min(initial=original.rows)), int(after.min(initial=original.rows))
