"""What is printed after a run: ten lines on a release, the proposed roles, how exposed people are."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING

from velado.apps.cli import show
from velado.apps.cli.reasons import identifier_in, kind_in, reason_in, role_in
from velado.apps.cli.words import number, percent, say
from velado.study.report.units import guarantee_in, unit_in

if TYPE_CHECKING:
    from velado.anonymize.guarantees.base import Verdict
    from velado.anonymize.release import Release
    from velado.anonymize.side_doors import SideDoor
    from velado.data.inspect import ColumnFinding, Inspection
    from velado.data.missing_codes import MissingCode
    from velado.measure.measured import Scores
    from velado.study.run import Published

SHOWN = 5


def published(done: Published, lang: str, as_json: bool, quiet: bool, formulas: str) -> None:
    """A finished release is told: as JSON the manifest and the folder, else in ten lines and its warnings."""
    if as_json:
        manifest = json.loads((done.public / "manifest.json").read_text("utf-8"))
        parts = {
            part.name: sorted(path.name for path in part.iterdir()) for part in (done.public, done.private)
        }
        # The owner sees all that was measured; the manifest, which leaves, has only what the table shows.
        facts = done.release.to_dict()
        measured = {"side_doors": facts["promise"]["side_doors"], "how": facts["how"]}
        measured["metrics"] = done.scores.to_dict()
        show.as_json({"folder": str(done.folder), "files": parts, **manifest, **measured})
        return
    if quiet:
        return
    for text in warnings(done.release, lang, formulas):
        show.note(f"{say(lang, 'warning')}: {text}")
    for text in ten_lines(done, lang):
        show.line(text)


def warnings(release: Release, lang: str, formulas: str) -> list[str]:
    """What the steward should look at, without any cell: the release's own warnings, side doors, minimality, formulas."""
    from velado.data.folders import count_formulas

    out = list(release.warnings)
    out += [door_in(lang, door) for door in release.side_doors if not door.accepted]
    if release.goal.reads_sensitive:
        out.append(say(lang, "minimality"))
    count = count_formulas(release.frame) if formulas == "keep" else 0
    if count:
        out.append(say(lang, "formulas", count=number(count, lang)))
    return out


def door_in(lang: str, door: SideDoor) -> str:
    """One side door as a sentence of the reader's language."""
    if lang == "en":
        return door.sentence()
    from velado.study.report.phrases import door_sentence
    from velado.study.report.words import Words

    return door_sentence(door.to_dict(), Words(lang))


def ten_lines(done: Published, lang: str) -> list[str]:
    """The release in exactly ten lines, the last two being where it and its report are."""
    release = done.release
    table, checked = release.table, release.checked
    unit, unique_before, unique_after, risk_before, risk_after = exposure_change(done.scores)
    smallest, wild = (reading.smallest for reading in checked.readings)
    ncp = done.scores.ncp
    losses = release.losses if ncp is None else ncp.by_column
    most = max(losses, key=losses.__getitem__)
    people = done.scores.before.uniqueness.people
    facts = {
        "source": table.source,
        "rows": number(table.rows, lang),
        "columns": number(table.frame.width, lang),
    }
    values = {f.name: getattr(release.method, f.name) for f in fields(release.method)}  # type: ignore[arg-type]
    own = [f"{name} = {value}" for name, value in values.items() if value not in (None, "")]
    reports = [path.name for path in sorted(done.private.glob("report.*"))]
    report = "report.html" if "report.html" in reports else (reports[0] if reports else None)
    return [
        say(lang, "line_table", **facts)
        if people is None
        else say(lang, "line_table_people", people=number(people, lang), **facts),
        say(
            lang,
            "line_method",
            title=release.method.title,
            settings=", ".join([*own, f"seed = {release.seed}"]),
        ),
        say(
            lang,
            "line_promise",
            type=say(lang, release.promise),
            sentences=" ".join(verdict(v, lang) for v in release.verdicts) or say(lang, "no_guarantee"),
        ),
        say(
            lang,
            "line_groups",
            groups=number(checked.partition.count, lang),
            mean=number(release.aligned.height / checked.partition.count, lang, 1),
            smallest=number(smallest, lang),
            wild=number(wild, lang),
        ),
        say(
            lang,
            "line_unique",
            before=number(unique_before, lang),
            after=number(unique_after, lang),
            unit=unit_in(lang, unit),
        ),
        say(lang, "line_risk", before=percent(risk_before, lang), after=percent(risk_after, lang)),
        say(
            lang,
            "line_loss",
            variant="leaves-1" if ncp is None else ncp.variant,
            loss=f"{percent(release.loss if ncp is None else ncp.overall, lang)} {near_best(release, lang)}".strip(),
            column=most,
            most=percent(losses[most], lang),
        ),
        say(
            lang,
            "line_rows",
            rows=number(release.aligned.height, lang),
            suppressed=number(release.suppressed, lang),
            doors=number(len(release.side_doors), lang),
        ),
        say(lang, "line_release", path=done.public),
        say(lang, "line_report", path=done.private if report is None else done.private / report),
    ]


def near_best(release: Release, lang: str) -> str:
    """How far the loss is from the best possible, where the method proved a bound; else nothing."""
    from velado.study.report.notes import above_best_percent

    above = above_best_percent(release)
    if above is None:
        return ""
    return say(lang, "best_possible") if above <= 0 else say(lang, "above_best", above=number(above, lang))


def exposure_change(scores: Scores) -> tuple[str, int, int, float, float]:
    """Unit (rows or people), how many are unique before and after, and the highest risk before and after."""
    before, after = scores.before, scores.after
    if before.people is not None and after.people is not None:
        return (
            "people",
            before.uniqueness.unique_people or 0,
            after.uniqueness.unique_people or 0,
            before.people.prosecutor.highest,
            after.people.prosecutor.highest,
        )
    return (
        "rows",
        before.uniqueness.unique_rows,
        after.uniqueness.unique_rows,
        before.rows.prosecutor.highest,
        after.rows.prosecutor.highest,
    )


def verdict(found: Verdict, lang: str) -> str:
    """A verdict as a sentence in the language."""
    return say(
        lang,
        "guarantee_holds" if found.holds else "guarantee_broken",
        guarantee=guarantee_in(lang, found.guarantee),
        needed=number(found.needed, lang),
        unit=unit_in(lang, found.unit),
        achieved=number(found.achieved, lang),
        groups=number(found.failing_groups, lang),
        rows=number(found.failing_rows, lang),
    )


def roles(inspection: Inspection, lang: str) -> None:
    """The proposed roles, one column a line, with the reasons for each."""
    show.table(
        say(lang, "roles_title"),
        [say(lang, key) for key in ("column", "role", "kind", "found", "why_column")],
        [
            [
                column.name,
                role_in(lang, column.role) + ("" if column.publish else f", {say(lang, 'kept_back')}"),
                kind_in(lang, column.kind),
                _looks_like(column, lang),
                "; ".join(reason_in(lang, why) for why in column.why),
            ]
            for column in inspection.columns
        ],
    )


def _looks_like(column: ColumnFinding, lang: str) -> str:
    if column.identifier is not None:
        return identifier_in(lang, column.identifier)
    return "" if column.suspected is None else f"{identifier_in(lang, column.suspected)}?"


def _missing_codes(inspection: Inspection, lang: str) -> list[str]:
    by_code: dict[str, list[MissingCode]] = {}
    for code in inspection.missing_codes:
        if not code.applied:
            by_code.setdefault(code.code, []).append(code)
    lines = []
    for text, codes in by_code.items():
        names = [code.column for code in codes]
        shown = ", ".join(names[:SHOWN]) + (f" (+{len(names) - SHOWN})" if len(names) > SHOWN else "")
        rows = number(sum(code.rows for code in codes), lang)
        lines.append(say(lang, "missing_code", code=text, rows=rows, columns=shown))
    return lines


def exposure(inspection: Inspection, lang: str) -> None:
    """Direct identifiers, how well columns tell rows apart, and how many are unique now."""
    found = [
        f"{c.name} ({identifier_in(lang, c.identifier)})"
        for c in inspection.columns
        if c.identifier is not None
    ]
    show.line(say(lang, "identifiers_found", columns=", ".join(found) or say(lang, "none")))
    held = [
        f"{c.name} ({identifier_in(lang, c.suspected)})"
        for c in inspection.columns
        if c.suspected is not None
    ]
    if held:
        show.line(say(lang, "held_back", columns=", ".join(held)))
    if inspection.person is not None:
        show.line(say(lang, "person_column", column=inspection.person))
        mean = inspection.rows_per_person
        if mean is not None and mean > 1:
            show.line(say(lang, "rows_per_person", column=inspection.person, mean=number(mean, lang, 1)))
    for text in _missing_codes(inspection, lang):
        show.line(text)
    by_name = {column.name: column for column in inspection.columns}
    ranked = [by_name[name] for name in inspection.ranking]
    show.table(
        say(lang, "ranking_title"),
        [say(lang, key) for key in ("columns", "distinct", "distinction", "separation")],
        [
            [
                c.name,
                number(c.distinct + (c.missing > 0), lang),
                percent(c.distinction, lang),
                percent(c.separation, lang),
            ]
            for c in ranked
        ]
        + [
            [" + ".join(best.columns), "", percent(best.distinction, lang), percent(best.separation, lang)]
            for best in inspection.sets
            if len(best.columns) > 1
        ],
    )
    # The sets grow from the column that separates best, so one that does better was not looked at.
    sets = inspection.sets
    if len(sets) > 1 and any(c.separation > sets[0].separation for c in ranked):
        show.line(say(lang, "sets_leave_out"))
    if any(c.missing for c in ranked):
        show.line(say(lang, "ranking_notes"))
    now = inspection.exposure
    if now is None:
        return
    show.line(
        say(
            lang,
            "unique_rows",
            unique=number(now.unique_rows, lang),
            rows=number(inspection.rows, lang),
            smallest=number(now.smallest, lang),
        )
    )
    if inspection.person is not None:
        show.line(
            say(
                lang,
                "unique_people",
                unique=number(now.unique_people, lang),
                people=number(now.people, lang),
            )
        )
