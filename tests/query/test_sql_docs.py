"""The page about the accepted SQL is true: its examples are read, and what it calls refused is refused so."""

import re
import tomllib
from pathlib import Path

import pytest

from velado.data.schema import Schema
from velado.errors import QueryRefused
from velado.query import domains
from velado.query.sql import _conditions, _parse, _refusals, _tree, parse

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
        (_refusals.MOST_CHARACTERS, "characters"),
        (_refusals.MOST_TOKENS, "words"),
        (_refusals.MOST_DEPTH, "levels"),
        (_parse.MOST_AGGREGATES, "aggregates"),
        (_conditions.MOST_TESTS, "tests"),
        (_conditions.MOST_VALUES, "values"),
        (_parse.MOST_BINS, "bins"),
        (domains.MOST_VALUES, "keys"),
        (_parse.MOST_CELLS, "cells"),
    ]:
        assert f"{number:,} {unit}" in limits.replace("\n", " ")
    assert f"exponent up to {_tree.MOST_EXPONENT}" in limits
