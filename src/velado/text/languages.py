"""The language of a reader, asked for by a flag, an environment or a browser; the one spoken now; and its catalogue."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

Language = Literal["en", "pt"]
LANGUAGES: tuple[Language, ...] = ("en", "pt")
"""The languages velado speaks; the first is the one its sentences are written in."""

VARIABLE = "VELADO_LANG"

# A browser's list of languages is a handful of words; a longer header is not read further.
_MOST_LETTERS = 500

_spoken: ContextVar[Language] = ContextVar("velado_language", default="en")


def language() -> Language:
    """The language spoken now: English, unless `speaking` says otherwise.

    >>> language()
    'en'
    """
    return _spoken.get()


@contextmanager
def speaking(chosen: Language) -> Iterator[None]:
    """Within it, sentences and numbers are told in the language *chosen*; threads begin in English.

    >>> with speaking("pt"):
    ...     language()
    'pt'
    """
    token = _spoken.set(chosen)
    try:
        yield
    finally:
        _spoken.reset(token)


def choose(
    flag: str | None = None, environment: Mapping[str, str] | None = None, accept_language: str | None = None
) -> Language:
    """The first known language of the flag, the browser's list and VELADO_LANG, else English.

    LANG and LC_ALL are not asked: a release folder holds a report, and its bytes must follow from the recipe
    and not from the machine it was made on. The readers of a service have languages of their own, so theirs
    come before its owner's. A flag that is no language is for the caller to refuse, who knows how it was given.

    >>> choose("pt"), choose(None, {"VELADO_LANG": "pt_BR.UTF-8"}), choose(None, {}, "fr, pt-BR;q=0.8")
    ('pt', 'pt', 'pt')
    >>> choose(None, {"LANG": "pt_BR.UTF-8"})
    'en'
    """
    asked = [flag or "", *_ranked(accept_language or ""), (environment or {}).get(VARIABLE, "")[:2].lower()]
    return next((known for name in asked for known in LANGUAGES if name == known), "en")


def _ranked(header: str) -> list[str]:
    """The first two letters of each language of an Accept-Language header, the most wanted first."""
    ranked = []
    for place, part in enumerate(header[:_MOST_LETTERS].split(",")):
        name, _, weight = part.strip().partition(";q=")
        try:
            ranked.append((-float(weight or 1), place, name[:2].lower()))
        except ValueError:
            continue
    return [name for _, _, name in sorted(ranked)]


# The Portuguese catalogue is read from its PO file the first time something is told in Portuguese.
# The file is what translators edit, and it is read as it is: a compiled copy would be a second truth that can
# lag behind (`docs/decisions/0012-the-catalogue-is-read-as-text.md`). Only what our own
# `docs/make_catalogue.py` writes is understood: msgid, msgid_plural, msgstr, and comments; contexts are not.

PLACES: Mapping[str, Path] = {"pt": Path(__file__).parent / "locale" / "pt_BR.po"}

_QUOTED = r'((?:"[^\n]*"\n)+)'
_ENTRY = re.compile(
    rf"^msgid {_QUOTED}(?:msgid_plural {_QUOTED}msgstr\[0\] {_QUOTED}msgstr\[1\] {_QUOTED}|msgstr {_QUOTED})",
    re.M,
)
_ESCAPE = re.compile(r"\\(.)")
_LETTERS = {"n": "\n", "t": "\t", "r": "\r"}


@dataclass(frozen=True)
class Catalogue:
    """Translations by their English template; those of plurals, by the English singular, as (one, many).

    >>> Catalogue({"rows": "linhas"}, {}).of("rows"), Catalogue({}, {}).of("rows")
    ('linhas', 'rows')
    """

    single: Mapping[str, str]
    plural: Mapping[str, tuple[str, str]]
    several: Mapping[str, str] = field(default_factory=dict)
    """The English template for many, by the one for a single thing."""

    def of(self, template: str) -> str:
        """The translation of a template; the template itself where there is none."""
        return self.single.get(template) or template

    def of_amount(self, one: str, many: str, amount: float) -> str:
        """The form of a plural for an *amount*; English where there is none.

        Portuguese of Brazil takes the singular for 0 and 1 (gettext's `plural=(n > 1)`), English for 1 alone.
        """
        forms = self.plural.get(one)
        if forms and all(forms):
            return forms[1 if amount > 1 else 0]
        return one if amount == 1 else many


NO_CATALOGUE = Catalogue({}, {})


def read(text: str) -> Catalogue:
    r"""The catalogue that the text of a PO file holds; entries without a translation are left out.

    >>> read('msgid "one {x}"\nmsgstr "um {x}"\n\nmsgid "new"\nmsgstr ""\n').single
    {'one {x}': 'um {x}'}
    """
    single: dict[str, str] = {}
    plural: dict[str, tuple[str, str]] = {}
    english: dict[str, str] = {}
    for key, several, one, many, alone in _ENTRY.findall(text):
        if several:
            plural[_unquoted(key)] = (_unquoted(one), _unquoted(many))
            english[_unquoted(key)] = _unquoted(several)
        elif alone != '""\n' and key != '""\n':
            single[_unquoted(key)] = _unquoted(alone)
    return Catalogue(single, plural, english)


def _unquoted(lines: str) -> str:
    text = lines[1:-2]
    if '"\n"' in text:
        text = text.replace('"\n"', "")
    return _ESCAPE.sub(lambda found: _LETTERS.get(found[1], found[1]), text) if "\\" in text else text


@cache
def catalogue(language: str) -> Catalogue:
    """The catalogue of a language; English, in which the templates are written, has an empty one.

    >>> catalogue("pt").of("a whole number"), catalogue("en").of("a whole number")
    ('um número inteiro', 'a whole number')
    """
    place = PLACES.get(language)
    return NO_CATALOGUE if place is None else read(place.read_text("utf-8"))
