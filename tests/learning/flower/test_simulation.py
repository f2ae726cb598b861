"""Flower's simulation engine: the same numbers as the loop, within loopback, nothing left behind."""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="federated runs need velado[federated]")

from velado.data.schema import Schema
from velado.errors import MissingExtra, ParameterError, TableError
from velado.learning.flower import Federation, simulate
from velado.learning.flower import deployment as quiet_module
from velado.learning.flower._local_rows import Locally
from velado.learning.flower.agreement import FederatedData, FederationRecipe, agree
from velado.learning.flower.deployment import SILENT, closed_network, require_flower
from velado.learning.flower.simulation import make_ready, run_ready
from velado.release.methods import Mondrian

from .conftest import People, make_people

WATCH = """
import os, sys

def watch(name, arguments):
    if name == "socket.connect" and isinstance(arguments[1], tuple):
        tell(arguments[1][0])
    elif name in ("socket.getaddrinfo", "socket.gethostbyname"):
        tell(arguments[0])

def tell(host):
    handle = os.open(os.environ["WATCHED"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(handle, f"{os.getpid()} {host}\\n".encode())
    os.close(handle)

sys.addaudithook(watch)
"""
"""Python imports `sitecustomize` first in every process: each one below the test, Ray's helpers too, is watched."""


@pytest.mark.slow
def test_flowers_engine_gives_the_numbers_of_the_loop_within_loopback_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    pytest.importorskip("ray", reason="Flower's simulation runs on Ray")
    home = tmp_path / "home"
    home.mkdir()
    with tempfile.TemporaryDirectory(
        prefix="v-"
    ) as short:  # pytest's own folder is too long for Ray's sockets
        settings = {**os.environ, "HOME": str(home), "TMPDIR": short}
        settings.pop("FLWR_TELEMETRY_ENABLED", None)
        watch = tmp_path / "watch"
        watch.mkdir()
        (watch / "sitecustomize.py").write_text(WATCH, "utf-8")
        settings["WATCHED"] = str(tmp_path / "watched")
        settings["PYTHONPATH"] = os.pathsep.join([str(watch), *filter(None, [os.environ.get("PYTHONPATH")])])
        script = Path(__file__).with_name("closed_run.py")
        done = subprocess.run(
            [sys.executable, str(script), str(tmp_path)],
            env=settings,
            capture_output=True,
            text=True,
            timeout=400,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout.splitlines()[-1])
    people = make_people(tmp_path / "again", 300)
    for model, found in said["fits"].items():
        federation = Federation(model=model, clients=4, rounds=3, participation=0.5, dropout=0.2)
        loop = simulate(
            people.csv, people.schema, Mondrian(), federation, target="outcome", engine="loop", k=3
        ).to_dict()
        assert found["told"] == [1, 2, 3]
        assert found["fit"]["how"]["digest"] == loop["how"]["digest"]
        for one, other in zip(found["fit"]["rounds"], loop["rounds"], strict=True):
            assert one["loss"] == pytest.approx(other["loss"], abs=1e-9)
            assert one["accuracy"] == other["accuracy"] and one["missing"] == other["missing"]
    # 127.0.0.1 as the kernel writes it, in both families.
    assert set(said["sockets"]) <= {"0100007F", "0000000000000000FFFF00000100007F", "0" * 24 + "01000000"}
    assert said["sockets"], "no socket was seen: the watch does not work"
    told = [line.split(" ", 1) for line in (tmp_path / "watched").read_text().splitlines()]
    assert {host for _, host in told} <= {"127.0.0.1", "localhost", "::1", "None"}
    assert len({process for process, _ in told}) > 2, "the helper processes were not watched"
    assert said["home"] == [] and said["temporary"] == []
    assert said["telemetry"][0] == "0"
    assert said["variables"]["FLWR_TELEMETRY_ENABLED"] is None and said["variables"]["FLWR_HOME"] is None


def test_within_a_closed_network_every_switch_is_off_and_afterwards_all_is_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLWR_TELEMETRY_ENABLED", "1")
    monkeypatch.delenv("RAY_USAGE_STATS_ENABLED", raising=False)
    monkeypatch.delenv("HTTP_PROXY", raising=False)
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    with closed_network(tmp_path):
        assert {name: os.environ[name] for name in SILENT} == SILENT
        assert os.environ["https_proxy"] == os.environ["HTTP_PROXY"] == "http://127.0.0.1:9"
        assert os.environ["no_proxy"].split(",")[:2] == ["127.0.0.1", "localhost"]
        assert os.environ["FLWR_HOME"].startswith(str(tmp_path))
        from flwr.supercore.telemetry import FLWR_TELEMETRY_ENABLED, EventType, event

        assert FLWR_TELEMETRY_ENABLED == "0"
        assert event(EventType.PING).result(timeout=10) == "disabled"
    assert os.environ["FLWR_TELEMETRY_ENABLED"] == "1"
    assert "RAY_USAGE_STATS_ENABLED" not in os.environ
    assert os.environ["https_proxy"] == "http://proxy.example:3128" and "HTTP_PROXY" not in os.environ
    assert not list(tmp_path.iterdir())


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quiet_module, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"velado\[federated\]"):
        require_flower()


def test_the_room_is_imported_without_flower() -> None:
    code = (
        "import sys; sys.modules['flwr'] = None; sys.modules['ray'] = None; sys.modules['xgboost'] = None\n"
        "from velado.learning.flower import Federation, simulate, FederatedFit\n"
        "import velado.learning.flower.agreement, velado.learning.flower.deployment, velado.learning.flower.outcome\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def declaring(people: People, values: tuple[str, ...] | None) -> Schema:
    target = replace(people.schema.columns["outcome"], values=values)
    return replace(people.schema, columns={**people.schema.columns, "outcome": target})


@pytest.mark.parametrize("model", ["logistic", "xgboost"])
def test_declared_classes_are_the_classes_as_on_machines_even_if_no_row_has_one(
    people: People, model: str
) -> None:
    schema = declaring(people, ("well", "ill", "recovered"))
    federation = Federation(model=model, clients=3, rounds=2)
    ready = make_ready(people.csv, schema, Locally(Mondrian(), k=3), federation, target="outcome")
    data = FederatedData(schema="schema.toml", target="outcome")
    recipe = FederationRecipe(data, ready.locally, ready.terms.encoder.settings, federation)
    assert ready.terms.encoder.classes == ("well", "ill", "recovered")
    assert ready.terms.digest == agree(recipe, schema).terms.digest
    fit = run_ready(ready, "loop")
    assert fit.how.classes == 3 and fit.how.read_off_the_table == ()
    assert fit.rounds[-1].accuracy is not None and fit.rounds[-1].accuracy > 0.5


def test_a_row_with_a_class_that_is_not_declared_is_refused_without_showing_it(people: People) -> None:
    with pytest.raises(TableError, match=r"^\d+ rows? ha(s|ve) a class of the target 'outcome'") as raised:
        make_ready(people.csv, declaring(people, ("ill", "dead")), Locally(), Federation(), target="outcome")
    assert "well" not in str(raised.value)


def test_a_target_without_declared_values_is_named_as_read_off_the_table(people: People) -> None:
    ready = make_ready(
        people.csv, declaring(people, None), Locally(), Federation(clients=3), target="outcome"
    )
    assert ready.terms.read_off == ("outcome",) and ready.terms.encoder.classes == ("ill", "well")


def test_an_unknown_engine_is_refused(people) -> None:
    with pytest.raises(ParameterError, match="no engine 'ray'"):
        simulate(people.table, people.schema, None, Federation(), target="outcome", engine="ray")  # type: ignore[arg-type]
