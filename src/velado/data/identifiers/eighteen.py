"""The eighteen identifiers of HIPAA's Safe Harbor, 45 CFR 164.514(b)(2)(i), and by what a column is taken for one of them.

The one list: the preset removes by it, and the pack for auditors reports by it.
"""

from __future__ import annotations

from dataclasses import dataclass

from velado.data.identifiers._lexicon import words
from velado.data.identifiers.headers import header_says_day, header_tokens, header_words, read_header
from velado.text import say

ZIPS = words("zip zipcode zip5 zip4 postal postcode codigo_postal")
"""Codes of which three digits may stay; a Brazilian CEP is none of them."""
PLACES = words(
    "city town county district precinct parish village street address neighborhood neighbourhood municipality "
    "municipio munic cidade bairro distrito rua endereco cep lat lon lng latitude longitude tract block geo geocode "
    "region"
)
"""Places that may be smaller than a state; the rule lets states leave, so no word for one is among them."""
AGES = words("age ages idade edad")
BIRTHS = words("birth born dob birthdate birthday nascimento nasc")


@dataclass(frozen=True)
class ListedIdentifier:
    """One of the list: by which kinds of the judgement or by which words of a header a column is taken for it; with *both*, by both.

    >>> ListedIdentifier("A", "names", ("name",)).words
    frozenset()
    """

    letter: str
    title: str
    kinds: tuple[str, ...] = ()
    words: frozenset[str] = frozenset()
    both: bool = False


EIGHTEEN = (
    ListedIdentifier("A", say("names"), ("name",)),
    ListedIdentifier(
        "B",
        say("places smaller than a state, but for the first three digits of some ZIP codes"),
        ("address", "coordinates"),
        PLACES | ZIPS,
    ),
    ListedIdentifier("C", say("elements of dates but the year, and ages over 89"), (), AGES | BIRTHS),
    ListedIdentifier("D", say("telephone numbers"), ("phone",)),
    ListedIdentifier("E", say("fax numbers"), ("phone",), frozenset({"fax"}), both=True),
    ListedIdentifier("F", say("e-mail addresses"), ("email",)),
    ListedIdentifier("G", say("social security numbers"), ("ssn",)),
    ListedIdentifier("H", say("numbers of medical records"), ("record",)),
    ListedIdentifier("I", say("numbers of health plan beneficiaries"), ("member", "cns")),
    ListedIdentifier("J", say("numbers of accounts"), ("account", "card")),
    ListedIdentifier("K", say("numbers of certificates and licences"), ("document", "rg")),
    ListedIdentifier("L", say("vehicles, their numbers and plates"), ("plate",)),
    ListedIdentifier("M", say("devices and their serial numbers"), ("device", "mac")),
    ListedIdentifier("N", say("web addresses (URLs)"), ("url",)),
    ListedIdentifier("O", say("internet protocol (IP) addresses"), ("ip",)),
    ListedIdentifier("P", say("biometric identifiers"), ("biometric",)),
    ListedIdentifier("Q", say("photographs of full faces and comparable images"), ("photo",)),
    ListedIdentifier(
        "R",
        say("any other unique identifying number, characteristic or code"),
        ("cpf", "cnpj", "uuid", "free text"),
    ),
)
"""164.514(b)(2)(i)(A) to (R), in our words."""
TITLES = {one.letter: one.title for one in EIGHTEEN}


def said_by(column: str) -> frozenset[str]:
    """The words of a header, whole and taken apart.

    >>> "age" in said_by("age_at_visit")
    True
    """
    return header_words(column) | frozenset(header_tokens(column))


def letters_of(column: str, kind: str, role: str, judged: str | None = None) -> list[str]:
    """The identifiers that a column may be, by what it was *judged* to hold, else by its header, declared kind and role.

    *judged* is the kind that the judgement of identifiers found, "" where it read the values and found none: a header's word
    is then not taken for a telephone, `phone` may be a yes or no. None says that nobody read the values. What is declared an
    identifier is one whatever was found, and goes by its header.

    >>> letters_of("cep", "categorical", "other"), letters_of("idade", "numeric", "quasi"), letters_of("x", "text", "identifier")
    (['B'], ['C'], ['R'])
    >>> letters_of("contact", "text", "other", "phone"), letters_of("fax", "text", "other", "phone")
    (['D'], ['E'])
    >>> letters_of("phone", "categorical", "quasi"), letters_of("phone", "categorical", "quasi", "")
    (['D'], [])
    >>> letters_of("state", "categorical", "quasi")
    []
    """
    said = said_by(column)
    meant = judged or ""
    if not meant and (judged is None or role == "identifier"):
        read = read_header(column)
        meant = "" if read is None else read.kind
    by_kind = [
        one.letter for one in EIGHTEEN if meant in one.kinds and (not one.both or bool(said & one.words))
    ]
    if "E" in by_kind:
        by_kind.remove("D")
    if by_kind and not said & ZIPS:
        return by_kind  # a word such as the address of ip_address is spoken for
    by_word = [one.letter for one in EIGHTEEN if not one.both and said & one.words]
    if "C" not in by_word and (kind == "date" or header_says_day(column)):
        by_word.append("C")
    return by_word or by_kind or (["R"] if role == "identifier" or kind == "text" else [])
