"""Several machines: what is written for them, and real SuperLinks and SuperNodes with TLS on loopback."""

import json
from pathlib import Path

import numpy as np
import pytest
import tomli_w

pytest.importorskip("flwr", reason="federated runs need velado[federated]")
pytest.importorskip("cryptography", reason="certificates are made by it")

from velado.errors import OutputError, ParameterError, SchemaError
from velado.learning.flower import Federation, simulate
from velado.learning.flower._local_rows import split_rows
from velado.learning.flower._rounds_kept import read_own
from velado.learning.flower.deployment import supernode_command, write_deployment
from velado.release.methods import Mondrian

from .conftest import People, make_people
from .machines import (
    Machines,
    free_port,
    make_authority,
    make_node_key,
    make_parties,
    make_server_certificate,
)

SEED = 3


def write_recipe(people: People, federation: Federation) -> Path:
    document = {
        "data": {"schema": "schema.toml", "target": "outcome"},
        "anonymization": {"method": "mondrian", "k": 5, "seed": SEED},
        "federation": federation.to_dict(),
        "parties": make_parties(people.folder.parent / "parties", federation.clients),
    }
    path = people.folder / "federation.toml"
    path.write_text(tomli_w.dumps(document), "utf-8")
    return path


def test_the_folder_holds_the_agreement_the_app_and_the_commands_and_no_table(tmp_path: Path) -> None:
    people = make_people(tmp_path / "people", 60)
    folder = tmp_path / "machines"
    agreement = write_deployment(write_recipe(people, Federation(clients=3)), folder, "hub.example:9443")
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert {"START.md", "agreement/federation.toml", "agreement/schema.toml", "app/pyproject.toml"} <= files
    text = "".join((folder / name).read_text("utf-8") for name in files)
    assert "people.csv" not in text and agreement.terms.digest in text
    for part in (
        "--enable-supernode-auth",
        "--ssl-keyfile",
        "--root-certificates",
        "FLWR_TELEMETRY_ENABLED=0",
    ):
        assert part in (folder / "START.md").read_text("utf-8")
    with pytest.raises(OutputError, match="exists already"):
        write_deployment(people.folder / "federation.toml", folder, "hub.example:9443")
    for address in ("hub", "hub:0", "hub:99999"):
        with pytest.raises(ParameterError, match="not HOST:PORT"):
            write_deployment(people.folder / "federation.toml", tmp_path / "other", address)


def test_what_the_schema_leaves_open_stops_before_anything_is_written(tmp_path: Path) -> None:
    people = make_people(tmp_path / "people", 60)
    text = people.schema_file.read_text("utf-8").replace("bounds = [0, 100]\n", "")
    people.schema_file.write_text(text, "utf-8")
    with pytest.raises(SchemaError, match="which values 'age' may have"):
        write_deployment(write_recipe(people, Federation()), tmp_path / "machines", "hub:1")
    assert not (tmp_path / "machines").exists()


def test_a_node_reads_its_own_table_once_and_keeps_it_private(tmp_path: Path) -> None:
    people = make_people(tmp_path / "people", 90)
    write_deployment(write_recipe(people, Federation(clients=3)), tmp_path / "m", "hub:1")
    keys = tmp_path / "parties"
    node = {
        "agreement": str(tmp_path / "m/agreement"),
        "table": str(people.csv),
        "work": str(tmp_path / "w"),
        "identity": str(keys / "h2"),
        "passphrase_file": str(keys / "words"),
    }
    first = read_own(node, 2)
    assert first.prepared.record.name == "client 2" and first.prepared.labels.size > 0
    kept = list((tmp_path / "w").rglob("*"))
    assert all(path.stat().st_mode & 0o077 == 0 for path in kept)
    stamps = {path: path.stat().st_mtime_ns for path in kept}
    assert np.array_equal(read_own(node, 2).prepared.features, first.prepared.features)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "w").rglob("*")} == stamps
    with pytest.raises(SchemaError, match="no 'client', or one beyond"):
        read_own(node, 4)
    with pytest.raises(SchemaError, match="has no 'table'"):
        read_own({**node, "table": ""}, 1)
    with pytest.raises(SchemaError, match="is not there"):
        read_own({**node, "table": str(tmp_path / "none.csv")}, 1)


def test_a_path_that_flowers_settings_cannot_carry_is_refused() -> None:
    with pytest.raises(ParameterError, match="a quote"):
        supernode_command(Path("m"), "hub:1", 1, 'a"b.csv', "w", "k")


class Federated:
    """A federation of three on loopback, its tables dealt out as the simulation does."""

    def __init__(self, folder: Path, federation: Federation) -> None:
        self.people = make_people(folder / "people", 600)
        self.federation = federation
        self.output = folder / "output"
        self.machines = Machines(folder / "machines", f"127.0.0.1:{free_port()}")
        recipe, address = write_recipe(self.people, federation), self.machines.address
        self.digest = write_deployment(recipe, self.machines.folder, address).terms.digest
        make_server_certificate(self.machines.folder / "certificates")
        texts = self.people.table.text("outcome")
        labels = (texts == "well").cast(int).to_numpy().astype(np.int64)
        self.tables = []
        for number, rows in enumerate(split_rows(labels, federation, SEED), start=1):
            path = folder / f"table-{number}.csv"
            self.people.table.frame[rows].write_csv(path)
            self.tables.append(path)

    def start(self) -> None:
        self.machines.start_superlink()
        for number, table in enumerate(self.tables, start=1):
            self.machines.start_supernode(number, table)
        self.machines.start_run(self.output)

    def rounds_done(self) -> int:
        path = self.output / "progress.jsonl"
        return len(path.read_text("utf-8").splitlines()) if path.exists() else 0

    def fit(self, seconds: float) -> dict:
        self.machines.wait((self.output / "fit.json").exists, seconds, "the fit is not there")
        return json.loads((self.output / "fit.json").read_text("utf-8"))

    def simulated(self) -> dict:
        return simulate(
            self.people.csv,
            self.people.schema,
            Mondrian(),
            self.federation,
            target="outcome",
            seed=SEED,
            engine="loop",
            k=5,
        ).to_dict()


@pytest.mark.slow
def test_three_machines_with_tls_average_the_simulations_model(tmp_path: Path) -> None:
    run = Federated(tmp_path, Federation(clients=3, rounds=2, participation=1.0, patience=180.0))
    try:
        run.start()
        fit = run.fit(420)
    finally:
        run.machines.stop()
    simulated = run.simulated()
    # Who takes part is agreed on between machines, and nobody in a simulation.
    assert fit["how"]["digest"] == run.digest != simulated["how"]["digest"]
    assert fit["evaluation"] == "clients" and simulated["evaluation"] == "pooled"
    for one, other in zip(fit["rounds"], simulated["rounds"], strict=True):
        assert one["applied"] and one["replied"] == 3 and one["test_rows"] == other["test_rows"]
        assert one["accuracy"] == pytest.approx(other["accuracy"], abs=1e-12)
        assert one["loss"] == pytest.approx(other["loss"], abs=1e-9)
        # The clients' mean is not the pooled area: each ranks its own rows only.
        assert one["auc"] == pytest.approx(other["auc"], abs=0.05)
    assert fit["majority"] == simulated["majority"]
    for one, other in zip(fit["clients"], simulated["clients"], strict=True):
        assert one == pytest.approx(other)
    assert {path.name for path in run.output.iterdir()} == {
        "fit.json",
        "rounds.csv",
        "model.npz",
        "report.md",
        "progress.jsonl",
    }
    logs = "".join(run.machines.said(name) for name in run.machines.running)
    assert "P00" not in logs and "Aldenia" not in logs
    homes = [path for path in (run.machines.folder / "homes").rglob("*") if path.is_file()]
    assert homes == []


@pytest.mark.slow
def test_a_machine_that_dies_is_recorded_and_the_others_go_on_boosting(tmp_path: Path) -> None:
    federation = Federation(model="xgboost", clients=3, rounds=3, participation=0.6, patience=40.0)
    run = Federated(tmp_path, federation)
    try:
        run.start()
        run.machines.wait(lambda: run.rounds_done() >= 1, 300, "no round was finished")
        run.machines.kill("supernode-3")
        fit = run.fit(420)
    finally:
        run.machines.stop()
    simulated = run.simulated()
    assert fit["rounds"][0]["loss"] == pytest.approx(simulated["rounds"][0]["loss"], abs=1e-6)
    assert fit["rounds"][0]["replied"] == 3
    late = fit["rounds"][-1]
    assert late["applied"] and late["replied"] == 2
    missed = [one for one in fit["rounds"] if "client 3" in one["missing"]]
    assert missed and "client 3" in missed[0]["gap"]
    assert all(one["applied"] for one in fit["rounds"])


@pytest.mark.slow
def test_strangers_are_refused(tmp_path: Path) -> None:
    """Another authority, no TLS, and a key that was never registered: none of them becomes a client; another app is not run."""
    run = Federated(tmp_path, Federation(clients=3, rounds=1))
    machines, certificates = run.machines, run.machines.folder / "certificates"
    make_authority(certificates, "other")
    key = machines.folder / "stranger.key"
    make_node_key(key)
    try:
        machines.start_superlink()

        def command(*change: tuple[str, str]) -> list[str]:
            made = supernode_command(
                machines.folder,
                machines.address,
                1,
                str(run.tables[0]),
                str(tmp_path / "w"),
                str(key),
                free_port(),
            )
            for old, new in change:
                made = [new if part == old else part for part in made]
            return [*made, "--max-retries", "1", "--max-wait-time", "10"]

        machines.start("wrong-ca", command((str(certificates / "ca.crt"), str(certificates / "other.crt"))))
        plain = [
            part for part in command() if part not in ("--root-certificates", str(certificates / "ca.crt"))
        ]
        at = plain.index("--auth-supernode-private-key")
        machines.start("no-tls", [*plain[:at], *plain[at + 2 :], "--insecure"])
        machines.start("not-registered", command())
        names = ("wrong-ca", "no-tls", "not-registered")
        machines.wait(
            lambda: all(machines.running[name].poll() is not None for name in names), 300, "a stranger stays"
        )
        for name in names:
            assert machines.running[name].returncode != 0, machines.said(name)
            assert "SuperNode ID:" not in machines.said(name)
        assert "CERTIFICATE_VERIFY_FAILED" in machines.said("wrong-ca").replace(" ", "_").upper()
        # Whoever runs the SuperLink sends an app with a line more: the hospital's SuperNode ends, and nothing of it was run.
        with (machines.folder / "app/velado_app/client_app.py").open("a") as code:
            code.write(f"\n__import__('pathlib').Path({str(tmp_path / 'ran')!r}).touch()\n")
        machines.start_supernode(1, run.tables[0])
        machines.start_run(run.output)
        node = machines.running["supernode-1"]
        machines.wait(lambda: node.poll() is not None, 120, "a SuperNode stays with a stranger's app")
        assert node.returncode == 1 and "another app than velado's" in machines.said("supernode-1")
        assert not (tmp_path / "ran").exists() and not list(machines.folder.rglob("apps/*client_app.py"))
        # Without certificates the SuperLink itself does not start.
        (certificates / "server.crt").unlink()
        from velado.learning.flower.deployment import superlink_command

        code = machines.call(
            "no-certificate", superlink_command(machines.folder, f"127.0.0.1:{free_port()}"), 180
        )
        assert code != 0
    finally:
        machines.stop()
