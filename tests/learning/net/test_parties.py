"""Real parties: processes with mutual TLS on this machine, strangers at their doors, and parties that do not come."""

import itertools
import json
import signal
import socket
import stat
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from velado.data.staging import write_file
from velado.errors import EncryptionError, ProtocolError
from velado.learning.net._https import Undelivered
from velado.learning.net._journal import RECEIVED, Begin, Journal
from velado.learning.net._mutual_tls import Pins
from velado.learning.net._wire import largest_message, seal
from velado.learning.net.identity import make_identity, open_identity
from velado.learning.net.runner import Runner, read_columns
from velado.learning.protocols.protocol import Message
from velado.learning.protocols.role import make_role
from velado.learning.regression.job import Party

from .parties import LOG2_N, PASSPHRASE, Consortium, Visitor, consortium

pytestmark = pytest.mark.slow  # it starts processes

FAILED = EncryptionError.exit_code


def until(holds: Callable[[], bool], seconds: float = 120.0) -> None:
    """Waits for something that must come true."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def heard(group: Consortium, name: str, event: str) -> bool:
    return any(line["event"] == event for line in group.audit(name))


@pytest.fixture(scope="module", params=["delegated", "delegated-to-client", "masked", "secure-sum"])
def finished(request, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Consortium]:
    """A job of five processes that has come to its end."""
    folder = tmp_path_factory.mktemp(request.param)
    with consortium(folder, protocol=request.param, minutes=2) as group:
        group.start()
        assert set(group.wait(seconds=110).values()) == {0}, "\n".join(map(group.log, group.running))
        yield group


def test_every_party_that_may_know_holds_exact_least_squares(finished: Consortium) -> None:
    knowing = [
        p.name for p in finished.job.parties if finished.job.protocol.name != "masked" or p.role != "provider"
    ]
    for name in knowing:
        assert finished.fit(name) == finished.expected
    if finished.job.protocol.name == "masked":
        assert not (finished.folder / "out-vault" / "fit.json").exists()
        assert "does not learn the coefficients" in finished.log("vault")


def test_each_party_has_its_report_for_itself_alone(finished: Consortium) -> None:
    for party in finished.job.parties:
        out = finished.folder / f"out-{party.name}"
        assert stat.S_IMODE(out.stat().st_mode) == 0o700
        assert {stat.S_IMODE(path.stat().st_mode) for path in out.iterdir()} == {0o600}
        assert json.loads((out / "learned.json").read_text())["protocol"] == finished.job.protocol.name
        report = (out / "report.md").read_text("utf-8")
        assert finished.job.digest() in report and "What each party saw" in report and party.name in report


def test_the_audit_log_says_who_and_when_and_no_more(finished: Consortium) -> None:
    allowed = {"time", "event", "peer", "kind", "number", "bytes", "port", "reason", "to"}
    for party in finished.job.parties:
        lines = finished.audit(party.name)
        assert {key for line in lines for key in line} <= allowed
        assert {"started", "received", "processed", "sent", "finished"} <= {line["event"] for line in lines}


def test_a_finished_party_started_again_says_the_same_and_ends(finished: Consortium) -> None:
    before = finished.fit("clinic-0")
    finished.start("clinic-0")
    assert finished.wait("clinic-0") == {"clinic-0": 0}
    assert finished.fit("clinic-0") == before and "goes on from its journal" in finished.log("clinic-0")


def test_a_role_rebuilt_from_any_part_of_its_journal_says_the_same(finished: Consortium) -> None:
    for name in ("hub", finished.job.parties[1].name, "clinic-1"):
        identity = finished.identity(name)
        journal = Journal(finished.folder / f"out-{name}" / "journal.bin")
        journal.close()
        begin = Begin.from_bytes(journal.records[0][1])
        arrived = [payload for kind, payload in journal.records if kind == RECEIVED]
        columns = None
        if name in finished.tables:
            from velado.learning.net.runner import read_columns

            columns = read_columns(finished.folder / f"{name}.csv", finished.job)
        said: list[list[bytes]] = []
        for part in range(len(arrived) + 1):
            role = make_role(finished.job, name, begin.seed(identity.journal_key), columns)
            out = [seal(message, identity.signing) for message in role.start()]
            for data in arrived[:part]:
                out += [seal(message, identity.signing) for message in role.receive(_opened(finished, data))]
            said.append(out)
        assert all(later[: len(earlier)] == earlier for earlier, later in itertools.pairwise(said))
        assert len(said[-1]) == sum(line["event"] == "sent" for line in finished.audit(name))


def _opened(group: Consortium, data: bytes) -> Message:
    from velado.learning.net._wire import decode

    return decode(data[9:-64])


def test_a_journal_does_not_serve_another_job_or_table(finished: Consortium) -> None:
    other = (finished.folder / "job.toml").read_text().replace('name = "stay"', 'name = "stays"', 1)
    (finished.folder / "other.toml").write_text(other)
    finished.start("clinic-2", job="other.toml")
    assert finished.wait("clinic-2") == {"clinic-2": FAILED}
    assert "journal of another job" in finished.log("clinic-2")
    table = finished.folder / "clinic-2.csv"
    rows = table.read_text()
    table.write_text("\n".join(rows.splitlines()[:-1]) + "\n")
    finished.start("clinic-2")
    assert finished.wait("clinic-2") == {"clinic-2": FAILED}
    assert "not the one this job was begun with" in finished.log("clinic-2")
    table.write_text(rows)


def refusal(visitor: Visitor, data: bytes) -> str:
    """Why the hub will not have it, asked again while it has no place for this machine's connections."""
    for _ in range(100):
        with pytest.raises(Undelivered) as caught:
            visitor.say(data)
        if (reason := str(caught.value)).startswith("it refused"):
            return reason
        time.sleep(0.3)
    return reason


@pytest.mark.slow
def test_strangers_and_forgers_are_refused_and_the_job_ends_right(tmp_path: Path) -> None:
    with consortium(tmp_path, minutes=2) as group:
        group.start("hub", "vault", "clinic-0", "clinic-1")
        until(lambda: heard(group, "hub", "received"))
        pins, job = Pins(group.job), group.job
        host, port = pins.address
        # More silent connections than one address may hold: the rest of this machine is then refused until they are gone.
        with ExitStack() as silent:
            for _ in range(20):
                silent.enter_context(socket.create_connection((host, port), timeout=10))
            until(lambda: any("too many unfinished" in line.get("reason", "") for line in group.audit("hub")))
        for garbage in (b"\0" * 500, b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x40\x00" + b"A" * 500):
            with socket.create_connection((host, port), timeout=10) as connection:
                connection.sendall(garbage)
        make_identity(tmp_path / "mallory", Party("clinic-2", "client"), PASSPHRASE, log2_n=LOG2_N)
        with pytest.raises(Undelivered, match=r"handshake|connection failed"):
            Visitor(open_identity(tmp_path / "mallory", PASSPHRASE), job).say(b"x")
        # Mallory has clinic-2's TLS key, but not its signing key, then an old message, then too large a one.
        stolen = Visitor(group.identity("clinic-2"), job)
        forged = Message(job.digest(), "clinic-2", "hub", 0, "sums", {"ciphertexts": b"x"})
        assert "signature" in refusal(
            stolen, seal(forged, open_identity(tmp_path / "mallory", PASSPHRASE).signing)
        )
        old = Message("ab" * 32, "clinic-2", "hub", 0, "sums", {"ciphertexts": b"x"})
        assert "another job" in refusal(stolen, seal(old, group.identity("clinic-2").signing))
        other = Message(job.digest(), "clinic-1", "hub", 1, "sums", {"ciphertexts": b"x"})
        assert "another sender" in refusal(stolen, seal(other, group.identity("clinic-2").signing))
        with pytest.raises(Undelivered):
            stolen.say(bytes(largest_message(job) + (1 << 19)))
        assert "not come in an envelope" in refusal(stolen, b"garbage" * 20)
        group.start("clinic-2")
        assert set(group.wait(seconds=110).values()) == {0}, "\n".join(map(group.log, group.running))
        assert all(group.fit(name) == group.expected for name in group.running)
        assert sum(line["event"] == "refused" for line in group.audit("hub")) >= 8


def test_who_never_comes_is_named_when_time_is_up(tmp_path: Path) -> None:
    with consortium(tmp_path, minutes=0.5) as group:
        present = ["hub", "vault", "clinic-0", "clinic-2"]
        group.start(*present)
        assert group.wait(seconds=110) == dict.fromkeys(present, FAILED)
        assert "nothing came from clinic-1" in group.log("hub")
        for name in ("clinic-0", "vault"):
            assert "Time is up after 0.5 minutes" in group.log(name) and "clinic-1" in group.log(name)
            assert "without a result" in (group.folder / f"out-{name}" / "report.md").read_text()
            assert not (group.folder / f"out-{name}" / "fit.json").exists()


def test_a_message_a_role_refuses_ends_the_job_at_all_parties(tmp_path: Path) -> None:
    with consortium(tmp_path, minutes=2) as group:
        others = [party.name for party in group.job.parties if party.name != "clinic-2"]
        group.start(*others)
        until(lambda: heard(group, "hub", "received"))
        wrong = Message(group.job.digest(), "clinic-2", "hub", 0, "total", {"ciphertexts": b"x"})
        identity = group.identity("clinic-2")
        Visitor(identity, group.job).say(seal(wrong, identity.signing))
        assert group.wait(seconds=110) == dict.fromkeys(others, FAILED)
        assert "What clinic-2 sent was refused" in group.log("hub")
        assert "hub ended the job" in group.log("clinic-0") and "clinic-2" in group.log("vault")


@pytest.mark.slow
def test_columns_that_repeat_each_other_end_the_job_by_name_at_all_parties(tmp_path: Path) -> None:
    from .parties import rows

    tables = {f"clinic-{i}": {**rows(i), "twice": rows(i)["age"]} for i in range(3)}
    bounds = {"age": (0, 120), "level": (-10, 10), "twice": (0, 120), "stay": (-50, 50)}
    with consortium(tmp_path, minutes=2, tables=tables, bounds=bounds) as group:
        group.start()
        assert set(group.wait(seconds=110).values()) == {FAILED}
        for name in group.running:
            assert "twice" in group.log(name)


@pytest.mark.slow
def test_a_client_whose_rows_do_not_fit_sends_nothing_and_may_mend_them(tmp_path: Path) -> None:
    with consortium(tmp_path, minutes=2) as group:
        table = tmp_path / "clinic-1.csv"
        rows = table.read_text()
        table.write_text(rows + "121,0.5,1.0\n")
        group.start("clinic-1")
        assert group.wait() == {"clinic-1": FAILED}
        assert "Column 'age'" in group.log("clinic-1") and "121" not in group.log("clinic-1")
        assert not any(line["event"] == "sent" for line in group.audit("clinic-1"))
        table.write_text(rows)
        group.start()
        assert set(group.wait(seconds=110).values()) == {0}
        assert group.fit("clinic-1") == group.expected


@pytest.mark.slow
def test_a_party_asked_to_stop_goes_on_later(tmp_path: Path) -> None:
    with consortium(tmp_path, minutes=2) as group:
        group.start("hub", "vault", "clinic-0")
        until(lambda: heard(group, "clinic-0", "sent"))
        for name in ("clinic-0", "hub"):
            group.kill(name, signal.SIGTERM)
            assert group.running[name].returncode == 143
            assert "go on from the journal" in group.log(name)
        group.start("hub", "clinic-0", "clinic-1", "clinic-2")
        assert set(group.wait(seconds=110).values()) == {0}
        assert group.fit("clinic-0") == group.expected


def test_a_secure_sum_goes_on_without_a_client_that_stays_away(tmp_path: Path) -> None:
    with consortium(tmp_path, clients=4, protocol="secure-sum", minutes=2) as group:
        present = ["hub", "clinic-0", "clinic-1", "clinic-3"]
        group.start(*present)
        until(lambda: heard(group, "hub", "left"))
        group.kill("hub")
        group.start("hub")
        assert group.wait(seconds=130) == dict.fromkeys(present, 0), "\n".join(map(group.log, present))
        table = {name: rows for name, rows in group.tables.items() if name != "clinic-2"}
        fewer = Consortium(group.folder, group.job, table)
        assert all(group.fit(name) == fewer.expected for name in present)
        assert "goes on without clinic-2" in group.log("hub")


def test_a_job_that_cannot_go_on_says_so_and_not_that_it_goes_on(tmp_path: Path) -> None:
    with consortium(tmp_path, clients=3, protocol="secure-sum", minutes=1) as group:
        present = ["hub", "clinic-0", "clinic-2"]
        group.start(*present)
        assert group.wait(seconds=110) == dict.fromkeys(present, FAILED)
        assert "goes on without" not in group.log("hub") and "clinic-1" in group.log("hub")


def test_fifty_clients_on_one_machine_are_all_summed(tmp_path: Path) -> None:
    """Each a thread here, with its own connection over mutual TLS; starting fifty interpreters is the benchmark's."""
    group = consortium(tmp_path, clients=50, protocol="secure-sum", minutes=4, most_rows=10_000)
    runners = [
        Runner(
            job=group.job,
            identity=group.identity(party.name),
            role=party.role,
            folder=tmp_path / f"out-{party.name}",
            columns=read_columns(tmp_path / f"{party.name}.csv", group.job)
            if party.role == "client"
            else None,
        )
        for party in group.job.parties
    ]
    with ThreadPoolExecutor(len(runners)) as pool:
        endings = list(pool.map(lambda runner: runner.run(), runners))
    names = {party.name for party in group.job.of("client")}
    for ending in endings:
        assert ending.failure is None and set(ending.outcome.summed) == names and len(names) == 50
        assert (
            dict(zip(ending.outcome.fit.names, ending.outcome.fit.coefficients, strict=True))
            == group.expected
        )


@pytest.mark.slow
def test_a_provider_may_bring_its_key(tmp_path: Path) -> None:
    from velado.learning.crypto import paillier_keys as keyfile
    from velado.learning.crypto.paillier_keys import PrivateKey
    from velado.learning.net.identity import PAILLIER

    vectors = Path(__file__).parents[2] / "vectors" / "paillier.json"
    iso = json.loads(vectors.read_text("utf-8"))["iso_18033_6"]
    private = PrivateKey(int(iso["p"], 16), int(iso["q"], 16))
    with consortium(tmp_path, minutes=2) as group:
        write_file(
            tmp_path / "vault" / PAILLIER,
            keyfile.seal(private, PASSPHRASE, log2_n=LOG2_N),
            private=True,
            force=True,
        )
        group.start()
        assert set(group.wait(seconds=110).values()) == {0}
        journal = Journal(tmp_path / "out-clinic-0" / "journal.bin")
        journal.close()
        key = next(_opened(group, payload) for kind, payload in journal.records if kind == RECEIVED)
        assert int(private.public.n).to_bytes(256, "big") in key.fields["key"]
        assert group.fit("hub") == group.expected


@pytest.mark.slow
def test_a_wrong_passphrase_opens_nothing(tmp_path: Path) -> None:
    with consortium(tmp_path) as group:
        (tmp_path / "passphrase").write_text("another one")
        group.start("clinic-0")
        assert group.wait() == {"clinic-0": FAILED}
        assert "passphrase" in group.log("clinic-0")
        assert not (tmp_path / "out-clinic-0").exists()


@pytest.mark.slow
def test_a_damaged_journal_is_an_error_and_stays_as_it_is(tmp_path: Path) -> None:
    with consortium(tmp_path, minutes=2) as group:
        group.start("hub", "vault", "clinic-0")
        until(lambda: heard(group, "clinic-0", "sent"))
        group.kill("clinic-0")
        path = tmp_path / "out-clinic-0" / "journal.bin"
        data = bytearray(path.read_bytes())
        data[60] ^= 1
        path.write_bytes(data)
        group.start("clinic-0")
        assert group.wait("clinic-0") == {"clinic-0": FAILED}
        assert "The journal is damaged" in group.log("clinic-0")
        assert path.read_bytes() == data
    with pytest.raises(ProtocolError):
        Journal(path)
