"""What was asked: each analyst's questions as the ledger has them, written as SQL again."""

from __future__ import annotations

import json
import threading
from collections import defaultdict, deque
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from velado.query.domains import decimal_text
from velado.query.store import ChainedLedger, Entry

KEPT = 1000
"""Questions remembered for each analyst, the newest."""


@dataclass(frozen=True)
class AskedQuestion:
    """One question an analyst paid for, its canonical query written as SQL again.

    *spend* is what it was allowed to cost, as the ledger wrote it down (None where an older version of velado
    did not), so that asking again names the same spend and is free, after a restart too. Where an accuracy was asked
    for, *within* and its *confidence* say it, and asking again names those.

    >>> AskedQuestion(3, "2026-01-01", "9f", "SELECT COUNT(*) FROM t", "1/10", 0.1, "1/10").number
    3
    """

    number: int
    time: str
    question: str
    sql: str
    cost: str
    about: float
    spend: str | None
    within: str | None = None
    confidence: float | None = None


class History:
    """Each analyst's last questions, read from the ledger's entries as they come. Safe among threads.

    >>> class Empty:
    ...     def entries(self, after=0): return iter(())
    >>> History(Empty()).of("ana", 10)
    []
    """

    def __init__(self, ledger: ChainedLedger) -> None:
        self._ledger = ledger
        self._lock = threading.Lock()
        self._read = 0
        self._asked: defaultdict[str, deque[Entry]] = defaultdict(lambda: deque(maxlen=KEPT))

    def of(self, analyst: str, most: int) -> list[AskedQuestion]:
        """The analyst's last questions, the newest first."""
        with self._lock:
            for entry in self._ledger.entries(self._read):
                self._read = entry.number
                if entry.kind == "reserve":
                    said = entry.fields()
                    # An entry that is no query (the unit a ledger is about) is nobody's question.
                    if said["text"].startswith('{"table"'):
                        self._asked[said["analyst"]].append(entry)
            found = list(self._asked[analyst])[-most:] if analyst in self._asked else []
        return [_asked(entry) for entry in reversed(found)]


def _asked(entry: Entry) -> AskedQuestion:
    said = entry.fields()
    text, cost = said["text"], said["cost"]
    asked = json.loads(text)
    return AskedQuestion(
        number=entry.number,
        time=said["at"],
        question=said["question"],
        sql=sql_of(text),
        cost=cost,
        about=float(Fraction(cost)),
        spend=asked.get("spend"),
        within=asked.get("within"),
        confidence=None if "confidence" not in asked else float(Fraction(asked["confidence"])),
    )


def sql_of(canonical: str) -> str:
    """A canonical query, as the ledger has it, as SQL that means the same.

    >>> rows = '"aggregates": [["count", null, null, null]]'
    >>> sql_of('{"table": "t", "keys": [], "where": ["null", "age"], %s}' % rows)
    'SELECT COUNT(*) FROM "t" WHERE "age" IS NULL'
    """
    form = json.loads(canonical)
    parts = [_name(key) for key in form["keys"]] + [_aggregate(*item) for item in form["aggregates"]]
    out = f"SELECT {', '.join(parts)} FROM {_name(form['table'])}"
    if form["where"] is not None:
        out += f" WHERE {_predicate(form['where'])}"
    if form["keys"]:
        keys = ", ".join(_name(key) for key in form["keys"])
        out += f" GROUP BY ROLLUP ({keys})" if form.get("rollup") else f" GROUP BY {keys}"
    if form.get("least") is not None:
        out += f" HAVING {_aggregate(*form['aggregates'][0])} >= {form['least']}"
    return out


def _aggregate(kind: str, column: str | None, at: str | None, bins: int | None) -> str:
    name = "*" if column is None else _name(column)
    if at is not None:
        return f"QUANTILE({name}, {decimal_text(Fraction(at))})"
    return f"{kind.upper()}({name}{'' if bins is None else f', {bins}'})"


def _predicate(form: list[Any]) -> str:
    match form:
        case ["and" | "or" as word, *parts]:
            return "(" + f" {word.upper()} ".join(_predicate(part) for part in parts) + ")"
        case ["not", part]:
            return f"NOT ({_predicate(part)})"
        case ["null", column]:
            return f"{_name(column)} IS NULL"
        case ["like", column, pattern]:
            return f"{_name(column)} LIKE {_quoted(pattern)}"
        case ["in", column, *values]:
            return f"{_name(column)} IN ({', '.join(_value(*value) for value in values)})"
        case [operator, column, value]:
            return f"{_name(column)} {operator} {_value(*value)}"
    raise ValueError("no predicate has this form")


def _value(kind: str, text: str) -> str:
    if kind == "number":
        return decimal_text(Fraction(text))
    return ("DATE " if kind == "date" else "") + _quoted(text)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
