"""A release that an engine wrote has the figures an evidence pack needs: those of the same release in memory."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from velado.data.keys import Key
from velado.data.schema import Schema
from velado.study.engine_run import publish_files
from velado.study.evidence import gather_evidence, verify_evidence
from velado.study.run import publish

pytest.importorskip("duckdb", reason="duckdb is not installed: velado[duckdb]")
KEY = Key(bytes(range(40)))


def stays(person: bool, door: bool) -> tuple[pl.DataFrame, Schema]:
    draw = np.random.default_rng(5)
    rows = 400
    age, town = draw.integers(20, 60, rows), draw.integers(0, 9, rows)
    frame = pl.DataFrame({"age": age, "town": [f"t{one}" for one in town]})
    frame = frame.with_columns(
        pl.Series("illness", [f"i{one}" for one in draw.integers(0, 4, rows)]),
        pl.Series("ward", [f"w{2 * one + n % 2}" for n, one in enumerate(town)] if door else ["w"] * rows),
        pl.Series("who", [f"p{one}" for one in draw.integers(0, 300, rows)]),
    )
    columns: dict[str, dict[str, object]] = {
        "age": {"role": "quasi", "kind": "numeric"},
        "town": {"role": "quasi"},
        "illness": {"role": "sensitive"},
        "ward": {"role": "other", "side_door": "accept"} if door else {"role": "other"},
        "who": {"role": "identifier", "person": person},
    }
    if not person:
        frame = frame.drop("who")
        del columns["who"]
    return frame, Schema.from_dict({"columns": columns})


@pytest.mark.parametrize(("person", "door"), [(False, False), (False, True), (True, False)])
def test_figures_of_an_engine_are_those_of_memory(person: bool, door: bool, tmp_path: Path) -> None:
    frame, schema = stays(person, door)
    frame.write_parquet(tmp_path / "stays.parquet")
    publish(
        tmp_path / "stays.parquet",
        schema,
        "mondrian",
        k=5,
        out=tmp_path / "memory",
        format="parquet",
        key=KEY,
    )
    publish_files(tmp_path / "stays.parquet", schema, "mondrian", k=5, out=tmp_path / "engine", key=KEY)
    here, there = (
        json.loads((tmp_path / name / "private" / "measured.json").read_text())
        for name in ("memory", "engine")
    )
    assert here.keys() == there.keys()
    for part in ("version", "counted_in", "risk_counted_in", "people_published", "singling_out"):
        assert there[part] == here[part], part
    for part in ("dropped_columns", "altered_columns", "inference", "side_doors"):
        assert there[part] == here[part], part
    unmeasured = {"record_linkage", "record_linkage_rows", "subsets_tried", "subsets_that_single_out"}
    for name, value in there["linkability"].items():
        assert value == (None if name in unmeasured else here["linkability"][name]), name
    assert there["sdc"] == {name: here["sdc"][name] for name in there["sdc"]}
    assert {"ncp", "suppressed", "reidentification", "highest_risk", "attribute_gain"} <= there["sdc"].keys()
    # What is looked for in memory alone is said, where people have several rows; never a silent hole.
    for page in ("private/report.html", "release/about.html"):
        found = "can be put together again" in (tmp_path / "engine" / page).read_text()
        assert found is person, page


def test_a_pack_is_made_of_an_engine_release_and_holds(tmp_path: Path) -> None:
    frame, schema = stays(False, True)
    frame.write_csv(tmp_path / "stays.csv")
    publish_files(tmp_path / "stays.csv", schema, "mondrian", k=5, out=tmp_path / "out", key=KEY)
    made = gather_evidence(tmp_path / "out", "lgpd", key=KEY)
    found = verify_evidence(made.content, table=tmp_path / "out" / "release" / "table.csv")
    measured = found.document["measured"]
    assert measured["singling_out"]["smallest_rows"] == found.document["counted"]["smallest_group"]
    assert measured["linkability"]["record_linkage"] is None
    assert [one["smallest_group"] for one in measured["side_doors"]] != []
