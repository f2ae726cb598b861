"""What is inspected, verified and measured of Spark frames is what memory finds, and says what it judged by."""

import json
import shutil
from importlib.util import find_spec

import polars as pl
import pytest
from tests.engines.spark_tables import as_spark, multiset

import velado
from velado.data.keys import Key
from velado.data.schema import Schema
from velado.errors import ParameterError
from velado.release.guarantees import KAnonymity, LDiversity
from velado.release.sources import source_check

if find_spec("pyspark") is None:
    pytest.skip("pyspark is not installed: `make test-spark` runs these", allow_module_level=True)
if shutil.which("java") is None:
    pytest.skip("Java is not installed, and Spark runs on it", allow_module_level=True)

pytestmark = pytest.mark.slow
KEY = Key(bytes(range(40)))
ROWS = 400
FRAME = pl.DataFrame(
    {
        "age": [20 + at % 37 for at in range(ROWS)],
        "sex": ["F" if at % 3 else "M" for at in range(ROWS)],
        "illness": [["flu", "cold", "asthma"][at % 3] for at in range(ROWS)],
    }
)
SCHEMA = Schema.from_dict(
    {
        "columns": {
            "age": {"role": "quasi", "kind": "numeric"},
            "sex": {"role": "quasi"},
            "illness": {"role": "sensitive"},
        }
    }
)


def test_a_frame_is_verified_on_its_workers_as_in_memory(session) -> None:
    promises = [KAnonymity(4), LDiversity(2, column="illness")]
    released = velado.anonymize(FRAME, SCHEMA, "mondrian", k=4, key=KEY).frame
    for table in (released, FRAME):
        memory = velado.verify(table, SCHEMA, promises)
        spark = velado.verify(as_spark(session, table), SCHEMA, promises)
        assert spark.checked.verdicts == memory.checked.verdicts and spark.smallest == memory.smallest
        assert spark.holds == memory.holds
    assert velado.verify_source(as_spark(session, FRAME), SCHEMA, promises).holds is False


def test_a_frame_is_inspected_on_its_workers_as_in_memory(session, monkeypatch) -> None:
    memory = velado.inspect(FRAME)
    spark = velado.inspect_source(as_spark(session, FRAME))
    assert [(c.name, c.role, c.kind, c.distinct) for c in spark.columns] == [
        (c.name, c.role, c.kind, c.distinct) for c in memory.columns
    ]
    assert str(spark.judged) == "All rows were looked at."
    monkeypatch.setattr(source_check, "SAMPLE_ROWS", 100)
    sampled = velado.inspect_source(as_spark(session, FRAME))
    assert "sample" in str(sampled.judged) and sampled.rows == ROWS
    with pytest.raises(ParameterError, match="Only a Spark data frame"):
        velado.inspect_source(FRAME)


def test_two_frames_are_measured_on_their_workers(session) -> None:
    released = velado.anonymize(as_spark(session, FRAME), SCHEMA, "mondrian", k=4, key=KEY)
    spark = velado.measure_sources(as_spark(session, FRAME), released.frame, SCHEMA, k=4)
    memory = velado.anonymize(FRAME, SCHEMA, "mondrian", k=4, key=KEY)
    assert spark.ncp.overall == pytest.approx(velado.measure(memory).ncp.overall)
    assert spark.ncp.overall > 0 and spark.published_rows == ROWS


def test_files_with_moments_of_any_unit_and_zone_are_published_as_in_memory(session, tmp_path) -> None:
    from tests.engines.test_values_as_in_memory import schema, stays

    frame = stays().drop("called", "nothing")  # Spark reads neither nanoseconds nor columns of no type
    frame.write_parquet(tmp_path / "stays.parquet")
    meaning = schema()
    meaning = meaning.with_columns(c for c in meaning.columns.values() if c.name in frame.columns)
    memory = velado.anonymize(frame, meaning, "mondrian", k=3, key=KEY).frame
    velado.publish_files(
        tmp_path / "stays.parquet",
        meaning,
        "mondrian",
        k=3,
        out=tmp_path / "out",
        key=KEY,
        reports=(),
        engine="spark",
    )
    manifest = json.loads((tmp_path / "out" / "release" / "manifest.json").read_text("utf-8"))
    assert manifest["how"]["engine"] == "Spark" and manifest["libraries"]["pyspark"]
    spark = velado.read_table(tmp_path / "out" / "release" / "table.parquet").frame
    assert multiset(spark) == multiset(memory)
    assert spark.schema == memory.schema
