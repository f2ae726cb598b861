"""The questions of a workload as they are written: several in one text or one by one, the refused one named by its number."""

from __future__ import annotations

from collections.abc import Sequence

from velado.data.schema import Schema
from velado.errors import QueryRefused
from velado.query.sql import checked, parse
from velado.query.values import Query
from velado.text import say


def read_queries(queries: str | Sequence[str | Query], schema: Schema, name: str) -> list[Query]:
    """The questions of a workload, parsed and checked; the one that is refused is named by its number.

    *queries* may be one text of several questions, each ended by a semicolon.
    """
    out = []
    for number, one in enumerate(workload_texts(queries) if isinstance(queries, str) else queries, 1):
        try:
            out.append(parse(one, schema, name) if isinstance(one, str) else checked(one, schema, name))
        except QueryRefused as error:
            raise QueryRefused(
                say("Question {number} of the workload: {what}", number=number, what=error.what),
                error.why,
                error.fix,
            ) from None
    return out


def workload_texts(text: str) -> list[str]:
    """The questions of a file, each ended by a semicolon; lines that begin with -- are remarks.

    >>> workload_texts("-- two counts\\nSELECT COUNT(*) FROM t; SELECT COUNT(age) FROM t;")
    ['SELECT COUNT(*) FROM t', 'SELECT COUNT(age) FROM t']
    """
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("--")]
    out, quoted, start = [], False, 0
    whole = "\n".join(lines)
    for at, letter in enumerate(whole):
        if letter == "'":
            quoted = not quoted
        elif letter == ";" and not quoted:
            out.append(whole[start:at])
            start = at + 1
    return [one.strip() for one in [*out, whole[start:]] if one.strip()]
