"""Scores: everything measured on one release, each number with the name of what it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np
import polars as pl

from velado.data.encode import EncodedTable, VisibleTexts, encode
from velado.data.partition import BoolArray, IntArray, Partition
from velado.data.schema import Schema
from velado.data.table import Table
from velado.errors import InputError, ParameterError
from velado.measures import measure_registry
from velado.measures.declared import Measure
from velado.measures.recoded_columns import PublishedTable, Substitutions, read_published
from velado.measures.risk.disclosure import Disclosure, disclosure
from velado.measures.risk.partial_linkage import linkage_with
from velado.measures.risk.population_uniqueness import SAMPLING
from velado.measures.risk.record_linkage import Direction, LinkageResult, Metric, Scaling, Ties
from velado.measures.risk.reidentification import (
    ClassSizes,
    Reidentification,
    UniqueShares,
    class_sizes,
    population_sizes,
    reidentification,
    reidentification_of_people,
    uniqueness,
    uniqueness_of,
)
from velado.measures.utility.average_group_size import AverageGroupSize, average_group_size
from velado.measures.utility.discernibility import Discernibility, discernibility
from velado.measures.utility.distribution import Distribution, distributions
from velado.measures.utility.false_cells import FalseCells, false_cells
from velado.measures.utility.ncp import CertaintyPenalty, Covers, Variant, normalized_certainty_penalty
from velado.release.gate import open_identifiers
from velado.release.release import Release
from velado.settings import Setting, settings
from velado.text import join, say, say_n

__all__ = [
    "LINKAGE_ROWS",
    "Direction",
    "Exposure",
    "MeasureSettings",
    "Scores",
    "Ties",
    "measure",
    "measure_files",
]

LINKAGE_ROWS = 200_000
"""Above this many rows the linkage attack is run only when asked for: it compares each row with all others."""


@dataclass(frozen=True, repr=False)
class Exposure:
    """How exposed people are in one table: chances of re-identification, who is unique, how large classes are.

    >>> from velado.testing.examples import four_people
    >>> table = four_people()
    >>> measure_files(table, table.frame).after.uniqueness.unique_rows
    2
    """

    rows: Reidentification
    people: Reidentification | None
    uniqueness: UniqueShares
    class_sizes: ClassSizes

    def to_dict(self) -> dict[str, object]:
        """As plain values."""
        return {
            "by_row": self.rows.to_dict(),
            "by_person": None if self.people is None else self.people.to_dict(),
            "uniqueness": self.uniqueness.to_dict(),
            "class_sizes": self.class_sizes.to_dict(),
        }


@dataclass(frozen=True, repr=False)
class Scores:
    """What a release cost and what it bought. What was not measured is None and has its reason in *not_measured*.

    *distributions* carry values of the original table as labels; `to_dict` gives their distances only, so that
    it holds no cell value. *numbers* has one for every registered measure.

    >>> from velado.testing.examples import four_people
    >>> table = four_people()
    >>> measure_files(table, table.frame)
    Scores(rows=4 of 4, ncp=0.0000)
    """

    original_rows: int
    published_rows: int
    before: Exposure
    after: Exposure
    discernibility: Discernibility
    average_group_size: AverageGroupSize
    distributions: tuple[Distribution, ...]
    ncp: CertaintyPenalty | None = None
    ncp_charged_for: str = ""
    false_cells: FalseCells | None = None
    linkage: LinkageResult | None = None
    disclosure: Disclosure | None = None
    numbers: Mapping[str, float | None] = field(default_factory=dict)
    not_measured: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        loss = "not measured" if self.ncp is None else f"{self.ncp.overall:.4f}"
        return f"Scores(rows={self.published_rows} of {self.original_rows}, ncp={loss})"

    def to_dict(self) -> dict[str, object]:
        """Plain numbers under names that say what they are; no cell values."""
        ncp = None if self.ncp is None else {**self.ncp.to_dict(), "charged_for": self.ncp_charged_for}
        return {
            "rows": {
                "original": self.original_rows,
                "published": self.published_rows,
                "suppressed": self.original_rows - self.published_rows,
            },
            "utility": {
                "ncp": ncp,
                "false_cells": None if self.false_cells is None else self.false_cells.to_dict(),
                "discernibility": self.discernibility.to_dict(),
                "average_group_size": self.average_group_size.to_dict(),
                "distribution": {part.name: part.distances() for part in self.distributions},
                **self._further(measure_registry.UTILITY),
            },
            "risk": {
                "before": self.before.to_dict(),
                "after": self.after.to_dict(),
                "record_linkage": None if self.linkage is None else self.linkage.to_dict(),
                **({} if self.disclosure is None else self.disclosure.to_dict()),
                **self._further(measure_registry.RISK),
            },
            "not_measured": dict(self.not_measured),
            "notes": list(self.notes),
        }

    def _further(self, part: tuple[Measure, ...]) -> dict[str, float | None]:
        return {one.name: self.numbers.get(one.name) for one in measure_registry.further(part)}


@settings
class MeasureSettings:
    """Which of the named variants to compute; *linkage* None runs it up to LINKAGE_ROWS rows.

    *partial_knowledge* None measures it while it is cheap. *special_uniques* searches keys of up to *largest_key*
    columns (default 4). *sampling_fraction*, the share of the population in the original table, has population
    uniqueness estimated.

    >>> MeasureSettings(linkage=False).variant
    'leaves-1'
    """

    variant: Annotated[Variant, Setting("which normalized certainty penalty")] = "leaves-1"
    divisor_columns: Annotated[int | None, Setting("columns its sum is divided by", ge=1)] = None
    substitutions: Annotated[Substitutions, Setting("what a value put for others is charged as")] = "auto"
    direction: Annotated[Direction, Setting("who is looked for among whom")] = "released-to-original"
    ties: Annotated[Ties, Setting("how equally near rows are counted")] = "expected"
    scaling: Annotated[Scaling, Setting("what distances are divided by")] = "range"
    metric: Annotated[Metric, Setting("how distances of columns are added up")] = "manhattan"
    linkage: Annotated[bool | None, Setting("run the linkage attack")] = None
    partial_knowledge: Annotated[bool | None, Setting("measure who knows a part of the columns")] = None
    special_uniques: Annotated[bool, Setting("look for small sets of columns that single a row out")] = False
    largest_key: Annotated[int | None, Setting("columns of such a set at most", ge=1)] = None
    sampling_fraction: SAMPLING | None = None


def measure(
    release: Release, settings: MeasureSettings | None = None, population: pl.DataFrame | None = None
) -> Scores:
    """Everything measured on a release velado made.

    The published frame is read back text by text, as a stranger would. Only what the loss is charged for
    comes from the method: the cover of each group, which a substitution's text does not show. *population* is
    a frame recoded like the release, for the journalist. Where column operations were done first, the release
    is compared with the table before them; only if its texts cannot be read against that table (a mask without
    a place in the taxonomy) with the table after, and then false cells are not counted.

    >>> import velado
    >>> from velado.testing.examples import small_table
    >>> table = small_table(age=("quasi", "numeric", "31 35 31 40"))
    >>> measure(velado.anonymize(table, table.schema, method="mondrian", k=2)).after.class_sizes.smallest
    2
    """
    settings = settings or MeasureSettings()
    unread = ""
    if release.operations:
        try:
            read = read_published(release.original, release.listed, release.kept)
            # Which row is which is known here, and other columns differ because the operations altered them.
            return measure_published(
                replace(read, agreeing=None),
                release.original.schema,
                release.listed,
                k=release.goal.k,
                settings=settings,
                population=population,
            )
        except InputError as error:
            unread = error.what
    table = release.table
    data = release.data if release.data.rows == table.rows else encode(table)
    published = read_published(table, release.listed, release.kept, data, seen=release.checked.seen)
    kept = release.recoded.kept
    labels = np.full(kept.size, -1, dtype=np.int32)
    labels[kept] = release.checked.partition.labels
    ncp = normalized_certainty_penalty(
        release.data,
        # Nobody holds the covers of all rows longer than it takes to charge them.
        [Covers(part.low[part.codes], part.high[part.codes]) for part in release.recoded.columns],
        kept,
        settings.variant,
        rows=table.rows,
        partition=Partition(labels, release.checked.partition.count),
        divisor_columns=settings.divisor_columns,
    )
    scores = _scores(
        published=published,
        frame=release.listed,
        settings=settings,
        ncp=ncp,
        charged=say("the cover of each group"),
        k=release.goal.k,
        population=population,
        skipped={},
    )
    matches = release.checked.counts.population
    if (
        matches is not None
        and population is None
        and bool((matches >= release.checked.partition.sizes).all())
    ):
        # The release was checked against a population: that is whom the journalist looks among.
        rows = reidentification(release.checked.partition, matches)
        scores = replace(scores, after=replace(scores.after, rows=rows))
    if not unread:
        return _with_numbers(scores, published)
    reason = say("Compared with the table after its column operations, because: {reason}", reason=unread)
    scores = replace(
        scores,
        false_cells=None,
        not_measured={**scores.not_measured, "false_cells": reason},
        notes=(*scores.notes, reason),
    )
    return _with_numbers(scores, published)


def measure_files(
    original: Table,
    frame: pl.DataFrame,
    *,
    kept: BoolArray | None = None,
    rows: IntArray | None = None,
    drawn: bool | None = False,
    k: int | None = None,
    settings: MeasureSettings | None = None,
    population: pl.DataFrame | None = None,
) -> Scores:
    """Everything that can be measured on a published *frame* beside its original, whoever made it.

    Rows are in the original order and *kept* says which original rows were published; or *rows* has, for each
    published row, the number of its original. When rows are missing, or their order was *drawn*, and nobody says which is
    which, metrics that pair rows are left out with the reason, the others still run. *drawn* None: nobody knows about
    the order, and rows are paired only if every one fits its place. The loss is charged for what each text states and, where that is false or nothing, for what it stands for.

    >>> from velado.testing.examples import four_people
    >>> table = four_people()
    >>> measure_files(table, table.frame).ncp.overall
    0.0
    """
    published = read_published(original, frame, kept, rows=rows, drawn=drawn)
    return measure_published(published, original.schema, frame, k=k, settings=settings, population=population)


def measure_published(
    published: PublishedTable,
    schema: Schema,
    frame: pl.DataFrame,
    *,
    shown: pl.DataFrame | None = None,
    k: int | None = None,
    settings: MeasureSettings | None = None,
    population: pl.DataFrame | None = None,
) -> Scores:
    """Everything that can be measured on a table that was read back as *published* from *frame*.

    *shown* are the rows that are looked through for identifiers, where these are not those of *frame*.

    >>> from velado.testing.examples import four_people
    >>> table = four_people()
    >>> measure_published(read_published(table, table.frame), table.schema, table.frame).published_rows
    4
    """
    settings = settings or MeasureSettings()
    covers = published.covers(settings.substitutions)
    skipped: dict[str, str] = {}
    ncp = None
    if covers is None:
        skipped["ncp"] = join(
            [*published.unpaired, say("Some published numbers state no cover of their own.")]
        )
    else:
        try:
            ncp = normalized_certainty_penalty(
                published.data,
                covers,
                published.kept,
                settings.variant,
                rows=published.data.total,
                partition=published.original_classes,
                divisor_columns=settings.divisor_columns,
                weights=published.classes.weights,
            )
        except ParameterError as error:
            if published.true_rows is not None:
                raise
            skipped["ncp"] = join([error])
    if published.true_rows is None:
        charged = say("what each text states, not checked against the true values")
    else:
        charged = {
            "value": say(
                "what each text states; where that is false of a row, the true values of the rows that show it"
            ),
            "class": say(
                "what each text states; where that is false of a row, the true values of the rows of its class"
            ),
            "auto": say(
                "what each text states; where that is false of a row, the true values it stands for (of the rows "
                "that show it where it was chosen by value, else of its class)"
            ),
        }[settings.substitutions]
    scores = _scores(
        published=published,
        frame=frame,
        settings=settings,
        ncp=ncp,
        charged=charged,
        k=k,
        population=population,
        skipped=skipped,
    )
    looked = frame if shown is None else shown
    scores = replace(scores, notes=(*_identifying(schema, looked), *scores.notes))
    return _with_numbers(scores, published)


def _with_numbers(scores: Scores, published: PublishedTable) -> Scores:
    """The number of every registered measure; one that cannot be found has its reason instead."""
    numbers: dict[str, float | None] = {}
    skipped = dict(scores.not_measured)
    for one in measure_registry.all_measures():
        try:
            numbers[one.name] = one.of(published, scores)
        except ParameterError as error:
            numbers[one.name], skipped[one.title] = None, join([error])
    return replace(scores, numbers=numbers, not_measured=skipped)


def _identifying(schema: Schema, frame: pl.DataFrame) -> tuple[str, ...]:
    """One sentence for each column of a published *frame* that identifies people and that nobody signed for."""
    known = [column for column in schema.columns.values() if column.name in frame.columns]
    shown = Table.of(frame, schema.with_columns(replace(c, publish=True) for c in known), undeclared="keep")
    found, _ = open_identifiers(shown)
    exposed = [column.name for column in known if column.role == "identifier"]
    return (
        *(
            say("The published table holds '{column}', which the schema calls an identifier.", column=name)
            for name in exposed
        ),
        *(
            say(
                "The published table holds '{column}', which identifies people: {why}. No figure here counts that.",
                column=one.column,
                why=one.why,
            )
            if one.sure
            else say(
                "The published table holds '{column}', which may identify people: {why}. No figure here counts that.",
                column=one.column,
                why=one.why,
            )
            for one in found
        ),
    )


def _scores(
    published: PublishedTable,
    frame: pl.DataFrame,
    settings: MeasureSettings,
    ncp: CertaintyPenalty | None,
    charged: str,
    k: int | None,
    population: pl.DataFrame | None,
    skipped: dict[str, str],
) -> Scores:
    data, names = published.data, [column.name for column in published.columns]
    sizes = published.classes.sizes
    outside = None if population is None else population_sizes(frame, population, names)
    people = None
    if data.people is not None and published.true_rows is None:
        skipped["risk by person"] = join(published.unpaired)
    elif data.row_people is not None:
        people = data.row_people[published.true_rows]
    truth = None
    if published.true_rows is None:
        skipped["false cells"] = join(published.unpaired)
    else:
        truth = false_cells(published)
    linkage = _linkage(published, settings, skipped)
    given_away = disclosure(
        published,
        frame,
        partial=settings.partial_knowledge,
        special=settings.special_uniques,
        largest_key=settings.largest_key,
        fraction=settings.sampling_fraction,
    )
    skipped.update(given_away.skipped)
    notes = []
    if published.agreeing is not None and published.agreeing < 1:
        differing = round((1 - published.agreeing) * published.rows)
        notes.append(
            say_n(
                "In {n} published row a column that is no quasi-identifier differs from the original row it is "
                "compared with: if rows changed their order, no figure that compares row by row is to be relied on "
                "(false cells, linkage, information loss, people, sampling weights, households).",
                "In {n} published rows a column that is no quasi-identifier differs from the original row it is "
                "compared with: if rows changed their order, no figure that compares row by row is to be relied on "
                "(false cells, linkage, information loss, people, sampling weights, households).",
                differing,
            )
        )
    return Scores(
        original_rows=data.total,
        published_rows=published.rows,
        before=_before(data),
        after=_after(published, frame, names, people, outside),
        discernibility=discernibility(sizes, published.suppressed),
        average_group_size=average_group_size(sizes, k),
        distributions=distributions(published),
        ncp=ncp,
        ncp_charged_for=charged,
        false_cells=truth,
        linkage=linkage,
        disclosure=given_away,
        not_measured=skipped,
        notes=tuple(notes),
    )


def _before(data: EncodedTable) -> Exposure:
    classes = data.classes
    people = None if data.people is None else reidentification_of_people(classes, data.people)
    return Exposure(reidentification(classes), people, uniqueness_of(data), class_sizes(classes.sizes))


def _after(
    published: PublishedTable,
    frame: pl.DataFrame,
    names: list[str],
    people: IntArray | None,
    population: IntArray | None,
) -> Exposure:
    classes = published.classes
    seen = published.seen or VisibleTexts.of(frame, names)
    by_person = None if people is None else reidentification_of_people(classes, people)
    return Exposure(
        reidentification(classes, population),
        by_person,
        uniqueness(names, seen.codes, seen.sizes, people, seen.groups),
        class_sizes(classes.sizes),
    )


def _linkage(
    published: PublishedTable, settings: MeasureSettings, skipped: dict[str, str]
) -> LinkageResult | None:
    """The linkage attack on what the texts say, or why it was not run."""
    if published.true_rows is None:
        skipped["record linkage"] = join(published.unpaired)
    elif settings.linkage is False:
        skipped["record linkage"] = say("It was switched off.")
    elif settings.linkage is None and published.data.rows > LINKAGE_ROWS:
        skipped["record linkage"] = say(
            "The table has more than {rows} rows, and the attack may compare each row with all others. "
            "Ask for it to run it all the same.",
            rows=LINKAGE_ROWS,
        )
    else:
        return linkage_with(
            published,
            [column.name for column in published.columns],
            direction=settings.direction,
            ties=settings.ties,
            scaling=settings.scaling,
            metric=settings.metric,
        )
    return None
