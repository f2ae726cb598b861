"""Which column says who a person is: a number or name that repeats over rows and agrees with what people keep for life.

Sex, day of birth and name do not change from row to row. A column whose equal values do not share them follows
something else: a doctor, a contact, a ward.
"""

from __future__ import annotations

from velado.data.identifiers._lexicon import TAGS, words
from velado.data.identifiers.headers import (
    IdentifierKind,
    Identifying,
    header_of_others,
    header_tokens,
    read_header,
)
from velado.data.identifiers.judgement import PROBE, constant_share, counts, identifying_columns
from velado.data.normal import value_codes
from velado.data.table import Table

PERSON_ORDER: tuple[IdentifierKind, ...] = (
    "cpf", "cns", "ssn", "rg", "document", "record", "member", "uuid", "account", "card", "email", "name",
)  # fmt: skip
LEAST_CONSTANT = 0.8
"""A person column keeps sex, birth and names constant for this share of the people with several rows."""
_ONE_PERSON_EACH = 1.5
_OWN_NUMBERS = frozenset({"cpf", "cns", "ssn", "rg"})
_NO_LINK: frozenset[IdentifierKind] = frozenset({"free text", "photo", "address", "coordinates", "url"})
"""Kinds whose repeats tell little of who a person is: neighbours share an address, pages and pictures are things."""
_CHARTS = words("prontuario pront mrn nhc hc medrec")
_FOR_LIFE = words(
    "sexo sex gender genero sx nascimento nasc dtnasc birth birthdate birthday dob nacimiento dn"
)


def person_columns(table: Table) -> tuple[str, ...]:
    """Columns that name people and whose values repeat over rows, best first; () when each row is a person of its own.

    A person's number that repeats at all is enough. Two people may share a name, so names must repeat clearly (1.5
    rows each); so must a number of which it is doubtful whether it is a person's (at least 20 of them). A column that does
    not agree with sex, birth and names is left out, unless its own header names a person and no other agrees.

    >>> from velado.testing.factory import small_table
    >>> person_columns(small_table(patient_id=("identifier", "text", "7 7 8 8 9 9")))
    ('patient_id',)
    """
    everything = identifying_columns(table)
    people = [found for found in everything if found.person]
    counted = {found.column: counts(table, found.column) for found in people}
    told_apart = _told_apart(table, people, counted)
    ranked = []
    for found in people:
        filled, distinct = counted[found.column]
        if _repeats(found, filled, distinct) and not (told_apart and found.kind == "name"):
            ranked.append((rank(found, table.rows - filled, table.rows), found))
    ordered = [found for _, found in sorted(ranked, key=lambda pair: pair[0])]
    steady = _agreeing(table, ordered, everything)
    return tuple(found.column for found in steady or [f for f in ordered if _is_own_number(f)])


def repeated_identifiers(table: Table) -> tuple[str, ...]:
    """Every column that surely identifies and whose values repeat over rows, best first: rows there are no people.

    Devices, telephones, accounts and plates are among them, and what names a professional or a relative is not. () where a
    sure number of a person stands in one row each: then rows are people. Free text, photographs, addresses, places
    and web pages are left out, because many people share them.

    >>> from velado.testing.factory import small_table
    >>> repeated_identifiers(small_table(telefone=("other", "text", "a b " * 10)))
    ('telefone',)
    """
    found = [one for one in identifying_columns(table) if one.sure]
    counted = {one.column: counts(table, one.column) for one in found}
    if _told_apart(table, [one for one in found if one.person], counted):
        return ()
    ranked = []
    for one in found:
        filled, distinct = counted[one.column]
        if one.kind in _NO_LINK or header_of_others(one.column) or distinct < 2 or distinct == filled:
            continue
        mean = filled / distinct
        if (one.kind == "name" or not one.person) and mean < _ONE_PERSON_EACH:
            continue
        if one.kind == "name" and not one.person:
            continue  # a part of a name, or a professional's
        ranked.append(((not one.person, *rank(one, table.rows - filled, table.rows)), one.column))
    return tuple(name for _, name in sorted(ranked, key=lambda pair: pair[0]))


def rank(found: Identifying, missing: int, rows: int) -> tuple[bool, bool, int]:
    """The order of person columns: sure before doubtful, mostly filled first, numbers of a person before names.

    >>> rank(Identifying("cpf", "the header says CPF", person=True), missing=0, rows=10)
    (False, False, 0)
    """
    order = PERSON_ORDER.index(found.kind) if found.kind in PERSON_ORDER else len(PERSON_ORDER)
    return not found.sure, missing > 0.2 * rows, order


def _told_apart(table: Table, people: list[Identifying], counted: dict[str, tuple[int, int]]) -> bool:
    # Where everybody has a number of their own in one row only, people who share a name are several all the same. A
    # second number that repeats shows that the first one is a visit's.
    own = [counted[found.column] for found in people if _is_own_number(found)]
    whole = [(filled, distinct) for filled, distinct in own if filled >= 0.95 * table.rows]
    once = any(filled == distinct for filled, distinct in whole)
    return once and not any(filled >= _ONE_PERSON_EACH * distinct for filled, distinct in whole)


def _is_own_number(found: Identifying) -> bool:
    named = not (TAGS["person"] | _CHARTS).isdisjoint(header_tokens(found.column))
    return found.sure and (found.kind in _OWN_NUMBERS or (found.kind in ("record", "document") and named))


def _repeats(found: Identifying, filled: int, distinct: int) -> bool:
    if distinct == 0 or distinct == filled:
        return False
    mean = filled / distinct
    if not found.sure and distinct < 20:
        return False
    if found.kind == "name":
        return mean >= _ONE_PERSON_EACH
    if not found.sure:
        return mean >= 1.2
    return True


def _agreeing(
    table: Table, ordered: list[Identifying], everything: tuple[Identifying, ...]
) -> list[Identifying]:
    """Those of *ordered* whose equal values share what people keep for life."""
    life = [name for name in table.frame.columns if _lasts(name)]
    names = [
        one.column for one in everything if one.kind == "name" and one.sure and one.person and _named(one)
    ]
    if not ordered or not (life or names):
        return ordered
    columns = table.schema.columns
    codes = {name: value_codes(table, columns[name]) for name in {*life, *names}}
    out = []
    for found in ordered:
        people, _ = value_codes(table, columns[found.column])
        some = (people > 0) & (people <= PROBE)
        shares = {
            name: constant_share(people[some], own[some], size)
            for name, (own, size) in codes.items()
            if name != found.column
        }
        lasting = [shares[name] for name in life if shares.get(name) is not None]
        named = [shares[name] for name in names if shares.get(name) is not None]
        kept = all(share is None or share >= LEAST_CONSTANT for share in lasting)
        if kept and (not named or max(share or 0.0 for share in named) >= LEAST_CONSTANT):
            out.append(found)
    return out


def _lasts(name: str) -> bool:
    tokens = set(header_tokens(name))
    if header_of_others(name) or tokens & {"place", "local", "munic", "municipio", "peso", "weight", "uf"}:
        return False
    return bool(tokens & _FOR_LIFE) and read_header(name) is None


def _named(found: Identifying) -> bool:
    return not TAGS["name"].isdisjoint(header_tokens(found.column))
