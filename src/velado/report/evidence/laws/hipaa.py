"""The HIPAA Privacy Rule of the United States, 45 CFR 164.514: Safe Harbor's eighteen identifiers, and expert determination."""

from __future__ import annotations

from velado.data.identifiers.eighteen import EIGHTEEN, letters_of
from velado.report.blocks import Section, section, table
from velado.report.evidence.laws._law import Document, Law, Part, fields
from velado.text import NOTHING, join, listed, say

_IN_PART = ("B", "C")
"""Of these the rule lets something leave: states and some ZIP prefixes, years and ages up to 89."""


def _eighteen(document: Document) -> Section:
    columns, measured = document["found"]["columns"], document["measured"]
    judged = None if measured is None else measured.get("shapes")
    by_letter: dict[str, list[tuple[str, str]]] = {one.letter: [] for one in EIGHTEEN}
    for one in columns:
        found = None if judged is None else judged.get(one["column"], "")
        for letter in letters_of(one["column"], one["kind"], one["role"], found):
            by_letter[letter].append((one["column"], one["fate"]))

    def told(letter: str, *fates: str) -> str:
        named = [name for name, fate in by_letter[letter] if fate in fates]
        return listed(named) if named else NOTHING

    def finding(letter: str) -> str:
        fates = {fate for _, fate in by_letter[letter]}
        if "published" in fates and letter not in _IN_PART:
            return say("published: not removed")
        if "published" in fates:
            return say("published as it is: a person must see whether the rule lets it leave")
        if fates & {"generalized", "altered"}:
            return say("changed: a person must see whether far enough")
        return say("does not leave") if fates else say("no column recognized as such")

    return section(
        "safe-harbor",
        say("Safe Harbor: the eighteen identifiers, by column (164.514(b)(2)(i))"),
        say(
            "Columns are put under an identifier by what their values and headers were judged to hold, their declared kind and role. Recognition is a judgement: a column "
            "that is not recognized may still be one. Safe Harbor needs all eighteen removed, of relatives, employers and "
            "household members too."
        ),
        table(
            "",
            EIGHTEEN,
            ("", lambda one: f"({one.letter})"),
            (say("identifier"), lambda one: one.title),
            (say("columns that do not leave"), lambda one: told(one.letter, "held back", "dropped")),
            (say("columns that leave"), lambda one: told(one.letter, "published", "generalized", "altered")),
            (say("finding"), lambda one: finding(one.letter)),
            labels=5,
        ),
        say(
            "And (b)(2)(ii): the covered entity has no actual knowledge that what is left could identify somebody. Only a "
            "person can say that."
        ),
    )


def _expert(document: Document) -> Section:
    return section(
        "expert",
        say("Expert determination: a draft (164.514(b)(1))"),
        join(
            (
                say(
                    "A person with appropriate knowledge of and experience with generally accepted statistical and scientific "
                    "principles determines that the risk is very small that the information could be used, alone or with "
                    "other reasonably available information, by an anticipated recipient to identify an individual, and "
                    "documents methods and results."
                ),
                say(
                    "The methods and results of this pack may serve as such documentation; the determination, its threshold "
                    "and the signature are the expert's."
                ),
            )
        ),
    )


HIPAA = Law(
    name="hipaa",
    title=say("HIPAA Privacy Rule (45 CFR 164.514)"),
    cites=(
        (
            "164.514(a)",
            say("Health information that does not identify an individual is not individually identifiable."),
        ),
        ("164.514(b)(1)", say("One way there: the determination of an expert. A draft stands below.")),
        (
            "164.514(b)(2)",
            say(
                "The other way: removing eighteen identifiers, (A) to (R), and no actual knowledge. See the table below."
            ),
        ),
        (
            "164.514(c)",
            say(
                "A code to re-identify records must not be derived from information about the individual, and its "
                "mechanism is not disclosed. Pseudonyms of velado are keyed, and are derived from identifiers: they are no "
                "such code."
            ),
        ),
    ),
    annex_title=say("Draft of an expert determination, 45 CFR 164.514(b)(1)"),
    annex=(
        Part(
            say("Covered entity and recipient"), fields("controller", "recipient", "purpose", "legal_basis")
        ),
        Part(
            say("The information"),
            fields("table", "people", "published", "generalized", "held back", "sensitive"),
        ),
        Part(say("Methods"), fields("method", "promises", "decisions")),
        Part(say("Results"), fields("singling out", "linkability", "inference")),
        Part(
            say("Determination: the risk is very small, because"),
            fields("measures", "retention", "remarks"),
        ),
        # Who signs a release is no expert in the rule's sense unless somebody says so.
        Part(say("The expert"), fields("expert")),
        Part(say("Signatures"), fields("signed_by", "approved_by")),
    ),
    further=lambda document: (_eighteen(document), _expert(document)),
)
"""HIPAA."""
