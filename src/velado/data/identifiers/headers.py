"""What a header says: its words in order, joined ones taken apart, and whether they name a person's identifier.

Only the header is read here. What it says holds whatever the spread of the values under it.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from velado.data.identifiers._lexicon import (
    CODE_WORDS,
    CODED,
    DAY_WORDS,
    JOINTS,
    PLURALS_THAT_COUNT,
    TAGS,
    TOPICS,
    words,
)
from velado.text import say

IdentifierKind = Literal[
    "cpf", "cns", "cnpj", "rg", "ssn", "document", "card", "account", "record", "member", "email", "phone", "name",
    "address", "url", "ip", "mac", "uuid", "device", "plate", "coordinates", "photo", "biometric", "free text",
]  # fmt: skip

HEADER_EVENT = say("the header names the number of a visit or event")
HEADER_PERSON = say("the header names a person")
HEADER_BADGE = say("the header names a badge or key")
HEADER_PART = say("the header names a part of a name")
HEADER_STAFF = say("the header may name a professional, and names stand below")
HEADER_STAFF_ALONE = say("the header names a professional")
HEADER_VISITOR = say("the header names a person's visit or event")
HEADER_NUMBER = say("the header names the number of a person's record")
HEADER_CODE = say("the header may name somebody's number or an event, and different codes stand below")
HEADER_HOUSE = say("the header says number twice, as that of a house")
_LONG_WORD = 8  # shorter words also stand inside unrelated ones ("cidade" in "velocidade")
_KNOWN = frozenset().union(*TAGS.values()) | JOINTS | PLURALS_THAT_COUNT
_SHORT_PIECES = words(
    "id ip rg nm nr nu dt cd ds tp hc no pt mae pai cpf cns cel tel num cod pac pat doc sus reg"
)


@dataclass(frozen=True)
class Identifying:
    """What identifies people, or may: what by, why, how sure, and whether equal values are one person.

    A header or the shape of values speaks for it; what is found of a *column* has its name. *sure* False means in doubt:
    to be held back and asked. *person* is False for what equal rows share without being one person: a device, a visit,
    a doctor, a household, an address. *valid* is the share of sampled values whose check digits are right.

    >>> read_header("NM_PACIENTE").kind, read_header("cd_municipio")
    ('name', None)
    """

    kind: IdentifierKind
    why: str
    sure: bool = True
    person: bool = False
    valid: float | None = None
    column: str = ""


def header_words(name: str) -> frozenset[str]:
    """The words of a header in lower case without accents: `dataNascimento` is {data, nascimento}.

    >>> sorted(header_words("dataNascimento"))
    ['data', 'nascimento']
    """
    return frozenset(re.findall(r"[a-z]+[0-9]*", _plain(name)))


def header_says(name: str, topic: str) -> bool:
    """Whether a header has a word of *topic*; long words also count within longer ones.

    >>> header_says("municipio_res", "quasi"), header_says("valor", "quasi")
    (True, False)
    """
    own, known = header_words(name), TOPICS[topic]
    return bool(own & known) or any(long in word for word in own for long in known if len(long) >= _LONG_WORD)


def header_says_day(name: str) -> bool:
    """Whether a header speaks of a day: dt, data, fecha, nascimento, obito, alta ...

    >>> header_says_day("DT_INTER"), header_says_day("idade")
    (True, False)
    """
    own = header_words(name)
    return bool(own & DAY_WORDS) or any(
        word.startswith(("dt", "data", "date", "fecha", "nasc")) for word in own
    )


def header_names_codes(name: str) -> bool:
    """Whether the header speaks of codes written in digits that are no quantities.

    >>> header_names_codes("CEP"), header_names_codes("peso")
    (True, False)
    """
    return bool(header_words(name) & CODE_WORDS)


def header_tokens(name: str) -> tuple[str, ...]:
    """The words of a header in order, joined ones apart: `NOMEDOPACIENTE` is nome, do, paciente.

    >>> header_tokens("NOMEDOPACIENTE")
    ('nome', 'do', 'paciente')
    """
    text = re.sub(r"#|n[º°]", " num ", _plain(name, keep="º°#"))
    text = re.sub(r"\b(?:[a-z]\.){2,}", lambda found: found.group().replace(".", "") + " ", text)
    text = re.sub(r"\be[\s_-]?mail", "email", text)
    text = re.sub(r"i ?p ?v ?[46]\b", " ip ", text)
    out: list[str] = []
    for word in re.findall("[a-z]+", text):
        if word in _KNOWN or len(word) == 1:
            out.append(word)
        else:
            out.extend(_whole(word) or _pieces(word) or (word,))
    return tuple(out)


def _plain(name: str, keep: str = "") -> str:
    spaced = re.sub(r"(?<=[a-zà-ÿ])(?=[A-ZÀ-Þ])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name).replace("ß", "ss")
    kept = {character: f"\x00{i}" for i, character in enumerate(keep)}
    for character, mark in kept.items():
        spaced = spaced.replace(character, mark)
    plain = unicodedata.normalize("NFKD", spaced).encode("ascii", "ignore").decode().lower()
    for character, mark in kept.items():
        plain = plain.replace(mark, character)
    return plain


@lru_cache(maxsize=4096)
def _whole(word: str) -> tuple[str, ...]:
    # Old file formats cut headers after ten characters: NU_TELEFON, NM_PACIENT.
    if len(word) < 6:
        return ()
    longer = [known for known in _KNOWN if known.startswith(word) and len(known) <= len(word) + 4]
    return (min(longer, key=lambda known: (len(known), known)),) if longer else ()


@lru_cache(maxsize=4096)
def _pieces(word: str) -> tuple[str, ...]:
    # The fewest known words that make up the whole word; short ones only where they are common abbreviations,
    # so that "paid", "lipid" and "acid" hold no "id".
    best: list[tuple[str, ...] | None] = [()] + [None] * len(word)
    for end in range(1, len(word) + 1):
        for start in range(end - 1, -1, -1):
            piece, before = word[start:end], best[start]
            if before is None or not _may_be_piece(piece) or (piece == "ip" and start > 0):
                continue
            here = best[end]
            if here is None or len(before) + 1 < len(here):
                best[end] = (*before, piece)
    found = best[-1] or ()
    long_enough = any(len(piece) >= 4 for piece in found) or set(found) <= _SHORT_PIECES
    return found if long_enough else ()


def _may_be_piece(piece: str) -> bool:
    if len(piece) <= 3:
        return piece in _SHORT_PIECES or piece in {"de", "do", "da", "dos", "das", "of", "user"}
    return piece in _KNOWN


@dataclass(frozen=True)
class _Said:
    """The tags of a header's words, and how many words nobody knows."""

    tags: frozenset[str]
    tokens: tuple[str, ...]
    unknown: int

    def any(self, *tags: str) -> bool:
        return not self.tags.isdisjoint(tags)


def _tags(tokens: tuple[str, ...]) -> _Said:
    tags: set[str] = set()
    unknown = 0
    for token in tokens:
        own = {tag for tag, known in TAGS.items() if token in known}
        if token in PLURALS_THAT_COUNT:
            own = {"attribute"}
        unknown += not own and token not in JOINTS and len(token) > 1
        tags |= own
    if tokens and tokens[0] == "n" and len(tokens) > 1:
        # n_visits counts; n_documento is a number
        numbered = {"document", "record", "card", "account", "phone", "event", "person"}
        tags.add("attribute" if tags.isdisjoint(numbered) else "number")
    if len(tokens) > 2 and tokens[0] in TAGS["number"] and tokens[1] == "of":
        tags = {"attribute"}  # number of teeth
    elif len(tokens) > 1 and tokens[0] == "no":
        tags.add("name")  # the national files' NO_ is "nome"; "patient_no" is a number
        tags.discard("number")
    return _Said(frozenset(tags), tokens, unknown)


def read_header(name: str) -> Identifying | None:
    """The identifier that a header names by itself, or None.

    A header whose words say an attribute (type, date, count, age ...) names that attribute. A name of a thing (a hospital,
    a drug, a town) is nobody's name; the number of an event, a doctor, a device or a household is an identifier, but
    not of one person.

    >>> read_header("nome_paciente").why, read_header("tipo_documento")
    ('the header names a person', None)
    """
    said = _tags(header_tokens(name))
    if not said.tags:
        return None
    about = _attribute(said)
    found = None if about else _contact(said) or _thing_of_theirs(said)
    found = found or _papers(said, about)
    if found is None and not about:
        found = _naming(said) or _numbering(said)
    if found is None and said.any("angle") and not about:
        return Identifying("coordinates", say("the header names coordinates"), sure=False)
    return found


def read_code_header(name: str) -> Identifying | None:
    """What a header may name where codes stand below: a case, a ticket, a membership. The caller looks at the cells.

    >>> read_code_header("Roll No").why == HEADER_CODE, read_code_header("roll_type")
    (True, None)
    """
    tokens = header_tokens(name)
    own = frozenset(re.findall("[a-z]+", _plain(name, keep="º°#"))) - (JOINTS - CODED["person"])
    coded = own & (CODED["person"] | CODED["event"])
    rest = own - TAGS["number"] - TAGS["id"] - TAGS["code"] - {"n"} | coded
    if not rest or not rest <= CODED["person"] | CODED["event"] or _attribute(_tags(tokens)):
        return None
    return Identifying("record", HEADER_CODE, False, not rest.isdisjoint(CODED["person"]))


def header_of_others(name: str) -> bool:
    """Whether a header speaks of somebody beside the person of a row: a professional, relative, contact or employer.

    >>> header_of_others("nome_mae"), header_of_others("nome_paciente")
    (True, False)
    """
    said = _tags(header_tokens(name))
    if said.any("relative", "others", "contact") or ("by" in said.tokens and said.any("person")):
        return True
    adjective = said.any("record", "weak record") and not said.any("id", "number", "code")
    if {"prov", "pcp", "gp", "phys"} & set(said.tokens):
        return True
    return said.any("staff") and not (adjective and {"medico", "medica"} & set(said.tokens))


def _attribute(said: _Said) -> bool:
    if said.any("address") and "postal" in said.tokens and not said.any("code"):
        return False  # a postal address, unlike a postal code
    strong = [t for t in said.tokens if t in TAGS["attribute"] and t not in TAGS["weak attribute"]]
    counted = any(token in PLURALS_THAT_COUNT for token in said.tokens) or (
        "attribute" in said.tags and said.tokens[:1] == ("n",)
    )
    if said.any("number") and said.any("person", "id") and not strong and not counted:
        return False  # the number of a member of a group is a number all the same
    if said.any("attribute") or (said.any("date") and not said.any("id", "name")):
        return True
    return said.any("birth") and not said.any("name", "document", "record")


def _contact(said: _Said) -> Identifying | None:
    theirs = not said.any("thing")
    own = not said.any("staff", "relative", "contact", "others")
    if said.any("ip"):
        return Identifying("ip", say("the header names an IP address"))
    if said.any("mac"):
        return Identifying("mac", say("the header names a network card"))
    if said.any("email") and not said.any("attribute"):
        return Identifying("email", say("the header names an e-mail address"), theirs, own)
    if said.any("url") or (said.any("web") and "page" in said.tokens):
        return Identifying("url", say("the header names a web page or profile"), theirs)
    modelled = {"model", "modelo"} & set(said.tokens)
    if said.any("phone") and not modelled and not (said.any("device") and "phone" not in said.tokens):
        return Identifying("phone", say("the header names a telephone"), theirs)
    if said.any("coordinates"):
        return Identifying("coordinates", say("the header names coordinates"))
    if said.any("contact") and not said.any("name"):
        return Identifying("phone", say("the header names a contact"), theirs)
    if said.any("address"):
        return (
            None
            if said.any("thing") and not said.any("home")
            else Identifying("address", say("the header names an address"))
        )
    at_home = said.any("home", "person", "number") or "completo" in said.tokens or "end" in said.tokens[1:]
    if said.any("short address") and at_home:
        return Identifying("address", say("the header names an address"))
    if said.any("home") and said.any("number") and not said.any("id"):
        return Identifying("address", say("the header names an address"))
    if len(said.tokens) > 1 and said.tags == {"number"}:
        return Identifying("address", HEADER_HOUSE, False)
    return (
        Identifying("address", say("the header names an address"), False)
        if "complemento" in said.tokens
        else None
    )


def _thing_of_theirs(said: _Said) -> Identifying | None:
    if said.any("plate"):
        return Identifying("plate", say("the header names a vehicle"))
    if said.any("vehicle") and said.any("id", "number"):
        return Identifying("plate", say("the header names a vehicle"))
    if said.any("serial") or (said.any("series") and said.any("number")):
        return Identifying("device", say("the header names a device"))
    if said.any("device") and not {"model", "modelo"} & set(said.tokens):
        return Identifying("device", say("the header names a device"), sure=said.any("id", "number", "code"))
    if said.any("biometric"):
        return Identifying("biometric", say("the header names a biometric feature or a signature"))
    if said.any("body") and said.any("print", "image", "id", "photo"):
        kind: IdentifierKind = "photo" if said.any("photo", "image") else "biometric"
        return Identifying(kind, say("the header names a picture or a part of the body"))
    if said.any("photo"):
        return Identifying("photo", say("the header names a photograph"))
    if said.any("image") and said.unknown == 0 and not said.any("thing"):
        return Identifying("photo", say("the header names a photograph"), sure=False)
    return None


def _papers(said: _Said, about: bool) -> Identifying | None:
    person = not said.any("relative", "staff", "others")
    if said.any("cpf") and not said.any("attribute"):
        return Identifying("cpf", say("the header says CPF"), person=person)
    if said.any("cns") or (said.any("sus") and said.any("card", "number", "id", "code")):
        return (
            Identifying("cns", say("the header says CNS (health card number)"), person=person)
            if not about
            else None
        )
    if said.any("rg") and not about:
        return Identifying("rg", say("the header names an identity document"), person=person)
    if said.any("cnpj") and not about:
        return Identifying("cnpj", say("the header says CNPJ (company number)"))
    social = "social" in said.tokens or "ss" in said.tokens
    if not about and (said.any("ssn") or (social and said.any("security")) or said.tokens[:1] == ("ss",)):
        return Identifying("ssn", say("the header names a social security number"), person=person)
    numbered = said.any("number", "id", "code")
    if said.any("document") and (not about or (said.any("number") and "documento" in said.tokens)):
        return Identifying("document", say("the header names an identity document"), person=person)
    if about:
        return None
    if said.any("weak document"):
        return Identifying(
            "document", say("the header names an identity document"), said.any("voting"), person
        )
    of_state = said.any("tax") and said.any("id") and not said.any("thing")
    if of_state or ("dl" in said.tokens and numbered):
        return Identifying("document", say("the header names an identity document"), person=person)
    if said.any("registry") and numbered:
        own_entry = said.any("number") and said.any("record", "weak record")
        return Identifying("record", say("the header names an entry of a civil registry"), own_entry)
    insured = said.any("number", "id") or (numbered and not {"convenio", "plano", "plan"} & set(said.tokens))
    if (said.any("insurance") and (insured or said.any("card", "person", "record"))) or said.any("own card"):
        return Identifying("member", say("the header names a member or insurance number"), person=True)
    if said.any("policy"):
        return Identifying("member", say("the header names a member or insurance number"), False, True)
    if said.any("badge"):
        return Identifying("card", HEADER_BADGE, person=True)
    if said.any("card") or (said.tokens[:1] == ("cc",) and numbered):
        return Identifying("card", say("the header names a card"), person=True)
    if said.any("account") or said.tokens == ("user", "name"):
        return Identifying("account", say("the header names an account"), person=True)
    return None


def _naming(said: _Said) -> Identifying | None:
    if said.any("name"):
        of_person = said.any("person", "short person", "own name", "which name", "contact")
        other = said.any("relative", "staff")
        if of_person or other:
            if said.any("thing", "event") and not said.any("person", "own name", "relative", "staff"):
                return None
            # A part of a name is shared by many people.
            part = said.any("part of name") and not said.any("whole name")
            return Identifying("name", HEADER_PERSON, person=of_person and not other and not part)
        if said.any("thing", "event", "device", "attribute"):
            return None
        return Identifying("name", say("the header says name; whose is not said"), False, True)
    if said.any("bare name") and said.unknown == 0 and not said.any("id", "number", "code", "thing", "event"):
        return Identifying("name", HEADER_PART, person=False)
    if said.any("short staff") and not said.any("record", "weak record", "thing", "id", "number", "code"):
        return Identifying("name", HEADER_STAFF, sure=False)
    if said.any("relative") and said.unknown == 0 and not said.any("id", "number", "code", "thing"):
        return Identifying("name", say("the header names a relative or guardian"), sure=False)
    return None


def _numbering(said: _Said) -> Identifying | None:
    numbered = said.any("id", "number", "code", "key")
    if said.any("record"):
        return Identifying("record", HEADER_NUMBER, person=not said.any("staff", "event", "thing"))
    if said.any("weak record") and (numbered or said.any("clinical", "person")):
        return Identifying(
            "record", HEADER_NUMBER, person=not said.any("event") and "protocolo" not in said.tokens
        )
    if said.any("pseudonym"):
        return Identifying("record", say("the header names a pseudonym"), person=True)
    if numbered and said.any("person", "short person") and not said.any("thing", "event"):
        return Identifying("record", HEADER_NUMBER, person=True)
    if (
        said.any("event")
        and said.any("person")
        and not numbered
        and said.unknown == 0
        and not said.any("thing")
    ):
        return Identifying("record", HEADER_VISITOR, person=True)
    if numbered and said.any("relative"):
        return Identifying("record", HEADER_NUMBER)
    if numbered and said.any("staff"):
        return Identifying("record", say("the header names the number of a professional"))
    if said.any("event") and numbered:
        codes_only = said.any("code") and not said.any("id", "number", "key")
        return Identifying("record", HEADER_EVENT, sure=not codes_only)
    if "hid" in said.tokens or (said.any("household") and numbered):
        return Identifying("record", say("the header names the number of a household"))
    if said.any("study") and said.any("id"):
        return Identifying("record", HEADER_NUMBER, False, True)
    if said.any("thing") and "hospital" in said.tokens and said.any("number"):
        return Identifying("record", HEADER_NUMBER, False, True)
    if said.any("id"):
        if said.tokens in (
            ("id",),
            ("ids",),
            ("uid",),
            ("pid",),
            ("uuid",),
            ("guid",),
            ("identifier",),
            ("identificador",),
        ):
            return Identifying("record", say("the header says id"), person=True)
        if said.any("thing"):
            return None
        return Identifying("record", say("the header says id; whose is not said"), False, True)
    alone = said.unknown == 0 and not said.any("thing", "event", "attribute")
    if said.any("person") and alone and not said.any("kind of person"):
        return Identifying("record", HEADER_PERSON, said.any("surely a person"), True)
    if said.any("staff") and alone:
        return Identifying("name", HEADER_STAFF_ALONE, sure=False)
    return None
