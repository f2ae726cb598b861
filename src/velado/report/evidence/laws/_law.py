"""What a law adds to a pack: where it speaks of such tables, its own findings, and the fields of the assessment it asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from velado.report.blocks import Section, Table, section
from velado.report.evidence.document import all_columns, smallest_behind_doors
from velado.report.phrases import decision_told, phrase, promise_named, verdict_of
from velado.text import count, join, listed, plain, say, share

Document = Mapping[str, Any]


@dataclass(frozen=True)
class Field:
    """One field of an annex: *technical* says it from the document; else a person states it under the name *stated*.

    >>> Field("Purpose", stated="purpose").technical is None
    True
    """

    label: str
    technical: Callable[[Document], str] | None = None
    stated: str = ""


@dataclass(frozen=True)
class Part:
    """A part of an annex: the title it has in the law, and its fields.

    >>> Part("Risks", ()).fields
    ()
    """

    title: str
    fields: Sequence[Field]


@dataclass(frozen=True, kw_only=True)
class Law:
    """One law: its *name* in commands, where it speaks of such tables (*cites*), its annex, and *further* findings.

    >>> Law(name="none", title="No law", cites=(), annex_title="", annex=()).further({})
    ()
    """

    name: str
    title: str
    cites: Sequence[tuple[str, str]]
    annex_title: str
    annex: Sequence[Part]
    further: Callable[[Document], tuple[Section, ...]] = lambda document: ()


# ---- technical answers that the annexes share


def table_told(document: Document) -> str:
    """How large the table is that was read, and the one that leaves.

    >>> from velado.testing.examples import small_evidence
    >>> table_told(small_evidence().document)
    '8 rows and 2 columns were read; 8 rows and 2 columns leave, 0 rows were left out.'
    """
    read, left = document["manifest"]["input"], document["manifest"]["output"]
    return say(
        "{rows:,} rows and {columns:,} columns were read; {out:,} rows and {shown:,} columns leave, {less:,} rows were left out.",
        rows=read["rows"],
        columns=len(read["columns"]),
        out=left["rows"],
        shown=len(left["columns"]),
        less=left["suppressed_rows"],
    )


def columns_with(document: Document, *fates: str) -> str:
    """The columns that had one of these fates.

    >>> from velado.testing.examples import small_evidence
    >>> columns_with(small_evidence().document, "generalized"), columns_with(small_evidence().document, "dropped")
    ('age', 'none')
    """
    named = [one["column"] for one in document["found"]["columns"] if one["fate"] in fates]
    return listed(named) if named else say("none")


def sensitive_told(document: Document) -> str:
    """The columns that are protected as sensitive.

    >>> from velado.testing.examples import small_evidence
    >>> sensitive_told(small_evidence().document)
    'illness'
    """
    named = [one["column"] for one in document["found"]["columns"] if one["role"] == "sensitive"]
    return listed(named) if named else say("none")


def method_told(document: Document) -> str:
    """By what the table was changed.

    >>> from velado.testing.examples import small_evidence
    >>> method_told(small_evidence().document)
    'mondrian; at most 0.0% of the rows may be left out; loss of detail 3.2%'
    """
    how = document["manifest"]["how"]
    return say(
        "{method}; at most {limit} of the rows may be left out; loss of detail {loss}",
        method=how["method"]["name"],
        limit=share(how["suppression_limit"]),
        loss=share(document["manifest"]["metrics"]["ncp"]["overall"]),
    )


def promises_told(document: Document) -> str:
    """Every promise and what was found.

    >>> from velado.testing.examples import small_evidence
    >>> promises_told(small_evidence().document)
    'k-anonymity: needed 2 rows, found 2'
    """
    told = [
        say(
            "{promise}: needed {needed} {unit}, found {found}",
            promise=promise_named(verdict_of(one)),
            needed=plain(one["needed"]),
            unit=phrase(one["unit"]),
            found=plain(one["achieved"]),
        )
        for one in document["manifest"]["promise"]["verdicts"]
    ]
    return join(told, "; ") if told else say("no promise was asked for")


def singling_out_told(document: Document) -> str:
    """How far a person can be singled out of the published table.

    >>> from velado.testing.examples import small_evidence
    >>> singling_out_told(small_evidence().document).split("; ")[0]
    'smallest group 2 rows, 0 rows alone, highest chance 50.0%'
    """
    measured = document["measured"]
    if measured is None:
        return say("smallest group {rows:,} rows", rows=document["counted"]["smallest_group"])
    found = measured["singling_out"]
    told = say(
        "smallest group {rows:,} rows, {alone:,} rows alone, highest chance {risk}",
        rows=found["smallest_rows"],
        alone=found["unique_rows"],
        risk=share(found["highest_risk"]),
    )
    parts: list[str] = [told]
    behind, together = smallest_behind_doors(measured), all_columns(measured)
    if behind is not None:
        parts.append(
            say("{behind:,} for who also reads {columns}", behind=behind[0], columns=listed(behind[1]))
        )
    if together is not None:
        parts.append(
            say(
                "by all published columns together {alone:,} of {of:,} {unit} are like nobody else",
                alone=together["alone"],
                of=together["units"],
                unit=phrase(together["unit"]),
            )
        )
    return join(parts, "; ")


def linkability_told(document: Document) -> str:
    """How many rows an attack linked to the original.

    >>> from velado.testing.examples import small_evidence
    >>> linkability_told(small_evidence().document)
    'nearest-record attack: 50.0% of the rows'
    """
    measured = document["measured"]
    linked = None if measured is None else measured["linkability"]["record_linkage"]
    if linked is None:
        return say("not measured")
    return say("nearest-record attack: {share} of the rows", share=share(linked))


def inference_told(document: Document) -> str:
    """How much better sensitive values are guessed with the table than without.

    >>> from velado.testing.examples import small_evidence
    >>> inference_told(small_evidence().document)
    'illness: guessed right in 0.0%, without the table in 37.5%'
    """
    measured = document["measured"]
    if measured is None:
        return say("not measured")
    told = [
        say(
            "{column}: guessed right in {guessed}, without the table in {baseline}",
            column=one["column"],
            guessed=share(one["guessed"]),
            baseline=share(one["baseline"]),
        )
        for one in measured["inference"]
    ]
    return join(told, "; ") if told else say("no sensitive column is published")


def decisions_told(document: Document) -> str:
    """What somebody decided about columns, and why where a reason was given.

    >>> from velado.testing.examples import small_evidence
    >>> decisions_told(small_evidence().document)
    'none'
    """
    made = [
        say("{column}: {decision} ({reason})", column=one["column"], decision=told, reason=one["reason"])
        if one["reason"]
        else say("{column}: {decision}", column=one["column"], decision=told)
        for one in document["found"]["decisions"]
        for told in [decision_told(one["decision"], one["about"])]
    ]
    return listed(made) if made else say("none")


def people_told(document: Document) -> str:
    """How many people the table speaks of, where they were counted.

    >>> from velado.testing.examples import small_evidence
    >>> people_told(small_evidence().document)
    'not counted: the promise counts rows'
    """
    measured = document["measured"]
    people = None if measured is None else measured["people_published"]
    if people is None:
        return say("not counted: the promise counts rows")
    return count(people)


TECHNICAL = {
    "table": Field(say("Size of the table"), table_told),
    "people": Field(say("People in it"), people_told),
    "published": Field(
        say("Columns that leave as they were"), lambda document: columns_with(document, "published")
    ),
    "generalized": Field(
        say("Columns that leave coarser or altered"),
        lambda document: columns_with(document, "generalized", "altered"),
    ),
    "held back": Field(
        say("Columns that do not leave"), lambda document: columns_with(document, "held back", "dropped")
    ),
    "sensitive": Field(say("Sensitive columns"), sensitive_told),
    "method": Field(say("Method"), method_told),
    "promises": Field(say("Promises, checked on the published values"), promises_told),
    "singling out": Field(say("Singling out"), singling_out_told),
    "linkability": Field(say("Linkability"), linkability_told),
    "inference": Field(say("Inference"), inference_told),
    "decisions": Field(say("Decisions about columns, and why"), decisions_told),
}
"""Fields that the document answers."""

STATED = {
    "controller": Field(say("Controller"), stated="controller"),
    "officer": Field(say("Data protection officer"), stated="officer"),
    "recipient": Field(say("Recipient"), stated="recipient"),
    "purpose": Field(say("Purpose"), stated="purpose"),
    "legal_basis": Field(say("Legal basis"), stated="legal_basis"),
    "necessity": Field(say("Why less would not do"), stated="necessity"),
    "retention": Field(say("How long it is kept"), stated="retention"),
    "measures": Field(say("Safeguards around the table"), stated="measures"),
    "remarks": Field(say("Remarks"), stated="remarks"),
    "expert": Field(say("Name, qualification and signature of the expert"), stated="expert"),
    "signed_by": Field(say("Signed by"), stated="signed_by"),
    "approved_by": Field(say("Approved by"), stated="approved_by"),
}
"""Fields that a person answers."""


def fields(*names: str) -> tuple[Field, ...]:
    """The shared fields of these names, in order.

    >>> [str(field.label) for field in fields("purpose", "method")]
    ['Purpose', 'Method']
    """
    known = {**TECHNICAL, **STATED}
    return tuple(known[name] for name in names)


def part_section(name: str, part: Part, document: Document) -> Section:
    """A part of an annex: what is known filled in, what a person must say marked.

    >>> from velado.testing.examples import small_evidence
    >>> found = part_section("a", Part("Purpose", fields("purpose")), small_evidence().document)
    >>> str(found.blocks[0].rows[0][1])
    '☐ to be filled in by a person'
    """
    rows = []
    for one in part.fields:
        if one.technical is not None:
            rows.append((one.label, one.technical(document), say("measured")))
        else:
            stated = document["statements"].get(one.stated, "")
            rows.append((one.label, stated or say("☐ to be filled in by a person"), say("a person")))
    return section(name, part.title, Table("", (say("field"), say("answer"), say("said by")), rows, labels=3))
