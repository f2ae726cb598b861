"""Disclosure: what a release gives away beyond the chance to pick the right row, gathered for the scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import comb

import polars as pl

from velado.data.normal import value_codes
from velado.data.schema import Column, Schema
from velado.data.table import Table
from velado.errors import ParameterError
from velado.measures.recoded_columns import BLANK, PublishedTable
from velado.measures.risk.attribute_disclosure import AttributeDisclosure, attribute_disclosure
from velado.measures.risk.household_risk import SampleRisk, has_blanks, sample_risks
from velado.measures.risk.individual_risk import Blanks
from velado.measures.risk.partial_linkage import KEY_SETS, LARGEST_SUBSET, PartialKnowledge, partial_knowledge
from velado.measures.risk.population_uniqueness import PopulationUniqueness, population_uniqueness
from velado.measures.risk.special_uniques import SpecialUniques, special_uniques, special_uniques_of
from velado.text import join, say, say_n

PARTIAL_WORK = 200_000_000
"""Partial knowledge is measured unasked while rows times subsets stay below this: a few seconds."""


@dataclass(frozen=True, repr=False)
class Disclosure:
    """Guesses of sensitive values, partial knowledge, special uniques, population uniqueness, risk of the sample.

    Special uniques and population uniqueness are None unless asked for, *sample* unless the schema declares sampling
    weights or households; there a blank is a value of its own, and *sample_wildcard* is the same where it may be any
    value, None without blanks. Pairs are (original table, published table).

    >>> Disclosure()
    Disclosure(attributes=[])
    """

    attributes: tuple[AttributeDisclosure, ...] = ()
    partial: PartialKnowledge | None = None
    special: tuple[SpecialUniques, SpecialUniques] | None = None
    population: tuple[PopulationUniqueness, PopulationUniqueness] | None = None
    skipped: Mapping[str, str] = field(default_factory=dict)
    sample: tuple[SampleRisk, SampleRisk] | None = None
    sample_wildcard: tuple[SampleRisk, SampleRisk] | None = None

    def __repr__(self) -> str:
        return f"Disclosure(attributes={[part.column for part in self.attributes]})"

    def to_dict(self) -> dict[str, object]:
        """As plain values: no cell value, and nothing about a single row."""
        special, population = self.special, self.population
        return {
            "attribute_disclosure": {part.column: part.to_dict() for part in self.attributes},
            "partial_knowledge": None if self.partial is None else self.partial.to_dict(),
            "special_uniques": None
            if special is None
            else {"before": special[0].to_dict(), "after": special[1].to_dict()},
            "population_uniqueness": None
            if population is None
            else {"before": population[0].to_dict(), "after": population[1].to_dict()},
            "sample": _both(self.sample, "value"),
            "sample_blanks_match_anything": _both(self.sample_wildcard, "wildcard"),
        }


def disclosure(
    published: PublishedTable,
    frame: pl.DataFrame,
    *,
    partial: bool | None = None,
    special: bool = False,
    largest_key: int | None = None,
    fraction: float | None = None,
) -> Disclosure:
    """What *frame*, read back as *published*, gives away.

    *partial* None measures partial knowledge while it is cheap (PARTIAL_WORK). *special* searches minimal
    uniques of up to *largest_key* columns. *fraction* is the share of the population that the original
    table holds; with it population uniqueness is estimated, and of the release by the share that was published.

    >>> from velado.testing.examples import four_people
    >>> table = four_people()
    >>> from velado.measures.recoded_columns import read_published
    >>> disclosure(read_published(table, table.frame), table.frame)
    Disclosure(attributes=['ill'])
    """
    data, skipped = published.data, dict[str, str]()
    attributes = _attributes(published, frame, skipped)
    known = None
    columns = len(data.columns)
    subsets = sum(comb(columns, size) for size in range(1, min(columns, LARGEST_SUBSET) + 1))
    cheap = subsets <= KEY_SETS and data.rows * subsets <= PARTIAL_WORK
    if data.counts is not None:
        skipped["partial knowledge"] = say("It is measured on single rows: use --engine memory.")
    elif partial or (partial is None and cheap):
        known = partial_knowledge(published)
    else:
        skipped["partial knowledge"] = (
            say("It was switched off.")
            if partial is False
            else say(
                "{subsets} subsets of {rows} rows are too many to measure unasked.",
                subsets=subsets,
                rows=data.rows,
            )
        )
    found, estimates = None, None
    if special:
        share = 0.01 if fraction is None else fraction
        found = (
            special_uniques_of(data, largest_key, share),
            special_uniques(
                [part.name for part in published.columns],
                [part.codes for part in published.columns],
                [part.low.size for part in published.columns],
                [BLANK] * columns,
                largest_key=largest_key,
                fraction=share,
            ),
        )
    if fraction is not None:
        whole = population_uniqueness(data.classes.sizes, fraction)
        part_of = fraction * published.rows / data.total if published.rows else fraction
        estimates = (whole, population_uniqueness(published.classes.sizes, part_of))
    sample, wildcard = sample_risks(published), None
    if published.sample is not None and sample is None:
        skipped["risk of the sample"] = join(published.unpaired)
    if sample is not None and has_blanks(published):
        try:
            wildcard = sample_risks(published, "wildcard")
        except ParameterError as error:
            skipped["risk of the sample where a blank matches anything"] = join([error])
    return Disclosure(attributes, known, found, estimates, skipped, sample, wildcard)


def _both(sample: tuple[SampleRisk, SampleRisk] | None, blanks: Blanks) -> dict[str, object] | None:
    if sample is None:
        return None
    return {"blanks": blanks, "before": sample[0].to_dict(), "after": sample[1].to_dict()}


def _attributes(
    published: PublishedTable, frame: pl.DataFrame, skipped: dict[str, str]
) -> tuple[AttributeDisclosure, ...]:
    """On the sensitive values as they are published, by their normal form: what an attacker learns from."""
    there = frame.columns if published.values is None else published.values
    names = [name for name in (published.data.sensitive or {}) if name in there]
    absent = len(published.data.sensitive or {}) - len(names)
    if absent:
        skipped["attribute disclosure"] = say_n(
            "{n} sensitive column is not in the published table.",
            "{n} sensitive columns are not in the published table.",
            absent,
        )
    if not names:
        return ()
    if published.values is not None:
        listed = {name: published.values[name] for name in names}
        return tuple(attribute_disclosure(n, published.classes, v, v.size) for n, v in listed.items())
    texts = {name: pl.col(name).cast(pl.String) for name in names}
    schema = published.schema or Schema({})
    blank = {name: list(schema.missing_texts(name)) for name in names}
    shown = frame.select(
        [
            pl.when(text.is_in(blank[name])).then(None).otherwise(text).alias(name)
            for name, text in texts.items()
        ]
    )
    columns = [schema.columns.get(name) or Column(name, "sensitive") for name in names]
    table = Table(shown, schema.with_columns(columns))
    coded = {column.name: value_codes(table, column) for column in columns}
    return tuple(
        attribute_disclosure(name, published.classes, codes, size) for name, (codes, size) in coded.items()
    )
