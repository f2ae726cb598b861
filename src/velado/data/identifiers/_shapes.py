"""What the shape of values gives away, whatever the header: numbers with check digits, contacts, codes, names.

Every shape has a guard against what only looks like it: laboratory values, counts, prices, postal codes,
dates, codes of diseases and procedures.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from velado.data.identifiers._lexicon import (
    PARTICLES,
    SCRIPTS,
    TITLES,
    TURNED,
    login_share,
    name_shares,
)
from velado.data.identifiers.headers import IdentifierKind, Identifying, header_says
from velado.data.partition import Int64Array
from velado.text import say

# Numbers with check digits: which share of texts keeps the rule of a CPF, CNS, CNPJ, card, IBAN or Spanish DNI.

_DNI_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"


def valid_cpf_share(digits: pl.Series) -> float:
    """The share of texts that are CPFs with right check digits; eleven equal digits are none."""
    return _modulo_11_share(digits, 11, most=11)


def valid_cnpj_share(digits: pl.Series) -> float:
    """The share of texts that are CNPJs: fourteen digits, the last two modulo 11 with weights 2 to 9."""
    return _modulo_11_share(digits, 14, most=9)


def _modulo_11_share(digits: pl.Series, length: int, most: int) -> float:
    # The weights of the digits before a check digit rise from its side: 2, 3, ... up to *most*, and again from 2.
    matrix = _digit_matrix(digits, length)
    if not matrix.size:
        return 0.0
    good = ~(matrix == matrix[:, :1]).all(axis=1)
    for place in (length - 2, length - 1):
        weights = 2 + np.arange(place)[::-1] % (most - 1)
        rest = matrix[:, :place] @ weights % 11
        good &= matrix[:, place] == np.where(rest < 2, 0, 11 - rest)
    return float(good.sum()) / digits.len()


def valid_cns_share(digits: pl.Series) -> float:
    """The share of texts that are CNS numbers: first digit 1, 2, 7, 8 or 9, weighted sum divisible by 11."""
    matrix = _digit_matrix(digits, 15)
    if not matrix.size:
        return 0.0
    good = (matrix @ np.arange(15, 0, -1) % 11 == 0) & np.isin(matrix[:, 0], (1, 2, 7, 8, 9))
    return float(good.sum()) / digits.len()


def valid_luhn_share(digits: pl.Series) -> float:
    """The share of texts that are card numbers: 13 to 19 digits that begin with 2 to 6 and keep Luhn's rule."""
    good = 0
    for length in range(13, 20):
        matrix = _digit_matrix(digits, length)
        if matrix.size:
            doubled = matrix.copy()
            doubled[:, -2::-2] *= 2
            doubled -= 9 * (doubled > 9)
            right = (doubled.sum(axis=1) % 10 == 0) & (matrix[:, 0] >= 2) & (matrix[:, 0] <= 6)
            good += int((right & ~(matrix == matrix[:, :1]).all(axis=1)).sum())
    return good / digits.len() if digits.len() else 0.0


def _valid_iban_share(texts: pl.Series) -> float:
    """The share of texts that are IBANs: letters read as 10 to 35, first four moved to the end, 1 modulo 97."""
    plain = texts.str.replace_all(r"\s", "").str.to_uppercase()
    fits = plain.filter(plain.str.contains(r"^[A-Z]{2}\d{2}[A-Z0-9]{11,30}$")).unique()
    share = plain.is_in(fits.implode()).sum() / texts.len() if texts.len() else 0.0
    if not fits.len():
        return 0.0
    moved = [text[4:] + text[:4] for text in fits.to_list()]
    good = sum(int("".join(str(int(c, 36)) for c in text)) % 97 == 1 for text in moved)
    return float(share) * good / fits.len()


def _valid_dni_share(texts: pl.Series) -> float:
    """The share of texts that are Spanish DNIs or NIEs: the letter is the number modulo 23 in the official order."""
    parts = texts.str.to_uppercase().str.extract_groups(r"^([XYZ]?)-?(\d{7,8})-?([A-Z])$")
    first, number, letter = (parts.struct.field(str(i)) for i in (1, 2, 3))
    size = number.str.len_chars() + first.str.len_chars()
    whole = pl.select(
        pl.lit(first).replace({"X": "0", "Y": "1", "Z": "2"}).add(pl.lit(number)).cast(pl.Int64, strict=False)
    ).to_series()
    wanted = (whole % 23).replace_strict(dict(enumerate(_DNI_LETTERS)), default=None, return_dtype=pl.String)
    good = ((wanted == letter) & (size == 8)).fill_null(False)
    return int(good.sum()) / texts.len() if texts.len() else 0.0


def _digit_matrix(digits: pl.Series, length: int) -> Int64Array:
    exact = digits.filter(digits.str.contains(rf"^[0-9]{{{length}}}$"))
    joined = "".join(exact.to_list()).encode("ascii")
    return (np.frombuffer(joined, dtype=np.uint8).astype(np.int64) - 48).reshape(-1, length)


LEAST_SHARE = 0.8
"""A column has a shape when at least this share of its sampled values has it."""
LEAST_TRACE = 0.01
"""A column is in doubt when at least this share of its sampled values holds an e-mail, a telephone, a CPF ..."""

_DIGIT = r"\d"
_EMAIL = r"[^@\s,;<>()]+@[^@\s,;<>()]+\.[A-Za-z]{2,}"
_AREA = r"(?:1[1-9]|2[12478]|3[1-578]|4[1-9]|5[1345]|6[1-9]|7[134579]|8[1-9]|9[1-9])"
_PHONE = "|".join(
    (
        r"(?:\+?55[\s-]?)?\(0?\d{2}\)\s?9?\s?\d{4}[\s.-]?\d{4}",
        rf"(?:\+?55[\s-]?)?0?{_AREA}[\s-]9?\s?\d{{4}}[\s.-]\d{{4}}",
        rf"(?:\+?55[\s-]?)?0?{_AREA}\s9\d{{8}}",
        r"\+\d[\d\s().-]{7,17}\d",
        r"(?:1[\s.-])?\(\d{3}\)\s?\d{3}[\s.-]\d{4}",
        r"(?:1[.-])?\d{3}-\d{3}-\d{4}",
        r"(?:1[.-])?\d{3}\.\d{3}\.\d{4}",
        r"[6789]\d{2}[\s-]\d{3}[\s-]\d{3}",
        r"[6789]\d{2}[\s-]\d{2}[\s-]\d{2}[\s-]\d{2}",
    )
)
_URL = r"(?:https?|ftp)://\S+|www\.[\w-]+\.\S+"
_DAY = r"^(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"
_OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
_CPF = r"\d{3}\.\d{3}\.\d{3}-\d{2}"
_SSN = r"(?:00[1-9]|0[1-9]\d|[1-578]\d{2}|6[0-57-9]\d|66[0-57-9])-\d{2}-\d{4}"
_STREET = (
    r"(?i)^(?:r\.|rua|av\.?|avenida|travessa|tv\.|alameda|al\.|pra[cç]a|rodovia|estrada|calle|c/|avda\.?|carrera|"
    r"plaza|paseo|camino|largo|beco|ladeira)\s+\S.*\d|"
    r"^\d+[a-z]?,?\s+(?:[\p{L}.'\d]+\s+){1,4}(?:street|st|avenue|ave|road|rd|drive|dr|lane|ln|boulevard|blvd|court|ct|way|"
    r"place|pl|terrace|square)\b\.?|"
    r"^[\p{L}.\s-]{2,}(?:stra(?:ß|ss)e|str\.|weg|platz|allee|gasse|ufer|damm)\s+\d+\s?[a-z]?$|"
    r"^(?:\d+\s?(?:bis|ter)?,?\s+(?:rue|boulevard|bd|chemin|impasse|all[ée]e|quai)|(?:via|viale|piazza|corso|vicolo)\s+\S.*\d)"
)
_FILE = (
    r"(?i)\.(?:jpe?g|png|gif|bmp|tiff?|heic|webp|dcm|wav|mp3|mp4|m4a|avi|mov)$|^data:(?:image|audio|video)/"
)


@dataclass(frozen=True)
class _Written:
    """A way of writing that gives its kind away by itself.

    *holds* matches something that stands in whatever *pattern* matches and is quickly looked for: a large pattern is
    prepared anew for every column, which takes longer than a look at its values.
    """

    kind: IdentifierKind
    pattern: str
    why: str
    person: bool = False
    holds: str = ""


_FORMS: tuple[_Written, ...] = (
    _Written("email", f"^{_EMAIL}$", say("values are e-mail addresses"), True, holds="@"),
    _Written(
        "email",
        r"(?i)^[\w.+-]+(?:@[a-z][\w-]+| ?[(\[{] ?(?:at|arroba) ?[)\]}] ?[\w.\[\](){} -]+)$",
        say("values are e-mail addresses"),
        True,
        holds=r"[@(\[{]",
    ),
    _Written(
        "account",
        r"(?i)^[a-z][\w-]*\\[a-z][\w.$-]+$|[\\/](?:users|home)[\\/][^\\/]+",
        say("values hold names of accounts"),
        True,
        holds=r"[\\/]",
    ),
    _Written("url", f"^(?:{_URL})$", say("values are web addresses"), holds=r"://|\."),
    _Written(
        "url",
        r"^@[A-Za-z_][\w.]{2,}$",
        say("values are names of accounts on social networks"),
        holds="@",
    ),
    _Written("ip", f"^{_IPV4}(?:[:/]\\d+)?$", say("values are IP addresses"), holds=_DIGIT),
    _Written(
        "mac",
        r"^(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}$|^(?:[0-9A-Fa-f]{4}\.){2}[0-9A-Fa-f]{4}$",
        say("values are addresses of network cards"),
    ),
    _Written(
        "ip",
        r"^(?:[0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]{1,4}$|^(?:[0-9A-Fa-f]{1,4}:){1,7}(?::[0-9A-Fa-f]{1,4}){0,6}:?$",
        say("values are IP addresses"),
    ),
    _Written(
        "uuid",
        r"^\{?[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\}?$",
        say("values are universally unique identifiers"),
        True,
    ),
    _Written(
        "record",
        r"^(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{56}|[0-9a-f]{64}|[0-9A-F]{32}|[0-9A-F]{40}|[0-9A-F]{64})$",
        say("values are digests, one for each record"),
        True,
    ),
    _Written(
        "cnpj",
        r"^\d{2}\.\d{3}\.\d{3}/\d{4}-\d{2}$",
        say("values are written like a CNPJ (company number)"),
        holds=_DIGIT,
    ),
    _Written(
        "rg",
        r"^(?:[A-Z]{2}[\s-]?)?\d{1,2}\.\d{3}\.\d{3}-[\dXx]$|^[A-Z]{2}[\s-]?\d{1,2}\.\d{3}\.\d{3}$",
        say("values are written like an RG (identity card)"),
        True,
        holds=_DIGIT,
    ),
    _Written("ssn", f"^{_SSN}$", say("values are written like a social security number"), True, holds=_DIGIT),
    _Written(
        "coordinates",
        r"^\(?[+-]?\d{1,2}\.\d{3,}\s*[,;\s]\s*[+-]?\d{1,3}\.\d{3,}\)?$|^(?i:point)\s*\(|^///\w+\.\w+\.\w+$|^\d{1,3}d\d{1,2}m\d{1,2}|"
        r"^[23456789CFGHJMPQRVWX]{4,8}\+[23456789CFGHJMPQRVWX]{2,3}$|\d{1,3}\s?°\s?\d{1,2}\s?['’′]",
        say("values are pairs of coordinates"),
        holds=r"[\d(/+]",
    ),
    _Written("phone", f"^(?:{_PHONE})$", say("values are written like telephone numbers"), holds=_DIGIT),
    _Written("address", _STREET, say("values are written like street addresses"), holds=_DIGIT),
    _Written("photo", _FILE, say("values name files of pictures or recordings"), holds="[.:]"),
)
_TRACES: tuple[_Written, ...] = (
    _Written("email", _EMAIL, say("some values hold an e-mail address")),
    _Written("url", _URL, say("some values hold a web address")),
    _Written("cpf", rf"(?:^|\D){_CPF}(?:\D|$)", say("some values hold a CPF")),
    _Written("ssn", rf"(?:^|[^\d-]){_SSN}(?:[^\d-]|$)", say("some values hold a social security number")),
    _Written("phone", rf"(?:^|[^\d.-])(?:{_PHONE})(?:[^\d.-]|$)", say("some values hold a telephone number")),
    _Written(
        "address",
        r"(?i)\b(?:rua|avenida|av\.|travessa|alameda|calle)\s+\p{L}[\p{L}\s.]+,\s*(?:n[º°o.]*\s*)?\d",
        say("some values hold a street address"),
    ),
)


@dataclass(frozen=True)
class Values:
    """A sample of a column for judging its shape: *texts* without blanks, and what the header allows.

    *distinct* are the different texts, by which shapes are judged: a value that repeats counts once; *every* says that each filled row of the whole column has a value of its own;
    *rows* counts the filled rows, *longest* the characters of the longest text. *things*: the header names a thing or place. *codes*: the header names codes, an
    attribute, something private or known outside.
    """

    texts: pl.Series
    distinct: pl.Series
    rows: int
    every: bool
    things: bool
    codes: bool
    longest: int = 1_000


def find_shape(values: Values) -> Identifying | None:
    """The identifier that the shape of values speaks for, or None."""
    # Numbers of people, addresses and plates have six characters and more; most categories have fewer.
    long = values.longest >= 6
    found = (_written(values) or _digits(values)) if long else None
    if found is None or not found.sure:
        found = (_person_names(values) if values.longest > 1 else None) or found
    if found is None:
        found = (_plates(values) if long else None) or _codes(values) or (_traces(values) if long else None)
    return found


def share(sample: pl.Series, pattern: str) -> float:
    """The share of texts that match."""
    return int(sample.str.contains(pattern).sum()) / sample.len() if sample.len() else 0.0


def free_text(name: str, sample: pl.Series, distinct: int, filled: int) -> str | None:
    """Why a column of words is free text, in which names and places hide; None when it is not."""
    length = float(np.mean(sample.str.len_chars().to_numpy()))
    words = float(np.mean(sample.str.count_matches(r"\s+").to_numpy())) + 1.0
    if length > 60 or (words >= 4 and distinct > 0.3 * filled and distinct > 20):
        return say("free text: long, and hardly ever repeated")
    if header_says(name, "free text") and words >= 2:
        return say("free text: words under a header of notes")
    return None


def _written(values: Values) -> Identifying | None:
    texts = values.distinct
    if not bool(texts.str.contains(r"[@:/.\\\-()+,;'’\s]|[0-9a-fA-F]{32}").any()):
        return None
    held = {holds: share(texts, holds) >= LEAST_SHARE for holds in {form.holds for form in _FORMS}}
    if held[_DIGIT] and share(texts, f"^{_CPF}$") >= LEAST_SHARE:
        digits = texts.str.replace_all(r"\D", "")
        return Identifying("cpf", say("values are written like a CPF"), True, True, valid_cpf_share(digits))
    for form in _FORMS:
        if not held[form.holds] or share(texts, form.pattern) < LEAST_SHARE:
            continue
        if form.kind == "mac" and share(texts, r"^\d{2}[:-]") == 1.0 and share(texts, r"[A-Fa-f]") == 0.0:
            return Identifying(form.kind, form.why, sure=False)
        return Identifying(form.kind, form.why, True, form.person)
    if not held[_DIGIT]:
        return None
    if share(texts, r"^9\d{4}[\s-]\d{4}$") >= LEAST_SHARE and not values.codes:
        return Identifying("phone", say("values are written like telephone numbers"), sure=False)
    short = share(texts, r"^(?:[2-8]\d{3}|\d{3})-\d{4}$")
    years = share(texts, r"^(?:19|20)\d{2}-(?:19|20)\d{2}$")
    if short >= LEAST_SHARE and years < 0.5 and not values.codes:
        return Identifying("phone", say("values are written like telephone numbers"), sure=False)
    return None


def _digits(values: Values) -> Identifying | None:
    if share(values.distinct, _DIGIT) < LEAST_SHARE:
        return None  # each of the shapes below has digits
    digits = values.distinct.str.replace_all(r"[.\-\s/]", "")
    size = digits.str.len_chars()
    lettered = _valid_dni_share(values.distinct.str.replace_all(r"[.\s]", ""))
    if lettered >= LEAST_SHARE:
        return Identifying(
            "document", say("values have the check letter of a DNI or NIE"), True, True, lettered
        )
    if _valid_iban_share(values.distinct) >= LEAST_SHARE:
        return Identifying("account", say("values have the check digits of an IBAN"), True, True)
    if share(digits, r"^\d{7,19}$") < LEAST_SHARE or values.distinct.len() < 3:
        return None
    if share(values.distinct, r"^[+-]?\d+[.,]\d+$") >= 0.5:
        return None  # decimals
    padded = digits.filter((size >= 9) & (size <= 11)).str.zfill(11)
    if padded.len() >= LEAST_SHARE * digits.len():
        valid = valid_cpf_share(padded)
        if valid >= LEAST_SHARE:
            return Identifying("cpf", say("values have the check digits of a CPF"), True, True, valid)
        if valid >= 0.3:
            return Identifying("cpf", say("some values hold a CPF"), False, True, valid)
    built: tuple[tuple[IdentifierKind, str, float, bool], ...] = (
        ("cns", say("values are built like a CNS (health card number)"), valid_cns_share(digits), True),
        ("cnpj", say("values are written like a CNPJ (company number)"), valid_cnpj_share(digits), False),
        ("card", say("values have the check digit of a card"), valid_luhn_share(digits), True),
    )
    for kind, shown, rate, person in built:
        if rate >= LEAST_SHARE:
            return Identifying(kind, shown, True, person, rate)
    if values.codes:
        return None
    if share(digits, rf"^(?:55)?{_AREA}9\d{{8}}$") >= 0.9 and values.distinct.len() >= 5:
        return Identifying("phone", say("values are built like telephone numbers"), sure=False)
    one_size = int((size == size.mode()[0]).sum()) >= 0.95 * digits.len()
    common = size.mode()[0]
    rounded = share(digits, r"00$")
    # A day may have a time behind it; other digits behind a day are a document's, as in Sweden.
    dated = share(digits, _DAY + r"(?:(?:[01]\d|2[0-3])[0-5]\d(?:[0-5]\d)?)?$")
    count = values.distinct.len()
    many = count >= 20 or (count >= 5 and count >= 0.8 * values.rows)
    if one_size and 9 <= common <= 20 and rounded < 0.2 and dated < 0.5 and many:
        why = say("values are digits of one length, as documents, cards and telephones have")
        return Identifying("document", why, sure=False, person=common >= 11)
    same = int((size == common).sum()) >= 0.99 * digits.len()
    if (
        same
        and common in (7, 8)
        and dated < 0.5
        and rounded < 0.05
        and count >= max(0.98 * values.texts.len(), 100)
    ):
        return Identifying("record", say("values are digits of one length, hardly any twice"), sure=False)
    return None


def _person_names(values: Values) -> Identifying | None:
    if share(values.distinct, r"\p{L}{2}") < 0.5:
        return _trace_of_names(values)
    count = values.distinct.len()
    if count >= 3 and share(values.distinct, SCRIPTS) >= 0.5 and not values.things:
        return Identifying("name", say("values read like names of another script"), False)
    if count < 4 and not bool(values.distinct.str.contains(r"[\s,._]|\p{Ll}\p{Lu}").any()):
        return None  # fewer than four words, each alone: too little to call them names
    both, one, given, family = name_shares(values.distinct)
    foreign = share(values.distinct, r"^[^\p{Latin}\p{Greek}]*\p{L}[^\p{Latin}\p{Greek}]*$")
    if foreign >= 0.5 and count > 20:
        return Identifying("name", say("written in a script whose names are not known"), False)
    least = 1 if count < 5 else 3
    listed = say("values are names of people")
    if values.things:
        # Towns, schools and drugs bear people's names too: only a column full of whole names is doubtful.
        return Identifying("name", listed, False) if both >= 0.6 and count >= 5 else None
    if both >= 0.3 and one >= 0.5 and both * count >= least:
        return Identifying("name", listed, not values.codes, True)
    if given >= 0.6 and given * count >= 4:
        return Identifying("name", say("values are given names"), given >= 0.7 and not values.codes)
    if given + family + one >= 0.7 and (given + family + one) * count >= 5:
        return Identifying("name", listed, both >= 0.3 and not values.codes, both >= 0.3)
    if share(values.distinct.str.to_lowercase(), TITLES + r"\p{L}") >= LEAST_SHARE and count >= 3:
        return Identifying("name", say("values begin with a title, as names do"), not values.codes)
    if share(values.distinct, TURNED) >= LEAST_SHARE and count >= 10 and not values.codes:
        return Identifying("name", say("values are two words with a comma, as turned names are"), False)
    joined = share(
        values.distinct, r"^\p{L}[\p{L}'’]+[._]\p{L}[\p{L}'’]+\d*$|^\p{Lu}\p{Ll}+\p{Lu}[\p{L}'’]+$"
    )
    logins = login_share(values.distinct)
    if logins >= 0.3 and logins * count >= 4 and not values.codes:
        return Identifying("name", say("values are joined names, as user names are"), False)
    listed_some = one >= 0.1 and one * count >= 3
    if joined >= LEAST_SHARE and (listed_some or (count >= 40 and not values.codes)):
        return Identifying("name", say("values are joined names, as user names are"), False)
    single = share(values.distinct, r"^\p{Lu}[\p{L}'’-]+$")
    if (
        single >= LEAST_SHARE
        and given + family >= 0.25
        and (given + family) * count >= 5
        and not values.codes
    ):
        return Identifying("name", say("many values are given names or surnames"), False)
    if both >= 0.05 and both * count >= 3:
        return Identifying("name", say("some values are names of people"), False)
    word = r"\p{Lu}[\p{L}'’.-]*"
    full = share(values.distinct, rf"^{word}(?:\s+(?:{word}|{PARTICLES}))*\s+{word}$")
    if full >= LEAST_SHARE and count >= 20 and not values.codes:
        return Identifying("name", say("most values are two or more capitalised words"), False)
    lowered = share(values.distinct, rf"^\p{{L}}{{2,}}(?:\s+(?:\p{{L}}{{2,}}|{PARTICLES})){{1,3}}$")
    if lowered >= 0.9 and count >= 40 and not values.codes:
        return Identifying("name", say("most values are two or more words, as names are"), False)
    return None


def _trace_of_names(values: Values) -> Identifying | None:
    lettered = values.distinct.filter(values.distinct.str.contains(r"^\p{L}[\p{L}\s.'’-]*\s\p{L}+$"))
    if lettered.len() < 3 or values.things:
        return None
    both = name_shares(lettered)[0]
    if both >= 0.5 and both * lettered.len() >= 3 and lettered.len() >= LEAST_TRACE * values.distinct.len():
        return Identifying("name", say("some values are names of people"), False)
    return None


def _plates(values: Values) -> Identifying | None:
    if values.codes:
        return None
    texts = distinct = values.distinct
    why = say("values are built like number plates of vehicles")
    mercosul = share(texts, r"^[A-Z]{3}-?\d[A-Z]\d{2}$")
    brazilian = share(texts, r"^[A-Z]{3}[\s-]?\d(?:\d|[A-J])\d{2}$")
    spanish = share(texts, r"^\d{4}[\s-]?[BCDFGHJKLMNPRSTVWXYZ]{3}$")
    british = share(texts, r"^[A-Z]{2}\d{2} ?[A-Z]{3}$")
    other = share(
        texts,
        r"^[A-ZÄÖÜ]{1,3}-[A-Z]{1,2} ?\d{1,4}[EH]?$|^[A-Z]{2}[ -]?\d{2}[ -]?[A-Z]{1,2}[ -]?\d{4}$|"
        r"^(?:[A-Z]{2}-\d{2}-(?:\d{2}|[A-Z]{2})|\d{2}-[A-Z]{2}-\d{2}|\d{2}-\d{2}-[A-Z]{2})$",
    )
    if other >= LEAST_SHARE and distinct.len() >= 20:
        return Identifying("plate", why, sure=False)
    if max(brazilian, spanish, british) < LEAST_SHARE:
        return None
    letters = distinct.str.extract(r"([A-Z]{3})").n_unique()
    # Codes such as LAB0001 and LAB0002 share a few beginnings; plates have many.
    if letters >= max(3, 0.3 * min(distinct.len(), 60)):
        varied = letters >= 10 and (
            mercosul >= 0.2 or share(texts, r"-") >= 0.5 or max(spanish, british) >= LEAST_SHARE
        )
        return Identifying("plate", why, sure=varied)
    return None


def _codes(values: Values) -> Identifying | None:
    texts = values.distinct
    if not values.codes and texts.len() >= 40 and texts.str.len_chars().n_unique() == 1 and _drawn(texts):
        why = say("values are codes of one length, as records and pseudonyms have")
        return Identifying("record", why, False)
    code = share(texts, r"^[A-Za-z]{0,6}[-_/.]?\d[\dA-Za-z./_-]*$|^[A-Z2-7]{8,}$")
    decimals = share(texts, r"^[+-]?\d*[.,]\d+$")
    if values.codes or code < LEAST_SHARE or decimals > 0:
        return None
    lengths = texts.str.len_chars().n_unique()
    numbers = texts.cast(pl.Int64, strict=False).drop_nulls()
    if values.every and values.rows >= 20:
        if numbers.len() < texts.len() and lengths == 1:
            return Identifying(
                "record", say("values are codes of one length, each in one row only"), True, True
            )
        low, high = numbers.min(), numbers.max()
        if numbers.len() == texts.len() and isinstance(low, int) and isinstance(high, int):
            if high - low < 1.1 * values.rows:
                return Identifying("record", say("values number the rows, each once"), True, True)
            if high - low < 2 * values.rows:
                return Identifying("record", say("values number the rows, each once"), False, True)
        if numbers.len() < 0.5 * texts.len() and share(texts, r"\d{2}") >= LEAST_SHARE:
            return Identifying("record", say("values are codes, each in one row only"), False, True)
    mixed = share(texts, r"[A-Za-z]") >= LEAST_SHARE and share(texts, r"\d.*\d") >= LEAST_SHARE
    shortest = texts.str.len_chars().min()
    if share(texts, r"^[a-z]+_\d{1,2}_[a-z]+_\d{1,2}$") >= LEAST_SHARE:
        return None  # names of events and arms of a study
    if not mixed or not isinstance(shortest, int) or lengths > 2:
        return None
    if (shortest >= 6 and values.distinct.len() >= 20) or (shortest >= 12 and values.distinct.len() >= 5):
        why = say("values are codes of one length, as records and pseudonyms have")
        return Identifying(
            "record", why, False, shortest >= 12
        )  # shorter ones may be codes of drugs and tests
    return None


def _drawn(texts: pl.Series) -> bool:
    """Whether letters stand as if drawn: no words have four consonants in a row so often, nor all kinds of signs."""
    letters = share(texts, r"^(?:[A-Z]{6,}|[a-z]{6,})$") >= LEAST_SHARE
    if letters and share(texts, r"(?i)[bcdfghjklmnpqrstvwxz]{4}") >= 0.3:
        return True
    mixed = share(texts, r"^[A-Za-z0-9+/_-]{8,}={0,2}$") >= LEAST_SHARE
    kinds = [texts.str.contains(kind) for kind in (r"[a-z]", r"[A-Z]", r"[0-9+/_-]")]
    return mixed and int((kinds[0] & kinds[1] & kinds[2]).sum()) >= 0.5 * texts.len()


def _traces(values: Values) -> Identifying | None:
    texts = values.texts
    if not bool(texts.str.contains(r"[@/:(]|\d{2,}[.\s-]\d{2,}|(?i)\b(?:rua|av|calle)").any()):
        return None
    least = max(2 if texts.len() < 300 else 3, LEAST_TRACE * texts.len())
    for form in _TRACES:
        if int(texts.str.contains(form.pattern).sum()) >= least:
            return Identifying(form.kind, form.why, sure=False)
    return None
