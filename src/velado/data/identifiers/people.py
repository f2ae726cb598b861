"""Which column says who a person is: a number or name that repeats over rows and agrees with what people keep for life.

Sex, day of birth and name do not change from row to row. A column whose equal values do not share them follows
something else: a doctor, a contact, a ward. The other way round, a column that has one value for each person, and hardly
the same for two, follows people over their rows: it names nobody and is a pseudonym all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl

from velado.data.identifiers._lexicon import TAGS, words
from velado.data.identifiers.headers import (
    IdentifierKind,
    Identifying,
    header_of_others,
    header_tokens,
    read_header,
)
from velado.data.identifiers.judgement import counts, identifying_columns
from velado.data.normal import distinct_texts, value_codes
from velado.data.partition import Int32Array, Int64Array
from velado.data.table import Table
from velado.text import say

# Columns that follow people. Whoever reads one links the rows of a person, and a crowd of
# k people for each row alone is then no crowd for all of them together.

CONSTANT = 0.5
"""A column follows people if this share of those with several rows has one value in all of them ..."""
ALONE = 0.2
"""... and if this share of all people has a value, or a combination of values, that nobody else has."""
LEAST_PEOPLE = 5
LEAST_TOGETHER = 20
"""People from which on combinations are judged: among fewer, everybody differs from everybody in something."""
PROBE = 2_000
WHY = say("in doubt: all rows of a person share its value and hardly anybody else has it, so it links them")
WHY_TOGETHER = say(
    "in doubt: with other columns that stay the same for a person it tells people apart and links their rows"
)


def _following_columns(table: Table, person: str, names: Iterable[str]) -> tuple[Identifying, ...]:
    """Those columns of *names* that link the rows of a person although they are not *person* itself.

    Each alone, or several together: height and blood type name nobody, and hardly two people share both. Of several the
    one with most values is named first, until what is left tells few people apart. () where no person has several
    rows: there is nothing to link. O(n log n) for a column that passes a first look at 2,000 people; others cost O(n).

    >>> from velado.testing.examples import small_table
    >>> who = ("identifier", "text", " ".join(f"p{n // 2}" for n in range(40)))
    >>> table = small_table(who=who, ward=("other", "categorical", " ".join(f"w{n // 2}" for n in range(40))))
    >>> [found.column for found in _following_columns(table, "who", ["ward"])]
    ['ward']
    """
    people, size = value_codes(table, table.schema.columns[person])
    known = people > 0
    rows = np.bincount(people[known], minlength=size)
    everybody = int((rows > 0).sum())
    if not bool((rows > 1).any()) or everybody < LEAST_PEOPLE:
        return ()
    some = known & (people <= PROBE)
    out, constant = [], {}
    for name in names:
        if name == person:
            continue
        codes, values = value_codes(table, table.schema.columns[name])
        if (_constant_share(people[some], codes[some], values) or 0.0) < CONSTANT:
            continue
        if (_constant_share(people[known], codes[known], values) or 0.0) < CONSTANT:
            continue
        if _alone(people[known], codes[known], values, everybody) >= ALONE:
            out.append(Identifying("record", WHY, sure=False, column=name))
            continue
        of_person = np.zeros(size, dtype=np.int64)
        of_person[people[known]] = codes[known]  # the last row's, where a person's rows differ
        constant[name] = of_person[rows > 0]
    if everybody >= LEAST_TOGETHER:
        out += _together(table, constant)
    return tuple(out)


def _together(table: Table, constant: dict[str, Int64Array]) -> list[Identifying]:
    """Columns to hold back until the others, read together, leave most people in company."""
    # What is no sensitive value can be made coarser or left out at less cost: it goes first.
    order = sorted(
        constant,
        key=lambda name: (table.schema.columns[name].role == "sensitive", -np.unique(constant[name]).size),
    )
    out = []
    while len(order) > 1:
        joint = np.stack([constant[name] for name in order], axis=1)
        _, counts = np.unique(joint, axis=0, return_counts=True)
        if int((counts == 1).sum()) < ALONE * joint.shape[0]:
            break
        out.append(Identifying("record", WHY_TOGETHER, sure=False, column=order.pop(0)))
    return out


def _pairs(people: Int32Array, codes: Int32Array, values: int) -> tuple[Int64Array, Int64Array, Int64Array]:
    filled = codes > 0
    pairs, counts = np.unique(people[filled].astype(np.int64) * values + codes[filled], return_counts=True)
    return pairs // values, pairs % values, counts


def _constant_share(people: Int32Array, codes: Int32Array, values: int) -> float | None:
    """The share of people with several filled rows who have one value in all of them; None when nobody has several.

    >>> people, wards = np.array([1, 1, 2, 2], np.int32), np.array([1, 1, 1, 2], np.int32)
    >>> _constant_share(people, wards, values=3)
    0.5
    """
    who, _, counts = _pairs(people, codes, values)
    if not who.size:
        return None
    rows = np.bincount(who, weights=counts)
    several = rows > 1
    return float((np.bincount(who)[several] == 1).mean()) if bool(several.any()) else None


def _alone(people: Int32Array, codes: Int32Array, values: int, everybody: int) -> float:
    """The share of people who have a value that nobody else has."""
    who, value, _ = _pairs(people, codes, values)
    holders = np.bincount(value, minlength=values)
    return int(np.unique(who[holders[value] == 1]).size) / everybody


PERSON_ORDER: tuple[IdentifierKind, ...] = (
    "cpf", "cns", "ssn", "rg", "document", "record", "member", "uuid", "account", "card", "email", "name",
)  # fmt: skip
LEAST_CONSTANT = 0.8
"""A person column keeps sex, birth and names constant for this share of the people with several rows."""
_ONE_PERSON_EACH = 1.5
_HARDLY = 1.2
_OWN_NUMBERS = frozenset({"cpf", "cns", "ssn", "rg"})
_NO_LINK: frozenset[IdentifierKind] = frozenset({"free text", "photo", "address", "coordinates", "url"})
"""Kinds whose repeats tell little of who a person is: neighbours share an address, pages and pictures are things."""
_CHARTS = words("prontuario pront mrn nhc hc medrec")
_FOR_LIFE = words(
    "sexo sex gender genero sx nascimento nasc dtnasc birth birthdate birthday dob nacimiento dn"
)
_AGES = words("idade age edad alter idades")
LINKING = say(
    "in doubt: rows that share its value agree in what people keep for life, so it may tell who a person is"
)
_LEAST_VALUES = 20
_MOST_YEARS = 5
_LIKE = 3
"""So many columns that may tell who a person is are followed; the next ones mostly repeat them."""


def person_columns(table: Table) -> tuple[str, ...]:
    """Columns that name people and whose values repeat over rows, best first; () when each row is a person of its own.

    A person's number that repeats at all is enough. Two people may share a name, so names must repeat clearly (1.5
    rows each); so must a number of which it is doubtful whether it is a person's (at least 20 of them). A column that does
    not agree with sex, birth and names is left out, unless its own header names a person and no other agrees.

    >>> from velado.testing.examples import small_table
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

    >>> from velado.testing.examples import small_table
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


def linking_columns(table: Table, quasi: Sequence[str]) -> tuple[str, ...]:
    """Columns whose values repeat and fix sex, birth and age (else all of *quasi*): they may tell who a person is.

    Header and shape are not asked. A value must have 1.5 rows on average, and nine of ten values with several rows must
    agree in all of it, where rows drawn at random seldom do; ages may lie five years apart. Most values first. O(n log n)
    for each column with at least 20 values that are no decimals.

    >>> from velado.testing.examples import small_table
    >>> rows = {"q7": " ".join(f"{n % 30}" for n in range(90)), "age": " ".join(f"{n % 30}" for n in range(90))}
    >>> rows["sex"] = " ".join("FM"[n % 30 % 2] for n in range(90))
    >>> linking_columns(small_table(**{k: ("other", "text", v) for k, v in rows.items()}), ["age", "sex"])
    ('q7',)
    """
    return table.once(("linking", *quasi), lambda: _linking(table, quasi))


def _linking(table: Table, quasi: Sequence[str]) -> tuple[str, ...]:
    columns = table.schema.columns
    kept = [name for name in quasi if name in table.frame.columns and _differ(table.frame[name])]
    life = [name for name in kept if _lasts(name) or not _AGES.isdisjoint(header_tokens(name))]
    core = life or kept
    if not core or table.rows < 2 * _LEAST_VALUES:
        return ()
    same = table.frame.select(
        pl.col(name).cast(pl.String).cast(pl.Float64, strict=False)
        if not _AGES.isdisjoint(header_tokens(name))
        else table.listed(name)
        for name in core
    )
    chance: pl.DataFrame | None = None
    out = []
    for name in table.frame.columns:
        if name in kept or columns[name].group or header_of_others(name):
            continue
        series = table.frame[name].set(table.is_missing(name), None)
        if series.dtype == pl.Boolean or series.dtype.is_temporal():
            continue
        values = _different(table, name, series)
        if not _may_follow(series, values):
            continue
        if len(core) == 1 and values < 3 * same[core[0]].n_unique():
            continue  # a recoding of the one column, which the side doors see
        if _agrees(series, same) < 0.9:
            continue
        if chance is None:  # the same rows in another order show how often values agree by chance
            chance = same.sample(fraction=1.0, shuffle=True, seed=1)
        if _agrees(series, chance) <= 0.5:
            out.append((-values, name))
    return tuple(name for _, name in sorted(out))


def _differ(series: pl.Series) -> bool:
    return series.len() > 0 and bool(series.ne_missing(series.gather([0])).any())


def _different(table: Table, name: str, series: pl.Series) -> int:
    if series.dtype == pl.String and table.behind is None:
        return distinct_texts(table, name).height
    return series.drop_nulls().n_unique()


def _may_follow(series: pl.Series, values: int) -> bool:
    filled = series.drop_nulls()
    if filled.len() < 2 * _LEAST_VALUES or filled.head(2_000).n_unique() < min(_LEAST_VALUES, filled.len()):
        return False
    if values < _LEAST_VALUES or values * _ONE_PERSON_EACH > filled.len():
        return False
    some = filled.head(200).cast(pl.String)
    return int(some.str.contains(r"^[+-]?\d*[.,]\d*[1-9]\d*$").sum()) < 0.2 * some.len()


def _agrees(series: pl.Series, same: pl.DataFrame) -> float:
    """The share of values with several rows whose rows agree in all columns of *same*."""
    frame = same.with_columns(series.alias("value in question"))
    rules = [
        pl.col(name).max() - pl.col(name).min() <= _MOST_YEARS
        if dtype == pl.Float64
        else pl.col(name).n_unique() <= 1
        for name, dtype in same.schema.items()
    ]
    agreeing = (
        frame.drop_nulls("value in question")
        .group_by("value in question")
        .agg(pl.len().alias("rows of it"), pl.all_horizontal(rules).alias("agrees with it"))
        .filter(pl.col("rows of it") > 1)
        .get_column("agrees with it")
    )
    return float(agreeing.sum()) / agreeing.len() if agreeing.len() >= _LEAST_VALUES // 2 else 0.0


def people_may_be(table: Table, quasi: Sequence[str]) -> tuple[str, ...]:
    """Every column that may tell who a person is and whose values repeat, best first.

    >>> from velado.testing.examples import small_table
    >>> people_may_be(small_table(patient_id=("identifier", "text", "7 7 8 8 9 9")), [])
    ('patient_id',)
    """
    found = (*person_columns(table), *repeated_identifiers(table), *linking_columns(table, quasi))
    return tuple(dict.fromkeys(found))


def rows_are_others(table: Table, person: str, quasi: Sequence[str]) -> tuple[str, ...]:
    """Columns that fix who somebody is over rows in which *person* hardly ever repeats: it numbers rows or visits.

    >>> from velado.testing.examples import small_table
    >>> rows = {"q7": " ".join(f"{n % 30}" for n in range(90)), "age": " ".join(f"{n % 30}" for n in range(90))}
    >>> rows |= {"sex": " ".join("FM"[n % 30 % 2] for n in range(90)), "id": " ".join(map(str, range(90)))}
    >>> rows_are_others(small_table(**{k: ("other", "text", v) for k, v in rows.items()}), "id", ["age", "sex"])
    ('q7',)
    """
    filled, values = counts(table, person)
    if filled >= _HARDLY * values:
        return ()
    return tuple(name for name in linking_columns(table, quasi) if name != person)


def linked_columns(
    table: Table, person: str | None, quasi: Sequence[str], names: Iterable[str]
) -> tuple[Identifying, ...]:
    """Those of *names* that link the rows of a person: of *person*, or of whom other columns may tell.

    Where nobody is declared, or the one declared has a row each, the columns that may tell are asked in their place.

    >>> from velado.testing.examples import small_table
    >>> who = ("identifier", "text", " ".join(f"p{n // 2}" for n in range(40)))
    >>> table = small_table(patient_id=who, ward=("other", "categorical", " ".join(f"w{n // 2}" for n in range(40))))
    >>> [found.column for found in linked_columns(table, None, (), ["ward"])]
    ['ward']
    """
    wanted = tuple(names)
    if person is not None:
        filled, values = counts(table, person)
        if values < filled:
            return _following_columns(table, person, wanted)
    found = {
        name: Identifying("record", LINKING, sure=False, column=name)
        for name in linking_columns(table, quasi)
        if name in wanted
    }
    for who in people_may_be(table, quasi)[:_LIKE]:
        rest = [name for name in wanted if name not in found]
        found |= {one.column: one for one in _following_columns(table, who, rest)}
    return tuple(found.values())


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
            name: _constant_share(people[some], own[some], size)
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
