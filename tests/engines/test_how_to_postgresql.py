"""The page on PostgreSQL runs as it is written, with the server's address in the environment alone."""

import json
import re
import shlex
import uuid
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from velado.apps.cli import run
from velado.engines.postgres_connection import connected
from velado.release.guarantees import KAnonymity
from velado.release.verify import verify

pytestmark = pytest.mark.slow
PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "postgresql.md"
SCHEMA = """
[columns.age]
role = "quasi"
kind = "numeric"
[columns.sex]
role = "quasi"
[columns.diagnosis]
role = "sensitive"
"""
SAID = (
    "Engine: PostgreSQL",
    "Every promise that was asked for holds in this file.",
    "Engine: PostgreSQL",
    "rows are unique on the proposed quasi-identifiers",
    "NCP (leaves-1)",
)


def test_the_commands_run_and_the_table_keeps_its_promise(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    address = urlsplit(postgres_url)
    query = parse_qs(address.query)
    monkeypatch.setenv("PGHOST", query.get("host", [address.hostname or ""])[0])
    monkeypatch.setenv("PGUSER", unquote(address.username or "postgres"))
    monkeypatch.setenv("PGDATABASE", address.path.strip("/") or "postgres")
    monkeypatch.setenv("PGPASSWORD", secret := uuid.uuid4().hex)
    if address.port:
        monkeypatch.setenv("PGPORT", str(address.port))
    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    Path("schema.toml").write_text(SCHEMA)
    with connected("postgresql://") as connection:
        connection.execute("DROP TABLE IF EXISTS admissions, admissions_k5, admissions_next")
        connection.execute(
            "CREATE TABLE admissions AS SELECT 18 + n % 70 AS age, (ARRAY['F','M'])[1 + n % 2] AS sex, "
            "(ARRAY['flu','cold','asthma'])[1 + n % 3]::varchar AS diagnosis FROM generate_series(1, 900) AS n"
        )
    lines = re.findall(r"^velado .*$", PAGE.read_text("utf-8"), flags=re.M)
    assert [line.split()[1] for line in lines] == ["anonymize", "verify", "apply", "inspect", "measure"]
    told = ""
    for line, seen in zip(lines, SAID, strict=True):
        assert run(shlex.split(line)[1:]) == 0
        told += (shown := capsys.readouterr().out)
        assert seen in shown, line
    assert '[columns.diagnosis]\nrole = "sensitive"' in Path("proposed.toml").read_text("utf-8")
    with connected("postgresql://") as connection, connection.cursor() as cursor:
        again = cursor.execute("SELECT * FROM admissions_next").fetchall()
        rows = cursor.execute("SELECT * FROM admissions_k5").fetchall()
        assert again == rows
        names = [column.name for column in cursor.description or ()]
        assert len(rows) == 900
        text = "\n".join([",".join(names), *(",".join(str(cell) for cell in row) for row in rows)])
        Path("k5.csv").write_text(text + "\n")
        assert verify("k5.csv", "schema.toml", [KAnonymity(5)]).holds
        connection.execute("DROP TABLE admissions, admissions_k5, admissions_next")
    written = "".join(path.read_text("utf-8") for path in Path("out").rglob("*.*") if path.is_file())
    assert secret not in written + told and "PGHOST" not in written
    assert sorted(path.name for path in Path("out/release").iterdir()) == ["about.html", "manifest.json"]
    libraries = json.loads(Path("out/release/manifest.json").read_text("utf-8"))["libraries"]
    assert "psycopg" in libraries and "duckdb" not in libraries
