"""--show-values: the values a taxonomy lacks go to a private file; no message, repr or pickle holds one."""

from __future__ import annotations

import copy
import pickle
import stat

import pytest

from velado.apps.cli.main import run
from velado.errors import TaxonomyError

from ..tables import column, toml

SCHEMA = toml(
    city=column("quasi", taxonomy={"builder": "tree", "nodes": {"RJ": ["Rio"]}}),
    illness="sensitive",
)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "schema.toml").write_text(SCHEMA)
    rows = "Rio,flu\n" * 5 + '"ZQ, ""ville""",flu\n' * 3 + "ZQtown,flu\n"
    (tmp_path / "t.csv").write_text("city,illness\n" + rows)
    return tmp_path


def anonymize(folder, *more):
    table, schema = str(folder / "t.csv"), str(folder / "schema.toml")
    return run(["anonymize", table, "--schema", schema, "-k", "2", "-o", str(folder / "out"), *more])


def test_uncovered_values_stand_in_a_private_file_and_nowhere_else(folder, capfd):
    values = folder / "values.csv"
    assert anonymize(folder, "--show-values", str(values)) == 3
    assert values.read_text() == 'value\n"ZQ, ""ville"""\nZQtown\n'
    assert stat.S_IMODE(values.stat().st_mode) == 0o600
    out, err = capfd.readouterr()
    assert "ZQ" not in out + err and str(values) in err and "2 values" in err


def test_without_the_flag_nothing_is_written_and_the_flag_is_named(folder, capfd):
    before = sorted(folder.iterdir())
    assert anonymize(folder, "--lang", "pt", "--debug") == 3
    out, err = capfd.readouterr()
    assert "ZQ" not in out + err and "--show-values" in err and sorted(folder.iterdir()) == before


def test_a_file_that_is_there_is_not_replaced(folder, capfd):
    (folder / "values.csv").write_text("mine")
    assert anonymize(folder, "--show-values", str(folder / "values.csv")) == 5
    assert (folder / "values.csv").read_text() == "mine"


def test_hidden_values_are_in_no_text_of_the_error():
    error = TaxonomyError("What.", "Why.", "Fix.", hidden=["ZQtown"])
    assert error.hidden == ("ZQtown",)
    shown = (str(error), repr(error), repr(error.args), repr(vars(error)))
    assert not any("ZQ" in text for text in shown) and b"ZQ" not in pickle.dumps(error)
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert str(other) == str(error) and other.fix == "Fix."
