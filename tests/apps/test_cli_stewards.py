"""`velado pseudonymize` and `velado joined` as a steward runs them: files, modes, words and refusals."""

import csv
import json
import stat
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from velado.apps.cli import run
from velado.apps.cli.commands._joined import table_paths
from velado.data.samples import hospital_csv, hospital_schema

from ..tables import column, toml

PATIENTS = toml(
    cpf=column("identifier text", person=True),
    nome="identifier",
    sexo="quasi",
    idade="quasi numeric",
)
VISITS = toml(
    cpf=column("identifier text", person=True),
    escolaridade="quasi",
    desfecho="sensitive",
)
QUASI = {"patients": ("sexo", "idade"), "visits": ("escolaridade",)}


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def write(path: Path, rows: list[dict[str, str]], columns: list[str]) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a key and the sample split into patients and visits; no key in the environment."""
    monkeypatch.delenv("VELADO_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    rows = rows_of(hospital_csv())[:400]
    people = list({row["cpf"]: row for row in rows}.values())
    write(tmp_path / "patients.csv", people, ["cpf", "nome", "sexo", "idade"])
    write(tmp_path / "visits.csv", rows, ["cpf", "escolaridade", "desfecho"])
    (tmp_path / "patients.toml").write_text(PATIENTS, "utf-8")
    (tmp_path / "visits.toml").write_text(VISITS, "utf-8")
    assert run(["pseudonymize", "--new-key", "--key-file", "key", "--quiet"]) == 0
    return tmp_path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def no_key_in(place: Path, *texts: str) -> bool:
    key = (place / "key").read_text("ascii").strip()
    files = [p.read_text("utf-8") for p in place.rglob("*") if p.is_file() and p.name != "key"]
    return not any(key in text or key[:16] in text for text in (*texts, *files))


TWO = ["--table", "patients.csv:patients.toml", "--table", "visits.csv:visits.toml"]


def test_two_files_of_a_project_can_be_joined_by_their_pseudonyms(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("patients", "visits"):
        command = ["pseudonymize", f"{name}.csv", "--schema", f"{name}.toml", "--columns", "cpf"]
        assert run([*command, "--key-file", "key", "--normalize", "cpf", "-o", f"{name}.out.csv"]) == 0
    shown = capsys.readouterr()
    assert "replaced with the key" in shown.out and "not anonymity" in shown.err
    before = {name: rows_of(place / f"{name}.csv") for name in QUASI}
    after = {name: rows_of(place / f"{name}.out.csv") for name in QUASI}
    of_person = {}
    for name in QUASI:
        for old, new in zip(before[name], after[name], strict=True):
            assert of_person.setdefault(old["cpf"], new["cpf"]) == new["cpf"] != old["cpf"]
            assert {**old, "cpf": ""} == {**new, "cpf": ""}
    assert len(set(of_person.values())) == len(of_person)
    assert no_key_in(place, shown.out, shown.err)


def test_key_and_mapping_can_be_read_by_their_owner_alone(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["pseudonymize", "visits.csv", "--schema", "visits.toml", "--columns", "cpf"]
    command += ["--key-file", "key", "-o", "out.csv", "--mapping", "mapping.csv"]
    assert run([*command, "--lang", "pt"]) == 0
    shown = capsys.readouterr()
    assert "nunca o envie junto" in shown.err
    assert mode(place / "key") == mode(place / "mapping.csv") == 0o600
    back = {row["pseudonym"]: row["original"] for row in rows_of(place / "mapping.csv")}
    original = [row["cpf"] for row in rows_of(place / "visits.csv")]
    assert [back[row["cpf"]] for row in rows_of(place / "out.csv")] == original
    assert run(command) == 5, "nothing is overwritten unasked"
    assert run([*command, "--force", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["columns"] == {"cpf": len(set(original))} and len(told["key_fingerprint"]) == 8
    assert no_key_in(place, shown.out, json.dumps(told))


def test_the_key_may_come_from_the_environment(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["pseudonymize", "visits.csv", "--columns", "cpf", "--quiet"]
    assert run([*command, "--key-file", "key", "-o", "file.csv"]) == 0
    assert run([*command, "-o", "none.csv"]) == 2 and not (place / "none.csv").exists()
    monkeypatch.setenv("VELADO_KEY", (place / "key").read_text("ascii"))
    assert run([*command, "-o", "environment.csv"]) == 0
    assert run([*command, "-o", "project.csv", "--namespace", "other"]) == 0
    made = (place / "file.csv").read_bytes()
    assert (place / "environment.csv").read_bytes() == made != (place / "project.csv").read_bytes()


def test_an_old_key_is_never_replaced(place: Path) -> None:
    old = (place / "key").read_bytes()
    assert run(["pseudonymize", "--new-key", "--key-file", "key", "--force"]) == 5
    assert (place / "key").read_bytes() == old
    assert run(["pseudonymize", "--new-key"]) == 2


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        (["--columns", "nobody"], 3),
        (["--columns", "escolaridade"], 3),
        (["--columns", ""], 2),
        (["--normalize", "lettrs"], 2),
        (["--normalize", "cpf=digits,trim"], 2),
        (["--key-file", "nowhere"], 2),
        (["--key-file", "visits.toml"], 0),
        (["--mapping", "out.csv"], 2),
        (["-o", "key"], 2),
        (["-o", "visits.csv"], 2),
    ],
)
def test_what_pseudonymize_refuses_it_refuses_whole(place: Path, changed: list[str], code: int) -> None:
    usual = {"--schema": "visits.toml", "--columns": "cpf", "--key-file": "key", "-o": "out.csv"}
    given = usual | dict([changed])
    command = ["pseudonymize", "visits.csv", *(word for pair in given.items() for word in pair)]
    before = (place / "visits.csv").read_bytes()
    assert run(command) == code
    assert (place / "out.csv").exists() == (code == 0)
    assert (place / "visits.csv").read_bytes() == before


def test_a_short_key_is_refused_and_not_repeated(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "short").write_text("correct horse battery", "ascii")
    assert run(["pseudonymize", "visits.csv", "-c", "cpf", "--key-file", "short", "-o", "out.csv"]) == 2
    shown = capsys.readouterr()
    assert "21 bytes" in shown.err and "horse" not in shown.err + shown.out


def test_the_mapping_does_not_stay_behind_when_the_table_cannot_be_written(place: Path) -> None:
    (place / "file").write_text("not a folder", "ascii")
    command = ["pseudonymize", "visits.csv", "-c", "cpf", "--key-file", "key", "--mapping", "m.csv"]
    assert run([*command, "-o", "file/out.csv"]) == 5
    assert not (place / "m.csv").exists()


def test_a_joined_release_keeps_its_promise_in_the_files_it_wrote(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["joined", *TWO, "-k", "5", "--method", "mondrian", "--pseudonym", "--key-file", "key"]
    assert run([*command, "-o", "out"]) == 0
    shown = capsys.readouterr()
    assert "needs 5 people" in shown.out and "holds" in shown.out
    assert sorted(path.name for path in (place / "out/private").iterdir()) == ["owner.key", "recipe.toml"]
    assert sorted(path.name for path in (place / "out/release").iterdir()) == [
        "about.html",
        "manifest.json",
        "patients.csv",
        "visits.csv",
    ]
    seen: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for name, quasi in QUASI.items():
        for row in rows_of(place / "out/release" / f"{name}.csv"):
            assert not {"cpf", "nome"} & set(row)
            seen[row["pseudonym"]].add((name, *(row[column] for column in quasi)))
    people = len({row["cpf"] for row in rows_of(place / "patients.csv")})
    crowds = Counter(frozenset(values) for values in seen.values())
    assert min(crowds.values()) >= 5 and sum(crowds.values()) == people
    manifest = json.loads((place / "out" / "release/manifest.json").read_text("utf-8"))
    assert manifest["promise"]["verdicts"][0]["achieved"] == min(crowds.values())
    assert manifest["people"]["joined_groups"] == len(crowds)
    assert no_key_in(place, shown.out, shown.err)


def test_the_manifest_holds_no_cell_and_the_digests_of_the_files(place: Path) -> None:
    import hashlib

    assert run(["joined", *TWO, "-k", "5", "-m", "mondrian", "-o", "out", "--quiet"]) == 0
    text = (place / "out" / "release/manifest.json").read_text("utf-8")
    manifest = json.loads(text)
    for name, entry in manifest["tables"].items():
        data = (place / "out/release" / f"{name}.csv").read_bytes()
        assert entry["output"]["sha256"] == hashlib.sha256(data).hexdigest()
    cells = {
        cell
        for name in QUASI
        for row in rows_of(place / f"{name}.csv")
        for cell in row.values()
        if len(cell) > 3
    }
    assert cells and not [cell for cell in cells if f'"{cell}"' in text]


def test_the_recipe_of_a_joined_release_repeats_it_and_knows_its_tables(place: Path) -> None:
    first = ["joined", *TWO, "-k", "5", "-m", "mondrian", "--cut", "relaxed", "--quiet"]
    assert run([*first, "-o", "out"]) == 0
    again = ["joined", "--recipe", "out/private/recipe.toml", "--quiet"]
    assert run([*again, "-t", "patients.csv", "-t", "visits.csv", "-o", "again"]) == 0
    for part in ("release/patients.csv", "release/visits.csv", "release/about.html", "private/recipe.toml"):
        assert (place / "again" / part).read_bytes() == (place / "out" / part).read_bytes()
    assert run([*again, "-t", "patients.csv", "-o", "other"]) == 2
    assert not (place / "other").exists()


def test_the_page_of_joined_tables_says_the_promise_and_no_cell(place: Path) -> None:
    assert run(["joined", *TWO, "-k", "5", "-m", "mondrian", "-o", "out", "--quiet", "--lang", "pt"]) == 0
    page = (place / "out/release/about.html").read_text("utf-8")
    assert "Sobre estas tabelas" in page and "pelo menos 5 pessoas" in page
    names = {row["nome"] for row in rows_of(place / "patients.csv") if row.get("nome")}
    assert not [name for name in names if name in page]


def test_a_joined_release_with_the_methods_own_flags_and_json(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [
        "joined",
        *TWO,
        "-m",
        "mondrian",
        "--cut",
        "relaxed",
        "-k",
        "7",
        "--l-diversity",
        "2",
        "--json",
    ]
    assert run([*command, "-o", "out"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["how"]["method"]["cut"] == "relaxed" and told["how"]["key_fingerprint"] is None
    assert [entry["name"] for entry in told["how"]["guarantees"]] == ["k-anonymity", "l-diversity"]
    assert "pseudonym" not in rows_of(place / "out/release" / "visits.csv")[0]
    assert run([*command, "-o", "out"]) == 5


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--table", "patients.csv:patients.toml"], 2),
        (["--table", "patients.csv", "--table", "visits.csv:visits.toml"], 2),
        (["--table", "visits.csv:visits.toml", "--table", "visits.csv:visits.toml"], 2),
        (["--table", "patients.csv:none.toml", "--table", "visits.csv:visits.toml"], 3),
        ([*TWO, "-k", "100000"], 4),
        ([*TWO, "--key-file", "key"], 2),
        ([*TWO, "--pseudonym"], 2),
        ([*TWO, "-m", "das"], 2),
        ([*TWO, "-m", "das", "-k", "5"], 0),
    ],
)
def test_what_joined_refuses_it_refuses_whole(place: Path, arguments: list[str], code: int) -> None:
    assert run(["joined", *arguments, "-o", "out", "--quiet"]) == code
    assert (place / "out").exists() == (code == 0)


def test_a_table_and_its_schema_are_told_apart_on_every_system() -> None:
    pairs = ["a/p.csv:a/p.toml", r"C:\d\v.csv:C:\d\v.toml", r"C:\d\w.csv:w.toml"]
    found = list(table_paths(pairs).values())
    assert [(str(a), str(b)) for a, b in found] == [
        ("a/p.csv", "a/p.toml"),
        (r"C:\d\v.csv", r"C:\d\v.toml"),
        (r"C:\d\w.csv", "w.toml"),
    ]


def test_the_sample_schema_serves_too(place: Path) -> None:
    command = ["pseudonymize", str(hospital_csv()), "-s", str(hospital_schema()), "-c", "cpf,prontuario"]
    assert run([*command, "--key-file", "key", "-o", "out.parquet", "--quiet"]) == 0
    assert (place / "out.parquet").read_bytes()[:4] == b"PAR1"
