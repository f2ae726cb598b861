"""Whatever text arrives, it is a query over declared columns or it is refused; nothing else happens, and soon."""

import json
import random
import time

import pytest

from velado.data.schema import Column, Schema
from velado.errors import QueryRefused
from velado.query.sql import parse
from velado.query.values import Query

pytest.importorskip("sqlglot")

SCHEMA = Schema(
    {
        "patient": Column("patient", "identifier", person=True, max_rows=3),
        "age": Column("age", "quasi", "numeric", bounds=(0, 120), step=1),
        "sex": Column("sex", "quasi", values=("F", "M")),
        "day": Column("day", kind="date"),
        "note": Column("note", kind="text"),
        "name": Column("name", values=("x",)),
        "limit": Column("limit", values=("x",)),
        "union": Column("union", values=("x",)),
        "hidden": Column("hidden", publish=False),
    }
)
OPEN = {"age", "sex", "day", "note", "name", "limit", "union"}
VALID = [
    "SELECT COUNT(*) FROM patients",
    "SELECT sex, COUNT(*) AS n, AVG(age), MEDIAN(age) FROM patients WHERE age BETWEEN 1 AND 90 GROUP BY sex",
    "SELECT HISTOGRAM(age, 10) FROM patients WHERE NOT (sex IN ('F', 'M') OR note LIKE 'a%') AND day IS NOT NULL",
    "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age ASC) FROM patients WHERE day >= DATE '2020-01-31'",
    "SELECT QUANTILE(age, 0.25), MIN(age), MAX(age) FROM patients WHERE sex <> 'F' AND note NOT LIKE '_b%'",
    'SELECT SUM(age) AS "total years" FROM patients WHERE (age = -1.5e0 OR 3 < age) GROUP BY "name", sex;',
]
INJECTIONS = [
    "' OR '1'='1", "' OR 1=1 --", "'; DROP TABLE patients; --", "' UNION SELECT * FROM patients --", "') OR ('a'='a",
    "1; SELECT pg_sleep(10)", "1 AND 1=(SELECT COUNT(*) FROM pg_user)", "0x27204f52", "' || (SELECT note FROM patients) || '",
    "\\'; --", "/*!50000 OR 1=1 */", "1/0", "'; COPY patients TO '/x'; --", "(SELECT CASE WHEN 1=1 THEN 1/0 END)",
    "x' AND patient LIKE '0%", "'''", "\"\"\"", "$$ OR $$", "E'\\''", "U&'\\0027'", "{{7*7}}", "${7*7}", "%s", "%(x)s", ":1",
    "'; ATTACH 'x' AS y; --", "read_csv_auto('x')", "CAST(patient AS INT)", "patient::int", "hidden = 'x'", "\"hidden\"",
    "age = age", "age = patient", "NULL", "TRUE", "* FROM patients --", "1e400", "9" * 400, "0.1" * 50, "١٢٣", "１",
    "ſex = 'F'", "ＳＥＬＥＣＴ", "sex\u00a0=\u00a0'F'", "\u202e", "\ufeff", "SELECT", "--", "/*", "*/", "/* /* */", ";;", "(((",
]  # fmt: skip
LANGUAGE = (
    "SELECT FROM WHERE GROUP BY ORDER BY HAVING LIMIT JOIN ON AND OR NOT IN BETWEEN LIKE IS NULL AS DISTINCT ALL UNION WITH "
    "CASE WHEN THEN END EXISTS ANY OVER FILTER WITHIN CAST INTERVAL DATE TIMESTAMP ESCAPE ILIKE SIMILAR TO FOR UPDATE OFFSET "
    "COUNT SUM AVG MIN MAX MEDIAN QUANTILE HISTOGRAM PERCENTILE_CONT ( ) ( ) , , . * = <> < <= > >= != - + / % || :: ; ' \" ` $ ? "
    "@ # ~ ! & | ^ [ ] { } \\ 0 1 2.5 1e3 'F' 'a''b' \"age\" age sex day note patient hidden patients limit union x DATE'2020-01-31'"
)
PIECES = LANGUAGE.split()


def mutated(chance: random.Random) -> str:
    text = chance.choice(VALID)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(text) + 1)
        end = min(len(text), at + chance.randint(0, 8))
        kind = chance.randrange(7)
        if kind == 0:
            text = text[:at] + text[end:]
        elif kind == 1:
            text = text[:at] + " " + chance.choice(PIECES) + " " + text[at:]
        elif kind == 2:
            text = text[:at] + chance.choice(INJECTIONS) + text[end:]
        elif kind == 3:
            other = chance.choice(VALID)
            text = text[:at] + other[chance.randrange(len(other)) :]
        elif kind == 4:
            text = (
                text[:at]
                + chr(chance.choice([chance.randrange(128), chance.randrange(0x11000)]))
                + text[end:]
            )
        elif kind == 5:
            words = text.split(" ")
            one, two = chance.randrange(len(words)), chance.randrange(len(words))
            words[one], words[two] = words[two], words[one]
            text = " ".join(words)
        else:
            text = text[:at] + text[at:end] * chance.randint(2, 5) + text[end:]
    return text


def words(chance: random.Random) -> str:
    start = chance.choice(
        ["SELECT ", "SELECT COUNT(*) FROM patients ", "SELECT COUNT(*) FROM patients WHERE ", ""]
    )
    return start + " ".join(chance.choices(PIECES, k=chance.randint(1, 40)))


def noise(chance: random.Random) -> str:
    alphabet = chance.choice(
        ["()", "'\"-/*;", "\0\t\n a1('", "abcXYZ 0123.,()='\"", "é\u0301\u200b\u2028😀ａ('"]
    )
    return chance.choice(["", VALID[0] + " WHERE "]) + "".join(
        chance.choices(alphabet, k=chance.randint(0, 300))
    )


def injected(chance: random.Random) -> str:
    form = chance.choice(
        [
            "SELECT COUNT(*) FROM patients WHERE sex = '{}'",
            "SELECT COUNT(*) FROM patients WHERE age = {}",
            "SELECT COUNT(*) FROM patients WHERE {}",
            "SELECT {} FROM patients",
            "SELECT COUNT({}) FROM patients",
            "SELECT COUNT(*) AS {} FROM patients",
            "SELECT COUNT(*) FROM {}",
            "SELECT COUNT(*) FROM patients GROUP BY {}",
            "{}",
        ]
    )
    return form.replace("{}", " ".join(chance.choices(INJECTIONS, k=chance.randint(1, 2))))


REPEATED = (
    "(", ")", "NOT ", "- ", "age = 1 AND ", "age=1 OR(", "(age=1)AND(", "'", "''", '"', "--", "/*", "a.", "a(", "[", "{",
    "CASE WHEN ", "1+", "age IN (", "(SELECT ", "x,", "\\", "$$", "$a$", "::", "age between 1 and ", "NOT(", "-(", "/**/", "\n",
)  # fmt: skip
HUGE = [
    *("SELECT COUNT(*) FROM patients WHERE " + piece * (9_900 // len(piece)) for piece in REPEATED),
    "x" * 1_000_000,
    "(" * 10_000,
    "SELECT " + "(" * 20 + "COUNT(*)" + ")" * 20 + " FROM patients",
    "SELECT " + "COUNT(" * 1_000 + "age" + ")" * 1_000 + " FROM patients",
    "SELECT " + "MEDIAN(" * 20 + "age" + ")" * 20 + " FROM patients",
    "SELECT COUNT(*) FROM patients WHERE " + "NOT NOT NOT (" * 20 + "age = 1" + ")" * 20,
    "SELECT COUNT(*) FROM patients WHERE age IN (" + "(" * 19 + "1" + ")" * 19 + ")",
    "SELECT COUNT(*) FROM patients WHERE age IN (" + "1," * 3_000 + "1)",
    "SELECT COUNT(*) FROM patients WHERE " + " AND ".join(["(" * 18 + "age=1" + ")" * 18] * 150),
]  # fmt: skip


def outcome(text: str) -> str:
    """accepted or refused; any other exception fails the test that asks."""
    try:
        query = parse(text, SCHEMA, "patients")
    except QueryRefused as refusal:
        assert refusal.__cause__ is None
        return "refused"
    assert isinstance(query, Query)
    assert query.table == "patients"
    assert set(query.columns()) <= OPEN
    json.loads(query.canonical().encode("utf-8"))
    return "accepted"


@pytest.mark.parametrize("texts", [1_500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_hostile_texts_are_read_whole_or_refused(texts):
    chance = random.Random(20_240_229 + texts)
    makers = [mutated] * 5 + [words] * 2 + [noise] + [injected] * 2
    slowest = 0.0
    seen = {"accepted": 0, "refused": 0}
    for _ in range(texts):
        before = time.process_time()
        seen[outcome(chance.choice(makers)(chance))] += 1
        slowest = max(slowest, time.process_time() - before)
    assert seen["refused"] > texts // 2
    assert seen["accepted"] > texts // 100  # else the mutations would be too crude to find anything
    assert slowest < 2.0


@pytest.mark.parametrize("text", HUGE, ids=[ascii(text[36:50]) for text in HUGE])
def test_a_huge_or_deep_text_is_answered_soon(text):
    before = time.process_time()
    assert outcome(text) in ("accepted", "refused")
    assert time.process_time() - before < 2.0


@pytest.mark.parametrize("text", VALID)
def test_the_texts_that_are_mutated_are_valid(text):
    assert outcome(text) == "accepted"


def test_a_caller_deep_in_its_own_stack_gets_a_refusal_or_an_answer():
    text = "SELECT COUNT(*) FROM patients WHERE " + "NOT (" * 19 + "age = 1" + ")" * 19

    def down(levels: int) -> str:
        return outcome(text) if levels == 0 else down(levels - 1)

    assert down(0) == "accepted"
    assert {down(levels) for levels in range(100, 800, 50)} <= {"accepted", "refused"}
