"""Fetching against a server on this machine: cut off, redirected, refused, too large, wrong, and at last right."""

from __future__ import annotations

import hashlib
import io
import json
import socket
import ssl
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from velado.errors import OutputError, TableError
from velado.papers.downloads import PARTS, RECORD, Retries, fetch, status
from velado.papers.public_data import PublicDataSet, RemoteFile

BODY = bytes(range(256)) * 600
DIGEST = hashlib.sha256(BODY).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves BODY; what it does to each request in turn is in `script`: a status, or how many bytes before it cuts."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script: list[object] = []
        self.asked: list[tuple[str, str | None]] = []
        self.body = BODY
        self.ranges = True
        self.tag = ""
        self.go_on = threading.Event()

    def url(self, path: str = "/file") -> str:
        return f"http://127.0.0.1:{self.server_port}{path}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.server.asked.append((self.path, wanted))
        step = self.server.script.pop(0) if self.server.script else "serve"
        body = self.server.body
        if isinstance(step, int):
            self.send_response(step)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if isinstance(step, str) and step.startswith(("http", "/")):
            self.send_response(302)
            self.send_header("Location", step)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and self.server.ranges else 0
        if self.headers.get("If-Range", self.server.tag) != self.server.tag:
            start = 0
        if start >= len(body):
            self.send_response(416)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        if self.server.tag:
            self.send_header("ETag", self.server.tag)
        if step != "no length":
            self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        sent = body[start:]
        if isinstance(step, tuple):
            sent = sent[: step[0]]
        if step == "stall":
            self.wfile.write(sent[:1000])
            self.server.go_on.wait(10)
            return
        self.wfile.write(sent)
        if isinstance(step, tuple):
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True


@pytest.fixture
def server():
    running = Server()
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    yield running
    running.shutdown()
    running.server_close()
    thread.join()


@pytest.fixture
def waits():
    return []


@pytest.fixture
def patience(waits):
    return Retries(attempts=3, wait=1.0, timeout=5.0, sleep=waits.append)


def data_set(url, sha256=DIGEST, **more):
    return PublicDataSet(
        "made-up", "A file", "http://page", (RemoteFile(url, "some/where.bin", sha256, **more),)
    )


def quiet(share, doing=""):
    pass


def get(server, folder, patience, sha256=DIGEST, path="/file", **more):
    keep = {name: more.pop(name) for name in ("force", "unchecked") if name in more}
    return fetch(data_set(server.url(path), sha256, **more), folder, quiet, patience, **keep)


def left_over(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_file_is_fetched_checked_and_left_alone_the_next_time(server, tmp_path, patience, waits) -> None:
    (first,) = get(server, tmp_path, patience)
    assert (tmp_path / "some" / "where.bin").read_bytes() == BODY
    assert (first.sha256, first.already, first.known) == (DIGEST, False, True)
    (again,) = get(server, tmp_path, patience)
    assert again.already and len(server.asked) == 1 and waits == []
    assert left_over(tmp_path) == [RECORD, "some/where.bin"]


def test_progress_ends_at_the_whole(server, tmp_path, patience) -> None:
    shares = []
    fetch(data_set(server.url()), tmp_path, lambda share, doing="": shares.append(share), patience)
    assert shares == sorted(shares) and shares[-1] == 1.0 and len(shares) > 2


def test_a_wrong_checksum_puts_nothing_in_place_and_forgets_the_download(server, tmp_path, patience) -> None:
    with pytest.raises(TableError, match="checksum"):
        get(server, tmp_path, patience, sha256="0" * 64)
    assert left_over(tmp_path) == []
    get(server, tmp_path, patience, sha256="0" * 64, unchecked=True)
    assert (tmp_path / "some" / "where.bin").read_bytes() == BODY


def test_a_cut_connection_goes_on_where_it_stopped(server, tmp_path, patience, waits) -> None:
    server.script = [(50_000,), (30_000,)]
    get(server, tmp_path, patience)
    assert [wanted for _, wanted in server.asked] == [None, "bytes=50000-", "bytes=80000-"]
    assert (tmp_path / "some" / "where.bin").read_bytes() == BODY
    assert waits == [1.0, 2.0]


def test_the_next_run_goes_on_where_this_one_stopped(server, tmp_path, patience) -> None:
    server.script = [(50_000,), (10,), (10,)]
    with pytest.raises(TableError, match="cut"):
        get(server, tmp_path, patience)
    assert len(left_over(tmp_path)) == 1 and left_over(tmp_path)[0].startswith(PARTS)
    get(server, tmp_path, patience)
    assert server.asked[-1][1] == "bytes=50020-"
    assert (tmp_path / "some" / "where.bin").read_bytes() == BODY


def test_a_server_that_cannot_resume_starts_again(server, tmp_path, patience) -> None:
    server.script, server.ranges = [(50_000,)], False
    get(server, tmp_path, patience)
    assert (tmp_path / "some" / "where.bin").read_bytes() == BODY


def test_a_server_that_falls_silent_half_way_is_asked_for_the_rest(server, tmp_path, waits) -> None:
    server.script = ["stall"]
    (done,) = get(server, tmp_path, Retries(3, 1.0, 0.3, waits.append))
    server.go_on.set()
    assert [wanted for _, wanted in server.asked] == [None, "bytes=1000-"] and waits == [1.0]
    assert done.sha256 == DIGEST and (tmp_path / "some" / "where.bin").read_bytes() == BODY


def test_pieces_of_two_versions_are_never_joined(server, tmp_path, patience) -> None:
    server.script, server.tag = [(50_000,), (0,), (0,)], '"first"'
    with pytest.raises(TableError, match="cut"):
        get(server, tmp_path, patience, sha256=None)
    # The file has changed since: the rest of the new one does not belong to the beginning of the old.
    server.body, server.tag = BODY[::-1], '"second"'
    get(server, tmp_path, patience, sha256=None)
    assert (tmp_path / "some" / "where.bin").read_bytes() == BODY[::-1]
    assert left_over(tmp_path) == [RECORD, "some/where.bin"]


def test_a_download_of_another_form_is_not_gone_on_with(server, tmp_path, patience) -> None:
    def refuse(data: bytes) -> bytes:
        raise TableError("It has another form.", "It cannot be read.", "Look at it.")

    with pytest.raises(TableError, match="another form"):
        get(server, tmp_path, patience, sha256=None, prepare=refuse)
    assert left_over(tmp_path) == []


def test_a_part_longer_than_the_file_is_thrown_away(server, tmp_path, patience) -> None:
    server.script = [(len(BODY) - 1,), (0,), (0,)]
    with pytest.raises(TableError):
        get(server, tmp_path, patience)
    server.body = BODY[:1000]
    get(server, tmp_path, patience, sha256=hashlib.sha256(BODY[:1000]).hexdigest())
    assert (tmp_path / "some" / "where.bin").read_bytes() == BODY[:1000]


@pytest.mark.parametrize("code", [429, 500, 503])
def test_a_busy_server_is_asked_again(server, tmp_path, patience, waits, code) -> None:
    server.script = [code, code]
    get(server, tmp_path, patience)
    assert waits == [1.0, 2.0] and len(server.asked) == 3


@pytest.mark.parametrize("code", [403, 404, 410])
def test_a_file_that_is_gone_is_asked_for_once(server, tmp_path, patience, waits, code) -> None:
    server.script = [code]
    with pytest.raises(TableError, match=f"HTTP {code}"):
        get(server, tmp_path, patience)
    assert len(server.asked) == 1 and waits == []


def test_a_redirect_is_followed(server, tmp_path, patience) -> None:
    server.script = ["/elsewhere"]
    get(server, tmp_path, patience)
    assert [path for path, _ in server.asked] == ["/file", "/elsewhere"]
    assert (tmp_path / "some" / "where.bin").read_bytes() == BODY


def test_a_redirect_in_circles_ends(server, tmp_path, patience) -> None:
    server.script = ["/file"] * 50
    with pytest.raises(TableError):
        get(server, tmp_path, patience)


def test_an_encrypted_address_is_never_left_for_a_plain_one() -> None:
    from velado.papers.downloads import _NoDowngrade

    class Request:
        full_url = "https://host/file"

    with pytest.raises(TableError, match="without encryption"):
        _NoDowngrade().redirect_request(Request(), None, 302, "", {}, "http://host/file")


def test_an_encrypted_server_that_sends_us_on_to_a_plain_one_is_not_followed(
    server, tmp_path, patience, waits, monkeypatch
) -> None:
    secure = encrypted(server, tmp_path / "keys", monkeypatch)
    server.script = [server.url("/plain")]
    with pytest.raises(TableError, match="without encryption"):
        fetch(data_set(f"https://127.0.0.1:{secure}/file"), tmp_path / "data", quiet, patience)
    assert [path for path, _ in server.asked] == ["/file"] and waits == []
    assert left_over(tmp_path / "data") == []


def test_a_certificate_that_is_not_trusted_is_said(server, tmp_path, patience, monkeypatch) -> None:
    secure = encrypted(server, tmp_path / "keys", monkeypatch)
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(TableError, match="certificate is not trusted"):
        fetch(data_set(f"https://127.0.0.1:{secure}/file"), tmp_path / "data", quiet, patience)


def encrypted(server, folder, monkeypatch) -> int:
    """The same server again behind TLS, trusted for as long as the test runs; returns its port."""
    pytest.importorskip("cryptography", reason="certificates are made by the extra velado[encrypted]")
    import datetime
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    folder.mkdir()
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    form = serialization.Encoding.PEM
    (folder / "certificate.pem").write_bytes(made.public_bytes(form))
    plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "key.pem").write_bytes(key.private_bytes(form, *plain))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / "certificate.pem"))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    return server.server_port


@pytest.mark.parametrize("step", ["serve", "no length"])
def test_more_than_the_limit_is_not_taken_in(server, tmp_path, patience, step) -> None:
    server.script = [step]
    with pytest.raises(TableError, match="larger than"):
        get(server, tmp_path, patience, most_bytes=1000)
    assert left_over(tmp_path) == []


def test_a_closed_port_is_offline_in_three_sentences(tmp_path, patience, waits) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(TableError) as caught:
        fetch(data_set(f"http://127.0.0.1:{port}/file"), tmp_path, quiet, patience)
    assert "connection refused; 3 attempts" in caught.value.what
    assert "offline" in caught.value.why and "some/where.bin" in caught.value.fix
    assert waits == [1.0, 2.0]


def test_a_silent_server_does_not_hold_us(tmp_path, waits) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/file"
        with pytest.raises(TableError, match="no answer in time"):
            fetch(data_set(url), tmp_path, quiet, Retries(2, 0.0, 0.2, waits.append))


def test_an_unknown_checksum_is_recorded_and_held_against_later_downloads(server, tmp_path, patience) -> None:
    (first,) = get(server, tmp_path, patience, sha256=None)
    assert not first.known
    assert json.loads((tmp_path / RECORD).read_text())["some/where.bin"]["source"] == DIGEST
    server.body = BODY[::-1]
    with pytest.raises(TableError, match="downloaded first"):
        get(server, tmp_path, patience, sha256=None, force=True)
    assert (tmp_path / "some" / "where.bin").read_bytes() == BODY


def test_a_file_of_ones_own_is_not_replaced_unless_forced(server, tmp_path, patience) -> None:
    place = tmp_path / "some" / "where.bin"
    place.parent.mkdir()
    place.write_text("mine")
    file = data_set(server.url()).files[0]
    assert status(file, tmp_path) == "there, but another file"
    with pytest.raises(OutputError, match="another file"):
        get(server, tmp_path, patience)
    assert place.read_text() == "mine"
    get(server, tmp_path, patience, force=True)
    assert place.read_bytes() == BODY and status(file, tmp_path) == "there"


def test_what_is_prepared_is_what_is_checked(server, tmp_path, patience) -> None:
    turned = BODY[::-1]
    get(server, tmp_path, patience, hashlib.sha256(turned).hexdigest(), prepare=lambda data: data[::-1])
    assert (tmp_path / "some" / "where.bin").read_bytes() == turned


def test_a_data_set_that_is_handed_out_only_on_request_says_where(tmp_path) -> None:
    with pytest.raises(TableError, match="http://page"):
        fetch(PublicDataSet("x", "X", "http://page", by_hand="Its authors hand it out."), tmp_path, quiet)


def test_a_folder_that_cannot_be_written_is_said(server, tmp_path, patience) -> None:
    (tmp_path / PARTS).write_text("a file where a folder should be")
    with pytest.raises(OutputError, match="cannot be written"):
        get(server, tmp_path, patience)


def archive(members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        for name, text in members.items():
            made.writestr(name, text)
    return out.getvalue()


def test_an_archive_is_unpacked_into_one_table(server, tmp_path, patience) -> None:
    from velado.papers.public_data import activities

    server.body = archive(
        {
            "Train/X_train.txt": "0.1 0.2\n0.3 0.4\n",
            "Train/y_train.txt": "5\n6\n",
            "Test/X_test.txt": "0.5 0.6\n",
            "Test/y_test.txt": "1\n",
        }
    )
    get(server, tmp_path, patience, sha256=None, prepare=activities)
    assert (tmp_path / "some" / "where.bin").read_text().splitlines() == [
        "feature_1,feature_2,activity", "0.1,0.2,5", "0.3,0.4,6", "0.5,0.6,1"
    ]  # fmt: skip
