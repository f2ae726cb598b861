"""What is turned away, and how: tokens, sizes, rates, slow clients, broken requests; always with the same shape of error."""

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from velado.apps.service.analyst_service import RateLimiter
from velado.apps.service.tokens import Token, Tokens, add_token, read_tokens, revoke_token
from velado.errors import InputError, ParameterError

from .running import Running, raw, running, token, write_service


def problem(reply: object) -> str:
    """The code of an error, whose shape is checked."""
    body = reply.json  # type: ignore[attr-defined]
    assert set(body) == {"what", "why", "fix", "code"} and all(
        isinstance(v, str) and v for v in body.values()
    )
    return str(body["code"])


def test_forged_missing_and_misplaced_tokens_get_the_same_words(service: Running) -> None:
    real = service.tokens["ana"]
    forged = [None, "x", real[:-1] + ("A" if real[-1] != "A" else "B"), real.upper(), "velado-" + "A" * 43]
    replies = [service.call("GET", "/v1/budget", who=who) for who in forged]
    replies.append(service.call("GET", "/v1/budget", who=None, Authorization=f"Basic {real}"))
    replies.append(service.call("GET", f"/v1/budget?token={real}", who=None))
    assert {reply.status for reply in replies} == {401} and len({reply.text for reply in replies}) == 1
    assert problem(replies[0]) == "token" and replies[0].headers["www-authenticate"].startswith("Bearer")


def test_expired_and_revoked_tokens_end_without_a_restart(service: Running) -> None:
    file = service.folder / "service.toml"
    begun = time.monotonic()
    short = token(file, "carla", "analyst", 3 / 86_400)
    assert service.call("GET", "/v1/budget", who=short).status == 200
    time.sleep(max(0.0, begun + 3.2 - time.monotonic()))
    assert service.call("GET", "/v1/budget", who=short).status == 401
    dora = token(file, "dora")
    assert service.call("GET", "/v1/budget", who=dora).status == 200
    revoke_token(file.parent / "tokens.json", "dora")
    assert service.call("GET", "/v1/budget", who=dora).status == 401
    assert service.call("GET", "/v1/budget").status == 200


def test_a_token_opens_only_its_data_sets(service: Running) -> None:
    other = token(service.folder / "service.toml", "eva", "analyst", None, "elsewhere")
    hidden = service.ask("SELECT COUNT(*) FROM people", other)
    missing = service.call("POST", "/v1/answers", {"dataset": "nothing", "sql": "SELECT 1"})
    assert (hidden.status, hidden.text) == (missing.status, missing.text) and problem(hidden) == "dataset"
    assert service.call("GET", "/v1/datasets", who=other).json["datasets"] == []


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"\xff\xfe", 400),
        (b'{"dataset": "people"}', 422),
        (b'{"dataset": "people", "sql": 5}', 422),
        (b'{"dataset": "people", "sql": "SELECT COUNT(*) FROM people", "mode": "paper"}', 422),
        (b'{"dataset": "people", "sql": "SELECT COUNT(*) FROM people", "spend": "1e999999999"}', 422),
        (b'{"dataset": "people", "sql": "SELECT COUNT(*) FROM people", "spend": "1/0"}', 422),
        (b'{"dataset": "people", "sql": "SELECT COUNT(*) FROM people", "spend": NaN}', 422),
        (b'{"dataset": "people", "sql": "SELECT COUNT(*) FROM people", "spend": true}', 422),
        (b'{"dataset": "people", "sql": "SELECT COUNT(*) FROM people", "confidence": true}', 422),
        (b'{"dataset": "people", "sql": "SELECT COUNT(*) FROM people", "spend": -1}', 422),
        (b'{"dataset": "people", "sql": "SELECT COUNT(*) FROM people", "spend": 0}', 422),
        (b'{"dataset": "people", "sql": "SELECT COUNT(*) FROM people", "confidence": 1}', 422),
        (b'["people"]', 422),
        (b"[" * 30_000, 400),
        (b"", 422),
    ],
)
def test_a_request_that_is_not_understood_is_told_and_never_repeated(
    service: Running, body: bytes, status: int
) -> None:
    reply = service.call("POST", "/v1/answers", body)
    assert reply.status == status
    problem(reply)


def test_wrong_addresses_and_methods_have_the_same_shape(service: Running) -> None:
    assert problem(service.call("GET", "/nothing")) == "address"
    assert problem(service.call("GET", "/v1/budget/")) == "address"
    assert problem(service.call("DELETE", "/v1/answers")) == "method"
    assert problem(service.call("GET", "/static/..%2fapp.py")) == "address"
    assert problem(service.call("GET", "/v1/answers?dataset=people&most=0")) == "parameter"


def test_bodies_beyond_the_limit_are_refused_with_and_without_a_length(service: Running) -> None:
    large = service.call("POST", "/v1/answers", b"x" * 70_000)
    assert large.status == 413 and problem(large) == "size"
    head = (
        f"POST /v1/answers HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {service.tokens['ana']}\r\n"
        "Transfer-Encoding: chunked\r\n\r\n"
    )
    chunks = b"".join(b"4000\r\n" + b"x" * 0x4000 + b"\r\n" for _ in range(6)) + b"0\r\n\r\n"
    assert raw(service, head.encode() + chunks).startswith(b"HTTP/1.1 413")
    lying = head.replace("Transfer-Encoding: chunked", "Content-Length: 99999999999999999999999")
    assert raw(service, lying.encode(), 3).startswith((b"HTTP/1.1 413", b"HTTP/1.1 400"))
    long = service.ask("SELECT COUNT(*) FROM people -- " + "x" * 20_000)
    assert long.status == 413 and problem(long) == "length"


@pytest.mark.slow
def test_a_token_that_asks_too_often_waits_and_others_do_not(tmp_path: Path) -> None:
    file = write_service(tmp_path)
    file.write_text(file.read_text().replace("burst = 10000", "burst = 3").replace("= 100000", "= 6"))
    with running(file) as service:
        found = [service.call("GET", "/v1/budget") for _ in range(5)]
        assert [reply.status for reply in found] == [200] * 3 + [429] * 2
        assert problem(found[3]) == "rate" and 1 <= int(found[3].headers["retry-after"]) <= 10
        assert service.call("GET", "/v1/budget", who="bia").status == 200


@pytest.mark.slow
def test_an_address_that_guesses_tokens_is_slowed_down(tmp_path: Path) -> None:
    file = write_service(tmp_path)
    file.write_text(
        file.read_text().replace("failed_tokens_per_minute = 1000", "failed_tokens_per_minute = 4")
    )
    with running(file) as service:
        found = [service.call("GET", "/v1/budget", who=f"velado-{n}").status for n in range(6)]
        assert found == [401] * 4 + [429] * 2
        slowed = service.call("GET", "/v1/budget", who="velado-7")
        assert problem(slowed) == "tries" and int(slowed.headers["retry-after"]) >= 1
        # Nobody at the same address is shut out: not who has a token, nor who forgot it.
        assert service.call("GET", "/v1/budget").status == 200
        assert problem(service.call("GET", "/v1/budget", who=None)) == "token"
        assert service.call("GET", "/healthz", who=None).status == 200


def test_a_bucket_refills_with_time_and_never_beyond_its_burst() -> None:
    now = [0.0]
    limiter = RateLimiter(60, 2, lambda: now[0])
    assert [limiter.take("a") for _ in range(3)] == [0, 0, 1]
    assert limiter.take("b") == 0
    now[0] = 0.5
    assert limiter.take("a") == 0.5
    now[0] = 1.0
    assert [limiter.take("a") for _ in range(2)] == [0, 1]
    now[0] = 100.0
    assert [limiter.take("a") for _ in range(3)] == [0, 0, 1]
    for number in range(20_000):
        limiter.take(str(number))
    assert len(limiter._full) <= 10_000


def test_the_tokens_file_holds_no_token_and_is_private(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    text, kept = add_token(file, "ana", days=3)
    assert len(text) == len("velado-") + 43 and text not in file.read_text() and kept.hash in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    tokens = Tokens(file)
    assert tokens.find(text) == kept and tokens.find(text + "A") is None
    assert kept.state(datetime.now(UTC) + timedelta(days=4)) == "expired"
    other, _ = add_token(file, "bia", "owner")
    assert tokens.find(other) is not None and len({t.hash for t in read_tokens(file).tokens}) == 2


def test_a_tokens_file_open_to_others_or_broken_lets_nobody_in(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    text, _ = add_token(file, "ana")
    tokens = Tokens(file)
    file.chmod(0o644)
    with pytest.raises(InputError, match="other users"):
        Tokens(file)
    file.chmod(0o600)
    document = json.loads(file.read_text())
    document["tokens"][0]["role"] = "king"
    file.write_text(json.dumps(document))
    with pytest.raises(InputError, match="not one that velado wrote"):
        tokens.find(text)
    file.unlink()
    with pytest.raises(InputError, match="cannot be read"):
        tokens.find(text)
    with pytest.raises(ParameterError):
        add_token(file, "")


@pytest.mark.slow
def test_a_revoked_token_stays_revoked_and_an_unknown_one_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    _, kept = add_token(file, "ana")
    assert [t.id for t in revoke_token(file, kept.id)] == [kept.id]
    assert read_tokens(file).tokens[0].state(datetime.now(UTC)) == "revoked"
    with pytest.raises(ParameterError):
        revoke_token(file, "ana")
    assert isinstance(kept, Token)
