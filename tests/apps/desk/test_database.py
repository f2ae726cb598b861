"""A table of a real PostgreSQL server is opened; what is wrong with an address is said, and no password is kept."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from tests.query.conftest import postgres_url as postgres_url

from velado.apps.desk import worker
from velado.apps.desk.databases import copy_of
from velado.engines.postgres_connection import connected
from velado.errors import VeladoError

from .desks import Desk

pytestmark = pytest.mark.slow
SECRET = "s3cret-of-ana"


@pytest.fixture
def server(postgres_url: str) -> Iterator[str]:
    """A server with one table, and somebody who needs a password."""
    with connected(postgres_url) as connection:
        connection.execute("DROP TABLE IF EXISTS desk_stays")
        connection.execute("CREATE TABLE desk_stays (patient text, age int)")
        connection.execute("INSERT INTO desk_stays SELECT 'P' || n, n % 50 FROM generate_series(1, 30) AS n")
        connection.execute("DROP ROLE IF EXISTS ana")
        connection.execute(f"CREATE ROLE ana LOGIN PASSWORD '{SECRET}'")
        connection.commit()
        (rules,) = connection.execute("SHOW hba_file").fetchone()
        before = Path(rules).read_text()
        Path(rules).write_text("local all ana scram-sha-256\nhost all ana all scram-sha-256\n" + before)
        connection.execute("SELECT pg_reload_conf()")
    yield postgres_url
    Path(rules).write_text(before)
    with connected(postgres_url) as connection:
        connection.execute("SELECT pg_reload_conf()")
        connection.execute("DROP TABLE desk_stays")
        connection.execute("DROP ROLE ana")


def copied(desk: Desk, address: str, table: str) -> dict[str, str]:
    """What the desk's job tells after it copied a table: {} if it did."""
    place, target = copy_of(desk.project, address, table)
    folder = desk.project.runs / "20260101T000000-00000000"
    folder.mkdir(exist_ok=True)
    asked = {"kind": "copy", "place": place, "table": table, "target": target, "language": "en"}
    (folder / "job.json").write_text(json.dumps(asked))
    if worker.main([str(folder)]) == 0:
        assert Path(target).exists()
        return {}
    assert not Path(target).exists()
    found = json.loads((folder / "error.json").read_bytes())
    return {key: str(value) for key, value in found.items()}


def test_tables_are_copied_and_mistakes_are_told(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(tmp_path)
    assert copied(desk, server, "desk_stays") == {}
    as_ana = re.sub("//[^@/]*@", "//ana@", server)
    assert as_ana != server
    monkeypatch.setenv("PGPASSWORD", "wrong-" + SECRET)
    assert "name or the password" in json.dumps(copied(desk, as_ana, "desk_stays"))
    monkeypatch.setenv("PGPASSWORD", SECRET)
    assert "may not" in json.dumps(copied(desk, as_ana, "desk_stays"))  # let in, without the right to read
    monkeypatch.delenv("PGPASSWORD")
    assert "no table" in json.dumps(copied(desk, server, "no_such_table"))
    nobody = re.sub("//[^@/]*@", "//no_such_name@", server)
    assert "does not know the name" in json.dumps(copied(desk, nobody, "desk_stays"))
    assert "could not be reached" in json.dumps(copied(desk, "postgresql://127.0.0.1:1/x", "desk_stays"))
    with pytest.raises(VeladoError, match="password"):
        copy_of(desk.project, re.sub("//[^@/]*@", f"//ana:{SECRET}@", server), "desk_stays")
    with pytest.raises(VeladoError, match="password"):  # which PostgreSQL would take, # and all
        copy_of(desk.project, re.sub("//[^@/]*@", f"//ana:#{SECRET}@", server), "desk_stays")
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert kept and all(SECRET.encode() not in path.read_bytes() for path in kept)


def test_the_page_opens_a_servers_table_and_tells_what_is_wrong(server: str, tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    reply = desk.post("/open/table", address=server, table="no_such_table")
    assert reply.status == 409 and "There is no table" in reply.words
    assert desk.project.answers().source is None
    assert desk.post("/open/table", address=server, table="desk_stays").status == 303
    source = desk.project.answers().source
    assert source is not None and (source.table, Path(source.file).suffix) == ("desk_stays", ".parquet")
    assert pl.read_parquet(tmp_path / source.file).shape == (30, 2)
    words = desk.get("/open?lang=pt").words
    assert "desk_stays" in words or "table-desk_stays" in words
