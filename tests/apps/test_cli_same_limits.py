"""A limit is declared once: the flag and the function in Python refuse a value for the same reason."""

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest

from velado.apps.cli import run
from velado.apps.service.analyst_api import Question
from velado.apps.service.tokens import add_token
from velado.apps.service.web_server import Listening
from velado.data.keys import Key
from velado.data.samples import hospital_csv, hospital_schema
from velado.data.schema import Column
from velado.errors import ParameterError
from velado.learning.net.identity import make_identity
from velado.learning.regression.job import Party
from velado.learning.regression.simulate import small_job
from velado.query.session import confidence_level
from velado.release.pseudonyms import pseudonymize
from velado.testing.examples import table

TABLE, SCHEMA = str(hospital_csv()), str(hospital_schema())
REGRESS = ["regress", TABLE, "--target", "idade"]


@pytest.mark.parametrize(
    ("flags", "python"),
    [
        (["serve", "run", "s.toml", "--port", "70000"], lambda _: Listening(port=70_000)),
        (["serve", "run", "s.toml", "--workers", "0"], lambda _: Listening(workers=0)),
        (["serve", "token", "add", "s.toml", "ana", "--days", "-1"], lambda at: add_token(at / "t", "ana", days=-1)),
        (["party", "keygen", "a", "--days", "0"], lambda at: make_identity(at / "i", Party("a", "client"), "w", 0)),
        (["query", TABLE, "SELECT 1", "-s", SCHEMA, "--confidence", "1"], lambda _: confidence_level(1.0)),
        (["query", TABLE, "SELECT 1", "-s", SCHEMA, "--confidence", "0"], lambda _: Question("a", "b", confidence=0)),
        ([*REGRESS, "--lambda", "-1"], lambda _: replace(small_job(), ridge=Fraction(-1))),
        ([*REGRESS, "--epsilon", "0"], lambda _: replace(small_job(), epsilon=Fraction(0))),
        (
            ["anonymize", TABLE, "-s", SCHEMA, "--round-intervals", "idade=0", "-o", "out"],
            lambda _: Column("idade", "quasi", "numeric", round=0),
        ),
        (
            ["pseudonymize", TABLE, "--columns", "cpf", "--normalize", "lettrs", "--key-file", "key", "-o", "out.csv"],
            lambda _: pseudonymize(table(person=["a"]), ["person"], Key(bytes(range(40))), normalize="lettrs"),
        ),
    ],
)  # fmt: skip
def test_a_flag_and_python_refuse_a_value_for_the_same_reason(
    flags: list[str],
    python: Callable[[Path], object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("key").write_bytes(bytes(range(65, 105)))
    assert run([*flags, "--json"]) == ParameterError.exit_code
    told = json.loads(capsys.readouterr().out)["error"]
    assert any(told["what"].startswith(f"{flag} cannot be") for flag in flags if flag.startswith("--"))
    with pytest.raises(ParameterError) as refused:
        python(tmp_path)
    # In Python a column may also have no step; a flag that is given has one.
    assert told["why"].replace(", or none", "") == refused.value.why.replace(", or none", "")
    assert told["fix"] == refused.value.fix
    assert [path.name for path in tmp_path.iterdir()] == ["key"]  # nothing was written


def test_confidence_is_exact_up_to_its_limit() -> None:
    assert confidence_level(0.999999999999) == 1 - Fraction(1, 10**12)
    assert confidence_level(Fraction(1, 3)) == Fraction(1, 3)
    with pytest.raises(ParameterError, match="one in 10"):
        confidence_level(Fraction(10**13 - 1, 10**13))


def test_a_step_is_read_for_each_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"age": [20, 21, 30, 31]}).write_csv("t.csv")
    Path("s.toml").write_text('[columns.age]\nrole = "quasi"\nkind = "numeric"\n', "utf-8")
    asked = ["anonymize", "t.csv", "-s", "s.toml", "-m", "mondrian", "-k", "2", "--quiet", "-o", "out"]
    assert run([*asked, "--round-intervals", "age=5"]) == 0
    assert set(pl.read_csv("out/release/table.csv")["age"]) == {"[20..25]", "[30..35]"}
