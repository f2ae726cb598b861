"""Strong traces of a person in any text of a column: an e-mail, a CPF, a telephone, a profile on the web.

One such cell is published as surely as a thousand, and a sample would pass it over. So every text is read, with one
regular expression that skips what holds nothing of the kind.
"""

from __future__ import annotations

import polars as pl

from velado.data.identifiers.check_digits import valid_cpf_share
from velado.data.identifiers.headers import Found, IdentifierKind
from velado.data.normal import tidy_texts

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
_TRACES: tuple[tuple[IdentifierKind, str, str], ...] = (
    ("email", _EMAIL, "some values hold an e-mail address"),
    ("cpf", _CPF, "some values hold a CPF"),
    ("ssn", _SSN, "some values hold a social security number"),
    ("url", _PROFILE, "some values hold a web address"),
    ("phone", _PHONE, "some values hold a telephone number"),
)
# What every trace has: an @, a profile's slashes, enough digits near a mark; or a sign nobody sees, which may hide one.
_MAY_HOLD = (
    r"@|://|\.(?:com|me|br)/|[0-9][)-][0-9 ]|[)] ?[0-9]{4}|[0-9] 9[0-9]{8}|[+][0-9]{2}|^ *[0-9]{11} *$"
    r"|[\x{AD}\x{34F}\x{61C}\x{180B}-\x{180F}\x{200B}-\x{200F}\x{202A}-\x{202F}\x{2060}-\x{206F}\x{FE00}-\x{FE0F}\x{FEFF}"
    r"\x{FF00}-\x{FFEF}\x{A0}]"
)


def find_traces(texts: pl.Series, *, numbers: bool = False) -> Found | None:
    """The strongest trace that any of *texts* holds, as a doubt; None when none does.

    With *numbers* most texts are numbers, and eleven digits that keep a CPF's rule may do so by chance. O(n).
    """
    held = texts.filter(texts.str.contains(_MAY_HOLD).fill_null(False)).head(MOST_READ)
    if not held.len():
        return None
    held = tidy_texts(held.unique())
    for kind, pattern, why in _TRACES:
        if bool(held.str.contains(pattern).any()):
            return Found(kind, why, sure=False)
    if not numbers:
        whole = held.filter(held.str.contains(r"^[0-9]{11}$"))
        if whole.len() and valid_cpf_share(whole) > 0.5:
            return Found("cpf", "some values hold a CPF", sure=False)
    return None
