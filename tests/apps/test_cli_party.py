"""`velado party` as a person types it: keys, job, words in both languages, refusals."""

import json
import re
import shutil
import socket
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("cryptography", reason="parties need velado[encrypted]")
pytest.importorskip("gmpy2", reason="parties need velado[encrypted]")
pytest.importorskip("flint", reason="parties need velado[encrypted]")

from velado.apps.cli import run
from velado.apps.cli.commands import _party as party
from velado.apps.cli.show import present
from velado.learning.net._mutual_tls import certificate_in
from velado.learning.net.identity import open_identity

JOB = """
name = "stay"
protocol = "delegated"
key_bits = 2048
[target]
name = "stay"
bounds = [0, 60]
[[features]]
name = "age"
bounds = [0, 120]
"""
ROLES = {"hub": "evaluator", "vault": "provider", "a": "client", "b": "client", "c": "client"}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("VELADO_LANG", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pass").write_text("some words\n")
    return tmp_path


def keygen(name: str, *more: str) -> int:
    passphrase = [] if "--passphrase-file" in more else ["--passphrase-file", "pass"]
    return run(["party", "keygen", "--name", name, "-o", name, *passphrase, *more])


@pytest.fixture(scope="module")
def identities(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The identities of all parties, made once: a passphrase is slow to try, as it must be."""
    folder = tmp_path_factory.mktemp("identities")
    (folder / "pass").write_text("some words\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, role in ROLES.items():
            assert keygen(name, "--role", role, "--quiet") == 0
    return folder


@pytest.fixture
def job(identities: Path, place: Path) -> Path:
    shutil.copytree(identities, place, dirs_exist_ok=True)
    text = JOB
    for name in ROLES:
        text += (place / name / f"{name}.party.toml").read_text()
    (place / "job.toml").write_text(text)
    return place / "job.toml"


def test_keygen_prints_the_entry_of_the_job_and_nothing_secret(place: Path, capsys) -> None:
    assert keygen("clínica") == 0
    printed = capsys.readouterr()
    (entry,) = tomllib.loads(printed.out)["parties"]
    assert (entry["name"], entry["role"]) == ("clínica", "client") and "address" not in entry
    assert re.fullmatch("[0-9a-f]{64}", entry["signing_key"])
    assert certificate_in(entry["certificate"])[:1] == b"\x30"
    assert "some words" not in printed.out + printed.err and "365 days" in printed.err


def test_keygen_as_json_and_in_portuguese(place: Path, capsys) -> None:
    assert keygen("a", "--json") == 0
    assert json.loads(capsys.readouterr().out)["party"]["name"] == "a"
    assert keygen("b", "--lang", "pt") == 0
    assert "frase secreta" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "code"),
    [
        (["--role", "evaluater"], 2),
        (["--role", "evaluator", "--address", "nowhere"], 3),
        (["--address", "clinic.example:9000"], 2),
        (["--days", "0"], 2),
        (["--paillier", "1024"], 2),
        (["--passphrase-file", "none"], 10),
    ],
)
def test_keygen_refuses_what_cannot_work_and_makes_nothing(place: Path, capsys, more, code: int) -> None:
    assert keygen("a", *more) == code
    assert not (place / "a").exists()
    assert "What to do: " in capsys.readouterr().err


def test_keygen_never_overwrites(place: Path, capsys) -> None:
    assert keygen("a") == 0
    assert keygen("a") == 5


def test_show_tells_the_digest_the_parties_and_what_each_learns(job: Path, capsys) -> None:
    capsys.readouterr()
    assert run(["party", "show", "--job", "job.toml"]) == 0
    text = capsys.readouterr().out
    assert run(["party", "show", "--job", "job.toml", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["digest"] in text and "second moments" in text
    assert all(name in text for name in ROLES)
    assert run(["party", "show", "--job", "job.toml", "--lang", "pt"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Compare-o com as outras partes" in shown and "Esconde: as linhas" in shown


def test_show_tells_the_columns_and_limits_that_are_agreed_on(job: Path, capsys) -> None:
    text = job.read_text("utf-8").replace('protocol = "delegated"', 'protocol = "secure-sum"\nfamily = "logistic"\nminutes = 7\nleast_cell = 12\nmost_rows = 4000\nminimum_rows = 15')  # fmt: skip
    text = text.replace("bounds = [0, 60]", "bounds = [0, 1]")
    ward = 'bounds = [0, 1]\ncolumn = "ward"\namong = ["a", "b", "c"]\n'
    more = "".join(f'[[features]]\nname = "ward={value}"\nvalue = "{value}"\n{ward}' for value in "bc")
    vault = (job.parent / "vault" / "vault.party.toml").read_text()
    job.write_text(text.replace(vault, "").replace("[[parties]]", more + "[[parties]]", 1), "utf-8")
    capsys.readouterr()
    assert run(["party", "show", "--job", "job.toml"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for words in ("a logistic model (the target is 0 or 1) of stay", "stay the target 0 to 1", "age feature 0 to 120",
                  "ward feature b, c; reference: a", "at least 15 of every client, at most 4,000 of all together",
                  "fewer than 12 people", "7 minutes after the first call", "2^-20"):  # fmt: skip
        assert words in shown, words
    assert "key" not in shown.split("Digest")[0] and "2048" not in shown
    assert run(["party", "show", "--job", "job.toml", "--lang", "pt"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "um modelo logístico" in shown and "ward explicativa b, c; referência: a" in shown
    assert "menos de 12 pessoas" in shown and "tarefa" not in shown and "chave de" not in shown
    job.write_text(text.split("[[parties]]")[0], "utf-8")
    assert run(["party", "show", "--job", "job.toml", "--lang", "pt"]) == 3
    refused = capsys.readouterr().err
    assert "no trabalho" in refused and "tarefa" not in refused


def test_a_mistake_in_a_job_file_is_told_by_its_place(job: Path, capsys) -> None:
    text = job.read_text("utf-8")
    capsys.readouterr()
    job.write_text(text.replace('name = "age"', 'name = "age'), "utf-8")
    assert run(["party", "show", "--job", "job.toml", "--lang", "pt"]) == 3
    assert "linha 9" in capsys.readouterr().err
    sex = '[[features]]\nname = "sex=m"\nbounds = [0, 1]\ncolumn = "sex"\nvalue = "x"\namong = ["f", "m"]\n'
    job.write_text(text.replace("[[parties]]", sex + "[[parties]]", 1), "utf-8")
    assert run(["party", "show", "--job", "job.toml"]) == 2
    shown = capsys.readouterr().err
    assert "'sex=m' has a value that is not among those" in shown and "one of them: f, m" in shown
    assert run(["party", "show", "--job", "none.toml"]) == 3
    assert "There is no file 'none.toml'" in capsys.readouterr().err
    job.write_text(text, "utf-8")
    given = ["--job", "job.toml", "-o", "out", "--passphrase-file", "pass", "--lang", "pt"]
    assert run(["party", "provider", "--identity", "hub", *given]) == 3
    assert "Foi iniciado como provedor" in capsys.readouterr().err


def test_show_tells_the_size_of_a_key_where_there_is_one(job: Path, capsys) -> None:
    capsys.readouterr()
    assert run(["party", "show", "--job", "job.toml"]) == 0
    assert "a Paillier key of 2048 bits" in capsys.readouterr().out


@pytest.mark.slow
def test_an_evaluator_says_whom_it_waits_for_and_stops_when_it_was_told_to(job: Path, capsys) -> None:
    text = job.read_text("utf-8").replace('protocol = "delegated"', 'protocol = "secure-sum"')
    vault = (job.parent / "vault" / "vault.party.toml").read_text()
    job.write_text(text.replace(vault, ""), "utf-8")
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    given = ["--job", "job.toml", "-o", "out", "--passphrase-file", "pass", "--listen", f"localhost:{port}"]
    assert run(["party", "evaluator", "--identity", "hub", *given, "--wait", "0"]) == 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("velado.learning.net.runner.REMIND", 0.2)
        capsys.readouterr()
        assert (
            run(["party", "evaluator", "--identity", "hub", *given, "--wait", "0.03", "--lang", "pt"]) == 10
        )
    shown = capsys.readouterr().err
    assert "Ainda se espera por a, b, c" in shown
    assert "Ninguém chamou em 0,03 minutos" in shown and "Esperava-se por a, b, c" in shown
    assert "Ninguém chamou" in (job.parent / "out" / "report.md").read_text("utf-8")


@pytest.mark.slow
def test_a_role_refuses_a_wrong_start_before_anything_is_sent(job: Path, capsys) -> None:
    given = ["--job", "job.toml", "-o", "out", "--passphrase-file", "pass"]
    assert run(["party", "provider", "--identity", "a", *given]) == 3
    assert "velado party client" in capsys.readouterr().err
    assert run(["party", "evaluator", "--identity", "nobody", *given]) == 10
    assert run(["party", "client", "--identity", "a", "--table", "none.csv", *given]) == 3
    assert run(["party", "evaluator", "--identity", "hub", *given, "--listen", "nowhere"]) == 3
    job.write_text(job.read_text().replace('name = "age"', 'nam = "age"'))
    assert run(["party", "evaluator", "--identity", "hub", *given]) == 3
    assert not Path("out").exists()


def test_standard_errors_are_printed_where_the_job_asked_for_them(job: Path, capsys) -> None:
    from velado.learning.net.identity import read_job
    from velado.learning.net.outputs import Ending
    from velado.learning.protocols.parts import fit_of
    from velado.learning.protocols.role import Outcome
    from velado.learning.regression.fit import Solved

    job.write_text(
        job.read_text().replace('protocol = "delegated"', 'protocol = "delegated"\nmoments = true')
    )
    agreed = read_job(job)
    cost = {"seconds": 1.0, "messages_sent": 1, "bytes_sent": 1}
    for errors, expected in (((0.125, 0.0625), True), (None, False)):
        capsys.readouterr()
        ending = Ending(
            outcome=Outcome(fit=fit_of(agreed, Solved(coefficients=(1.5, 2.5), errors=errors, rows=40))),
            cost=cost,
        )
        present(party._ended(agreed, ending, Path("out"), ["fit.json"]))
        shown = capsys.readouterr().out
        assert ("standard error" in shown and "0.0625" in shown) == expected and "2.5" in shown


def test_a_random_passphrase_opens_the_keys_and_lies_outside_their_folder(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["party", "keygen", "--name", "a", "-o", "a", "--new-passphrase-file"]
    assert run([*given, "a/pass"]) == 2 and not (place / "a").exists()
    assert run([*given, "new", "--passphrase-file", "pass"]) == 2
    assert run([*given, "pass"]) != 0  # a file that is there is kept
    assert (place / "pass").read_text() == "some words\n"
    assert run([*given, "a.pass"]) == 0
    secret = (place / "a.pass").read_text()
    assert re.fullmatch(r"[0-9a-f]{64}\n", secret) and (place / "a.pass").stat().st_mode & 0o077 == 0
    told = capsys.readouterr()
    assert secret.strip() not in told.out + told.err
    sealed = (place / "a" / "secrets.sealed").read_bytes()
    assert sealed[9] == 10  # words that are typed or given are stretched to 2^17
    assert open_identity(place / "a", secret.strip()).name == "a"
    assert run([*given, "again"]) != 0 and not (place / "again").exists()  # the folder is taken
