"""`velado federate` as a person types it: the clients and terms, the fit, several machines, both languages."""

import json
import re
from contextvars import copy_context
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

pytest.importorskip("flwr", reason="federated runs need velado[federated]")

from velado.apps.cli.app import Command, spread
from velado.apps.cli.commands import _federate as federate
from velado.apps.cli.main import run as run_velado
from velado.data.samples import hospital_csv, hospital_schema
from velado.errors import OutputError, ParameterError, SchemaError
from velado.learning.flower import FederatedFit, FederationStopped

from ..tables import column, toml

RECIPE = """
[data]
table = "{table}"
schema = "{schema}"
target = "desfecho"
features = ["sexo", "idade", "dias_internado"]
[anonymization]
method = "mondrian"
k = 6
[federation]
clients = 4
rounds = 3
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "federation.toml"
    text = RECIPE.format(table=hospital_csv().as_posix(), schema=hospital_schema().as_posix())
    path.write_text(text, "utf-8")
    return path


def velado(*words: object):
    app = typer.Typer()
    app.command("federate", cls=Command)(spread(federate.federate))
    done = copy_context().run(CliRunner().invoke, app, [str(word) for word in words], env={"VELADO_LANG": ""})
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


@pytest.mark.slow
def test_a_dry_run_shows_the_clients_and_the_terms_and_writes_nothing(recipe: Path, tmp_path: Path) -> None:
    done = velado(recipe, "-o", tmp_path / "out", "--dry-run")
    assert re.search(r"client 4\s+\d+\s+\d+", done.stdout)
    assert re.search(r"Digest of the terms: [0-9a-f]{64}", done.stdout)
    assert "a round needs 4 answers" in done.stdout
    assert not (tmp_path / "out").exists()
    plan = json.loads(velado(recipe, "--dry-run", "--json").stdout)
    assert plan["needed"] == 4 and len(plan["client_records"]) == 4


def test_a_fit_is_written_and_said_with_its_promise(recipe: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = velado(recipe, "-o", out, "--engine", "loop")
    assert re.search(r"After round 3: accuracy \d+\.\d% \(most frequent class \d+\.\d%\)", done.stdout)
    assert "Promise (guaranteed): Each client's training rows" in done.stdout
    assert "Not promised: Weights and trees carry no differential privacy" in done.stdout
    assert {path.name for path in out.iterdir()} == {"fit.json", "rounds.csv", "report.md", "model.npz"}
    fit = FederatedFit.from_dict(json.loads((out / "fit.json").read_text("utf-8")))
    assert len(fit.rounds) == 3 and fit.k == 6
    with pytest.raises(OutputError, match="exists already") as raised:
        velado(recipe, "-o", out, "--engine", "loop")
    assert "--force" not in str(raised.value) and "release" not in str(raised.value)
    other = tmp_path / "pt"
    done = velado(recipe, "-o", other, "--engine", "loop", "--lang", "pt", "--format", "parquet")
    assert "Promessa (garantida): As linhas de treino" in done.stdout
    assert "cliente 4" in done.stdout and "client 4" not in done.stdout
    assert re.search(r"Após a rodada 3: acurácia \d+,\d%", done.stdout)
    assert (other / "rounds.parquet").exists()
    assert "## Não prometido" in (other / "report.md").read_text("utf-8")
    found = json.loads(velado(recipe, "-o", tmp_path / "json", "--engine", "loop", "--json").stdout)
    assert found["rounds"] and found["rounds"][0]["round"] == 1
    assert velado(recipe, "-o", tmp_path / "still", "--engine", "loop", "--quiet").stdout == ""


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_trained(
    recipe: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    # The table is not there: what is checked first is what the error is about.
    recipe.write_text(recipe.read_text("utf-8").replace("table = ", 'table = "absent" #'), "utf-8")
    for folder in (tmp_path / "file" / "out", tmp_path / "file"):
        with pytest.raises(OutputError):
            velado(recipe, "-o", folder)
    assert {path.name for path in tmp_path.iterdir()} == {"file", recipe.name}


@pytest.mark.slow
def test_a_run_that_stops_keeps_its_history_on_disk(recipe: Path, tmp_path: Path) -> None:
    recipe.write_text(recipe.read_text("utf-8") + "dropout = 1.0\nunmet = 2\n", "utf-8")
    with pytest.raises(FederationStopped, match="2 rounds in a row"):
        velado(recipe, "-o", tmp_path / "out", "--engine", "loop")
    fit = json.loads((tmp_path / "out" / "fit.json").read_text("utf-8"))
    assert [one["applied"] for one in fit["rounds"]] == [False, False]
    assert "stopped early" in (tmp_path / "out" / "report.md").read_text("utf-8")
    code = run_velado(["federate", str(recipe), "-o", str(tmp_path / "again"), "--engine", "loop"])
    assert code == 9


DECLARED = toml(
    age=column("quasi numeric", bounds=[0, 100]),
    outcome=column("sensitive categorical", values=["ill", "well"]),
)


def test_what_several_machines_need_is_written_with_the_commands(tmp_path: Path) -> None:
    (tmp_path / "schema.toml").write_text(DECLARED, "utf-8")
    recipe = tmp_path / "federation.toml"
    text = '[data]\nschema = "schema.toml"\ntarget = "outcome"\n[anonymization]\nmethod = "mondrian"\nk = 5\n'
    recipe.write_text(text + "[federation]\nclients = 3\n", "utf-8")
    with pytest.raises(SchemaError, match="names no parties"):
        velado(recipe, "--machines", tmp_path / "m")
    parties = [
        f'[[parties]]\nname = "h{one}"\nrole = "client"\nsigning_key = "{one:064x}"\n' for one in (1, 2, 3)
    ]
    recipe.write_text(text + "[federation]\nclients = 3\n" + "".join(parties), "utf-8")
    done = velado(recipe, "--machines", tmp_path / "m", "--address", "hub.example:9443")
    for part in (
        "flower-superlink",
        "velado.learning.flower.supernode",
        "passphrase_file=",
        "flwr supernode register",
        "flwr run",
        "hub.example:9443",
    ):
        assert part in done.stdout
    digest = re.search(r"[0-9a-f]{64}", done.stdout)[0]
    terms = velado(tmp_path / "m" / "agreement" / "federation.toml", "--dry-run")
    assert digest in terms.stdout and "names no table" in terms.stdout
    said = json.loads(velado(recipe, "--machines", tmp_path / "n", "--json").stdout)
    assert said["digest"] == digest and said["commands"]["run"][0] == "flwr"
    with pytest.raises(SchemaError, match="names no table"):
        velado(recipe, "-o", tmp_path / "out")
    with pytest.raises(ParameterError, match="folder of the recipe itself"):
        velado(recipe, "--machines", tmp_path)


def test_mistakes_are_answered_with_the_nearest(recipe: Path, tmp_path: Path) -> None:
    text = recipe.read_text("utf-8")
    for old, new, hint in (
        ('method = "mondrian"', 'method = "mondrain"', "Did you mean 'mondrian'"),
        ("rounds = 3", "runds = 3", "Did you mean 'rounds'"),
        ('target = "desfecho"', 'target = "desfeccho"', "Did you mean 'desfecho'"),
        ("rounds = 3", 'model = "xgbost"', "Did you mean 'xgboost'"),
    ):
        recipe.write_text(text.replace(old, new), "utf-8")
        with pytest.raises((SchemaError, ParameterError), match=hint):
            velado(recipe, "-o", tmp_path / "out", "--dry-run")
    with pytest.raises(ParameterError, match="--engine cannot be 'ray'"):
        velado(recipe, "--engine", "ray")


def test_a_run_with_noise_is_debited_before_it_begins_and_a_second_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from velado.data.samples import discharges_csv, discharges_schema
    from velado.errors import BudgetExceeded

    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "state"))
    table = tmp_path / "rows.csv"
    table.write_bytes(discharges_csv().read_bytes())
    path = tmp_path / "private.toml"
    path.write_text(
        f'[data]\ntable = "rows.csv"\nschema = "{discharges_schema().as_posix()}"\ntarget = "reinternado"\n'
        'features = ["setor", "internacoes_previas", "urgencia"]\n[federation]\nclients = 3\nepsilon = 2\n',
        "utf-8",
    )
    done = velado(path, "-o", tmp_path / "one", "--engine", "loop")
    assert "Debited: rho " in done.stdout and "0 is left" in done.stdout
    assert "A membership attack by the loss told" in done.stdout
    assert "(2, 1e-06)-differential privacy" in " ".join(done.stdout.split())
    with pytest.raises(BudgetExceeded):
        velado(path, "-o", tmp_path / "two", "--engine", "loop")
    assert not (tmp_path / "two").exists()
