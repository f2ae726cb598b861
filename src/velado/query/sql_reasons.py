"""Why a piece of SQL is not answered: the construct, the reason and the way out, without a word of the query itself.

A literal in a query can hold somebody's name, and messages end up in logs; so a message names the construct, declared
columns and positions, and never repeats what the analyst wrote.
"""

from __future__ import annotations

from velado.errors import QueryRefused

_ONE = "Ask about the one table, and put what is related into it beforehand."
_LEAVE = "Leave it out."
_LITERAL = "Compare a column with a number, a text or a DATE."
_SPLIT = "Ask one plain SELECT at a time."
_AFTER = "Leave it out and work on the answer; what is done with an answer costs nothing."

_JOIN = (
    "A join",
    "One row of the other table may meet many of this one, so the noise would no longer cover a unit.",
    _ONE,
)
_SUBQUERY = (
    "A sub-query",
    "Its inner result would enter the outer one without noise or with unbounded effect.",
    _SPLIT,
)
_CTE = ("A common table expression (WITH)", "It is a sub-query with a name.", _SPLIT)
_SET = (
    "A set operation (UNION, INTERSECT, EXCEPT)",
    "Each part is a query of its own with its own cost.",
    _SPLIT,
)
_WINDOW = (
    "A window (OVER)",
    "It answers for single rows, and we answer for all matching rows together.",
    _LEAVE,
)
_GROUPING = ("GROUPING SETS, CUBE or ROLLUP", "It is several queries in one, each with its own cost.", _SPLIT)
_FUNCTION = (
    "A function or expression",
    "What it does to a bounded column is not known from public metadata, so no noise could be fixed for it.",
    "Aggregates are COUNT, SUM, AVG, MIN, MAX, MEDIAN, QUANTILE, PERCENTILE_CONT, PERCENTILE_DISC and HISTOGRAM;"
    " elsewhere use columns and literals as they are.",
)
_CAST = ("A CAST", "A cast can fail on a single row, and whether it does tells about that row.", _LITERAL)
_ARITHMETIC = (
    "Arithmetic",
    "An expression can fail or grow without bound on a single row, and whether it does tells about that row.",
    "Use columns and literals as they are; work on the answer afterwards.",
)
_ORDER = (
    "ORDER BY outside WITHIN GROUP",
    "The order of the answer is fixed by the declared domains.",
    _AFTER,
)
_LIMIT = (
    "LIMIT, OFFSET or FETCH",
    "Every declared key is returned, zeros too, so that a missing key tells nothing.",
    _AFTER,
)
_PATTERN = (
    "A pattern other than LIKE",
    "Engines differ in regular expressions and in what upper and lower case are.",
    "Use LIKE with % and _.",
)
_LOCK = (
    "A locking or sampling clause",
    "Which rows count is decided by WHERE and by the declared unit alone.",
    _LEAVE,
)
_WRITE = (
    "A statement other than SELECT",
    "Rows are never changed or shown here.",
    "Ask SELECT ... FROM ... .",
)
_BOOLEAN = (
    "A literal TRUE or FALSE",
    "It tests no column.",
    "Leave it out, or compare the column with a text.",
)
_STRING = (
    "A special string literal",
    "Its escapes are read differently by different engines.",
    "Write plain text in single quotes.",
)
_PLACEHOLDER = ("A placeholder or parameter", "A query is complete in itself.", "Write the value itself.")
_TIME = ("A time of day", "Dates are compared as days.", "Write DATE 'YYYY-MM-DD'.")
_CASE = (
    "CASE",
    "It is a function of rows, not a test of declared columns.",
    "Ask one query per case with WHERE.",
)

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
    "HAVING": (
        "HAVING",
        "Whether a group is shown would depend on its rows without noise.",
        "Leave HAVING out; every declared group is answered, and you may filter the noisy answer for free.",
    ),
    "QUALIFY": _WINDOW,
    "FILTER": ("FILTER", "One WHERE decides for all aggregates which rows count.", "Ask two queries, each with its own WHERE."),
    "DISTINCT": (
        "DISTINCT",
        "How many different values a column has is not an aggregate with a declared bound.",
        "Group by a column with a declared domain, or count rows.",
    ),
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
    "Null": (
        "A comparison with NULL",
        "Nothing equals a missing value, so it would never be true.",
        "Write IS NULL or IS NOT NULL.",
    ),
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

FUNCTION = _FUNCTION
CAST = _CAST
SUBQUERY = _SUBQUERY
SYNTAX = "The subset is described in docs/reference/sql.md."


def refused(reason: tuple[str, str, str], position: int | None = None) -> QueryRefused:
    """The refusal of a listed construct, with the character it starts at where that is known."""
    construct, why, fix = reason
    place = "" if position is None else f" at character {position + 1}"
    return QueryRefused(f"{construct} is not accepted{place}.", why, fix)


def unknown(what: str, position: int | None = None) -> QueryRefused:
    """The refusal of something that stands in no list: what is not understood wholly is not answered."""
    place = "" if position is None else f" at character {position + 1}"
    return QueryRefused(
        f"{what} is not part of the accepted SQL{place}.",
        "A query that is understood by halves could be answered with too little noise.",
        f"{SYNTAX} A column or alias that is a word of SQL goes in double quotes.",
    )
