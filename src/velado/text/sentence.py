"""Sentences that are finished English and still know their parts, to be told in another language."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, time, timedelta
from numbers import Number
from types import MappingProxyType
from typing import Literal

from velado.errors import VeladoError
from velado.text.languages import Language, catalogue, language
from velado.text.writing import written

_NO_PARTS: Mapping[str, object] = MappingProxyType({})


class Sentence(str):
    """The finished English sentence, with the *template* and the *parts* it was made of.

    It is a str in every way: it compares, prints and is written to JSON as one. What str's own methods make
    of it is a plain str, which no longer knows its parts. A sentence about an *amount* also has the template
    for *many*.

    >>> rows = say("Column '{column}' has {rows:,} rows.", column="age", rows=1234)
    >>> rows, rows.template, dict(rows.parts)
    ("Column 'age' has 1,234 rows.", "Column '{column}' has {rows:,} rows.", {'column': 'age', 'rows': 1234})
    """

    __slots__ = ("amount", "many", "parts", "template")

    template: str
    parts: Mapping[str, object]
    many: str | None
    amount: float

    def __new__(
        cls,
        template: str,
        parts: Mapping[str, object] = _NO_PARTS,
        many: str | None = None,
        amount: float = 1,
    ) -> Sentence:
        """The sentence of *template*, or of *many* where the *amount* is not 1, with its parts filled in."""
        kept = {name: _kept(part) for name, part in parts.items()}
        chosen = template if many is None or amount == 1 else many
        made = super().__new__(cls, chosen.format(**kept) if kept else chosen)
        made.template, made.many, made.amount = str(template), many, amount
        made.parts = MappingProxyType(kept)
        return made

    def __reduce__(self) -> tuple[type[Sentence], tuple[str, dict[str, object], str | None, float]]:
        return type(self), (self.template, dict(self.parts), self.many, self.amount)


def say(template: str, /, **parts: object) -> Sentence:
    """The English sentence of a *template*, which stays translatable.

    A template is a literal, for it is the key of the catalogue; its places are those of `str.format`, by name
    only. Without parts, braces are plain letters, and a Sentence stays what it is. A part that is a Sentence
    or an error of ours is translated too, numbers and dates are written as the language writes them, and any
    other part (a column's name) is never translated.

    >>> say("{share:.1%} of {rows:,} rows.", share=0.5, rows=1000)
    '50.0% of 1,000 rows.'
    """
    return template if isinstance(template, Sentence) and not parts else Sentence(template, parts)


def say_n(one: str, many: str, n: float, /, **parts: object) -> Sentence:
    """The sentence for *n* things, *one* or *many* of them; the count itself is the part `{n}`.

    >>> say_n("{n} row of {table}.", "{n:,} rows of {table}.", 2000, table="stays")
    '2,000 rows of stays.'
    """
    return Sentence(one, {**parts, "n": n}, many, n)


def join(parts: Iterable[object], separator: str = " ") -> Sentence:
    """Parts one after another, each of them translated where it is a Sentence, and so is the separator.

    >>> join([say("First."), say("Second.")])
    'First. Second.'
    """
    named = {f"part{at}": part for at, part in enumerate(parts)}
    if not named:
        return Sentence("")
    return Sentence("{separator}".join(f"{{{name}}}" for name in named), {**named, "separator": separator})


def listed(items: Iterable[object], word: Literal["and", "or"] = "and") -> Sentence:
    """Items in a row, as a sentence lists them.

    >>> listed(["age", "sex", "zip"]), listed(["en", "pt"], "or"), told(listed(["age", "sex"]), "pt")
    ('age, sex and zip', 'en or pt', 'age e sex')
    """
    items = list(items)
    if len(items) < 2:
        return join(items)
    first, last = join(items[:-1], ", "), items[-1]
    if word == "or":
        return say("{first} or {last}", first=first, last=last)
    return say("{first} and {last}", first=first, last=last)


def told(sentence: str, tongue: Language | None = None) -> str:
    """A sentence in a language, without one in the language spoken now; English where the catalogue lacks it.

    A plain str is a template without parts.

    >>> told(say("{first} or {last}", first=1234.5, last=listed(["a", "b"])), "pt")
    '1234,5 ou a e b'
    """
    tongue = tongue or language()
    if tongue == "en":
        return str(sentence)
    words = catalogue(tongue)
    if not isinstance(sentence, Sentence):
        return words.of(sentence)
    if sentence.many is None:
        template = words.of(sentence.template)
    else:
        template = words.of_amount(sentence.template, sentence.many, sentence.amount)
    if not sentence.parts:
        return template
    return template.format_map({name: _Told(part, tongue) for name, part in sentence.parts.items()})


def told_sentences(error: VeladoError, tongue: Language | None = None) -> tuple[str, str, str]:
    """What happened, why it matters and what to do about it, in a language.

    >>> told_sentences(VeladoError("It broke.", "It matters.", "Mend it."), "pt")
    ('It broke.', 'It matters.', 'Mend it.')
    """
    return told(error.what, tongue), told(error.why, tongue), told(error.fix, tongue)


def told_error(error: VeladoError, tongue: Language | None = None) -> str:
    """The message of an error in a language; in English it is `str(error)`.

    >>> told_error(VeladoError("It broke.", "It matters.", "Mend it."), "pt")
    'It broke. It matters. Mend it.'
    """
    return " ".join(told_sentences(error, tongue))


class _Told:
    """A part that a template of another language formats: under the same spec, as that language writes it."""

    __slots__ = ("part", "tongue")

    def __init__(self, part: object, tongue: Language) -> None:
        self.part = told(part, tongue) if isinstance(part, Sentence) else part
        self.tongue = tongue

    def __format__(self, spec: str) -> str:
        return written(self.part, spec, self.tongue)

    def __str__(self) -> str:
        return str(self.part)

    def __repr__(self) -> str:
        return repr(self.part)


def _kept(part: object) -> object:
    """What a sentence keeps of a part: what it can write again in another language, else the part's text.

    A path, an exception or a list is kept as its text, so that a sentence holds on to nothing and can be
    pickled.
    """
    if isinstance(part, VeladoError):
        three = join(say(said) for said in (part.what, part.why, part.fix))
        return three if three == str(part) else str(part)
    if isinstance(part, Sentence | Number | date | time | timedelta) or type(part) is str:
        return part
    return format(part, "")
