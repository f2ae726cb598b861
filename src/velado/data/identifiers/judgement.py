"""One judgement of which columns identify people, for every room that publishes, measures or checks a table.

The header and the shape of the values are heard apart; either is enough. What is not sure is said to be in
doubt, never passed over: a column held back wrongly costs one edit, one published wrongly cannot be undone.
Only a sample of 5,000 cells of each column is read closely, spread over the table by the golden ratio so that no period
of the rows can hide from it; strong traces (an e-mail, a written CPF, a telephone) are looked for in every text. No
finding holds a cell.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache

import numpy as np
import polars as pl

from velado.data.identifiers._lexicon import (
    TAGS,
    TOPICS,
    header_of_a_script_says_name,
    like_names,
    name_shares,
    words,
)
from velado.data.identifiers._shapes import Values, find_shape, free_text, share, valid_cpf_share
from velado.data.identifiers.headers import (
    HEADER_BADGE,
    HEADER_CODE,
    HEADER_EVENT,
    HEADER_HOUSE,
    HEADER_PART,
    HEADER_PERSON,
    HEADER_STAFF,
    HEADER_STAFF_ALONE,
    HEADER_VISITOR,
    IdentifierKind,
    Identifying,
    header_of_others,
    header_says,
    header_tokens,
    read_code_header,
    read_header,
)
from velado.data.normal import distinct_normal, distinct_texts, normal_of, tidy_texts
from velado.data.table import Table
from velado.text import say

# Coordinates kept in two columns under headers that say nothing: two runs of decimals as places on a map have them.

MOST_COLUMNS = 4
"""Where more columns than these look so, they are scores or measurements."""
LEAST_ROWS = 20


def _coordinate_pairs(samples: Mapping[str, pl.Series]) -> tuple[str, ...]:
    """The columns of *samples* (texts by header) that are a latitude and a longitude together.

    Four decimals or more in most cells, one sign, a spread smaller than the distance from zero: a degree is 111 km, so
    people of one country stand so. Standardised scores change sign, shares lie below one, laboratories write fewer decimals.
    """
    kept: dict[str, float] = {}
    for name, texts in samples.items():
        most = _farthest(texts)
        if most is not None:
            kept[name] = most
    names = list(kept)
    if not 2 <= len(names) <= MOST_COLUMNS or not any(most <= 90.0 for most in kept.values()):
        return ()
    places = list(samples)
    out: list[str] = []
    for one, other in itertools.pairwise(names):
        if places.index(other) - places.index(one) <= 2 and min(kept[one], kept[other]) <= 90.0:
            out += [name for name in (one, other) if name not in out]
    return tuple(out)


def _farthest(texts: pl.Series) -> float | None:
    if texts.len() < LEAST_ROWS or texts.n_unique() < 0.2 * min(texts.len(), 100):
        return None
    if (
        int(texts.head(50).str.contains(r"^[+-]?[0-9]{1,3}[.,][0-9]{3,}$").sum())
        < 25 * min(texts.len(), 50) / 50
    ):
        return None
    fine = texts.str.contains(r"^[+-]?[0-9]{1,3}[.,][0-9]{4,}$")
    plain = texts.str.contains(r"^[+-]?[0-9]{1,3}(?:[.,][0-9]+)?$")
    if int(fine.sum()) < 0.8 * texts.len() or int(plain.sum()) < 0.99 * texts.len():
        return None
    numbers = texts.filter(plain).str.replace(",", ".", literal=True).cast(pl.Float64).to_numpy()
    low, high = np.quantile(numbers, (0.005, 0.995))
    most = float(np.abs(numbers).max())
    middle = abs(float(np.median(numbers)))
    spread = float(high - low)
    anchored = low * high > 0 and middle > 1.0 and 0.0 < spread <= min(middle, 30.0)
    return most if anchored and most <= 180.0 else None


# Strong traces of a person in any text of a column: an e-mail, a CPF, a telephone, a profile on the web.
#
# One such cell is published as surely as a thousand, and a sample would pass it over. So every text is read, with one
# regular expression that skips what holds nothing of the kind.

MOST_READ = 50_000
"""So many texts that may hold a trace are read closely; one of them is enough."""

_EMAIL = r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}"
_CPF = r"(?:^|[^0-9])[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}(?:[^0-9]|$)"
_SSN = r"(?:^|[^0-9-])[0-8][0-9]{2}-[0-9]{2}-[0-9]{4}(?:[^0-9-]|$)"
_PHONE = (
    r"(?:^|[^0-9.-])(?:\(0?[0-9]{2}\) ?9? ?[0-9]{4}[ .-]?[0-9]{4}|[1-9][0-9] 9?[0-9]{4}-[0-9]{4}|"
    r"[1-9][0-9] 9[0-9]{8}|9[0-9]{4}-[0-9]{4}|"
    r"\(?[2-9][0-9]{2}\)?[ -][0-9]{3}-[0-9]{4}|\+[1-9][0-9]{0,2}[ (-]{0,2}[0-9][0-9 ().-]{6,14}[0-9])(?:[^0-9.-]|$)"
)
_PROFILE = (
    r"(?i:https?|ftp)://[^\s/@]+@|(?i:(?:facebook|instagram|linkedin|twitter|tiktok|t|wa|lattes\.cnpq)\.(?:com|me|br))/[A-Za-z0-9]|"
    r"(?i:https?)://[^\s]+/(?:~|u/|users?/|profiles?/|in/|people/)[^\s]"
)
_START, _STOP = r"(?:^|[\s(:=#,;/])", r"(?:[\s),;:!?]|\.?$|\.\s)"
_TRACES: tuple[tuple[IdentifierKind, str, str], ...] = (
    ("email", _EMAIL, say("some values hold an e-mail address")),
    ("cpf", _CPF, say("some values hold a CPF")),
    ("ssn", _SSN, say("some values hold a social security number")),
    ("url", _PROFILE, say("some values hold a web address")),
    ("phone", _PHONE, say("some values hold a telephone number")),
    ("email", r"(?i)\w ?[(\[{] ?(?:at|arroba) ?[)\]}] ?\w", say("some values hold an e-mail address")),
    (
        "record",
        r"(?i)\b(?:mrn|prontu[aá]rio|matr[ií]cula|utente|patient|paciente|ficha)[\s:#.nº°o-]{0,6}[0-9]{4,}",
        say("some values hold the number of a person's record"),
    ),
    ("url", r"(?:^|\s)@[A-Za-z_][A-Za-z0-9_.]{3,}", say("some values hold the name of an account")),
    (
        "account",
        rf"{_START}[A-Z]{{2}}[0-9]{{2}}(?: ?[A-Z0-9]{{4}}){{3,7}}(?: ?[A-Z0-9]{{1,3}})?{_STOP}",
        say("some values hold an account"),
    ),
    (
        "uuid",
        r"(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        say("some values hold a unique identifier"),
    ),
    (
        "ip",
        rf"{_START}(?:(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])\.){{3}}(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9]){_STOP}",
        say("some values hold an IP address"),
    ),
    (
        "coordinates",
        r"[+-]?[0-9]{1,3}\.[0-9]{3,} ?[,;/ ] ?[+-]?[0-9]{1,3}\.[0-9]{3,}",
        say("some values hold coordinates"),
    ),
    (
        "url",
        r"(?i)(?:https?|ftp)://[^\s]+|(?:^|\s)www\.[a-z0-9-]+\.[a-z]",
        say("some values hold a web address"),
    ),
)
# Digits alone, which only stand out among words: telephones of several countries, cards, bare documents.
_AMONG_WORDS: tuple[tuple[IdentifierKind, str, str], ...] = (
    (
        "phone",
        rf"{_START}(?:[6-9][0-9]{{2}} [0-9]{{3}} [0-9]{{3}}|[67][0-9]{{2}}(?: [0-9]{{2}}){{3}}|0[1-9](?:[ .][0-9]{{2}}){{4}}|"
        rf"0[0-9]{{2,4}}[ /-][0-9]{{3,4}} ?[0-9]{{3,5}}|[6-9][0-9]{{4}} [0-9]{{5}}|[2-9][0-9]{{2}}[ .][0-9]{{3}}[ .][0-9]{{4}}){_STOP}",
        say("some values hold a telephone number"),
    ),
    (
        "card",
        rf"{_START}[0-9]{{4}}(?:[ -][0-9]{{4}}){{2,3}}{_STOP}",
        say("some values hold the number of a card"),
    ),
    (
        "document",
        rf"{_START}(?:[XYZ][ -]?[0-9]{{7}}|[0-9]{{8}})[ -]?[A-Z]{_STOP}",
        say("some values hold a document"),
    ),
    (
        "document",
        rf"{_START}[0-9]{{9,16}}{_STOP}",
        say("some values hold a long number, as telephones and documents are"),
    ),
)
# What every trace has: an @, a profile's slashes, enough digits near a mark; or a sign nobody sees, which may hide one.
_MAY_HOLD = (
    r"@|://|\.(?:com|me|br)/|[0-9][)-][0-9 ]|[)] ?[0-9]{4}|[0-9] 9[0-9]{8}|[+][0-9]{2}|^ *[0-9]{11} *$"
    r"|[(\[{] ?(?:at|arroba)|(?i:mrn|prontu|matr[ií]cula|utente|patient|paciente|ficha).{0,6}[0-9]{4}|[0-9]{3}\.[0-9]{3}\.[0-9]{4}"
    r"|(?:^|[^0-9.,])[0-9]{8}|[0-9]{3}[ /-][0-9]{3}|[0-9]{2} [0-9]{2} [0-9]{2}|[0-9]\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]|www\."
    r"|\.[0-9]{3,} ?[,;/ ] ?[+-]?[0-9]|[0-9]{5} [0-9]{5}|[A-Z]{2}[0-9]{2} ?[A-Z0-9]{4}|(?:[0-9]{2}\.){4}"
    r"|[\x{AD}\x{34F}\x{61C}\x{180B}-\x{180F}\x{200B}-\x{200F}\x{202A}-\x{202F}\x{2060}-\x{206F}\x{FE00}-\x{FE0F}\x{FEFF}"
    r"\x{FF00}-\x{FFEF}\x{A0}]"
)


def _find_traces(texts: pl.Series, *, numbers: bool = False) -> Identifying | None:
    """The strongest trace that any of *texts* holds, as a doubt; None when none does.

    With *numbers* most texts are numbers, and eleven digits that keep a CPF's rule may do so by chance. O(n).
    """
    held = texts.filter(texts.str.contains(_MAY_HOLD).fill_null(False)).head(MOST_READ)
    if not held.len():
        return None
    held = tidy_texts(held.unique())
    for kind, pattern, why in _TRACES:
        if bool(held.str.contains(pattern).any()):
            return Identifying(kind, why, sure=False)
    if numbers:
        return None
    whole = held.filter(held.str.contains(r"^[0-9]{11}$"))
    if whole.len() and valid_cpf_share(whole) > 0.5:
        return Identifying("cpf", say("some values hold a CPF"), sure=False)
    for kind, pattern, why in _AMONG_WORDS:
        if bool(held.str.contains(pattern).any()):
            return Identifying(kind, why, sure=False)
    return None


SHAPE_SAMPLE = 5_000
_GOLDEN = 0.6180339887498949
_YES_NO = words("0 1 0.0 1.0 yes no y n sim nao não s true false t f si sí ja on off x none nenhum ninguno")
_FEW = 200
_FEW_WORDS = 12
_NO_COUNT: frozenset[IdentifierKind] = frozenset(
    {"phone", "ip", "url", "photo", "mac", "email", "biometric", "device"}
)
_WITH_DIGITS = _NO_COUNT | {"card", "document", "plate", "cpf", "cns", "ssn", "rg", "cnpj", "coordinates"}
"""Kinds that small counts, or a few words without a digit, cannot be."""
_SHORT = re.compile(r"[A-Za-z]{0,2}-?[0-9]{0,4}(?:[.,][0-9]{1,2})?")
_END = r"\s*(?:[+-]?\d[\d.,:/T-]*(?:[eE][+-]?\d+)?|[A-Za-z]{1,3}\d[\d.]*|[+-]?(?:inf|∞)|\*)?\s*"
_MASKED = rf"^(?:\*+|\s*|[\[(\]]{_END}(?:\.\.|[,;]){_END}[\])\[])$"
"""What says nothing of one row: blanks, stars, and intervals as this product and others write them."""
_PLACE = r"^[\[(]\s*[+-]?\d{1,3}\.\d{3,}\s*[,;]\s*[+-]?\d{1,3}\.\d{3,}\s*[\])]$"
_NUMBERS = r"^\[\s*\d{7,}\s*[,;]\s*\d{7,}\s*\]$"
_WRAPPED = r"""^(?:\[.*\]|\{.*\}|\([^()]*\)|=?".*"|'.*'|“.*”|«.*»)$"""
_PARTS = r"""\"[^\"]*\"|'[^']*'|[^\s,;\[\]{}()\"'][^,;\[\]{}()\"]*"""
_MONTHS = r"(?i:jan|fev|feb|mar|abr|apr|mai|may|jun|jul|ago|aug|set|sep|out|oct|okt|nov|dez|dec|dic|ene|mrz)\p{L}*\.?"
_DATES = (
    rf"^\d{{1,2}}[- ./]?{_MONTHS}[- ./]?\d{{2,4}}(?: .*)?$|^{_MONTHS}[- ./]?\d{{2,4}}$|^\d{{4}}-?(?:W\d{{2}}|Q\d)(?:-\d)?$|"
    + r"^\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:[T ].*)?$|^\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}(?: .*)?$|^\d{1,2}:\d{2}(?::\d{2})?$"
)


def identifying_columns(table: Table, names: Iterable[str] | None = None) -> tuple[Identifying, ...]:
    """Every column of *names* (default: all) that identifies people by its header or by the shape of its values.

    The role that the schema gives a column is not looked at. Cells that say nothing (`*`, blanks, intervals) are left out,
    so a published column of stars identifies nobody whatever its header. O(n) for each column, with 5,000
    cells read closely.

    >>> from velado.testing.examples import small_table
    >>> mails = small_table(mail=("other", "text", "ana@x.br bia@y.br eva@z.br"))
    >>> [found.kind for found in identifying_columns(mails)]
    ['email']
    """
    wanted = tuple(table.frame.columns if names is None else names)
    judged = {name: _judge(table, name) for name in wanted}
    samples = {
        name: _sample(table, name)[0]
        for name in wanted
        if judged[name] is None
        and (table.frame.schema[name].is_float() or table.frame.schema[name] == pl.String)
    }
    for name in _headers_of_people(wanted):
        if judged[name] is None:
            judged[name] = Identifying("name", _HEADER_IS_SOMEBODY, sure=False)
    for name in _coordinate_pairs({name: texts for name, texts in samples.items() if judged[name] is None}):
        judged[name] = Identifying(
            "coordinates", say("two columns hold decimals as coordinates have them"), sure=False
        )
    return tuple(replace(found, column=name) for name, found in judged.items() if found is not None)


_HEADER_IS_SOMEBODY = say("the header itself is somebody's name, contact or number")


@lru_cache(64)  # every window of a stream has the same headers
def _headers_of_people(names: tuple[str, ...]) -> tuple[str, ...]:
    """Headers that are somebody's name, e-mail, telephone or document, as in a roster with a column for each."""
    headers = pl.Series([name for name in names if name], dtype=pl.String)
    if not headers.len():
        return ()
    texts = tidy_texts(headers).str.replace(r"^\p{L}{1,3}\d{1,3}[\s:._-]+", "")
    traced = texts.str.contains("|".join(f"(?:{pattern})" for _, pattern, _ in _TRACES))
    shaped = texts.str.contains(
        r"^(?:\p{Lu}[\p{Ll}'’-]+\p{L}*\.?)(?:\s(?:\p{Lu}[\p{L}'’.-]*|d[aeo]s?)){1,5}$"
    )
    known = pl.Series([_says_something(header) for header in headers.to_list()], dtype=pl.Boolean)
    some = texts.filter(shaped & ~known)
    both = [text for text in some.to_list() if name_shares(pl.Series([text])).both]
    # One header may be a rose or a park; where several are names, the others of that form are names too.
    roster = some.to_list() if len(both) >= 2 and 3 * len(both) >= some.len() else both
    named = shaped & ~known & texts.is_in(roster)
    return tuple(headers.filter(traced | named).to_list())


def _says_something(header: str) -> bool:
    own = frozenset(header_tokens(header))
    return not own.isdisjoint(frozenset().union(*TAGS.values(), *TOPICS.values()) - {"dr", "dra", "prof"})


_NEARLY_UNIQUE = say("most rows have a value that no other row has: read it before it is published")


def nearly_unique(table: Table, name: str) -> Identifying | None:
    """A doubt, where most rows of a column of words or codes have a value that no other row has.

    Numbers and days are left out, and pairs such as 120x80, which is a pressure. Fewer than 20 rows tell nothing.

    >>> from velado.testing.examples import small_table
    >>> nearly_unique(small_table(v=("other", "text", " ".join(f"k{n}" for n in range(20)))), "v").sure
    False
    """
    dtype = table.frame.schema[name]
    if table.rows < LEAST_ROWS or dtype.is_numeric() or dtype.is_temporal() or dtype == pl.Boolean:
        return None
    lone, rows = table.once(("lone", name), lambda: (_lone(table, name), table.rows))
    if 2 * lone <= rows:
        return None
    texts = _sample(table, name)[0]
    plain = (r"^\d{2,3} ?[xX/] ?\d{2,3}$", _DATES, r"^[+-]?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][+-]?\d+)?$")
    if any(share(texts, pattern) >= 0.9 for pattern in plain):
        return None
    return Identifying("record", _NEARLY_UNIQUE, sure=False, column=name)


def counts(table: Table, name: str) -> tuple[int, int]:
    """How many cells of a column say something, and how many different values they are.

    >>> from velado.testing.examples import small_table
    >>> counts(small_table(who=("identifier", "text", "P1 p1 P2 _")), "who")
    (3, 2)
    """
    return table.once(("counts", name), lambda: _filled_and_distinct(table, name))


def _filled_and_distinct(table: Table, name: str) -> tuple[int, int]:
    if table.frame.schema[name] == pl.String and table.behind is None:
        often = distinct_texts(table, name)
        kept = ~_masked(often.get_column("text"))
        normal = distinct_normal(table, table.schema.columns[name])[0]
        return int(often.get_column("n").filter(kept).sum()), normal.filter(kept).drop_nulls().n_unique()
    filled = _filled(table, name)
    distinct = filled.unique().cast(pl.String)
    # `P1` and `P1 ` are one person: people are counted as every room counts them.
    return filled.len(), normal_of(table, table.schema.columns[name], distinct).drop_nulls().n_unique()


def _lone(table: Table, name: str) -> int:
    if table.frame.schema[name] == pl.String and table.behind is None:
        often = distinct_texts(table, name)
        return int((~_masked(often.filter(pl.col("n") == 1).get_column("text"))).sum())
    return int(_filled(table, name).cast(pl.String).is_unique().sum())


def _filled(table: Table, name: str) -> pl.Series:
    series = table.frame.get_column(name)
    kept = series.filter(~table.is_missing(name))
    return kept.filter(~_masked(kept)) if kept.dtype == pl.String else kept


def _masked(texts: pl.Series) -> pl.Series:
    # A place and a list of two documents are written as an interval is, whose ends are hardly ever so long.
    return texts.str.contains(_MASKED) & ~texts.str.contains(f"{_PLACE}|{_NUMBERS}")


def _unwrapped(texts: pl.Series) -> pl.Series:
    """What stands inside of lists, objects and quotes, part by part: `['Rui Torres']` is a name all the same."""
    wrapped = texts.str.contains(_WRAPPED)
    if not bool(wrapped.any()):
        return texts
    inner = texts.filter(wrapped)
    pair = inner.str.contains(_PLACE)
    pairs = inner.filter(pair).str.strip_chars("[]() ")
    parts = inner.filter(~pair).str.replace_all(r"""(?:\"[^\"]*\"|'[^']*'|[{,]\s*\w+)\s*:\s*""", ", ")
    parts = parts.str.extract_all(_PARTS).explode().drop_nulls().str.strip_chars("\"'“”«»= ")
    return pl.concat([texts.filter(~wrapped), pairs, parts.filter(parts != "")])


def _sample(table: Table, name: str) -> tuple[pl.Series, int]:
    return table.once(("sample", name), lambda: _sampled(table, name))


def _sampled(table: Table, name: str) -> tuple[pl.Series, int]:
    series = table.frame.get_column(name)
    filled = ~table.is_missing(name)
    if series.dtype == pl.String:
        filled = filled & (series != "*").fill_null(False)
    rows = int(filled.sum())
    if rows > SHAPE_SAMPLE:
        places = np.unique((np.arange(1, SHAPE_SAMPLE + 1) * _GOLDEN % 1.0 * rows).astype(np.int64))
        chosen = filled.arg_true().gather(places)
        texts = series.gather(chosen).cast(pl.String)
    else:
        texts = series.filter(filled).cast(pl.String)
    texts = tidy_texts(texts.drop_nulls())
    if series.dtype.is_float():
        texts = texts.str.replace(r"\.0$", "")
    return _whole_numbers(_unwrapped(texts.filter(~_masked(texts)))), rows


def _whole_numbers(texts: pl.Series) -> pl.Series:
    """Long whole numbers written as programs write floats, in digits: `95463308098.0` and `9.5463308098E+10` alike."""
    texts = texts.str.replace(r"^(\d{5,})[.,]0+$", "$1")
    powers = texts.str.contains(r"^\d(?:[.,]\d{1,18})?[eE]\+?(?:[5-9]|1\d)$")
    if not bool(powers.any()):
        return texts
    written = [f"{Decimal(text.replace(',', '.')):f}" for text in texts.filter(powers).to_list()]
    return pl.concat([texts.filter(~powers), pl.Series(written, dtype=pl.String)]).alias(texts.name)


def _judge(table: Table, name: str) -> Identifying | None:
    """What one column identifies by; worked out once for each table, because several rooms ask."""
    return table.once(("identifying", name), lambda: _judged(table, name))


def _judged(table: Table, name: str) -> Identifying | None:
    dtype = table.frame.schema[name]
    if dtype == pl.Boolean or dtype.is_temporal():
        return None
    texts, rows = _sample(table, name)
    if not texts.len():
        return None
    distinct = texts.unique(maintain_order=True)
    low = distinct.str.to_lowercase()
    if bool(low.is_in(list(_YES_NO)).all()):
        return None if texts.len() == rows else _whole_traces(table, name, texts, distinct)
    if share(texts, r"\d") >= 0.8 and share(texts, _DATES) >= 0.8:
        return _whole_traces(table, name, texts, distinct)
    tokens = frozenset(header_tokens(name))
    header = _from_header(name, texts)
    if distinct.len() < min(texts.len(), _FEW) and all(map(_SHORT.fullmatch, distinct.to_list())):
        # Codes of a few characters that repeat: there is no room for a shape.
        if header is None:
            return None if texts.len() == rows else _whole_traces(table, name, texts, distinct)
        return replace(header, person=False) if header.person and header_of_others(name) else header
    if _plain_numbers(texts, distinct):
        return header or _whole_traces(table, name, texts, distinct)
    every = distinct.len() == texts.len() == min(rows, texts.len()) and _is_unique(table, name, texts, rows)
    values = Values(
        texts=texts,
        distinct=distinct,
        rows=rows,
        every=every and rows == table.rows,
        things=not tokens.isdisjoint(TAGS["thing"]) or header_says(name, "quasi"),
        codes=_names_codes(name, tokens),
        longest=int(str(distinct.str.len_chars().max() or 0)),
    )
    shape = find_shape(values)
    if shape is not None and texts.len() > distinct.len():
        # Distinct values are judged, so a few e-mails among many equal words would stand for all rows.
        usual = find_shape(replace(values, distinct=texts))
        sure = usual is not None and usual.sure
        same = usual is not None and usual.person and usual.kind == shape.kind
        shape = replace(shape, sure=shape.sure and sure, person=shape.person and same)
    found = _judged_together(header, shape)
    if found is not None and found.person and header_of_others(name):
        found = replace(found, person=False)
    if (found is None or not found.sure) and (why := free_text(name, texts, distinct.len(), texts.len())):
        return Identifying("free text", why, sure=False)
    return found or _whole_traces(table, name, texts, distinct)


def _whole_traces(table: Table, name: str, texts: pl.Series, distinct: pl.Series) -> Identifying | None:
    series = table.frame.get_column(name)
    if isinstance(series.dtype, pl.Categorical | pl.Enum):
        series = series.unique().cast(pl.String)
    if series.dtype != pl.String:
        return None
    if 2 * distinct.len() < texts.len():
        series = series.unique()
    return _find_traces(series, numbers=share(texts, r"^[+-]?[0-9.,]+$") >= 0.5)


def _plain_numbers(texts: pl.Series, distinct: pl.Series) -> bool:
    # Decimals, and short numbers that repeat, have no shape worth a closer look.
    if share(texts, r"^[+-]?\d{1,8}(?:[.,]\d+)?$|^[+-]?\d*[.,]\d+(?:[eE][+-]?\d+)?$") < 1.0:
        return False
    return share(texts, r"[.,]\d*[1-9]") >= 0.2 or distinct.len() < 0.5 * texts.len()


def _names_codes(name: str, tokens: frozenset[str]) -> bool:
    return (
        not tokens.isdisjoint(TAGS["attribute"] | TAGS["code"])
        or not tokens.isdisjoint(TOPICS["quasi"])
        or header_says(name, "quasi")
        or header_says(name, "sensitive")
    )


def _is_unique(table: Table, name: str, texts: pl.Series, rows: int) -> bool:
    return texts.len() == rows or counts(table, name)[1] == rows


def _from_header(name: str, texts: pl.Series) -> Identifying | None:
    found = read_header(name)
    if found is None or found.why == HEADER_HOUSE:
        found = read_code_header(name) or found
    if found is None and header_of_a_script_says_name(name):
        return Identifying("name", HEADER_PERSON, person=False)
    tokens = header_tokens(name)
    if found is None and tokens[-1:] == ("by",) and _different_words(texts):
        return Identifying("name", HEADER_STAFF_ALONE, sure=False)
    if found is None:
        return None
    if found.why == HEADER_CODE:
        return found if _different_codes(texts) else None
    if found.why == HEADER_STAFF or (found.kind == "document" and "doc" in tokens):
        if share(texts, r"\d") < 0.2 and like_names(texts.unique()):
            return Identifying("name", HEADER_STAFF)
        if found.why == HEADER_STAFF:
            return None
    if found.why == HEADER_PART and share(texts, r"^\p{L}") < 0.5:
        return None
    if found.why == HEADER_BADGE and share(texts, r"\d") < 0.5:
        return None
    if found.why == HEADER_VISITOR and (share(texts, r"\d") < 0.8 or share(texts, r"^\d{1,2}$") == 1.0):
        return None
    if _says_otherwise(found, texts):
        return None
    if found.kind in ("cpf", "cns", "ssn", "card") and share(texts, r"^\d{1,4}$") >= 0.8:
        return replace(found, person=False)  # the last digits are shared by many
    fractions = share(texts, r"^[+-]?\d*[.,]\d*[1-9]\d*$")
    if found.kind == "coordinates" and not found.sure:
        # A degree with two decimals is a kilometre wide; with three it is a block of houses.
        precise = share(texts, r"^[+-]?\d{1,3}[.,]\d{2,}[1-9]\d*$")
        if precise < 0.2 or share(texts, r"^[+-]?(?:1[0-7]\d|\d{1,2})[.,]\d+$") < 0.9:
            return None
        return Identifying(
            "coordinates", say("the header names coordinates, and they have three decimals or more")
        )
    if fractions >= 0.5 and found.kind not in ("coordinates", "ip", "document", "rg", "cpf", "phone"):
        return None
    if found.why == HEADER_EVENT and share(texts, r"^\d{1,2}$") == 1.0:
        return None  # the first, second, third visit
    if found.why == HEADER_PERSON and share(texts, r"^\p{L}{2}[\p{L}.'’-]*(?:,? \p{L}[\p{L}.'’-]*)+$") >= 0.8:
        return replace(found, kind="name")
    return found


def _says_otherwise(found: Identifying, texts: pl.Series) -> bool:
    """Whether the cells cannot be what the header names: a few words under card, small counts under telephone."""
    distinct = texts.unique()
    if found.why == HEADER_HOUSE or found.kind in _NO_COUNT:
        small = r"^\d{1,2}$" if found.kind in ("device", "address") else r"^\d{1,3}$"
        if texts.len() >= LEAST_ROWS and share(distinct, rf"{small}|^\d{{1,2}}[.,]\d+$") == 1.0:
            return True
    if distinct.len() > _FEW_WORDS or 2 * distinct.len() > texts.len():
        return False
    if found.kind == "address":
        return distinct.len() <= 5 and share(distinct, r"^\p{Ll}+$") == 1.0  # street_lights: yes, no, some
    if found.kind not in _WITH_DIGITS:
        return False
    return share(distinct, r"^\p{L}{2,}(?:[ /-]\p{L}+){0,2}$") == 1.0 and not like_names(distinct)


def _different_words(texts: pl.Series) -> bool:
    """Whether texts are five and more different words or logins without blanks, and no yes or no."""
    return texts.n_unique() >= 5 and share(texts, r"^\p{L}[\p{L}._-]{2,}\d*$") >= 0.8


def _different_codes(texts: pl.Series) -> bool:
    """Whether texts are codes or whole numbers of four characters and more, with many different values."""
    if texts.n_unique() < LEAST_ROWS or share(texts, r"^[+-]?\d*[.,]\d+$") > 0.2:
        return False
    return (
        share(
            texts,
            r"^[A-Za-z0-9_/.:-]{3,}\d[A-Za-z0-9_/.:-]*$|^[A-Za-z0-9_/.-]*\d[A-Za-z0-9_/.-]{3,}$|^[A-Z]{5,}$",
        )
        >= 0.8
    )


def _judged_together(header: Identifying | None, shape: Identifying | None) -> Identifying | None:
    if header is None or shape is None:
        return header or shape
    if header.sure and shape.kind in ("record", "uuid", "document"):
        return Identifying(header.kind, header.why, True, header.person, shape.valid)
    if shape.sure and (shape.kind != "name" or header.kind == "name" or not header.sure):
        # The header knows whose it is (a doctor's, a mother's, a visit's), the shape what it is.
        owned = shape.person and (header.person or header.kind not in ("record", "name"))
        return Identifying(shape.kind, shape.why, True, owned, shape.valid)
    if header.sure:
        return Identifying(header.kind, header.why, True, header.person, shape.valid)
    if header.kind == shape.kind:
        return Identifying(header.kind, shape.why, False, header.person, shape.valid)
    return header
