"""What service.toml may say: nothing unknown is passed over, and every mistake is named with its place."""

import tomllib
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from velado.apps.service.service_settings import read_settings, settings_from
from velado.errors import SchemaError, VeladoError
from velado.query.budget import Budget
from velado.query.unit import Unit
from velado.text import told

GOOD = """
[datasets.people]
file = "people.csv"
schema = "schema.toml"
ledger = "people.ledger"
budget = { epsilon = 0.1 }
"""


def read(text: str) -> Any:
    return settings_from(tomllib.loads(text), Path("folder"))


def test_the_ledger_that_the_schema_names_is_used_where_the_service_names_none(tmp_path: Path) -> None:
    (tmp_path / "service.toml").write_text(GOOD.replace('ledger = "people.ledger"\n', ""))
    schema = '[columns.age]\nrole = "quasi"\n'
    (tmp_path / "schema.toml").write_text(schema)
    with pytest.raises(SchemaError, match="is missing"):
        read_settings(tmp_path / "service.toml")
    (tmp_path / "schema.toml").write_text('[dataset]\nledger = "books.ledger"\n' + schema)
    assert read_settings(tmp_path / "service.toml").datasets["people"].ledger == str(
        tmp_path / "books.ledger"
    )
    (tmp_path / "service.toml").write_text(GOOD)
    assert read_settings(tmp_path / "service.toml").datasets["people"].ledger == str(
        tmp_path / "people.ledger"
    )


def test_a_small_file_has_sensible_limits_and_paths_beside_it() -> None:
    settings = read(GOOD)
    people = settings.datasets["people"]
    assert people.file == Path("folder/people.csv") and people.ledger == str(Path("folder/people.ledger"))
    assert people.budget == Budget.epsilon(Fraction(1, 10))
    assert settings.tokens == Path("folder/tokens.json") and settings.limits.max_body_bytes == 65_536


def test_everything_that_can_be_said_is_read() -> None:
    more = """
each = "1/3"
extremes = "bound"
seal = "people.seal"
title = "Pessoas"
unit = { column = "ward", rows = 4, dependence = 0.5 }
caps = { ana = 0.05 }
"""
    people = read("tokens = 't.json'\naudit = 'a.jsonl'\n[limits]\nburst = 7\n" + GOOD + more).datasets[
        "people"
    ]
    assert people.each == Fraction(1, 3) and people.unit == Unit("ward", 4, Fraction(1, 2))
    assert people.caps == {"ana": Fraction(1, 20)} and people.extremes == "bound"
    assert (
        read(GOOD.replace("epsilon = 0.1", "rho = 0.1, delta = 1e-9")).datasets["people"].budget.measure
        == "rho"
    )
    assert read(GOOD.replace("0.1", "1, delta = 1e-9")).datasets["people"].budget.delta == Fraction(1, 10**9)
    assert read(GOOD + 'unit = "record"').datasets["people"].unit == Unit()


def test_a_password_can_stand_in_the_environment_and_never_in_a_repr(monkeypatch: pytest.MonkeyPatch) -> None:
    text = GOOD.replace('file = "people.csv"', 'url = "env:PEOPLE_URL"\nrelation = "public.people"')
    monkeypatch.setenv("PEOPLE_URL", "postgresql://reader:hush@localhost/clinic")
    settings = read(text)
    assert settings.datasets["people"].url == "postgresql://reader:hush@localhost/clinic"
    assert "hush" not in repr(settings)
    monkeypatch.delenv("PEOPLE_URL")
    with pytest.raises(SchemaError, match="not set"):
        read(text)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[datasets.people]", "colour = 1\n[datasets.people]", "Unknown key 'colour'"),
        ("budget =", "mode = 'paper'\nbudget =", "Unknown key 'mode'"),
        ("budget =", "bugdet =", "Did you mean 'budget'"),
        ('ledger = "people.ledger"', "", "'ledger' in .* is missing"),
        ('file = "people.csv"', "", "either 'file'"),
        ('file = "people.csv"', "url = 'postgresql://x'", "either 'file'"),
        ("epsilon = 0.1", "epsilon = 0.1, rho = 1", "either epsilon or rho"),
        ("epsilon = 0.1", "epsilon = 0", "above 0"),
        ("epsilon = 0.1", "epsilon = 'much'", "above 0"),
        ("epsilon = 0.1", "epsilon = inf", "above 0"),
        ("epsilon = 0.1", "epsilon = 5000", "at most 1000"),
        ("[datasets.people]", "[datasets.'a b']", "a query cannot write"),
        ("[datasets.people]", "[limits]\nburst = 0\n[datasets.people]", "'burst' in \\[limits\\]"),
        ("[datasets.people]", "[limits]\nhalf_open_connections = 0\n[datasets.people]", "from 1 to"),
        ("[datasets.people]", "[limits]\nburst = 2.5\n[datasets.people]", "whole number"),
        ("[datasets.people]", "[limits]\nbrust = 2\n[datasets.people]", "Did you mean 'burst'"),
        ("budget =", "unit = 'family'\nbudget =", "'unit' in"),
        ("budget =", "unit = { column = 'x' }\nbudget =", "'rows' in .*unit.* is missing"),
        ("budget =", "extremes = 'exact'\nbudget =", "one of quantile, bound"),
        ("budget =", "caps = 3\nbudget =", "'caps' in .* takes a table"),
    ],
)
def test_a_mistake_is_named_with_its_place(old: str, new: str, said: str) -> None:
    assert old in GOOD
    with pytest.raises(VeladoError, match=said):
        read(GOOD.replace(old, new))


def test_a_wrong_value_is_a_wrong_file_told_in_the_language_spoken_and_no_address_is_repeated() -> None:
    with pytest.raises(SchemaError) as wrong:
        read("[limits]\nburst = 0\n" + GOOD)
    assert "não pode ser 0" in told(wrong.value.what, "pt")
    with pytest.raises(SchemaError) as wrong:
        read(GOOD.replace('file = "people.csv"', "url = ['postgresql://reader:hush@localhost/clinic']"))
    assert "'url' in" in wrong.value.what and "hush" not in str(wrong.value)


def test_half_open_connections_are_shared_out_among_workers() -> None:
    settings = read("[limits]\nhalf_open_connections = 9\n" + GOOD)
    assert read(GOOD).limits.half_open_connections == 32
    assert [settings.limits.part(n).half_open_connections for n in (1, 2, 4)] == [9, 5, 3]


def test_a_file_without_data_sets_or_none_at_all_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="names no data set"):
        read("title = 'x'")
    with pytest.raises(SchemaError):
        read_settings(tmp_path / "missing.toml")
