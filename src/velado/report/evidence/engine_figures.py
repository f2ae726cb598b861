"""What a run on an engine keeps of its measures for an evidence pack: the figures of `figures`, worked out of counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from velado.data.identifiers import identifying_columns
from velado.measures.risk.attribute_disclosure import attribute_disclosure
from velado.measures.risk.reidentification import reidentification, reidentification_of_people, uniqueness
from velado.release.side_doors import DoorDecision
from velado.release.side_doors.door import telling_columns
from velado.report.engine_facts import EngineFacts
from velado.report.evidence.figures import VERSION
from velado.report.manifest import coarse
from velado.settings import table_of
from velado.text import told


def engine_figures(facts: EngineFacts, decisions: Sequence[DoorDecision] = ()) -> dict[str, Any]:
    """The figures of a release that an engine wrote, under the names that `measured_figures` gives them.

    What compares single rows (the linkage attack, who knows a few columns) is None: a pack says that it was not measured.

    >>> from velado.testing.examples import small_lake
    >>> found = engine_figures(small_lake().facts)
    >>> found["singling_out"]["smallest_rows"], found["linkability"]["record_linkage"]
    (2, None)
    """
    release = facts.release
    groups, plan, judged = release.checked.partition, release.plan, release.plan.prepared.judged
    rows = reidentification(groups)
    people = None if release.people is None else reidentification_of_people(groups, release.people)
    chances = rows if people is None else people
    alone = uniqueness((), (), (), release.people, groups)
    crowd = next((found for found in release.verdicts if found.guarantee == "k-anonymity"), None)
    in_people = crowd is not None and crowd.unit == "people"
    shown = [name for name in telling_columns(judged.side_doors, facts.quasi) if name in release.columns]
    attributes = [
        attribute_disclosure(name, groups, values, values.size) for name, values in release.values.items()
    ]
    dropped = judged.sample.dropped
    figures: dict[str, Any] = {
        "version": VERSION,
        "output_sha256": facts.output.sha256,
        "counted_in": "people" if in_people else "rows",
        "risk_counted_in": "rows" if people is None else "people",
        "people_published": None if people is None else people.units,
        "dropped_columns": [] if dropped is None else list(dropped.columns),
        "altered_columns": {},
        "all_columns": None,
        "singling_out": {
            "smallest_rows": facts.smallest,
            "smallest_people": int(crowd.achieved) if crowd is not None and in_people else None,
            "groups": facts.after.classes,
            "unique_rows": alone.unique_rows,
            "unique_people": alone.unique_people,
            "highest_risk": chances.prosecutor.highest,
            "mean_risk": chances.prosecutor.mean,
            "share_above": {str(limit): part for limit, part in chances.prosecutor.share_above.items()},
            "smallest_with_side_doors": release.behind,
            "side_door_columns": shown,
        },
        "linkability": {
            "record_linkage": None,
            "record_linkage_rows": None,
            "journalist_highest": chances.journalist.highest,
            "population_known": False,
            "marketer": chances.marketer,
            "subsets_tried": None,
            "subsets_that_single_out": None,
        },
        "sdc": {
            "ncp": plan.loss,
            "suppressed": plan.suppressed / plan.prepared.source.rows,
            "reidentification": chances.marketer,
            "highest_risk": chances.prosecutor.highest,
            **({"attribute_gain": max(one.gain for one in attributes)} if attributes else {}),
        },
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
        for part in attributes
    ]
    doors = [
        {**asdict(door), "smallest_group": release.behind_each.get(tuple(door.columns))}
        for door in judged.side_doors
    ]
    rounded: Any = coarse(figures)
    return {
        **rounded,
        "inference": [coarse(one) for one in inference],
        "side_doors": [coarse(one) for one in doors],
        "decisions": [table_of(one) for one in decisions],
        "shapes": {one.column: one.kind for one in identifying_columns(judged.sample)},
        "warnings": [told(one, "en") for one in facts.warnings],
    }
