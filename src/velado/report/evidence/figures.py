"""What a run keeps of its measures for an evidence pack: figures alone, coarse, and never a cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from velado.data.identifiers import identifying_columns
from velado.release.operations import columns_of
from velado.report.facts import ReleaseFacts
from velado.report.manifest import coarse
from velado.settings import table_of
from velado.text import told

VERSION = 1


def measured_figures(facts: ReleaseFacts) -> dict[str, Any]:
    """The figures of a release that only who has the original can measure, rounded so that guesses cannot be tried.

    They are private until their owner puts them into a pack. Names of columns stand in them, cells do not.

    >>> from velado.testing.examples import small_release
    >>> found = measured_figures(small_release().facts)
    >>> found["counted_in"], found["singling_out"]["smallest_rows"], found["singling_out"]["highest_risk"]
    ('rows', 2, 0.5)
    """
    release, scores = facts.release, facts.scores
    after, people = facts.risk(scores.after), scores.after.people
    columns, behind = facts.behind_doors
    dropped = release.original.dropped
    linked, disclosure = scores.linkage, scores.disclosure
    partial = None if disclosure is None else disclosure.partial
    crowd = next((found for found in release.verdicts if found.guarantee == "k-anonymity"), None)
    in_people = crowd is not None and crowd.unit == "people"
    figures: dict[str, Any] = {
        "version": VERSION,
        "output_sha256": facts.output.sha256,
        "counted_in": "people" if in_people else "rows",
        "risk_counted_in": "people" if facts.by_person else "rows",
        "people_published": None if people is None else people.units,
        "dropped_columns": [] if dropped is None else list(dropped.columns),
        "altered_columns": _altered(facts),
        "all_columns": asdict(facts.together),
        "singling_out": {
            "smallest_rows": facts.smallest,
            "smallest_people": int(crowd.achieved) if crowd is not None and in_people else None,
            "groups": scores.after.class_sizes.classes,
            "unique_rows": scores.after.uniqueness.unique_rows,
            "unique_people": scores.after.uniqueness.unique_people,
            "highest_risk": after.prosecutor.highest,
            "mean_risk": after.prosecutor.mean,
            "share_above": {str(limit): part for limit, part in after.prosecutor.share_above.items()},
            "smallest_with_side_doors": behind,
            "side_door_columns": list(columns),
        },
        "linkability": {
            "record_linkage": None if linked is None else linked.share,
            "record_linkage_rows": None if linked is None else linked.rows,
            "journalist_highest": after.journalist.highest,
            "population_known": bool(scores.after.rows.population),
            "marketer": after.marketer,
            "subsets_tried": None if partial is None else len(partial.subsets),
            "subsets_that_single_out": None
            if partial is None
            else sum(part.after.unique_rows > 0 for part in partial.subsets),
        },
        "sdc": {name: value for name, value in scores.numbers.items() if value is not None},
    }
    inference = [
        {
            "column": part.column,
            "guessed": part.guessed.share,
            "low": part.guessed.low,
            "high": part.guessed.high,
            "baseline": part.baseline.share,
            "one_value_only": part.homogeneous[1.0],
            "better_than_chance": bool(part.beats_baseline),
        }
        for part in (() if disclosure is None else disclosure.attributes)
    ]
    doors = [
        {**asdict(door), "smallest_group": facts.smallest_behind(*door.columns) if door.columns else None}
        for door in release.side_doors
    ]
    rounded: Any = coarse(figures)
    return {
        **rounded,
        "inference": [coarse(one) for one in inference],
        "side_doors": [coarse(one) for one in doors],
        "decisions": [table_of(one) for one in facts.decisions],
        "shapes": {one.column: one.kind for one in identifying_columns(release.original)},
        "warnings": [told(one, "en") for one in facts.warnings],
    }


def _altered(facts: ReleaseFacts) -> Mapping[str, list[str]]:
    """The operations done to each column before it was grouped; their settings may name values."""
    out: dict[str, list[str]] = {}
    for operation in facts.release.operations:
        for name in columns_of(operation, facts.release.original.schema):
            out.setdefault(name, []).append(operation.name)
    return out
