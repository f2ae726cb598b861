"""`velado data`: the list, a download from a server on this machine, and errors that say what to do."""

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from velado.apps.cli.main import run
from velado.papers import public_data as sources
from velado.papers.public_data import PublicDataSet, RemoteFile

BODY = b"a,b\n1,2\n"


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        self.send_response(200 if self.path == "/file.csv" else 404)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)


@pytest.fixture
def known(monkeypatch):
    """Two data sets, one of them served on this machine; returns its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    digest = hashlib.sha256(BODY).hexdigest()
    monkeypatch.setattr(
        sources,
        "DATA_SETS",
        (
            PublicDataSet(
                "small", "A small table", "http://page", (RemoteFile(f"{url}/file.csv", "s/t.csv", digest),)
            ),
            PublicDataSet("gone", "A lost table", "http://page", (RemoteFile(f"{url}/gone.csv", "s/g.csv"),)),
            PublicDataSet(
                "icu", "Traffic", "http://icu", by_hand="Its authors hand it out.", place="icu/icu.csv"
            ),
        ),
    )
    monkeypatch.delenv("VELADO_DATA", raising=False)
    yield url
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_data_set_is_fetched_and_then_listed_as_there(known, tmp_path, capsys) -> None:
    folder = tmp_path / "new"
    assert run(["data", "get", "small", "--data", str(folder)]) == 0
    assert "s/t.csv: fetched" in capsys.readouterr().out
    assert (folder / "s" / "t.csv").read_bytes() == BODY
    assert run(["data", "list", "--data", str(folder), "--json"]) == 0
    found = {one["name"]: one for one in json.loads(capsys.readouterr().out)["data_sets"]}
    assert found["small"]["files"] == {"s/t.csv": "there"}
    assert found["gone"]["files"] == {"s/g.csv": "missing"}
    assert found["icu"]["by_hand"] and found["small"]["by_hand"] is None


def test_what_was_put_in_place_by_hand_is_listed_as_there(known, tmp_path, capsys) -> None:
    assert run(["data", "list", "--data", str(tmp_path)]) == 0
    assert "by hand" in capsys.readouterr().out
    (tmp_path / "icu").mkdir()
    (tmp_path / "icu" / "icu.csv").write_bytes(BODY)
    assert run(["data", "list", "--data", str(tmp_path), "--json"]) == 0
    (icu,) = [one for one in json.loads(capsys.readouterr().out)["data_sets"] if one["name"] == "icu"]
    assert icu["files"] == {"icu/icu.csv": "there, not checked"}
    assert run(["data", "list", "--data", str(tmp_path)]) == 0
    assert "by hand" not in capsys.readouterr().out


def test_the_list_needs_no_folder_and_speaks_portuguese(known, capsys) -> None:
    assert run(["data", "list", "--lang", "pt"]) == 0
    printed = capsys.readouterr().out
    assert "falta" in printed and "à mão" in printed


def test_the_folder_may_come_from_the_environment(known, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("VELADO_DATA", str(tmp_path))
    assert run(["data", "get", "small", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"][0]["known"] is True
    assert run(["data", "get", "small"]) == 0
    assert "there already" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["get", "smal", "--data", "."], 2, "Did you mean 'small'"),
        (["get", "small"], 2, "--data DIR"),
        (["get", "icu", "--data", "."], 3, "http://icu"),
        (["get", "gone", "--data", "new"], 3, "HTTP 404"),
    ],
)
def test_what_cannot_be_done_is_said(known, tmp_path, capsys, monkeypatch, arguments, code, words) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["data", *arguments]) == code
    assert words in capsys.readouterr().err
