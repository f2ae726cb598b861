"""The page about the accepted SQL is true: its examples are read, and what it calls refused is refused so."""

import re
import tomllib
from pathlib import Path

import pytest

from velado.data.schema import Schema
from velado.errors import QueryRefused
from velado.query import domains
from velado.query.sql.parse import parse
from velado.query.sql.parse import (
    parse as sql,
)
from velado.query.sql.parse import (
    parse as sql_aggregates,
)
from velado.query.sql.parse import (
    parse as sql_predicates,
)
from velado.query.sql.parse import (
    refusals as sql_tokens,
)
from velado.query.sql.parse import (
    tree as sql_tree,
)

pytest.importorskip("sqlglot")

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "sql.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, flags=re.M | re.S)
SCHEMA = Schema.from_dict(tomllib.loads(next(body for language, body in BLOCKS if language == "toml")))
ACCEPTED = [line for language, body in BLOCKS if language == "sql" for line in body.strip().splitlines()]
REFUSED = re.findall(r"^\| `((?:SELECT|WITH) .*?)` \| (.*?) \|$", PAGE, flags=re.M)


def test_the_page_has_examples_of_both_kinds():
    assert len(ACCEPTED) >= 8
    assert len(REFUSED) >= 30


@pytest.mark.parametrize("text", ACCEPTED)
def test_an_accepted_example_is_read(text):
    assert parse(text, SCHEMA, "patients").aggregates


@pytest.mark.parametrize(("text", "reason"), REFUSED)
def test_a_refused_example_is_refused_for_the_reason_the_page_gives(text, reason):
    with pytest.raises(QueryRefused) as caught:
        parse(text, SCHEMA, "patients")
    assert reason.lower() in str(caught.value).lower()


def test_every_limit_of_the_code_stands_on_the_page():
    limits = PAGE.split("## Limits")[1].split("## ")[0]
    for number, unit in [
        (sql_tokens.MOST_CHARACTERS, "characters"),
        (sql_tokens.MOST_TOKENS, "words"),
        (sql_tokens.MOST_DEPTH, "levels"),
        (sql.MOST_AGGREGATES, "aggregates"),
        (sql_predicates.MOST_TESTS, "tests"),
        (sql_predicates.MOST_VALUES, "values"),
        (sql_aggregates.MOST_BINS, "bins"),
        (domains.MOST_VALUES, "keys"),
        (sql.MOST_CELLS, "cells"),
    ]:
        assert f"{number:,} {unit}" in limits.replace("\n", " ")
    assert f"exponent up to {sql_tree.MOST_EXPONENT}" in limits
