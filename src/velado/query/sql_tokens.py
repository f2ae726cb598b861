"""The words of a query, checked before it is parsed: size, depth, and that each belongs to the accepted SQL.

A tokenizer runs in linear time and does not recurse, so what comes out is small and shallow enough for a parser that does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from velado.errors import MissingExtra, QueryRefused
from velado.query.sql_reasons import BY_TOKEN, CAST, FUNCTION, SUBQUERY, SYNTAX, refused, unknown

MOST_CHARACTERS = 10_000
# sqlglot spends up to 25 Python frames on a level, and the interpreter allows 1000 with the caller's own among them.
MOST_DEPTH = 20
# IN's thousand values take two tokens each.
MOST_TOKENS = 4_000

# PostgreSQL's reading: double quotes are names, single quotes are text, a backslash is a backslash.
DIALECT = "postgres"

# What the walk over the tree must account for, beside names: were one dropped by the parser, the meaning would change.
_LOGIC = frozenset(("AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "IS", "NULL"))
_COMPARISONS = frozenset(("EQ", "NEQ", "LT", "LTE", "GT", "GTE"))
COUNTED = _LOGIC | _COMPARISONS | {"NUMBER", "STRING", "DASH"}
_NAMES = frozenset(("VAR", "IDENTIFIER", "DATE"))
_CLAUSES = frozenset(("SELECT", "FROM", "WHERE", "GROUP_BY", "ORDER_BY", "ASC", "ALIAS"))
_MARKS = frozenset(("L_PAREN", "R_PAREN", "COMMA", "DOT", "STAR", "SEMICOLON"))
_OPERANDS = _NAMES | {"NUMBER", "STRING", "R_PAREN"}
# Control characters other than tab and line ends, and halves of characters.
_UNREADABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_WORDS = COUNTED | _NAMES | _CLAUSES | _MARKS


@dataclass(frozen=True)
class Words:
    """A query's tokens in order, and how often each that carries meaning occurs."""

    tokens: tuple[Any, ...]
    counts: Counter[str]


def read(text: str, names: Iterable[str]) -> Words:
    """The tokens of *text*, every one of them known; *names* are declared and may be words of SQL."""
    _check_characters(text)
    sqlglot = parser()
    try:
        tokens = tuple(dialect().tokenize(text))
    except (sqlglot.errors.SqlglotError, RecursionError, ValueError):
        raise unreadable() from None
    if len(tokens) > MOST_TOKENS:
        raise too_large(f"The query has more than {MOST_TOKENS:,} words.")
    kinds = [kind(token) for token in tokens]
    while kinds and kinds[-1] == "SEMICOLON":
        tokens = tokens[:-1]
        kinds.pop()
    if kinds and kinds[0] != "SELECT" and kinds[0] in BY_TOKEN:
        raise refused(BY_TOKEN[kinds[0]])
    if not kinds or kinds[0] != "SELECT":
        raise QueryRefused(
            "The query does not begin with SELECT.",
            "Aggregates of one table are answered, and nothing else is done with it.",
            "Write for example SELECT COUNT(*) FROM the table.",
        )
    _check_depth(kinds)
    _check_words(tokens, kinds, frozenset(name.casefold() for name in names))
    counted = map(_counted_as, kinds)
    return Words(tokens, Counter(word for word in counted if word is not None))


def kind(token: Any) -> str:
    """The name of a token's type."""
    return str(token.token_type.name)


def _counted_as(word: str) -> str | None:
    if word in COUNTED:
        return word
    return "NAME" if word in _NAMES or word not in _WORDS else None


def parser() -> Any:
    """sqlglot, or the extra that brings it."""
    try:
        import sqlglot
    except ImportError:
        raise MissingExtra(
            "SQL is read by sqlglot, which is not installed.",
            "Queries as text need it.",
            "Install velado[query].",
        ) from None
    return sqlglot


@cache
def dialect() -> Any:
    """PostgreSQL's rules of reading, which hold no state and are made once."""
    return parser().Dialect.get_or_raise(DIALECT)


def unreadable() -> QueryRefused:
    """The refusal of a text that is not SQL."""
    return QueryRefused(
        "The query is not readable as SQL.",
        "A bracket, quote, comma or word is missing or too many.",
        f"Correct it. {SYNTAX}",
    )


def too_large(what: str) -> QueryRefused:
    """The refusal of a query beyond a public limit."""
    return QueryRefused(
        what, "Limits keep one query from holding up all others.", "Ask a smaller query, or several."
    )


def _check_characters(text: str) -> None:
    if len(text) > MOST_CHARACTERS:
        raise too_large(f"The query is longer than {MOST_CHARACTERS:,} characters.")
    # Neither UTF-8 nor PostgreSQL can carry them, so that an engine would see another text than the ledger.
    if _UNREADABLE.search(text) is not None:
        raise QueryRefused(
            "The query holds a control character or half a character.",
            "Engines do not agree on what it means.",
            "Remove it.",
        )


def _check_depth(kinds: Sequence[str]) -> None:
    depth = run = 0
    for word in kinds:
        depth += (word == "L_PAREN") - (word == "R_PAREN")
        run = run + 1 if word in ("NOT", "DASH") else 0
        if depth > MOST_DEPTH or run > MOST_DEPTH:
            raise too_large(f"The query is nested more than {MOST_DEPTH} levels deep.")


def _check_words(tokens: tuple[Any, ...], kinds: Sequence[str], names: frozenset[str]) -> None:
    depth, selecting = 0, True
    for at, (token, word) in enumerate(zip(tokens, kinds, strict=True)):
        start = int(token.start)
        before = kinds[at - 1] if at else ""
        after = kinds[at + 1] if at + 1 < len(kinds) else ""
        if word == "SEMICOLON":
            raise refused(
                ("A second statement", "One query is one question.", "Ask one SELECT at a time."), start
            )
        if any(comment.startswith("+") for comment in token.comments or ()):
            raise refused(BY_TOKEN["HINT"])
        if word in ("EQ", "NEQ") and token.text not in ("=", "<>", "!="):
            raise unknown("A comparison", start)
        if word == "SELECT" and at:
            raise refused(SUBQUERY, start)
        if word == "FROM":
            selecting = False
        # A declared name or an alias may be a word of SQL; the tree then says whether it was used as a name.
        named = str(token.text).casefold() in names or before in ("ALIAS", "DOT")
        if word not in _WORDS and not named:
            raise refused(BY_TOKEN[word], start) if word in BY_TOKEN else unknown("A word", start)
        if word == "ORDER_BY" and not (before == "L_PAREN" and _closes_within(tokens, at)):
            raise refused(BY_TOKEN["ORDER_BY"], start)
        if word == "STAR" and not (before == "L_PAREN" and after == "R_PAREN"):
            raise refused(BY_TOKEN["SLASH" if before in _OPERANDS else "STAR"], start)
        name = word in _NAMES or word not in _WORDS
        if name and after == "L_PAREN" and (depth or not selecting):
            # Functions inside functions or in WHERE make the parser try many readings, and none is accepted.
            raise refused(CAST if str(token.text).upper() in ("CAST", "TRY_CAST") else FUNCTION, start)
        depth += (word == "L_PAREN") - (word == "R_PAREN")


def _closes_within(tokens: tuple[Any, ...], at: int) -> bool:
    """Whether ORDER BY at *at* stands right after WITHIN GROUP and its bracket."""
    texts = [str(token.text).upper() for token in tokens[max(at - 3, 0) : at]]
    return texts == ["WITHIN", "GROUP", "("]
