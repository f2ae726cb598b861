"""Why a piece of SQL is not answered: the construct, the reason and the way out, without a word of the query itself.

A literal in a query can hold somebody's name, and messages end up in logs; so a message names the construct, declared
columns and positions, and never repeats what the analyst wrote.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from velado.errors import MissingExtra, QueryRefused

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
class Tokens:
    """A query's tokens in order, and how often each that carries meaning occurs."""

    tokens: tuple[Any, ...]
    counts: Counter[str]


def read(text: str, names: Iterable[str]) -> Tokens:
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
        raise refused(*BY_TOKEN[kinds[0]])
    if not kinds or kinds[0] != "SELECT":
        raise QueryRefused(
            "The query does not begin with SELECT.",
            "Aggregates of one table are answered, and nothing else is done with it.",
            "Write for example SELECT COUNT(*) FROM the table.",
        )
    _check_depth(kinds)
    _check_words(tokens, kinds, frozenset(name.casefold() for name in names))
    counted = map(_counted_as, kinds)
    return Tokens(tokens, Counter(word for word in counted if word is not None))


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
                "A second statement", "One query is one question.", "Ask one SELECT at a time.", at=start
            )
        if any(comment.startswith("+") for comment in token.comments or ()):
            raise refused(*BY_TOKEN["HINT"])
        if word in ("EQ", "NEQ") and token.text not in ("=", "<>", "!="):
            raise unknown("A comparison", start)
        if word == "SELECT" and at:
            raise refused(*_SUBQUERY, at=start)
        if word == "FROM":
            selecting = False
        # A declared name or an alias may be a word of SQL; the tree then says whether it was used as a name.
        named = str(token.text).casefold() in names or before in ("ALIAS", "DOT")
        if word not in _WORDS and not named:
            raise refused(*BY_TOKEN[word], at=start) if word in BY_TOKEN else unknown("A word", start)
        if word == "ORDER_BY" and not (before == "L_PAREN" and _closes_within(tokens, at)):
            raise refused(*BY_TOKEN["ORDER_BY"], at=start)
        if word == "STAR" and not (before == "L_PAREN" and after == "R_PAREN"):
            raise refused(*BY_TOKEN["SLASH" if before in _OPERANDS else "STAR"], at=start)
        name = word in _NAMES or word not in _WORDS
        if name and after == "L_PAREN" and (depth or not selecting):
            # Functions inside functions or in WHERE make the parser try many readings, and none is accepted.
            raise refused(
                *(_CAST if str(token.text).upper() in ("CAST", "TRY_CAST") else _FUNCTION), at=start
            )
        depth += (word == "L_PAREN") - (word == "R_PAREN")


def _closes_within(tokens: tuple[Any, ...], at: int) -> bool:
    """Whether ORDER BY at *at* stands right after WITHIN GROUP and its bracket."""
    texts = [str(token.text).upper() for token in tokens[max(at - 3, 0) : at]]
    return texts == ["WITHIN", "GROUP", "("]


# fmt: off
_ONE = "Ask about the one table, and put what is related into it beforehand."
_LEAVE = "Leave it out."
_LITERAL = "Compare a column with a number, a text or a DATE."
_SPLIT = "Ask one plain SELECT at a time."
_AFTER = "Leave it out and work on the answer; what is done with an answer costs nothing."

_JOIN = ("A join",
    "One row of the other table may meet many of this one, so the noise would no longer cover a unit.",
    _ONE)
_SUBQUERY = ("A sub-query",
    "Its inner result would enter the outer one without noise or with unbounded effect.",
    _SPLIT)
_CTE = ("A common table expression (WITH)", "It is a sub-query with a name.", _SPLIT)
_SET = ("A set operation (UNION, INTERSECT, EXCEPT)",
    "Each part is a query of its own with its own cost.",
    _SPLIT)
_WINDOW = ("A window (OVER)",
    "It answers for single rows, and we answer for all matching rows together.",
    _LEAVE)
_GROUPING = ("GROUPING SETS, CUBE or ROLLUP", "It is several queries in one, each with its own cost.", _SPLIT)
_FUNCTION = ("A function or expression",
    "What it does to a bounded column is not known from public metadata, so no noise could be fixed for it.",
    "Aggregates are COUNT, SUM, AVG, MIN, MAX, MEDIAN, QUANTILE, PERCENTILE_CONT, PERCENTILE_DISC and HISTOGRAM;"
    " elsewhere use columns and literals as they are.")
_CAST = ("A CAST", "A cast can fail on a single row, and whether it does tells about that row.", _LITERAL)
_ARITHMETIC = ("Arithmetic",
    "An expression can fail or grow without bound on a single row, and whether it does tells about that row.",
    "Use columns and literals as they are; work on the answer afterwards.")
_ORDER = ("ORDER BY outside WITHIN GROUP",
    "The order of the answer is fixed by the declared domains.",
    _AFTER)
_LIMIT = ("LIMIT, OFFSET or FETCH",
    "Every declared key is returned, zeros too, so that a missing key tells nothing.",
    _AFTER)
_PATTERN = ("A pattern other than LIKE",
    "Engines differ in regular expressions and in what upper and lower case are.",
    "Use LIKE with % and _.")
_LOCK = ("A locking or sampling clause",
    "Which rows count is decided by WHERE and by the declared unit alone.",
    _LEAVE)
_WRITE = ("A statement other than SELECT",
    "Rows are never changed or shown here.",
    "Ask SELECT ... FROM ... .")
_BOOLEAN = ("A literal TRUE or FALSE",
    "It tests no column.",
    "Leave it out, or compare the column with a text.")
_STRING = ("A special string literal",
    "Its escapes are read differently by different engines.",
    "Write plain text in single quotes.")
_PLACEHOLDER = ("A placeholder or parameter", "A query is complete in itself.", "Write the value itself.")
_TIME = ("A time of day", "Dates are compared as days.", "Write DATE 'YYYY-MM-DD'.")
_CASE = ("CASE",
    "It is a function of rows, not a test of declared columns.",
    "Ask one query per case with WHERE.")
# fmt: on

# By the name of the token type as sqlglot calls it; a construct that is not listed is refused in general words.
BY_TOKEN: dict[str, tuple[str, str, str]] = {
    **dict.fromkeys(("JOIN", "LEFT", "RIGHT", "INNER", "OUTER", "CROSS", "FULL", "NATURAL", "USING", "ON"), _JOIN),
    **dict.fromkeys(("ASOF", "LATERAL", "ANTI", "SEMI", "STRAIGHT_JOIN", "CROSS_APPLY", "OUTER_APPLY"), _JOIN),
    **dict.fromkeys(("UNION", "INTERSECT", "EXCEPT"), _SET),
    **dict.fromkeys(("LIMIT", "OFFSET", "FETCH"), _LIMIT),
    **dict.fromkeys(("OVER", "WINDOW", "PARTITION_BY", "ROWS", "RANGE"), _WINDOW),
    **dict.fromkeys(("GROUPING_SETS", "CUBE", "ROLLUP"), _GROUPING),
    **dict.fromkeys(("EXISTS", "ANY", "SOME"), ("EXISTS, ANY or SOME", _SUBQUERY[1], "Write IN with a list of values.")),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPTZ", "TIME", "DATETIME"), _TIME),
    **dict.fromkeys(("ILIKE", "RLIKE", "IRLIKE", "SIMILAR_TO", "GLOB"), _PATTERN),
    **dict.fromkeys(("FOR", "LOCK", "TABLE_SAMPLE", "ONLY"), _LOCK),
    **dict.fromkeys(("PLUS", "SLASH", "DIV", "MOD", "PERCENT", "CARET", "DPIPE", "AMP", "PIPE", "TILDE"), _ARITHMETIC),
    **dict.fromkeys(("HASH", "LT_LT", "GT_GT", "DSTAR"), _ARITHMETIC),
    **dict.fromkeys(("TRUE", "FALSE"), _BOOLEAN),
    **dict.fromkeys(("BYTE_STRING", "NATIONAL_STRING", "HEREDOC_STRING", "RAW_STRING"), _STRING),
    **dict.fromkeys(("HEX_STRING", "BIT_STRING", "UNICODE_STRING"), _STRING),
    **dict.fromkeys(("PARAMETER", "PLACEHOLDER", "SESSION_PARAMETER", "COLON", "DAT"), _PLACEHOLDER),
    **dict.fromkeys(("CASE", "WHEN", "THEN", "ELSE", "END"), _CASE),
    **dict.fromkeys(("INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "ALTER", "MERGE", "INTO", "TRUNCATE"), _WRITE),
    **dict.fromkeys(("COMMAND", "EXECUTE", "COPY", "SET", "USE", "GRANT", "ANALYZE", "PRAGMA", "VALUES"), _WRITE),
    "DCOLON": _CAST,
    "WITH": _CTE,
    "ORDER_BY": _ORDER,
    "HAVING": ("HAVING",
        "Whether a group is shown would depend on its rows without noise.",
        "Leave HAVING out; every declared group is answered, and you may filter the noisy answer for free."),
    "QUALIFY": _WINDOW,
    "FILTER": ("FILTER", "One WHERE decides for all aggregates which rows count.", "Ask two queries, each with its own WHERE."),
    "DISTINCT": ("DISTINCT",
        "How many different values a column has is not an aggregate with a declared bound.",
        "Group by a column with a declared domain, or count rows."),
    "ESCAPE": ("LIKE with ESCAPE", "Patterns have no escape here, so that every engine reads them alike.", "Leave ESCAPE out."),
    "HINT": ("A hint", "How the engine runs is not the analyst's to say.", _LEAVE),
    "ALL": ("ALL", "It is either the default or belongs to a sub-query or to GROUP BY ALL.", _LEAVE),
    "DESC": ("DESC", "A quantile's level already says from which end it counts.", "Write 1 - level instead."),
    "INTERVAL": _ARITHMETIC,
    "STAR": ("A star outside COUNT(*)", "Rows are never shown.", "Name aggregates, for example COUNT(*) or AVG of a column."),
    "SELECT": _SUBQUERY,
}  # fmt: skip

# By the name of the tree's node class, where the parts of a construct are allowed tokens but the whole is not.
BY_NODE: dict[str, tuple[str, str, str]] = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Mod", "Neg", "Pow", "DPipe"), _ARITHMETIC),
    **dict.fromkeys(("Subquery", "Select", "Exists"), _SUBQUERY),
    **dict.fromkeys(("Union", "Intersect", "Except"), _SET),
    **dict.fromkeys(("Anonymous", "Func"), _FUNCTION),
    **dict.fromkeys(("Cast", "TryCast"), _CAST),
    "Concat": ("Several texts in a row", "Engines differ in whether they join them.", "Write one text."),
    "Boolean": _BOOLEAN,
    "Case": _CASE,
    "Escape": BY_TOKEN["ESCAPE"],
    "Distinct": BY_TOKEN["DISTINCT"],
    "Filter": BY_TOKEN["FILTER"],
    "Window": _WINDOW,
    "Star": BY_TOKEN["STAR"],
    "Tuple": ("A list of several columns or values", "Columns are tested one at a time.", "Test each column on its own, with AND."),
    "Null": ("A comparison with NULL",
        "Nothing equals a missing value, so it would never be true.",
        "Write IS NULL or IS NOT NULL."),
    "TableAlias": ("A second name for the table", "There is one table, and it has one name.", _LEAVE),
}  # fmt: skip

# By the argument of a node that must be empty.
BY_PART: dict[str, tuple[str, str, str]] = {
    "joins": _JOIN,
    "laterals": _JOIN,
    "with": _CTE,
    "with_": _CTE,
    "having": BY_TOKEN["HAVING"],
    "qualify": _WINDOW,
    "windows": _WINDOW,
    "order": _ORDER,
    "limit": _LIMIT,
    "offset": _LIMIT,
    "fetch": _LIMIT,
    "distinct": BY_TOKEN["DISTINCT"],
    "hint": BY_TOKEN["HINT"],
    "locks": _LOCK,
    "sample": _LOCK,
    "only": _LOCK,
    "into": _WRITE,
    "query": _SUBQUERY,
    "cube": _GROUPING,
    "rollup": _GROUPING,
    "grouping_sets": _GROUPING,
    "alias": BY_NODE["TableAlias"],
    "db": ("A table named with its schema or catalogue", "There is one table, and it has one name.", "Write the table's name alone."),
    "desc": BY_TOKEN["DESC"],
    "expressions": ("Several columns in one aggregate", "Each aggregate is of one column.", "Name one column."),
    "symmetric": ("BETWEEN SYMMETRIC", "The lower end comes first.", "Write BETWEEN with the lower end first."),
}  # fmt: skip

SYNTAX = "The subset is described in docs/reference/sql.md."


def refused(construct: str, why: str, fix: str, at: int | None = None) -> QueryRefused:
    """The refusal of a listed construct, with the character it starts at where that is known."""
    place = "" if at is None else f" at character {at + 1}"
    return QueryRefused(f"{construct} is not accepted{place}.", why, fix)


def unknown(what: str, position: int | None = None) -> QueryRefused:
    """The refusal of something that stands in no list: what is not understood wholly is not answered."""
    place = "" if position is None else f" at character {position + 1}"
    return QueryRefused(
        f"{what} is not part of the accepted SQL{place}.",
        "A query that is understood by halves could be answered with too little noise.",
        f"{SYNTAX} A column or alias that is a word of SQL goes in double quotes.",
    )
