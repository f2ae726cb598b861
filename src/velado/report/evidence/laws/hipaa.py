"""The HIPAA Privacy Rule of the United States, 45 CFR 164.514: Safe Harbor's eighteen identifiers, and expert determination."""

from __future__ import annotations

from dataclasses import dataclass

from velado.data.identifiers import header_says_day, header_words, read_header
from velado.report.blocks import Section, section, table
from velado.report.evidence.laws._law import Document, Law, Part, fields
from velado.text import NOTHING, join, listed, say


@dataclass(frozen=True)
class Identifier:
    """One of the identifiers of 164.514(b)(2)(i): by which kinds and words of a header a column is taken for it.

    >>> Identifier("A", "Names", ("name",)).words
    frozenset()
    """

    letter: str
    title: str
    kinds: tuple[str, ...] = ()
    words: frozenset[str] = frozenset()


_PLACES = frozenset(
    [
        "zip",
        "zipcode",
        "cep",
        "postal",
        "postcode",
        "city",
        "cidade",
        "municipio",
        "county",
        "district",
        "distrito",
        "bairro",
        "street",
        "rua",
        "endereco",
        "address",
        "precinct",
        "region",
        "uf",
        "estado",
        "state",
        "latitude",
        "longitude",
        "lat",
        "lon",
        "geo",
        "codigo_postal",
        "municipality",
        "tract",
    ]
)
_AGES = frozenset(
    ["age", "idade", "edad", "ages", "nascimento", "birth", "birthdate", "dob", "obito", "death"]
)
EIGHTEEN = (
    Identifier("A", say("Names"), ("name",)),
    Identifier(
        "B",
        say("Geographic subdivisions smaller than a State, but for the first three digits of some ZIP codes"),
        ("address", "coordinates"),
        _PLACES,
    ),
    Identifier("C", say("Elements of dates but the year, and ages over 89"), (), _AGES),
    Identifier("D", say("Telephone numbers"), ("phone",)),
    Identifier("E", say("Fax numbers"), (), frozenset({"fax"})),
    Identifier("F", say("Electronic mail addresses"), ("email",)),
    Identifier("G", say("Social security numbers"), ("ssn",)),
    Identifier("H", say("Medical record numbers"), ("record",)),
    Identifier("I", say("Health plan beneficiary numbers"), ("member", "cns")),
    Identifier("J", say("Account numbers"), ("account", "card")),
    Identifier("K", say("Certificate or license numbers"), ("document", "rg")),
    Identifier("L", say("Vehicle identifiers and license plates"), ("plate",)),
    Identifier("M", say("Device identifiers and serial numbers"), ("device", "mac")),
    Identifier("N", say("Web addresses (URLs)"), ("url",)),
    Identifier("O", say("Internet protocol (IP) addresses"), ("ip",)),
    Identifier("P", say("Biometric identifiers"), ("biometric",)),
    Identifier("Q", say("Full-face photographs and comparable images"), ("photo",)),
    Identifier(
        "R",
        say("Any other unique identifying number, characteristic or code"),
        ("cpf", "cnpj", "uuid", "free text"),
    ),
)
"""164.514(b)(2)(i)(A) to (R), in our words."""


def letters_of(column: str, kind: str, role: str, shape: str = "") -> list[str]:
    """The identifiers that a column may be, by its header, its declared kind, its role and the *shape* of its values.

    >>> letters_of("cep", "categorical", "other"), letters_of("idade", "numeric", "quasi"), letters_of("x", "text", "identifier")
    (['B'], ['C'], ['R'])
    >>> letters_of("contact", "text", "other", "phone")
    ['D']
    """
    read, words = read_header(column), header_words(column)
    found = [
        one.letter
        for one in EIGHTEEN
        if (read is not None and read.kind in one.kinds)
        or shape in one.kinds
        or words & one.words
        or (one.letter == "C" and (kind == "date" or header_says_day(column)))
    ]
    return found or (["R"] if role == "identifier" else [])


def _eighteen(document: Document) -> Section:
    columns, measured = document["found"]["columns"], document["measured"]
    shapes = {} if measured is None else measured.get("shapes", {})
    by_letter: dict[str, list[tuple[str, str]]] = {one.letter: [] for one in EIGHTEEN}
    for one in columns:
        for letter in letters_of(one["column"], one["kind"], one["role"], shapes.get(one["column"], "")):
            by_letter[letter].append((one["column"], one["fate"]))

    def told(letter: str, *fates: str) -> str:
        named = [name for name, fate in by_letter[letter] if fate in fates]
        return listed(named) if named else NOTHING

    def finding(letter: str) -> str:
        fates = {fate for _, fate in by_letter[letter]}
        if fates & {"published", "altered"}:
            return say("published: not removed")
        if "generalized" in fates:
            return say("made coarser: a person must see whether far enough")
        return say("does not leave") if fates else say("no column recognized as such")

    return section(
        "safe-harbor",
        say("Safe Harbor: the eighteen identifiers, by column (164.514(b)(2)(i))"),
        say(
            "Columns are put under an identifier by their header, declared kind, role and the shapes of their values. Recognition is a judgement: a column "
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
        Part(say("The expert"), fields("signed_by", "approved_by")),
    ),
    further=lambda document: (_eighteen(document), _expert(document)),
)
"""HIPAA."""
