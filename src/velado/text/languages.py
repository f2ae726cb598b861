"""The language of a reader: asked for by a flag, an environment or a browser; the one spoken now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
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
