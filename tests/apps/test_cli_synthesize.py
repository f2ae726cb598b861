"""`velado synthesize` from the shell: what leaves and what stays, what it costs, what is refused, in both languages."""

import hashlib
import json
import re
from pathlib import Path

import polars as pl
import pytest

from velado.apps.cli import run
from velado.randomness import seeded

from ..tables import column, toml

WARDS = ["clinica", "cirurgia", "partos"]
SCHEMA = {
    "who": column("identifier text", person=True, max_rows=2),
    "ward": column("quasi categorical", values=WARDS),
    "age": column("quasi numeric", bounds=[0, 99], step=1),
    "back": column("sensitive categorical", values=["no", "yes"], missing="suppress"),
}
# Values that only true rows hold: none of them may be found in anything that leaves.
UNDECLARED = ("Quirinópolis", "secret-ward", "137")


def rows(count: int = 240, clean: bool = False) -> str:
    random = seeded(7, "people")
    ward = random.integers(0, 3, count)
    lines = ["who,ward,age,back"]
    for at, one in enumerate(ward.tolist()):
        shown = WARDS[one] if clean or at % 19 else ("", "secret-ward", "Quirinópolis")[at % 3]
        age = str(30 * one + at % 25) if clean or at % 13 else ("137" if at % 2 else "")
        lines.append(f"p{at // 3},{shown},{age},{'yes' if one == 2 else 'no'}")
    return "\n".join(lines) + "\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("VELADO_LANG", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text(rows(), "utf-8")
    (tmp_path / "schema.toml").write_text(toml(**SCHEMA), "utf-8")
    return tmp_path


def make(*more: str, epsilon: str = "2", report: bool = False, output: str = "out") -> int:
    spent = ["--epsilon", epsilon] if epsilon else []
    told = [] if report else ["--no-report"]
    return run(["synthesize", "people.csv", "--schema", "schema.toml", *spent, *told, "-o", output, *more])


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def published(place: Path, folder: str = "out") -> pl.DataFrame:
    """The table that leaves, as texts; a blank cell is an empty one."""
    return pl.read_csv(place / folder / "release" / "table.csv", infer_schema=False).fill_null("")


def spent(capsys: pytest.CaptureFixture[str], ledger: str = "people.csv.ledger") -> str:
    capsys.readouterr()
    assert run(["ledger", "show", ledger, "--json"]) == 0
    return str(json.loads(capsys.readouterr().out)["spent"])


def test_the_folder_parts_what_may_leave_from_what_stays(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "people.csv").write_text(rows(clean=True), "utf-8")
    assert make("--budget", "5", report=True) == 0
    shown = capsys.readouterr().out
    assert files(place / "out") == [
        "private/measured.json",
        "private/report.html",
        "release/about.html",
        "release/manifest.json",
        "release/table.csv",
    ]
    assert (place / "out" / "private").stat().st_mode & 0o077 == 0
    assert "Promise (guaranteed): epsilon-differential privacy with epsilon 2" in shown
    assert "Not promised: k-anonymity" in shown and "Debited: epsilon 2; 3 is left." in shown

    public = {path.name: path.read_text("utf-8") for path in (place / "out" / "release").iterdir()}
    private = (place / "out" / "private" / "report.html").read_text("utf-8")
    notice = "For the owner only: this page is not differentially private."
    assert notice in private and "Do not hand it out with the table." in private
    for text in public.values():
        assert notice not in text and "held out" not in text and "embership" not in text
    assert "This page may leave with the table." in public["about.html"]
    assert "It is not k-anonymous" in public["about.html"]
    # What was measured on true rows stands in the private part alone: every table beside the others, with the attack's null.
    measured = json.loads((place / "out" / "private" / "measured.json").read_text("utf-8"))
    assert [one["name"] for one in measured["tables"]] == [
        "original",
        "synthetic",
        "microaggregate",
        "k=5",
        "k=25",
    ]
    own = measured["tables"][1]
    assert 0 < own["fidelity"]["mean"] < 1 and own["attack"]["null_low"] < 0.5 < own["attack"]["null_high"]
    assert measured["target"] == "back" and 0 < own["areas"]["logistic-regression"] <= 1
    assert not any(word in public["manifest.json"] for word in ("fidelity", "attack", "areas", "held_out"))
    # The trial drew tables of its own, off the account: only what leaves was paid.
    assert spent(capsys) == "2"


def test_the_manifest_promises_privacy_for_the_unit_and_not_k(place: Path) -> None:
    assert make() == 0
    release = place / "out" / "release"
    told = json.loads((release / "manifest.json").read_text("utf-8"))
    data = (release / "table.csv").read_bytes()
    assert told["kind"] == "synthetic" and told["output"]["sha256"] == hashlib.sha256(data).hexdigest()
    promise = told["promise"]
    assert promise["type"] == "guaranteed" and promise["k_anonymity"] == "not promised"
    assert promise["unit"] == "all rows with one value of 'who'" and promise["most_rows"] == 2
    assert told["cost"]["spent"] == "2" and float(promise["epsilon"]) == 2
    assert told["output"]["columns"] == ["ward", "age", "back"]
    # The charges of all draws are the whole cost, and every draw is scaled to the two rows of a person.
    draws = told["how"]["steps"]
    assert 1.9 < sum(_number(step["charge"]) for step in draws) <= 2
    assert {step["sensitivity"] for step in draws} == {2}


def _number(text: object) -> float:
    over, _, under = str(text).partition("/")
    return float(over) / float(under or 1)


@pytest.mark.parametrize("method", ["tree", "adaptive", "microaggregate"])
def test_no_value_lies_outside_the_declared_ones(place: Path, method: str) -> None:
    assert make("--method", method, epsilon="0.5") == 0
    frame = published(place)
    assert frame.columns == ["ward", "age", "back"] and frame.height >= 1
    assert set(frame["ward"]) <= {*WARDS, ""}
    assert set(frame["back"]) <= {"no", "yes"}  # rows without it are left out, as its column says
    ages = frame["age"].filter(frame["age"] != "")
    assert ages.str.contains(r"^\d\d?$").all()
    for path in (place / "out" / "release").iterdir():
        text = path.read_text("utf-8")
        assert not any(value in text for value in ("Quirinópolis", "secret-ward")), path.name


def test_what_cannot_be_compared_is_told_to_the_owner_and_the_table_still_leaves(place: Path) -> None:
    assert make(report=True) == 0
    told = json.loads((place / "out" / "private" / "measured.json").read_text("utf-8"))
    assert "declared bounds" in told["no_models"]
    failed = {one["name"]: one["failed"] for one in told["tables"]}
    # Values that are not declared, and numbers beyond their bounds, are for every table what they are for the synthetic one.
    assert not any(failed.values()) and "k=5" in failed
    page = (place / "out" / "private" / "report.html").read_text("utf-8")
    assert "Not made:" not in page and "Models were not tried" in page
    assert (place / "out" / "release" / "table.csv").is_file()


def test_the_same_request_again_costs_nothing_and_gives_the_same_bytes(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert make() == 0
    assert make(output="again") == 0
    assert "the same again, at no cost" in capsys.readouterr().out
    for name in ("table.csv", "manifest.json", "about.html"):
        first, again = (place / folder / "release" / name for folder in ("out", "again"))
        assert first.read_bytes() == again.read_bytes(), name
    assert spent(capsys) == "2"
    # Rows and seed come after the noise: another draw from the same noisy counts is free too.
    assert make("--draw", "30", "--seed", "4", output="few") == 0
    assert published(place, "few").height == 30
    assert spent(capsys) == "2"


def test_a_spent_budget_refuses_the_table_and_questions_have_the_same_account(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    question = "SELECT COUNT(*) FROM people"
    assert make("--budget", "3") == 0
    assert make("--method", "tree", output="other") == 7
    assert "What to do:" in capsys.readouterr().err
    assert not (place / "other").exists() and spent(capsys) == "2"
    assert run(["query", "people.csv", "--schema", "schema.toml", "--epsilon", "1", question]) == 0
    assert spent(capsys) == "3"
    assert make(epsilon="0.5", output="other") == 7
    assert not (place / "other").exists()


def test_the_debit_stands_in_the_ledger_before_the_counts_do(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert make("--analyst", "rui") == 0
    capsys.readouterr()
    assert run(["ledger", "show", "people.csv.ledger", "--entries", "10", "--json"]) == 0
    newest = json.loads(capsys.readouterr().out)["newest"]
    kinds = [entry["kind"] for entry in newest]
    assert kinds.count("reserve") == kinds.count("answer") == 1
    number = {entry["kind"]: entry["number"] for entry in newest}
    assert number["reserve"] < number["answer"] and "rui" in json.dumps(newest)
    assert run(["ledger", "verify", "people.csv.ledger"]) == 0


def test_an_output_that_exists_is_refused_before_anything_is_paid(place: Path) -> None:
    (place / "out").mkdir()
    (place / "out" / "mine.txt").write_text("x", "utf-8")
    assert make() == 5
    assert not (place / "people.csv.ledger").exists() and files(place / "out") == ["mine.txt"]


@pytest.mark.parametrize(
    ("name", "entry", "fix"),
    [
        ("age", column("quasi numeric"), "bounds = [low, high] to [columns.age]"),
        ("ward", column("quasi categorical"), 'values = ["...", "..."] to [columns.ward]'),
        ("ward", column("other text"), 'values = ["...", "..."] to [columns.ward]'),
    ],
)
def test_a_column_without_a_declared_domain_is_refused_with_what_to_add(
    place: Path, capsys: pytest.CaptureFixture[str], name: str, entry: dict, fix: str
) -> None:
    (place / "schema.toml").write_text(toml(**SCHEMA | {name: entry}), "utf-8")
    assert make() == 2
    told = " ".join(capsys.readouterr().err.split())
    assert fix in told and not any(value in told for value in UNDECLARED)
    assert not (place / "out").exists() and not (place / "people.csv.ledger").exists()
    assert make("--columns", ",".join({"ward", "age", "back"} - {name})) == 0


@pytest.mark.parametrize(
    "wrong",
    [
        ("--rho", "1"),
        ("--columns", "who"),
        ("--columns", "nowhere"),
        ("--bins", "0"),
        ("--draw", "0"),
        ("--method", "magic"),
        ("--unit", "who"),
        ("--delta", "2"),
        ("--seed", "-1"),
        ("--target", "nowhere"),
    ],
)
def test_what_is_wrong_costs_nothing(
    place: Path, capsys: pytest.CaptureFixture[str], wrong: tuple[str, ...]
) -> None:
    assert make(*wrong) == 2
    assert "Traceback" not in capsys.readouterr().err
    assert not (place / "people.csv.ledger").exists() and not (place / "out").exists()


def test_neither_a_schema_nor_a_spend_is_guessed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["synthesize", "people.csv", "--epsilon", "1"]) == 2
    assert "velado inspect" in capsys.readouterr().err
    assert make(epsilon="") == 2
    assert "--epsilon 1 --delta 1e-9" in capsys.readouterr().err
    assert files(place) == ["people.csv", "schema.toml"]


def test_epsilon_with_a_delta_is_spent_as_rho_and_told_as_both(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert make("--delta", "1e-9", "--budget", "3", epsilon="1") == 0
    told = json.loads((place / "out" / "release" / "manifest.json").read_text("utf-8"))
    assert told["cost"]["measure"] == "rho" and 0 < told["cost"]["about"] < 0.05
    assert told["promise"]["implies"]["epsilon"] <= 1 and told["promise"]["implies"]["delta"] == 1e-9
    assert {step["mechanism"] for step in told["how"]["steps"]} == {"gaussian", "noisy-max"}
    # The budget is an epsilon at the same delta too, not a rho of that size.
    capsys.readouterr()
    assert run(["ledger", "show", "people.csv.ledger", "--json"]) == 0
    budget = json.loads(capsys.readouterr().out)["budget"]
    assert budget["measure"] == "rho" and budget["implies"]["epsilon"] == pytest.approx(3, rel=1e-6)


@pytest.mark.parametrize(
    ("lines", "columns"),
    [
        ("x\n", "x"),  # no rows
        ("x\n3\n", "x"),
        ("x,y\n" + "3,a\n" * 60, "x,y"),  # both constant
        ("x,y\n" + ",\n" * 60, "x,y"),  # blanks alone
    ],
)
def test_small_constant_and_blank_tables_are_made_with_their_report(
    place: Path, capsys: pytest.CaptureFixture[str], lines: str, columns: str
) -> None:
    (place / "people.csv").write_text(lines, "utf-8")
    declared = {"x": column("quasi numeric", bounds=[0, 9], step=1), "y": column("other", values=["a", "b"])}
    (place / "schema.toml").write_text(toml(**{name: declared[name] for name in columns.split(",")}), "utf-8")
    assert make(report=True, epsilon="1") == 0, capsys.readouterr().err
    frame = published(place)
    assert frame.columns == columns.split(",") and frame.height >= 1
    assert set(frame["x"]) <= {*"0123456789", ""}
    assert "not differentially private" in (place / "out" / "private" / "report.html").read_text("utf-8")


def test_a_blank_is_an_empty_cell_whatever_means_no_value_in_the_file(place: Path) -> None:
    (place / "people.csv").write_text("x\n" + "NA\n" * 300 + "1\n", "utf-8")
    schema = '[table]\nmissing_values = ["NA"]\n' + toml(x=column("quasi numeric", bounds=[0, 9], step=1))
    (place / "schema.toml").write_text(schema, "utf-8")
    assert make(epsilon="5") == 0
    shown = published(place)["x"]
    assert "NA" not in shown and 200 < (shown == "").sum() < 400
    written = (place / "out" / "release" / "table.csv").read_text("utf-8")
    assert "NA" not in written


def test_all_of_it_speaks_portuguese(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert make("--lang", "pt", report=True) == 0
    shown = capsys.readouterr().out
    pages = [
        (place / "out" / name).read_text("utf-8") for name in ("release/about.html", "private/report.html")
    ]
    assert all('lang="pt' in page for page in pages)
    for text in (shown, *pages):
        plain = re.sub(r"<(style|script).*?</\1>|<[^>]+>", " ", text, flags=re.S)
        for word in ("Promise", "promised", "rows", "columns", "differential", "noise", "synthetic"):
            assert not re.search(rf"\b{word}\b", plain), word
    assert "diferencial" in pages[0] and "não" in pages[1]
    # The promise is the same one, whoever reads it.
    told = json.loads((place / "out" / "release" / "manifest.json").read_text("utf-8"))
    assert told["promise"]["k_anonymity"] == "not promised"


def test_json_is_the_manifest_with_its_folder(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert make("--json") == 0
    told = json.loads(capsys.readouterr().out)
    written = json.loads((place / "out" / "release" / "manifest.json").read_text("utf-8"))
    assert told.pop("folder").endswith("out") and told == written
