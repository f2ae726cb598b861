"""The Portuguese catalogue, read from its PO file the first time something is told in Portuguese.

The file is what translators edit, and it is read as it is: a compiled copy would be a second truth that can
lag behind (`docs/decisions/0012-the-catalogue-is-read-as-text.md`). Only what our own
`docs/make_catalogue.py` writes is understood: msgid, msgid_plural, msgstr, and comments; contexts are not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

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
    for key, several, one, many, alone in _ENTRY.findall(text):
        if several:
            plural[_unquoted(key)] = (_unquoted(one), _unquoted(many))
        elif alone != '""\n' and key != '""\n':
            single[_unquoted(key)] = _unquoted(alone)
    return Catalogue(single, plural)


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
