"""The document of a pack: what was given (manifest, figures, a fresh count, statements) and what follows from it.

What follows is worked out here and nowhere else, from what was given alone. So who checks a pack works it out again: a pack
whose parts contradict each other is one that does not come out the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from velado.errors import EvidenceRefused
from velado.release.guarantees import GUARANTEES
from velado.release.side_doors import DoorDecision, SideDoor
from velado.release.side_doors.decisions import DECISIONS
from velado.report.manifest import SHOWN_OF_DOORS, package_version
from velado.text import Language, say

FORMAT = 1
SKEW = timedelta(minutes=10)
"""Clocks of two machines may differ by so much."""
_OF_COLUMNS = (
    "role",
    "kind",
    "publish",
    "person",
    "group",
    "side_door",
    "identifier",
    "reason",
    "missing",
    "case",
)
_OF_TABLE = ("missing", "decimal", "encoding", "separator")
_ROUNDING = 1e-3

Document = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Given:
    """What a pack is made from.

    *manifest* is that of the release, *counted* what a fresh count of its table found, *measured* the figures the run kept, or
    None where it kept none; *statements* are what people say, *made* is when, *law* by which law it is read.

    >>> Given(manifest={}, counted={}, measured=None, statements={}, made="", law="lgpd", language="en").law
    'lgpd'
    """

    manifest: Document
    counted: Document
    measured: Document | None
    statements: Mapping[str, str]
    made: str
    law: str
    language: Language
    manifest_sha256: str = ""


def document_of(given: Given) -> dict[str, Any]:
    """The whole document; no cell of any table stands in it.

    >>> from velado.testing.examples import small_evidence
    >>> [column["fate"] for column in small_evidence().document["found"]["columns"]]
    ['generalized', 'published']
    """
    manifest = public_manifest(given.manifest)
    told: dict[str, Any] = {
        "format": FORMAT,
        "made": given.made,
        "law": given.law,
        "language": given.language,
        "velado": package_version("velado"),
        "manifest": manifest,
        "manifest_sha256": given.manifest_sha256,
        "counted": dict(given.counted),
        "measured": None if given.measured is None else dict(given.measured),
        "statements": dict(given.statements),
    }
    return {**told, "found": found_in(told)}


def given_of(document: Document) -> Given:
    """What a pack that is read was made from.

    >>> from velado.testing.examples import small_evidence
    >>> document_of(given_of(small_evidence().document)) == small_evidence().document
    True
    """
    return Given(
        manifest=document["manifest"],
        counted=document["counted"],
        measured=document["measured"],
        statements=document["statements"],
        made=document["made"],
        law=document["law"],
        language=document["language"],
        manifest_sha256=document["manifest_sha256"],
    )


def public_manifest(manifest: Document) -> dict[str, Any]:
    """The manifest without what may be values of the table: lists of values, bounds, labels, codes, settings of operations.

    >>> columns = {"sex": {"role": "quasi", "kind": "categorical", "values": ["F", "M"]}}
    >>> from velado.testing.examples import small_evidence
    >>> whole = {**small_evidence().document["manifest"], "schema": {"columns": columns}}
    >>> public_manifest(whole)["schema"]["columns"]
    {'sex': {'role': 'quasi', 'kind': 'categorical'}}
    """
    schema = manifest["schema"]
    columns = {
        name: {
            **{key: column[key] for key in _OF_COLUMNS if key in column},
            **_no_values(column),
            **({"taxonomy": _taxonomy(column["taxonomy"])} if "taxonomy" in column else {}),
        }
        for name, column in schema["columns"].items()
    }
    about_file = schema.get("table", {})
    table = {key: value for key, value in about_file.items() if key in _OF_TABLE} | _no_values(about_file)
    dataset = {key: value for key, value in schema.get("dataset", {}).items() if key in ("name", "version")}
    how = manifest["how"]
    operations = [_operation(one) for one in how["operations"]]
    return {
        **manifest,
        "schema": {
            **({"dataset": dataset} if dataset else {}),
            **({"table": table} if table else {}),
            "columns": columns,
        },
        "how": {**how, "operations": operations},
    }


def _operation(one: Document) -> dict[str, Any]:
    """On what an operation is done, and about how coarse it makes that: one digit is no value of a cell."""
    kept = {key: one[key] for key in ("name", "column", "columns", "about") if key in one}
    step = next((one[key] for key in ("to", "width", "level") if key in one), None)
    return kept if not isinstance(step, int | float) else {**kept, "about": float(f"{step:.0e}")}


def _no_values(entry: Document) -> dict[str, Any]:
    """How many texts mean no value, and their keyed digest; manifests of an earlier velado list the texts themselves."""
    told = entry.get("missing_values")
    if told is None:
        return {}
    if not isinstance(told, Mapping):
        return {"missing_values": {"texts": len(told)}}
    kept = {key: told[key] for key in ("texts", "keyed_sha256") if key in told}
    return {"missing_values": kept}


def _taxonomy(entry: Any) -> dict[str, Any]:
    return {key: entry[key] for key in ("builder", "keyed_sha256") if key in entry}


def found_in(told: Document) -> dict[str, Any]:
    """What follows from what was given: each column's fate, the unit that was counted, decisions, what was not examined.

    >>> from velado.testing.examples import small_evidence
    >>> found_in(small_evidence().document)["unit"]
    'rows'
    """
    manifest, measured = told["manifest"], told["measured"]
    return {
        "columns": _columns(manifest, measured),
        "unit": unit_of(manifest),
        "holds": all(one["holds"] for one in manifest["promise"]["verdicts"]),
        "decisions": _decisions(manifest),
        "not_examined": _not_examined(told),
    }


def unit_of(manifest: Document) -> str:
    """Whether the promise counts people or rows.

    >>> unit_of({"promise": {"verdicts": [{"unit": "people"}]}})
    'people'
    """
    units = [verdict["unit"] for verdict in manifest["promise"]["verdicts"]]
    return "people" if "people" in units else "rows"


def _columns(manifest: Document, measured: Document | None) -> list[dict[str, Any]]:
    """Every column of the source and what became of it."""
    declared, published = manifest["schema"]["columns"], manifest["output"]["columns"]
    losses = manifest["metrics"]["ncp"]["by_column"]
    altered = {} if measured is None else measured["altered_columns"]
    out = []
    for name in manifest["input"]["columns"]:
        column = declared.get(name, {"role": "other", "kind": "text"})
        fate = "held back"
        if name in published:
            coarser = column["role"] == "quasi" and losses.get(name, 0) > 0
            fate = "altered" if name in altered else "generalized" if coarser else "published"
        out.append(
            {
                "column": name,
                "role": column["role"],
                "kind": column["kind"],
                "person": bool(column.get("person")),
                "fate": fate,
                "loss": losses.get(name),
                "operations": list(altered.get(name, ())),
            }
        )
    for name in () if measured is None else measured["dropped_columns"]:
        out.append(
            {
                "column": name,
                "role": "undeclared",
                "kind": "",
                "person": False,
                "fate": "dropped",
                "loss": None,
                "operations": [],
            }
        )
    return out


def _decisions(manifest: Document) -> list[dict[str, Any]]:
    """What was decided about columns, as the recipe carries it: signed for, held back, or altered before it was grouped."""
    columns = manifest["schema"]["columns"]
    seen = [
        (name, one.trace)
        for one in DECISIONS.values()
        for name, column in columns.items()
        if one.seen_in(column)
    ]
    signed = [
        (name, "identifier") for name, column in columns.items() if column.get("identifier") == "accept"
    ]
    altered = [
        {"column": name, "decision": one["name"], "reason": "", "about": one.get("about")}
        for one in manifest["how"]["operations"]
        for name in _named(one)
        if name in columns
    ]
    told = [
        {"column": name, "decision": decision, "reason": str(columns[name].get("reason", "")), "about": None}
        for name, decision in (*signed, *seen)
    ]
    return [*told, *altered]


def _named(operation: Document) -> list[str]:
    return [operation["column"]] if "column" in operation else list(operation.get("columns", ()))


def _not_examined(told: Document) -> list[str]:
    """Codes of what was not looked at; `pages` has the words."""
    manifest, measured = told["manifest"], told["measured"]
    unmeasured = measured is None
    link = {} if measured is None else measured["linkability"]
    checks = (
        ("choice of quasi-identifiers", True),
        ("earlier releases", True),
        ("joins with other tables", True),
        ("rows of one person by stable columns", True),
        ("values of columns published as they are", True),
        ("membership", True),
        ("original", True),
        ("figures", unmeasured),
        ("people", unit_of(manifest) == "rows"),
        ("population", not unmeasured and not link["population_known"]),
        ("record linkage", not unmeasured and link["record_linkage"] is None),
        ("partial knowledge", not unmeasured and link["subsets_tried"] is None),
        ("sample", bool(manifest.get("judged"))),
        ("all columns", not unmeasured and all_columns(measured) is None),
    )
    return [code for code, holds in checks if holds]


def all_columns(measured: Document | None) -> Document | None:
    """How many people, or rows, are like nobody else by all published columns together; None where that was not counted.

    >>> all_columns({"all_columns": {"unit": "people", "units": 9, "alone": 4}})["alone"], all_columns({})
    (4, None)
    """
    return None if measured is None else measured.get("all_columns")


def smallest_behind_doors(measured: Document) -> tuple[int, list[str]] | None:
    """The smallest group for who also reads the columns of side doors, and these columns; None where no door makes groups.

    Columns that tell a quasi-identifier are read together; one that can be matched by itself is read alone, and may do worse.

    >>> door = {"column": "pay", "together": [], "smallest_group": 1}
    >>> singling = {"smallest_with_side_doors": 3, "side_door_columns": ["born"]}
    >>> smallest_behind_doors({"singling_out": singling, "side_doors": [door]})
    (1, ['pay'])
    """
    single = measured["singling_out"]
    told = [
        (single["smallest_with_side_doors"], list(single["side_door_columns"])),
        *((one["smallest_group"], one["together"] or [one["column"]]) for one in measured["side_doors"]),
    ]
    known = [one for one in told if one[0] is not None]
    return min(known, key=lambda one: one[0]) if known else None


# ---- what a pack may not say


def contradictions(document: Document) -> list[str]:
    """What in a document cannot be true together with the rest of it; nothing where all fits.

    >>> from velado.testing.examples import small_evidence
    >>> contradictions(small_evidence().document)
    []
    """
    manifest, counted, measured = document["manifest"], document["counted"], document["measured"]
    out: list[str] = []
    directions = {kind.name: kind.direction for kind in GUARANTEES}
    asked = [one["name"] for one in manifest["how"]["guarantees"]]
    verdicts: Sequence[Document] = manifest["promise"]["verdicts"]
    if [one["guarantee"] for one in verdicts] != asked:
        out.append(say("the verdicts are not those of the promises that were asked for"))
    for one in (*verdicts, *counted["verdicts"]):
        enough = one["achieved"] >= one["needed"] - _ROUNDING
        if directions.get(one["guarantee"]) == "at most":
            enough = one["achieved"] <= one["needed"] + _ROUNDING
        if bool(one["holds"]) != enough:
            out.append(
                say("the verdict on {promise} does not follow from its figures", promise=one["guarantee"])
            )
    for one in counted["verdicts"]:
        # A promise may be asked for once for each sensitive column.
        if not any(same_promise(told, one) and _agree(told, one) for told in verdicts):
            out.append(
                say("the fresh count of {promise} differs from the release's own", promise=one["guarantee"])
            )
    if counted["sha256"] != manifest["output"]["sha256"] or counted["rows"] != manifest["output"]["rows"]:
        out.append(say("the fresh count is of another table"))
    if manifest["metrics"]["rows"] != manifest["output"]["rows"]:
        out.append(say("the number of rows is told in two ways"))
    if measured is not None:
        if measured["output_sha256"] != manifest["output"]["sha256"]:
            out.append(say("the figures are of another table"))
        if measured["singling_out"]["smallest_rows"] != counted["smallest_group"]:
            out.append(say("the smallest group is told in two ways"))
        if measured["counted_in"] != unit_of(manifest) and verdicts:
            out.append(say("the unit of counting is told in two ways"))
        if not _chances_fit(manifest, counted, measured):
            out.append(say("the chances to pick a person out do not follow from the groups"))
        if _doors(manifest) != _doors(measured):
            out.append(say("the side doors are told in two ways"))
        if any(not _as_signed(manifest, measured, one) for one in measured["side_doors"]):
            out.append(say("what is said of a side door is not what the schema signs"))
    if manifest["output"]["suppressed_rows"] != manifest["input"]["rows"] - manifest["output"]["rows"]:
        out.append(say("the number of rows left out is told in two ways"))
    return out


def _chances_fit(manifest: Document, counted: Document, measured: Document) -> bool:
    """Whether the chances are those of the groups that were counted, and agree among themselves."""
    single, link, sdc = measured["singling_out"], measured["linkability"], measured["sdc"]
    highest, mean, smallest = single["highest_risk"], single["mean_risk"], single["smallest_rows"]
    in_people = measured["risk_counted_in"] == "people"
    crowds = [
        one["achieved"]
        for one in manifest["promise"]["verdicts"]
        if one["guarantee"] == "k-anonymity" and one["unit"] == "people"
    ]
    among = single["smallest_people"] if in_people else smallest
    behind = single["smallest_with_side_doors"]
    above = sorted((float(limit), part) for limit, part in single["share_above"].items())
    parts = [part for _, part in above]
    return all(
        (
            single["groups"] == counted["groups"],
            single["smallest_people"] == (int(crowds[0]) if crowds else None),
            # A group never has more people than rows.
            highest * smallest >= 1 - smallest * _ROUNDING
            if among is None
            else abs(highest * among - 1) <= among * _ROUNDING,
            abs(sdc.get("highest_risk", highest) - highest) <= _ROUNDING,
            abs(sdc.get("reidentification", link["marketer"]) - link["marketer"]) <= _ROUNDING,
            in_people or abs(mean - counted["groups"] / counted["rows"]) <= _ROUNDING,
            mean <= highest + _ROUNDING,
            link["journalist_highest"] <= highest + _ROUNDING,
            link["marketer"] <= mean + _ROUNDING,
            link["population_known"] or abs(link["journalist_highest"] - highest) <= _ROUNDING,
            link["population_known"] or abs(link["marketer"] - mean) <= _ROUNDING,
            all(part == 0 for limit, part in above if highest <= limit),
            all(part * limit <= mean + _ROUNDING for limit, part in above),
            mean <= highest * parts[0] + above[0][0] * (1 - parts[0]) + 2 * _ROUNDING if above else True,
            parts == sorted(parts, reverse=True),
            (single["unique_rows"] > 0) == (smallest == 1),
            behind is None or behind <= smallest,
            _together_fits(manifest, measured),
        )
    )


def _together_fits(manifest: Document, measured: Document) -> bool:
    """Whether all columns together tell at least those apart whom the quasi-identifiers do, and no more than there are."""
    found, single = all_columns(measured), measured["singling_out"]
    people = measured["people_published"]
    if people is not None and people > manifest["output"]["rows"]:  # each has at least one row
        return False
    if found is None:
        return True
    if found["unit"] == "rows":
        return bool(single["unique_rows"] <= found["alone"] <= found["units"] == manifest["output"]["rows"])
    return bool(found["alone"] <= found["units"] == people)


def _doors(part: Document) -> list[tuple[str, ...]]:
    return sorted(tuple(str(one[name]) for name in SHOWN_OF_DOORS) for one in part["side_doors"])


def decision_on(measured: Document, door: SideDoor) -> DoorDecision | None:
    """What somebody decided about a door of the figures, if that was kept.

    >>> decision_on({"side_doors": []}, SideDoor("note", "age", "functional", 1.0, 0.5, 2))
    """
    kept = [
        DoorDecision(**{**one, "columns": tuple(one["columns"])}) for one in measured.get("decisions", ())
    ]
    return next((one for one in kept if one.is_about(door)), None)


def told_door(entry: Document) -> SideDoor:
    """A door of the figures.

    >>> from dataclasses import asdict
    >>> door = SideDoor("note", "age", "functional", 1.0, 0.5, 2)
    >>> told_door({**asdict(door), "smallest_group": 3}) == door
    True
    """
    return SideDoor(
        **{name: value for name, value in entry.items() if name not in ("smallest_group", "together")},
        together=tuple(entry["together"]),
    )


def _as_signed(manifest: Document, measured: Document, entry: Document) -> bool:
    """Whether a door is called accepted if and only if the schema accepts it, one of two columns being enough for a pair.

    Where the recipe says on which figures it was accepted, those must cover it; that alone is said of a door without columns.
    """
    columns, door = manifest["schema"]["columns"], told_door(entry)
    signed = any(columns.get(name, {}).get("side_door") == "accept" for name in door.columns)
    taken = decision_on(measured, door)
    if taken is not None and not taken.covers(door):
        return not door.accepted
    if not door.columns:
        return door.accepted == (taken is not None)
    return door.accepted == signed or (signed and len(door.columns) > 1)


def same_promise(told: Document, counted: Document) -> bool:
    """Whether two verdicts are on one promise, about one column where it was asked for one.

    >>> same_promise({"guarantee": "k-anonymity"}, {"guarantee": "k-anonymity", "parameters": {"column": None}})
    True
    """
    columns = [one.get("parameters", {}).get("column") for one in (told, counted)]
    return bool(told["guarantee"] == counted["guarantee"] and columns[0] == columns[1])


def _agree(told: Document, counted: Document) -> bool:
    """A count of rows can only be larger than one of people; else the two are the same figure."""
    if told["needed"] != counted["needed"]:
        return False
    if told["unit"] != counted["unit"]:
        return bool(told["unit"] == "people" and counted["achieved"] >= told["achieved"])
    return abs(float(told["achieved"]) - float(counted["achieved"])) <= _ROUNDING


def refuse_time(made: str, now: datetime) -> datetime:
    """When a pack was made, if that is a moment that has been.

    >>> from datetime import UTC
    >>> refuse_time("2026-01-02T03:04:05+00:00", datetime(2026, 2, 1, tzinfo=UTC)).year
    2026
    """
    try:
        at = datetime.fromisoformat(made)
    except (TypeError, ValueError):
        at = None
    if at is None or at.tzinfo is None or at.isoformat(timespec="seconds") != made:
        raise EvidenceRefused(
            "The pack does not say when it was made.",
            "Its figures hold for what was known then.",
            "Ask for the pack again, from who signed it.",
        )
    if at > now + SKEW:
        raise EvidenceRefused(
            say("The pack says that it was made on {made}, which is yet to come.", made=at.date()),
            "Its time was made up, or a clock is wrong.",
            "Compare the clocks; ask for a pack with the right time.",
        )
    return at
