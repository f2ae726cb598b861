"""The words of a query, checked before it is parsed, and why a piece of SQL is not answered.

A literal in a query can hold somebody's name, and messages end up in logs; so a message names the construct, the reason
and the way out, declared columns and positions, and never repeats what the analyst wrote.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from velado.errors import MissingExtra, QueryRefused
from velado.text import say

# The words of a query, checked before it is parsed: size, depth, and that each belongs to the accepted SQL.
#
# A tokenizer runs in linear time and does not recurse, so what comes out is small and shallow enough for a parser that does.

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
class QueryTokens:
    """A query's tokens in order, and how often each that carries meaning occurs."""

    tokens: tuple[Any, ...]
    counts: Counter[str]


def read(text: str, names: Iterable[str]) -> QueryTokens:
    """The tokens of *text*, every one of them known; *names* are declared and may be words of SQL."""
    _check_characters(text)
    sqlglot = parser()
    try:
        tokens = tuple(dialect().tokenize(text))
    except (sqlglot.errors.SqlglotError, RecursionError, ValueError):
        raise unreadable() from None
    if len(tokens) > MOST_TOKENS:
        raise too_large(say("The query has more than {most:,} words.", most=MOST_TOKENS))
    kinds = [kind(token) for token in tokens]
    while kinds and kinds[-1] == "SEMICOLON":
        tokens = tokens[:-1]
        kinds.pop()
    if kinds and kinds[0] != "SELECT" and kinds[0] in REFUSED:
        raise refused(*REFUSED[kinds[0]])
    if not kinds or kinds[0] != "SELECT":
        raise QueryRefused(
            "The query does not begin with SELECT.",
            "Aggregates of one table are answered, and nothing else is done with it.",
            "Write for example SELECT COUNT(*) FROM the table.",
        )
    _check_depth(kinds)
    _check_words(tokens, kinds, frozenset(name.casefold() for name in names))
    counted = map(_counted_as, kinds)
    return QueryTokens(tokens, Counter(word for word in counted if word is not None))


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
        say("Correct it. {syntax}", syntax=SYNTAX),
    )


def too_large(what: str) -> QueryRefused:
    """The refusal of a query beyond a public limit."""
    return QueryRefused(
        what, "Limits keep one query from holding up all others.", "Ask a smaller query, or several."
    )


def _check_characters(text: str) -> None:
    if len(text) > MOST_CHARACTERS:
        raise too_large(say("The query is longer than {most:,} characters.", most=MOST_CHARACTERS))
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
            raise too_large(say("The query is nested more than {most} levels deep.", most=MOST_DEPTH))


def _check_words(tokens: tuple[Any, ...], kinds: Sequence[str], names: frozenset[str]) -> None:
    depth, selecting = 0, True
    for at, (token, word) in enumerate(zip(tokens, kinds, strict=True)):
        start = int(token.start)
        before = kinds[at - 1] if at else ""
        after = kinds[at + 1] if at + 1 < len(kinds) else ""
        if word == "SEMICOLON":
            raise refused(
                say("A second statement"),
                say("One query is one question."),
                say("Ask one SELECT at a time."),
                at=start,
            )
        if any(comment.startswith("+") for comment in token.comments or ()):
            raise refused(*REFUSED["HINT"])
        if word in ("EQ", "NEQ") and token.text not in (say("="), say("<>"), say("!=")):
            raise unknown(say("A comparison"), start)
        if word == "SELECT" and at:
            raise refused(*REFUSED["SELECT"], at=start)
        if word == "FROM":
            selecting = False
        # A declared name or an alias may be a word of SQL; the tree then says whether it was used as a name.
        named = str(token.text).casefold() in names or before in ("ALIAS", "DOT")
        rolled = word == "ROLLUP" and before == "GROUP_BY" and after == "L_PAREN"
        above = word == "HAVING" and "GROUP_BY" in kinds[:at]
        if word not in _WORDS and not named and not rolled and not above:
            raise refused(*REFUSED[word], at=start) if word in REFUSED else unknown(say("A word"), start)
        if word == "ORDER_BY" and not (before == "L_PAREN" and _closes_within(tokens, at)):
            raise refused(*REFUSED["ORDER_BY"], at=start)
        if word == "STAR" and not (before == "L_PAREN" and after == "R_PAREN"):
            raise refused(*REFUSED["SLASH" if before in _OPERANDS else "STAR"], at=start)
        name = word in _NAMES or word not in _WORDS
        if name and after == "L_PAREN" and (depth or not selecting) and not rolled and before != "HAVING":
            # Functions inside functions or in WHERE make the parser try many readings, and none is accepted.
            raise refused(
                *REFUSED["Cast" if str(token.text).upper() in ("CAST", "TRY_CAST") else "Func"], at=start
            )
        depth += (word == "L_PAREN") - (word == "R_PAREN")


def _closes_within(tokens: tuple[Any, ...], at: int) -> bool:
    """Whether ORDER BY at *at* stands right after WITHIN GROUP and its bracket."""
    texts = [str(token.text).upper() for token in tokens[max(at - 3, 0) : at]]
    return texts == ["WITHIN", "GROUP", "("]


_ONE = say("Ask about the one table, and put what is related into it beforehand.")
_LEAVE = say("Leave it out.")
_LITERAL = say("Compare a column with a number, a text or a DATE.")
_SPLIT = say("Ask one plain SELECT at a time.")
_AFTER = say("Leave it out and work on the answer; what is done with an answer costs nothing.")

# By what is written before a refusal: token types as sqlglot calls them (JOIN), node classes of its tree (Subquery), and
# arguments of a node that must be empty (joins). A construct that is not listed is refused in general words.
# fmt: off
_REFUSED: tuple[tuple[str, str, str, str], ...] = (
    ("JOIN LEFT RIGHT INNER OUTER CROSS FULL NATURAL USING ON ASOF LATERAL ANTI SEMI STRAIGHT_JOIN "
     "CROSS_APPLY OUTER_APPLY joins laterals", say("A join"),
     say("One row of the other table may meet many of this one, so the noise would no longer cover a unit."),
     _ONE),
    ("UNION INTERSECT EXCEPT Union Intersect Except", say("A set operation (UNION, INTERSECT, EXCEPT)"),
     say("Each part is a query of its own with its own cost."), _SPLIT),
    ("LIMIT OFFSET FETCH limit offset fetch", say("LIMIT, OFFSET or FETCH"),
     say("Every declared key is returned, zeros too, so that a missing key tells nothing."), _AFTER),
    ("OVER WINDOW PARTITION_BY ROWS RANGE QUALIFY Window qualify windows", say("A window (OVER)"),
     say("It answers for single rows, and we answer for all matching rows together."), _LEAVE),
    ("GROUPING_SETS CUBE cube grouping_sets", say("GROUPING SETS or CUBE"),
     say("It is several queries in one, each with its own cost."), _SPLIT),
    ("ROLLUP Rollup rollup", say("ROLLUP elsewhere than right after GROUP BY"),
     say("A hierarchy is of all keys of a query."), say("Write GROUP BY ROLLUP (column, ...).")),
    ("EXISTS ANY SOME", say("EXISTS, ANY or SOME"),
     say("Its inner result would enter the outer one without noise or with unbounded effect."),
     say("Write IN with a list of values.")),
    ("TIMESTAMP TIMESTAMPTZ TIME DATETIME", say("A time of day"), say("Dates are compared as days."),
     say("Write DATE 'YYYY-MM-DD'.")),
    ("ILIKE RLIKE IRLIKE SIMILAR_TO GLOB", say("A pattern other than LIKE"),
     say("Engines differ in regular expressions and in what upper and lower case are."),
     say("Use LIKE with % and _.")),
    ("FOR LOCK TABLE_SAMPLE ONLY locks sample only", say("A locking or sampling clause"),
     say("Which rows count is decided by WHERE and by the declared unit alone."), _LEAVE),
    ("PLUS SLASH DIV MOD PERCENT CARET DPIPE AMP PIPE TILDE HASH LT_LT GT_GT DSTAR INTERVAL Add Sub "
     "Mul Div Mod Neg Pow DPipe", say("Arithmetic"),
     say("An expression can fail or grow without bound on a single row, and whether it does tells about "
         "that row."), say("Use columns and literals as they are; work on the answer afterwards.")),
    ("TRUE FALSE Boolean", say("A literal TRUE or FALSE"), say("It tests no column."),
     say("Leave it out, or compare the column with a text.")),
    ("BYTE_STRING NATIONAL_STRING HEREDOC_STRING RAW_STRING HEX_STRING BIT_STRING UNICODE_STRING",
     say("A special string literal"), say("Its escapes are read differently by different engines."),
     say("Write plain text in single quotes.")),
    ("PARAMETER PLACEHOLDER SESSION_PARAMETER COLON DAT", say("A placeholder or parameter"),
     say("A query is complete in itself."), say("Write the value itself.")),
    ("CASE WHEN THEN ELSE END Case", say("CASE"),
     say("It is a function of rows, not a test of declared columns."),
     say("Ask one query per case with WHERE.")),
    ("INSERT UPDATE DELETE CREATE DROP ALTER MERGE INTO TRUNCATE COMMAND EXECUTE COPY SET USE GRANT "
     "ANALYZE PRAGMA VALUES into", say("A statement other than SELECT"),
     say("Rows are never changed or shown here."), say("Ask SELECT ... FROM ... .")),
    ("DCOLON Cast TryCast", say("A CAST"),
     say("A cast can fail on a single row, and whether it does tells about that row."), _LITERAL),
    ("WITH with with_", say("A common table expression (WITH)"), say("It is a sub-query with a name."),
     _SPLIT),
    ("ORDER_BY order", say("ORDER BY outside WITHIN GROUP"),
     say("The order of the answer is fixed by the declared domains."), _AFTER),
    ("HAVING having Having", say("HAVING beside ROLLUP, or with anything but a least count of 1 or more"),
     say("Keys are left out by their noisy count, and by nothing else."),
     say("Write HAVING COUNT(*) >= 20, or leave it out and filter the noisy answer for free.")),
    ("FILTER Filter", say("FILTER"), say("One WHERE decides for all aggregates which rows count."),
     say("Ask two queries, each with its own WHERE.")),
    ("DISTINCT Distinct distinct", say("DISTINCT"),
     say("How many different values a column has is not an aggregate with a declared bound."),
     say("Group by a column with a declared domain, or count rows.")),
    ("ESCAPE Escape", say("LIKE with ESCAPE"),
     say("Patterns have no escape here, so that every engine reads them alike."), say("Leave ESCAPE out.")),
    ("HINT hint", say("A hint"), say("How the engine runs is not the analyst's to say."), _LEAVE),
    ("ALL", say("ALL"), say("It is either the default or belongs to a sub-query or to GROUP BY ALL."),
     _LEAVE),
    ("DESC desc", say("DESC"), say("A quantile's level already says from which end it counts."),
     say("Write 1 - level instead.")),
    ("STAR Star", say("A star outside COUNT(*)"), say("Rows are never shown."),
     say("Name aggregates, for example COUNT(*) or AVG of a column.")),
    ("SELECT Subquery Select Exists query", say("A sub-query"),
     say("Its inner result would enter the outer one without noise or with unbounded effect."), _SPLIT),
    ("Anonymous Func", say("A function or expression"),
     say("What it does to a bounded column is not known from public metadata, so no noise could be fixed "
         "for it."),
     say("Aggregates are COUNT, SUM, AVG, MIN, MAX, MEDIAN, QUANTILE, PERCENTILE_CONT, PERCENTILE_DISC and"
         " HISTOGRAM; elsewhere use columns and literals as they are.")),
    ("Concat", say("Several texts in a row"), say("Engines differ in whether they join them."),
     say("Write one text.")),
    ("Tuple", say("A list of several columns or values"), say("Columns are tested one at a time."),
     say("Test each column on its own, with AND.")),
    ("Null", say("A comparison with NULL"),
     say("Nothing equals a missing value, so it would never be true."),
     say("Write IS NULL or IS NOT NULL.")),
    ("TableAlias alias", say("A second name for the table"), say("There is one table, and it has one name."),
     _LEAVE),
    ("db", say("A table named with its schema or catalogue"),
     say("There is one table, and it has one name."), say("Write the table's name alone.")),
    ("expressions", say("Several columns in one aggregate"), say("Each aggregate is of one column."),
     say("Name one column.")),
    ("symmetric", say("BETWEEN SYMMETRIC"), say("The lower end comes first."),
     say("Write BETWEEN with the lower end first.")),
)
# fmt: on
REFUSED = {name: (what, why, fix) for names, what, why, fix in _REFUSED for name in names.split()}
SYNTAX = say("The subset is described in docs/reference/sql.md.")


def refused(construct: str, why: str, fix: str, at: int | None = None) -> QueryRefused:
    """The refusal of a listed construct, with the character it starts at where that is known."""
    if at is None:
        return QueryRefused(say("{construct} is not accepted.", construct=construct), why, fix)
    what = say("{construct} is not accepted at character {number}.", construct=construct, number=at + 1)
    return QueryRefused(what, why, fix)


def unknown(what: str, position: int | None = None) -> QueryRefused:
    """The refusal of something that stands in no list: what is not understood wholly is not answered."""
    told = say("{what} is not part of the accepted SQL.", what=what)
    if position is not None:
        told = say("{what} is not part of the accepted SQL at character {at}.", what=what, at=position + 1)
    return QueryRefused(
        told,
        "A query that is understood by halves could be answered with too little noise.",
        say("{syntax} A column or alias that is a word of SQL goes in double quotes.", syntax=SYNTAX),
    )
