"""Texts that mean no value are cells of the original: nothing that leaves holds one, and what stays keeps them."""

import json
import zipfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import tomli_w

from velado.apps.cli.main import run
from velado.data.keys import Key
from velado.data.schema import Schema
from velado.errors import EvidenceRefused
from velado.report.evidence.document import public_manifest
from velado.report.manifest import public_schema
from velado.study.engine_run import publish_files
from velado.study.evidence import gather_evidence, verify_evidence
from velado.study.run import publish

KEY = Key(bytes(range(40)))
CELL, EVERYWHERE, NOBODY = "Joana Prado asked for silence", "Code-Qx", "Nobody-Zy"
HIDDEN = (CELL, EVERYWHERE, NOBODY)


@pytest.fixture
def frame() -> pl.DataFrame:
    rows = 60
    note = [f"n{n % 3}" for n in range(rows)]
    note[7], note[9] = CELL, f"{CELL} too"
    return pl.DataFrame(
        {
            "who": [NOBODY if n < 4 else f"{NOBODY}2" if n < 8 else f"p{n}" for n in range(rows)],
            "age": [20 + n // 10 for n in range(rows)],
            "note": note,
            "held": [EVERYWHERE if n % 9 == 0 else f"h{n % 2}" for n in range(rows)],
        }
    )


def schema(person: bool) -> Schema:
    columns: dict[str, dict[str, Any]] = {
        "who": {"role": "identifier", "person": person, "missing_values": [NOBODY, f"{NOBODY}2"]},
        "age": {"role": "quasi", "kind": "numeric"},
        "note": {"role": "sensitive", "missing_values": ["", CELL, f"{CELL} too"]},
        "held": {"role": "other", "publish": False},
    }
    return Schema.from_dict({"table": {"missing_values": ["", EVERYWHERE]}, "columns": columns})


def leaving(folder: Path) -> bytes:
    """All bytes that may leave of a release."""
    return b"\0".join(file.read_bytes() for file in sorted((folder / "release").iterdir()))


@pytest.mark.parametrize("engine", [False, True])
def test_no_code_leaves_and_the_recipe_keeps_all(frame: pl.DataFrame, engine: bool, tmp_path: Path) -> None:
    out, file = tmp_path / "out", tmp_path / "stays.parquet"
    frame.write_parquet(file)
    if engine:
        pytest.importorskip("duckdb", reason="duckdb is not installed: velado[duckdb]")
        publish_files(file, schema(False), "mondrian", k=4, out=out, key=KEY)
    else:
        publish(file, schema(False), "mondrian", k=4, out=out, key=KEY)
    whole = leaving(out)
    pack = gather_evidence(out, "lgpd", key=KEY, out=tmp_path / "pack.zip")
    with zipfile.ZipFile(tmp_path / "pack.zip") as archive:
        whole += b"\0".join(archive.read(name) for name in archive.namelist())
    assert [text for text in HIDDEN if text.encode() in whole] == []
    told = json.loads((out / "release/manifest.json").read_text())["schema"]
    for entry in (told, pack.document["manifest"]["schema"]):
        assert entry["columns"]["note"]["missing_values"]["texts"] == 3
        assert entry["table"]["missing_values"]["texts"] == 2
        assert len(entry["table"]["missing_values"]["keyed_sha256"]) == 64
    recipe = (out / "private/recipe.toml").read_text()
    assert all(text in recipe for text in HIDDEN)
    table = next((out / "release").glob("table.*"))
    assert verify_evidence(pack.content, table=table).counted is not None


def test_no_code_leaves_with_joined_tables(frame: pl.DataFrame, tmp_path: Path) -> None:
    people = schema(True).to_dict()
    for name in ("one", "two"):
        frame.with_columns(who=pl.lit("p") + pl.int_range(pl.len()).cast(pl.String)).write_csv(
            tmp_path / f"{name}.csv"
        )
    (tmp_path / "s.toml").write_text(tomli_w.dumps(people))
    tables = [f"--table={tmp_path}/{name}.csv:{tmp_path}/s.toml" for name in ("one", "two")]
    assert run(["joined", *tables, "-k", "4", "-m", "mondrian", "-o", str(tmp_path / "out"), "--quiet"]) == 0
    whole = leaving(tmp_path / "out")
    assert [text for text in HIDDEN if text.encode() in whole] == []
    assert all(text in (tmp_path / "out/private/recipe.toml").read_text() for text in HIDDEN)


def test_people_are_counted_anew_as_the_recipe_reads_them(frame: pl.DataFrame, tmp_path: Path) -> None:
    out, original = tmp_path / "out", tmp_path / "original.csv"
    frame.write_csv(original)
    done = publish(original, schema(True), "mondrian", k=4, out=out, key=KEY)
    assert done.release.verdicts[0].unit == "people"
    pack = gather_evidence(out, "lgpd", key=KEY)
    table, rows = out / "release/table.csv", out / "private/rows.csv"
    found = verify_evidence(pack.content, table=table, original=original, rows=rows)
    assert found.people
    recipe = out / "private/recipe.toml"
    recipe.write_text(recipe.read_text().replace(f"{NOBODY}2", "somebody else"))
    with pytest.raises(EvidenceRefused):
        verify_evidence(pack.content, table=table, original=original, rows=rows)


def test_a_manifest_of_before_gives_a_pack_without_texts() -> None:
    told = {"columns": {"note": {"role": "other", "kind": "text", "missing_values": ["", CELL]}}}
    entry = public_manifest({"schema": told, "how": {"operations": []}})["schema"]["columns"]["note"]
    assert entry["missing_values"] == {"texts": 2}


def test_the_fingerprint_is_of_the_texts_and_of_the_key() -> None:
    def digest(texts: list[str], key: Key = KEY) -> object:
        one = Schema.from_dict({"columns": {"age": {"role": "quasi", "missing_values": texts}}})
        columns: Any = public_schema(one, key)["columns"]
        return columns["age"]["missing_values"]

    assert digest(["", "9"]) == digest(["9", ""]) != digest(["", "8"])
    assert digest(["", "9"]) != digest(["", "9"], Key(bytes(range(1, 41))))
