"""The pages of a pack, from its document alone: the evidence, and the annex of the law it is read by."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from velado.data.schema import AboutDataset
from velado.release.guarantees import Verdict
from velado.release.side_doors import SideDoor
from velado.report.blocks import (
    Block,
    Bullets,
    Code,
    Figure,
    Heading,
    Notice,
    Page,
    Section,
    Table,
    VerdictCard,
    section,
    table,
    text,
)
from velado.report.evidence.document import (
    Document,
    all_columns,
    decision_on,
    same_promise,
    smallest_behind_doors,
    told_door,
)
from velado.report.evidence.laws import LAWS
from velado.report.evidence.laws._law import part_section, promises_told
from velado.report.phrases import (
    FATES,
    ROLES,
    decision_told,
    operation_told,
    phrase,
    verdict_of,
    verdict_sentence,
)
from velado.text import NOTHING, count, join, listed, moment, plain, say, share

NOT_EXAMINED = {
    "choice of quasi-identifiers": say(
        "Whether an attacker knows other columns than those named quasi-identifiers: which these are was the owner's choice."
    ),
    "earlier releases": say(
        "Earlier or later releases about the same people, of this owner or another: laid side by side they may tell more."
    ),
    "joins with other tables": say(
        "Joins with tables that others hold. An attacker's own knowledge is assumed to be the quasi-identifiers."
    ),
    "rows of one person by stable columns": say(
        "Whether the rows of one person can be put together again by columns that stay the same or change in step, beyond the "
        "side doors listed."
    ),
    "values of columns published as they are": say(
        "What single values say in columns published as they are, such as texts, dates and exact amounts, beyond the search "
        "for identifiers and side doors."
    ),
    "membership": say("Whether it can be found out that somebody is in the table at all."),
    "original": say(
        "The original table is not in this pack: what was measured on it can be counted anew by its owner alone."
    ),
    "figures": say("The run kept no figures of linkability and inference: these two tests were not made."),
    "people": say(
        "People: the promise counts rows. Where a person has several rows, fewer people than rows stand in a group."
    ),
    "population": say(
        "The population the table was drawn from: none was given, so whoever looks for a person is taken to know that they "
        "are in the table."
    ),
    "record linkage": say("Record linkage was not run."),
    "partial knowledge": say("Sets of a few quasi-identifiers were not tried: there are too many."),
    "sample": say("Identifiers and side doors were looked for on a sample of the rows."),
    "all columns": say(
        "How many people all published columns together tell apart: that is counted in memory alone."
    ),
}
"""What was not looked at, in words."""


def evidence_page(document: Document) -> Page:
    """What was promised, found, decided and not examined, to read and to print.

    >>> from velado.testing.examples import small_evidence
    >>> [part.name for part in evidence_page(small_evidence().document).sections]
    ['columns', 'verdicts', 'tests', 'doors', 'not-examined', 'law', 'how', 'check']
    """
    manifest, law = document["manifest"], LAWS[document["law"]]
    holds = document["found"]["holds"] and bool(manifest["promise"]["verdicts"])
    open_doors = [one for one in manifest["side_doors"] if not one["accepted"]]
    measured = document["measured"]
    unit = document["found"]["unit"]
    risk = None if measured is None else measured["singling_out"]["highest_risk"]
    details = [promises_told(document)]
    together = all_columns(measured)
    if together is not None:
        details.append(
            say(
                "By all published columns together, {alone:,} of {of:,} {unit} of the published table are like nobody else.",
                alone=together["alone"],
                of=together["units"],
                unit=phrase(together["unit"]),
            )
        )
    behind = None if measured is None else smallest_behind_doors(measured)
    if measured is not None and behind is not None:
        details.append(
            say(
                "Smallest group {smallest:,}; {behind:,} for who also reads {columns}.",
                smallest=measured["singling_out"]["smallest_rows"],
                behind=behind[0],
                columns=listed(behind[1]),
            )
        )
    return Page(
        title=say("Evidence on {name}", name=_name(document)),
        subtitle=say(
            "Read by {law}. Made {time} with velado {version}.",
            law=law.title,
            time=moment(datetime.fromisoformat(document["made"])),
            version=document["velado"],
        ),
        notice=_notice(),
        notice_first=True,
        verdict=VerdictCard(
            state="good" if holds and not open_doors else "caution",
            label=say("Every promise holds") if holds else say("No promise holds that was asked for"),
            headline=_counted(unit),
            details=tuple(details),
        ),
        key_figures=(
            Figure(say("Rows published"), count(manifest["output"]["rows"])),
            Figure(say("Counted in"), phrase(unit)),
            Figure(say("Smallest group (rows)"), count(document["counted"]["smallest_group"])),
            Figure(say("Highest chance to pick a person out, by quasi-identifiers alone"), share(risk)),
        ),
        sections=(
            _columns(document),
            _verdicts(document),
            _tests(document),
            _doors(document),
            section(
                "not-examined",
                say("What was not examined"),
                Bullets([NOT_EXAMINED[code] for code in document["found"]["not_examined"]]),
            ),
            section(
                "law",
                law.title,
                Table(
                    "", (say("where"), say("what it says, and what here speaks to it")), law.cites, labels=2
                ),
            ),
            *law.further(document),
            _how(document),
            _check(document),
        ),
        footer=_footer(document),
    )


def annex_page(document: Document) -> Page:
    """The fields of the assessment the law asks for: technical ones filled in, human ones marked.

    >>> from velado.testing.examples import small_evidence
    >>> len(annex_page(small_evidence().document).sections)
    5
    """
    law = LAWS[document["law"]]
    return Page(
        title=law.annex_title,
        subtitle=say(
            "{name}. Made {time}.",
            name=_name(document),
            time=moment(datetime.fromisoformat(document["made"])),
        ),
        notice=_notice(),
        notice_first=True,
        sections=tuple(
            part_section(f"part-{at}", part, document) for at, part in enumerate(law.annex, start=1)
        ),
        footer=_footer(document),
    )


def _notice() -> Notice:
    return Notice(
        title=say("Evidence, not legal advice."),
        text=say(
            "Whether a table counts as anonymous is a decision of people. This pack says what was measured and what was not. "
            "It holds no cell of the table, but figures measured on the original: give it to who checks, not to everybody."
        ),
    )


def _counted(unit: str) -> str:
    if unit == "people":
        return say(
            "The rows of the published table were counted anew when this pack was made; people were counted by the run, which "
            "knew who is who."
        )
    return say("The published table was counted anew when this pack was made.")


def _name(document: Document) -> str:
    about = AboutDataset(**document["manifest"]["schema"].get("dataset", {}))
    if about.name and about.version:
        return say("{name}, version {version}", name=about.name, version=about.version)
    return about.name or document["manifest"]["output"]["file"]


def _footer(document: Document) -> str:
    output = document["manifest"]["output"]
    return say("Made by velado. {file} has SHA-256 {sha256}.", file=output["file"], sha256=output["sha256"])


def _columns(document: Document) -> Section:
    return section(
        "columns",
        say("Every column, and what became of it"),
        say(
            "A quasi-identifier is what an outsider may know of a person, such as an age or a place. A sensitive column is "
            "what nobody should learn."
        ),
        table(
            "",
            document["found"]["columns"],
            (say("column"), lambda one: one["column"]),
            (say("role"), lambda one: ROLES.get(one["role"], one["role"])),
            (say("what became of it"), _fate),
            (say("loss of detail"), lambda one: NOTHING if one["loss"] is None else share(one["loss"])),
            labels=3,
        ),
    )


def _fate(one: Document) -> str:
    fate = FATES[one["fate"]]
    if not one["operations"]:
        return fate
    return say("{fate}: {done}", fate=fate, done=join(operation_told(name) for name in one["operations"]))


def _verdicts(document: Document) -> Section:
    verdicts = [verdict_of(one) for one in document["manifest"]["promise"]["verdicts"]]
    counted = document["counted"]["verdicts"]

    def again(verdict: Verdict) -> str:
        asked = {"guarantee": verdict.guarantee, "parameters": verdict.parameters}
        one = next((one for one in counted if same_promise(asked, one)), None)
        if one is None:
            return say("cannot be counted from the table alone")
        return join((plain(one["achieved"]), phrase(one["unit"])))

    if not verdicts:
        return section("verdicts", say("Promises and verdicts"), say("No promise was asked for."))
    return section(
        "verdicts",
        say("Promises and verdicts"),
        say(
            "A group is all rows that show the same values in the quasi-identifiers. A promise must hold in every group; the "
            "weakest one is told."
        ),
        table(
            "",
            verdicts,
            (say("promise"), verdict_sentence),
            (say("counted anew in the table"), again),
            (say("verdict"), lambda one: say("holds") if one.holds else say("broken")),
            labels=3,
        ),
        say("Unit of counting: {unit}.", unit=phrase(document["found"]["unit"])),
    )


def _tests(document: Document) -> Section:
    """The three tests of WP216, each with what was measured."""
    measured = document["measured"]
    title = say("Three tests: singling out, linkability, inference")
    source = say("The tests are those of Opinion 05/2014 of the Article 29 Working Party (WP216).")
    if measured is None:
        return section(
            "tests",
            title,
            source,
            say(
                "Singling out: the smallest group has {rows:,} rows. The run kept no further figures.",
                rows=document["counted"]["smallest_group"],
            ),
        )
    single, link = measured["singling_out"], measured["linkability"]
    unit = phrase(measured["risk_counted_in"])
    rows: list[tuple[str, str]] = [
        (say("groups of look-alikes"), count(single["groups"])),
        (say("smallest group (rows)"), count(single["smallest_rows"])),
        (say("smallest group (people)"), count(single["smallest_people"])),
        (say("rows alone in their group"), count(single["unique_rows"])),
        (say("highest chance to pick the right one"), share(single["highest_risk"])),
        (say("mean chance"), share(single["mean_risk"])),
        *(
            (
                say("share of {unit} with a chance above {limit}", unit=unit, limit=share(float(limit), 0)),
                share(part),
            )
            for limit, part in single["share_above"].items()
        ),
    ]
    together = all_columns(measured)
    if together is not None:
        rows.append(
            (
                say(
                    "{unit} like nobody else by all published columns together", unit=phrase(together["unit"])
                ),
                say("{alone:,} of {of:,}", alone=together["alone"], of=together["units"]),
            )
        )
    behind = smallest_behind_doors(measured)
    if behind is not None:
        rows.append(
            (say("smallest group for who also reads {columns}", columns=listed(behind[1])), count(behind[0]))
        )
    linkage = link["record_linkage"]
    linked: list[tuple[str, str]] = [
        (
            say("rows that a nearest-record attack matches rightly"),
            say("not measured") if linkage is None else share(linkage),
        ),
        (
            say("highest chance for who does not know that the person is in it"),
            share(link["journalist_highest"]),
        ),
        (say("share matched rightly on average"), share(link["marketer"])),
        (
            say("sets of a few quasi-identifiers that single a row out"),
            say("not measured")
            if link["subsets_tried"] is None
            else say(
                "{found:,} of {tried:,}", found=link["subsets_that_single_out"], tried=link["subsets_tried"]
            ),
        ),
        (
            say("order of the rows"),
            say("drawn at random")
            if document["manifest"]["output"]["row_order"] == "drawn"
            else say("as in the original"),
        ),
    ]
    blocks: list[Block | str] = [
        source,
        Heading(say("Singling out: can a person be picked out?")),
        Table("", (say("figure"), say("found")), rows),
        Heading(say("Linkability: can rows about a person be put together?")),
        Table("", (say("figure"), say("found")), linked),
        Heading(say("Inference: can a sensitive value be guessed?")),
    ]
    if measured["inference"]:
        blocks += [
            table(
                "",
                measured["inference"],
                (say("sensitive column"), lambda one: one["column"]),
                (say("guessed right with the table"), lambda one: share(one["guessed"])),
                (say("95% interval"), lambda one: f"{share(one['low'])} – {share(one['high'])}"),
                (say("without it"), lambda one: share(one["baseline"])),
                (say("rows in groups with one value only"), lambda one: share(one["one_value_only"])),
            ),
        ]
    else:
        blocks.append(say("No sensitive column is published."))
    blocks += [
        Heading(say("Further measures of disclosure control")),
        Table(
            "",
            (say("measure"), say("found")),
            [(_MEASURES[name], share(value)) for name, value in measured["sdc"].items() if name in _MEASURES],
        ),
    ]
    return section("tests", title, *blocks)


_MEASURES = {
    "ncp": say("loss of detail (normalized certainty penalty)"),
    "false_cells": say("false cells"),
    "suppressed": say("rows left out"),
    "reidentification": say("expected share re-identified"),
    "highest_risk": say("highest risk of a record"),
    "attribute_gain": say("gain in guessing sensitive values"),
}


def _doors(document: Document) -> Section:
    measured, manifest = document["measured"], document["manifest"]
    blocks: list[Block | str] = [
        say(
            "A side door is a published column that gives a quasi-identifier away, or can be matched by itself."
        )
    ]
    if measured is not None and measured["side_doors"]:
        rows = []
        for one in measured["side_doors"]:
            smallest = one["smallest_group"]
            door = told_door(one)
            rows.append((door.sentence(), count(smallest), _decided(door, measured)))
        blocks.append(
            Table("", (say("finding"), say("smallest group with it"), say("decision")), rows, labels=1)
        )
    elif manifest["side_doors"]:
        blocks.append(
            table(
                "",
                manifest["side_doors"],
                (say("column"), lambda one: one["column"]),
                (say("gives away"), lambda one: one["reveals"] or NOTHING),
                (
                    say("decision"),
                    lambda one: (
                        say("accepted by a person") if one["accepted"] else say("open: named, not decided")
                    ),
                ),
                labels=3,
            )
        )
    else:
        blocks.append(say("None was found in the table that leaves."))
    if document["found"]["decisions"]:
        blocks.append(
            table(
                say("Decisions about columns, as the recipe carries them"),
                document["found"]["decisions"],
                (say("column"), lambda one: one["column"]),
                (say("decision"), lambda one: decision_told(one["decision"], one["about"])),
                (say("reason"), lambda one: one["reason"] or NOTHING),
                labels=3,
            )
        )
    return section("doors", say("Side doors and decisions"), *blocks)


def _decided(door: SideDoor, measured: Document) -> str:
    """What people did about a door that the release still has."""
    altered, taken = measured["altered_columns"], decision_on(measured, door)
    done = list(dict.fromkeys(name for column in door.columns for name in altered.get(column, ())))
    if door.accepted and taken is not None:
        return say("accepted by {by}: {reason}", by=taken.by or NOTHING, reason=taken.reason)
    if door.accepted:
        return say("accepted by a person")
    if taken is not None:
        return say(
            "open: {by} accepted it when it was right in {then}, and it is worse now",
            by=taken.by or NOTHING,
            then=share(taken.guess),
        )
    if done:
        return say(
            "open: altered ({operations}), and gives this away still; nobody accepted it",
            operations=join(operation_told(name) for name in done),
        )
    return say("open: named, not decided")


def _how(document: Document) -> Section:
    manifest = document["manifest"]
    how = manifest["how"]
    settings = ", ".join(f"{name} = {value}" for name, value in how["method"].items() if name != "name")
    versions = ", ".join(f"{name} {value}" for name, value in manifest["libraries"].items())
    rows: list[tuple[str, Any]] = [
        (say("method"), how["method"]["name"]),
        (say("parameters"), settings or NOTHING),
        (say("suppression allowed"), share(how["suppression_limit"])),
        (say("seed"), str(how["seed"])),
        (say("input, by its fingerprint under the owner's key"), manifest["input"]["keyed_sha256"]),
        (say("table, SHA-256"), manifest["output"]["sha256"]),
        (say("manifest, SHA-256"), document["manifest_sha256"] or NOTHING),
        (say("release made with"), join((f"velado {manifest['velado']};", versions))),
        (say("this pack made with"), f"velado {document['velado']}"),
        (say("time"), moment(datetime.fromisoformat(document["made"]))),
    ]
    return section(
        "how",
        say("Method, versions, time"),
        Table("", (say("what"), say("value")), rows, labels=2),
        say("recipe.toml in this pack holds every setting, without labels and values."),
    )


def _check(document: Document) -> Section:
    return section(
        "check",
        say("How to check this pack"),
        text(
            say(
                "The first command compares every file with the list that was signed, and makes the pages again from the "
                "figures. The second also counts the published table anew."
            ),
            say(
                "Without --key a pack proves only that nothing was changed since somebody signed it: ask the owner for the "
                "public key (velado evidence key) by another way than the pack came."
            ),
        ),
        Code("velado evidence verify pack.zip --key KEY"),
        Code(f"velado evidence verify pack.zip --key KEY --table {document['manifest']['output']['file']}"),
    )
