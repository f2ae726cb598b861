"""Every bad input ends in three sentences and a code: no traceback, no cell, nothing left behind."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from velado.apps.cli import run
from velado.apps.cli.error_display import report

from ..tables import toml

SECRET = "Zyxwvut"
"""Stands in cells only, so that a message that repeats a cell is caught."""

SCHEMA = toml(
    age="quasi numeric",
    city="quasi categorical",
    illness="sensitive categorical",
)
HEADER = "age,city,illness\n"


def good_rows(count: int = 40) -> str:
    return "".join(f"{20 + n % 30},{SECRET}{n % 4},ill{n % 5}\n" for n in range(count))


def with_ages(age: str) -> str:
    """A table in which every age is *age*, except that good rows follow."""
    return HEADER + f"{age},{SECRET}1,ill1\n" + good_rows()


def taxonomy_short_of_a_value(folder: Path) -> None:
    (folder / "city.csv").write_text("elsewhere;far;*\nnowhere;far;*\n", "utf-8")


# name -> (table as text or bytes, schema, further flags, exit code, preparation of the folder)
CASES: dict[str, tuple[str | bytes | None, str, list[str], int, Callable[[Path], None] | None]] = {
    "missing file": (None, SCHEMA, [], 3, None),
    "empty file": ("", SCHEMA, [], 3, None),
    "header only": (HEADER, SCHEMA, [], 3, None),
    "no header": ("".join(f"{n},{n % 7 + 40},{SECRET}\n" for n in range(30)), SCHEMA, [], 3, None),
    "duplicate names": ("age,age,city\n" + good_rows(), SCHEMA, [], 3, None),
    "column absent": ("age,illness\n1,a\n2,b\n", SCHEMA, [], 3, None),
    "taxonomy does not cover": (
        HEADER + good_rows(),
        SCHEMA.replace("[columns.illness]", 'taxonomy = "city.csv"\n[columns.illness]'),
        [],
        3,
        taxonomy_short_of_a_value,
    ),
    "k above rows": (HEADER + good_rows(), SCHEMA, ["-k", "41"], 2, None),
    "k below two": (HEADER + good_rows(), SCHEMA, ["-k", "1"], 2, None),
    "k not a number": (HEADER + good_rows(), SCHEMA, ["-k", "five"], 2, None),
    "every row suppressed": (
        "age,city,illness\n" + "".join(f"{n}.5,{SECRET}{n},ill{n}\n" for n in range(10)),
        SCHEMA,
        ["--method", "das", "-k", "3", "--suppression", "1"],
        4,
        None,
    ),
    "suppression is no share": (HEADER + good_rows(), SCHEMA, ["--suppression", "1.5"], 2, None),
    "constant quasi": (HEADER + "30,a,x\n" * 20, SCHEMA, [], 3, None),
    "quasi without values": (HEADER + "".join(f",c{n % 3},x\n" for n in range(20)), SCHEMA, [], 3, None),
    "not a number": (with_ages("NaN"), SCHEMA, [], 3, None),
    "infinity": (with_ages("inf"), SCHEMA, [], 3, None),
    "mixed types": (with_ages(SECRET), SCHEMA, [], 3, None),
    "huge cell": (HEADER + f'30,"{SECRET * 1_500_000}",x\n' + good_rows(), SCHEMA, [], 3, None),
    "not UTF-8": ((HEADER + "30,São Paulo,x\n" + good_rows()).encode("cp850"), SCHEMA, [], 3, None),
    "decimal comma": (
        "age;city;illness\n" + "".join(f"{n},5;{SECRET}{n % 3};x\n" for n in range(20)),
        SCHEMA,
        [],
        3,
        None,
    ),
    "unknown schema key": (HEADER + good_rows(), SCHEMA + '[table]\nmising = "value"\n', [], 3, None),
    "undeclared column": ("age,city,illness,extra\n" + "30,a,x,y\n" * 9, SCHEMA, [], 3, None),
    "more l than values": (HEADER + good_rows(), SCHEMA, ["--l-diversity", "6"], 4, None),
    "unknown method": (HEADER + good_rows(), SCHEMA, ["--method", "mondrain"], 2, None),
    "unknown flag": (HEADER + good_rows(), SCHEMA, ["--cut", "strict"], 2, None),
    "per person without a person": (HEADER + good_rows(), SCHEMA, ["--per", "person"], 2, None),
    "unknown encoding": (HEADER + good_rows(), SCHEMA, ["--encoding", "utf-99"], 3, None),
    "formulas refused": (
        HEADER + "".join(f"{20 + n % 9},c{n % 3},=1+{n}\n" for n in range(40)),
        SCHEMA,
        ["--formulas", "refuse"],
        5,
        None,
    ),
}


# What the error must speak of, where the code alone could come from another cause.
SPEAKS_OF = {
    "header only": "no rows",
    "no header": "does not look like a header",
    "duplicate names": "more than once",
    "column absent": "'city'",
    "taxonomy does not cover": "'city' does not cover 4",
    "every row suppressed": "Every row would have to be suppressed",
    "constant quasi": "same value in every row",
    "quasi without values": "no value in any row",
    "not a number": "NaN",
    "infinity": "infinity",
    "mixed types": "no numbers",
    "huge cell": "10,500,000 bytes",
    "not UTF-8": "--encoding",
    "decimal comma": "decimal comma",
    "unknown schema key": "'missing'",
    "undeclared column": "--undeclared drop",
    "unknown method": "'mondrian'",
    "unknown flag": "Method 'progressive' has no flag --cut",
}


def prepare(folder: Path, name: str) -> list[str]:
    """The table and schema of a case stand in *folder*; returns the arguments of the run."""
    table, schema, flags, _, before = CASES[name]
    if before is not None:
        before(folder)
    if table is not None:
        content = table if isinstance(table, bytes) else table.encode()
        (folder / "table.csv").write_bytes(content)
    (folder / "schema.toml").write_text(schema, "utf-8")
    return ["anonymize", str(folder / "table.csv"), "--schema", str(folder / "schema.toml"), *flags]


def assert_three_sentences(error: str) -> None:
    what, why, fix = error.rstrip("\n").split("\n")
    assert why.startswith("Why: ") and fix.startswith("What to do: ")
    for sentence in (what, why, fix):
        assert sentence.rstrip().endswith((".", "?", "!")), sentence
    assert "Traceback" not in error


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_three_sentences_and_leaves_nothing(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, parent = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    parent.mkdir()
    code = run([*prepare(folder, name), "-o", str(parent / "release")])
    shown = capsys.readouterr()
    assert code == CASES[name][3], shown.err
    assert_three_sentences(shown.err)
    assert SPEAKS_OF.get(name, "") in shown.err
    assert SECRET not in shown.out + shown.err
    assert shown.out == ""
    assert list(parent.iterdir()) == []


@pytest.mark.parametrize("name", ["mixed types", "k not a number", "column absent"])
def test_with_json_the_error_is_an_object_too(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run([*prepare(tmp_path, name), "-o", str(tmp_path / "release"), "--json"])
    shown = capsys.readouterr()
    error = json.loads(shown.out)["error"]
    assert error["exit_code"] == code == CASES[name][3]
    assert all(error[part] for part in ("type", "what", "why", "fix"))
    assert error["what"] in shown.err


def test_an_output_below_a_regular_file_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = prepare(tmp_path, "k below two")[:-2]
    (tmp_path / "plain").write_text("not a folder", "utf-8")
    before = sorted(tmp_path.iterdir())
    assert run([*arguments, "-o", str(tmp_path / "plain" / "release")]) == 5
    assert_three_sentences(capsys.readouterr().err)
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "plain").read_text("utf-8") == "not a folder"


def test_an_existing_folder_is_replaced_only_with_force(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = prepare(tmp_path, "k below two")[:-2]
    out = tmp_path / "release"
    assert run([*arguments, "-o", str(out), "-k", "3"]) == 0
    first = (out / "release/table.csv").read_bytes()
    capsys.readouterr()
    assert run([*arguments, "-o", str(out), "-k", "8"]) == 5
    assert_three_sentences(capsys.readouterr().err)
    assert (out / "release/table.csv").read_bytes() == first
    assert run([*arguments, "-o", str(out), "-k", "8", "--force"]) == 0
    assert (out / "release/table.csv").read_bytes() != first


def test_an_unexpected_error_shows_its_type_but_not_its_message(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(ZeroDivisionError(SECRET), as_json=True, debug=False) == 1
    shown = capsys.readouterr()
    assert_three_sentences(shown.err)
    assert "ZeroDivisionError" in shown.err and "--debug" in shown.err
    assert SECRET not in shown.err + shown.out


def test_a_traceback_appears_with_debug_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*prepare(tmp_path, "header only"), "-o", str(tmp_path / "release")]
    run(arguments)
    assert "Traceback" not in capsys.readouterr().err
    run([*arguments, "--debug"])
    assert "Traceback" in capsys.readouterr().err


def test_portuguese_frames_the_error_in_portuguese(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = [*prepare(tmp_path, "header only"), "-o", str(tmp_path / "release")]
    run([*arguments, "--lang", "pt"])
    by_flag = capsys.readouterr().err
    monkeypatch.setenv("VELADO_LANG", "pt")
    run(arguments)
    assert capsys.readouterr().err == by_flag
    assert "O que fazer: " in by_flag and "Por quê: " in by_flag


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["verfy"], "verify"),
        (["demo", "--forse"], "--force"),
        (["anonymize"], "FILE"),
        (["verify", "x.csv"], "--schema"),
        (["inspect", "x.csv", "--lang", "xx"], "en"),
        (["methods", "mondrain"], "mondrian"),
        (["anonymize", "x.csv", "--format", "xlsx"], "csv"),
        (["anonymize", "x.csv", "--sead", "3"], "--seed"),
    ],
)
def test_a_mistyped_command_line_names_what_was_meant(
    arguments: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    error = capsys.readouterr().err
    assert_three_sentences(error)
    assert hint in error
