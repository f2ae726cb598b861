"""Starting, stopping, restarting and sharing: the budget outlasts the process, and nothing private reaches a log."""

import contextlib
import datetime
import json
import signal
import ssl
import subprocess
import sys
import threading
import time
from fractions import Fraction
from pathlib import Path

import pytest

from velado.apps.service.service_settings import read_settings
from velado.apps.service.web_server import Listening
from velado.errors import ParameterError

from .running import SECRET, command, running, token, write_service

COUNT = "SELECT COUNT(*) FROM people"


@pytest.mark.slow
def test_a_restart_keeps_what_was_spent_and_what_was_answered(tmp_path: Path) -> None:
    file = write_service(tmp_path, budget="{ epsilon = 1 }")
    with running(file) as service:
        first = service.ask(COUNT, spend=0.75).json
        assert service.stop() == (0, "")
        tokens = service.tokens
    with running(file, tokens) as service:
        assert service.ask(COUNT, spend=0.75).json["rows"] == first["rows"]
        assert service.ask("SELECT SUM(age) FROM people", spend=0.5).status == 402
        assert service.stop(signal.SIGINT) == (0, "")
    # Another budget in the file than in the ledger stops the start and says what to do.
    file.write_text(file.read_text().replace("epsilon = 1 ", "epsilon = 2 "))
    with pytest.raises(AssertionError, match="velado ledger raise"), running(file, tokens):
        pass
    file.write_text(file.read_text().replace("epsilon = 2 ", "epsilon = 0.5 "))
    with pytest.raises(AssertionError, match="never lowered"), running(file, tokens):
        pass


@pytest.mark.slow
def test_a_cap_that_is_changed_in_the_file_alone_stops_the_start(tmp_path: Path) -> None:
    file = write_service(tmp_path, more="caps = { ana = 0.5 }")
    with running(file) as service:
        tokens = service.tokens
    for other in ("0.25", "0.75"):
        file.write_text(file.read_text().replace("ana = 0.5 ", f"ana = {other} "))
        with pytest.raises(AssertionError, match="velado ledger cap"), running(file, tokens):
            pass
        file.write_text(file.read_text().replace(f"ana = {other} ", "ana = 0.5 "))
    with running(file, tokens) as service:
        lower = {"dataset": "people", "analyst": "ana", "cap": 0.25}
        assert "service file" in service.call("POST", "/v1/caps", lower, "root").json["note"]
        assert "note" not in service.call("POST", "/v1/caps", {**lower, "analyst": "bia"}, "root").json
        more = {"dataset": "people", "total": 12, "reason": "a second round of questions"}
        assert "service file" in service.call("POST", "/v1/budget/raise", more, "root").json["note"]
    # The file says what the ledger began with: what the owner set since holds, without an edit.
    with running(file, tokens) as service:
        (own,) = service.call("GET", "/v1/budget").json["budgets"]
        (whole,) = service.call("GET", "/v1/budget", who="root").json["budgets"]
        assert own["you"]["cap"] == "1/4" and whole["budget"]["total"] == "12"
    file.write_text(file.read_text().replace("ana = 0.5 ", "ana = 0.25 "))
    with running(file, tokens) as service:
        assert service.call("GET", "/v1/budget").json["budgets"][0]["you"]["cap"] == "1/4"


@pytest.mark.slow
def test_a_ledger_that_was_put_back_or_deleted_stops_the_service(tmp_path: Path) -> None:
    file = write_service(tmp_path, budget="{ epsilon = 1 }")
    ledger = tmp_path / "people.ledger"
    with running(file) as service:
        tokens = service.tokens
    old = ledger.read_bytes()
    with running(file, tokens) as service:
        service.ask(COUNT, spend=0.75)
    for extra in tmp_path.glob("people.ledger-*"):
        extra.unlink()
    ledger.write_bytes(old)
    with pytest.raises(AssertionError, match="rolled back"), running(file, tokens):
        pass
    ledger.unlink()
    with pytest.raises(AssertionError, match="gone"), running(file, tokens):
        pass


@pytest.mark.slow
def test_two_services_share_one_ledger(tmp_path: Path) -> None:
    file = write_service(tmp_path, budget="{ epsilon = 1 }")
    with running(file) as one, running(file, one.tokens) as two:
        first = one.ask(COUNT, spend=0.75).json
        again = two.ask(COUNT, "bia", spend=0.75).json
        assert again["stored"] and again["rows"] == first["rows"]
        assert two.ask("SELECT SUM(age) FROM people", spend=0.5).status == 402
        assert two.call("GET", "/v1/budget").json["budgets"][0]["spent"] == first["cost"]["spent"]


@pytest.mark.slow
def test_a_stop_lets_running_questions_end(tmp_path: Path) -> None:
    file = write_service(tmp_path, budget="{ epsilon = 100 }")
    with running(file) as service:
        statuses: list[int] = []
        answered: list[str] = []

        def keep_asking(number: int) -> None:
            for i in range(1000):
                try:
                    reply = service.ask(f"SELECT AVG(age) FROM people WHERE age > {number}.{i:04d}1")
                except (OSError, ValueError):
                    return
                statuses.append(reply.status)
                answered.append(reply.json["cost"]["spent"])

        threads = [threading.Thread(target=keep_asking, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        while len(statuses) < 5:
            time.sleep(0.01)
        code, log = service.stop()
        for thread in threads:
            thread.join()
        assert (code, log) == (0, "") and set(statuses) == {200}
        tokens = service.tokens
    with running(file, tokens) as service:
        state = service.call("GET", "/v1/ledger/verify?dataset=people", who="root").json
        spent, seen = Fraction(state["spent"]), sum((Fraction(cost) for cost in answered), Fraction(0))
        assert spent >= seen > 0


@pytest.mark.slow
def test_the_audit_file_tells_who_and_what_it_cost_and_no_value(tmp_path: Path) -> None:
    with running(write_service(tmp_path)) as service:
        service.ask(f"SELECT COUNT(*) FROM people WHERE note = '{SECRET}7' AND city = 'Recife'")
        service.ask(f"SELECT {SECRET} FROM people")
        service.call("GET", "/v1/budget", who="velado-forged")
        code, log = service.stop()
        text = (tmp_path / "audit.jsonl").read_text()
    assert (code, log) == (0, "")
    lines = [json.loads(line) for line in text.splitlines()]
    assert [(line["action"], line["outcome"]) for line in lines] == [
        ("answer", "asked"),
        ("answer", "answered"),
        ("answer", "asked"),
        ("answer", "query-refused"),
        ("token", "refused"),
    ]
    done = lines[1]
    assert done["analyst"] == "ana" and len(done["question"]) == 64 and Fraction(done["cost"]) > 0
    assert done["duration"].startswith("<")
    assert SECRET not in text and "Recife" not in text and service.tokens["ana"] not in text
    assert (tmp_path / "audit.jsonl").stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
def test_an_unexpected_error_is_a_fixed_sentence_and_the_log_has_its_place(tmp_path: Path) -> None:
    with running(write_service(tmp_path)) as service:
        (tmp_path / "tokens.json").write_text("no tokens")
        reply = service.call("GET", "/v1/budget")
        assert reply.status == 500 and reply.json["code"] == "unexpected"
        number = reply.json["what"].split("(id ")[1].split(")")[0]
        code, log = service.stop()
    assert code == 0 and number in log and "tokens.py" in log and "no tokens" not in log


@pytest.mark.slow
def test_whoever_comes_while_all_are_at_work_is_turned_away_and_pays_nothing(tmp_path: Path) -> None:
    """One question at work and none waiting: whoever comes meanwhile is turned away, and nothing is spent."""
    file = write_service(tmp_path, limits="concurrent_queries = 1\nwaiting_queries = 0")
    with running(file) as service:
        found: list[tuple[int, str]] = []

        def ask(number: int) -> None:
            reply = service.ask(f"SELECT AVG(age), SUM(age), MAX(age) FROM people WHERE age > {number}.5")
            found.append((reply.status, "" if reply.status == 200 else reply.json["code"]))

        threads = [threading.Thread(target=ask, args=(n,)) for n in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (200, "") in found and set(found) <= {(200, ""), (503, "busy")}
        spent = Fraction(service.call("GET", "/v1/budget", who="root").json["budgets"][0]["spent"])
        assert spent <= found.count((200, "")) * Fraction(1, 10)


def certificate(folder: Path) -> tuple[Path, Path]:
    """A self-signed certificate for this machine."""
    pytest.importorskip("cryptography", reason="a certificate is made with cryptography")
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "velado test")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return folder / "cert.pem", folder / "key.pem"


@pytest.mark.slow
def test_tls_serves_modern_clients_and_refuses_old_ones(tmp_path: Path) -> None:
    file = write_service(tmp_path)
    cert, key = certificate(tmp_path)
    context = ssl.create_default_context(cafile=str(cert))
    flags = ("--tls-cert", str(cert), "--tls-key", str(key))
    with running(file, None, *flags, context=context) as service:
        assert service.address.startswith("https://")
        reply = service.ask(COUNT)
        assert reply.status == 200 and "max-age" in reply.headers["strict-transport-security"]
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        with contextlib.suppress(ValueError):
            old.set_ciphers("ALL:@SECLEVEL=0")
        with pytest.warns(DeprecationWarning):
            old.maximum_version = ssl.TLSVersion.TLSv1_1
        service.context = old
        with pytest.raises(ssl.SSLError):
            service.call("GET", "/healthz")


def test_plain_http_stays_on_this_machine_unless_told() -> None:
    assert not Listening("127.0.0.1").secured
    assert not Listening("0.0.0.0", plain_http=True).secured
    assert Listening("0.0.0.0", certificate=Path("a"), key=Path("b")).secured
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):
        with pytest.raises(ParameterError, match="without TLS"):
            _ = Listening(host).secured
    with pytest.raises(ParameterError, match="belong together"):
        _ = Listening(certificate=Path("a")).secured


@pytest.mark.slow
def test_the_openapi_document_tells_every_route_and_every_error(tmp_path: Path) -> None:
    with running(write_service(tmp_path)) as service:
        document = service.call("GET", "/openapi.json", who=None).json
    assert document["openapi"].startswith("3.")
    paths = {(path, method) for path, methods in document["paths"].items() for method in methods}
    assert paths >= {
        ("/v1/answers", "post"),
        ("/v1/answers", "get"),
        ("/v1/price", "post"),
        ("/v1/datasets", "get"),
        ("/v1/budget", "get"),
        ("/v1/caps", "post"),
        ("/v1/budget/raise", "post"),
        ("/v1/ledger/verify", "get"),
        ("/metrics", "get"),
        ("/healthz", "get"),
    }
    schemas = document["components"]["schemas"]

    def references(part: object) -> list[str]:
        if isinstance(part, dict):
            own = [part["$ref"]] if isinstance(part.get("$ref"), str) else []
            return own + [r for value in part.values() for r in references(value)]
        return [r for value in part for r in references(value)] if isinstance(part, list) else []

    found = references(document)
    assert found and all(r.removeprefix("#/components/schemas/") in schemas for r in found)
    told = document["paths"]["/v1/answers"]["post"]["responses"]
    assert {"200", "401", "402", "404", "413", "422", "429", "503", "504"} <= set(told)
    assert schemas["ProblemBody"]["required"] == ["what", "why", "fix", "code"]
    # The same error schema everywhere: nothing of FastAPI's own, which would repeat what was sent.
    assert all("HTTPValidationError" not in r for r in found)


@pytest.mark.slow
def test_the_command_line_makes_lists_and_revokes_tokens(tmp_path: Path) -> None:
    file = write_service(tmp_path)
    made = command(file, "token", "add", str(file), "ana", "--role", "owner", "--days", "30")
    assert made.returncode == 0 and made.stdout.startswith("velado-") and "not shown again" in made.stderr
    token(file, "bia")
    listed = command(file, "token", "list", str(file), "--json")
    found = json.loads(listed.stdout)["tokens"]
    assert [(t["analyst"], t["role"], t["state"]) for t in found] == [
        ("ana", "owner", "valid"),
        ("bia", "analyst", "valid"),
    ]
    assert made.stdout.strip() not in listed.stdout
    assert command(file, "token", "revoke", str(file), "ana").returncode == 0
    table = command(file, "token", "list", str(file), "--lang", "pt")
    assert "revogado" in table.stdout and "analista" in table.stdout


@pytest.mark.slow
def test_without_its_libraries_the_service_names_the_extra_to_install(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['uvicorn'] = None\n"
        "from pathlib import Path\n"
        "from velado.apps.service.web_server import Listening, run\n"
        "from velado.errors import MissingExtra\n"
        "try:\n    run(Path('service.toml'), Listening(port=0), print)\n"
        "except MissingExtra as error:\n    print(error.fix)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert "velado[web,query]" in done.stdout, done.stderr


@pytest.mark.slow
def test_several_workers_share_budget_limits_and_counts(tmp_path: Path) -> None:
    file = write_service(tmp_path, budget="{ epsilon = 1 }")
    with running(file, None, "--workers", "2") as service:
        found = [
            service.ask(f"SELECT COUNT(*) FROM people WHERE age > {n}", spend=0.125).status for n in range(12)
        ]
        assert found == [200] * 8 + [402] * 4
        wanted = (
            'velado_answers_total{dataset="people",kind="fresh"} 8',
            'velado_refusals_total{code="budget-exceeded"} 4',
        )
        end = time.monotonic() + 30  # what several workers counted is put together a little later
        while not all(
            line in (counted := service.call("GET", "/metrics", who="root").text) for line in wanted
        ):
            assert time.monotonic() < end, counted
            time.sleep(0.1)
        assert service.stop() == (0, "")
    file.write_text(file.read_text().replace("epsilon = 1 ", "epsilon = 3 "))
    with (
        pytest.raises(AssertionError, match="velado ledger raise"),
        running(file, service.tokens, "--workers", "2"),
    ):
        pass


def test_the_limits_of_several_workers_add_up_to_those_of_the_file(tmp_path: Path) -> None:
    settings = read_settings(write_service(tmp_path, limits="concurrent_queries = 5"))
    part = settings.limits.part(2)
    assert part.requests_per_minute * 2 == settings.limits.requests_per_minute
    assert part.concurrent_queries == 3 and part.query_seconds == settings.limits.query_seconds


@pytest.mark.slow
def test_a_ledger_that_vanishes_while_in_use_stops_answers_and_names_no_file(tmp_path: Path) -> None:
    with running(write_service(tmp_path)) as service:
        assert service.ask(COUNT).status == 200
        (tmp_path / "people.ledger").unlink()
        refused = service.ask("SELECT SUM(age) FROM people")
        assert (refused.status, refused.json["code"]) == (503, "ledger")
        assert "people.ledger" not in refused.text and str(tmp_path) not in refused.text
        told = service.call("GET", "/v1/ledger/verify?dataset=people", who="root")
        assert told.status == 503 and "people.ledger" in told.text
        _, log = service.stop()
        assert "people.ledger" in log
