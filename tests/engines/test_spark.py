"""Spark gives the very table that memory and DuckDB give, whatever its parts, and its driver never holds rows."""

import shutil
from importlib.util import find_spec

import polars as pl
import pyarrow as pa
import pytest

import velado
from tests.engines.spark_tables import as_arrow, as_spark, declared, drawn_table, multiset
from velado.data.keys import Key
from velado.data.schema import Schema
from velado.engines.duckdb_source import of_arrow
from velado.errors import EngineError, ParameterError, SchemaError, TableError
from velado.release.guarantees import LDiversity, TCloseness
from velado.release.run_settings import run_settings
from velado.release.sources import source_gate
from velado.release.sources.source_release import plan_release, prepare_source

if find_spec("pyspark") is None:
    pytest.skip("pyspark is not installed: `make test-spark` runs these", allow_module_level=True)
if shutil.which("java") is None:
    pytest.skip("Java is not installed, and Spark runs on it", allow_module_level=True)

pytestmark = pytest.mark.slow
KEY = Key(bytes(range(40)))


@pytest.fixture(scope="module")
def session():
    from pyspark.sql import SparkSession

    # Small tables: what is compiled for a query would cost more than the query.
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.session.timeZone": "America/Sao_Paulo",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local[2]").appName("tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    yield made
    made.stop()


def rows_of(release) -> pl.DataFrame:
    return pl.from_arrow(release.frame.toArrow())


def verdicts(release) -> list[tuple[object, ...]]:
    return [
        (v.guarantee, v.holds, pytest.approx(v.achieved) if isinstance(v.achieved, float) else v.achieved)
        for v in release.verdicts
    ]


RUNS = [
    (0, "mondrian", {"per": "row"}, [LDiversity(2, column="illness")]),
    (1, "mondrian", {}, []),
    (2, "progressive", {"per": "row", "suppression": 0.1}, []),
    (3, "mondrian", {"per": "row"}, [TCloseness(0.6, column="illness")]),
    (4, "mondrian", {"suppression": 0.2}, []),
]


@pytest.mark.parametrize(("seed", "method", "asked", "more"), RUNS)
def test_the_same_table_in_memory_on_duckdb_and_on_spark(session, seed, method, asked, more) -> None:
    frame = drawn_table(seed, 240)
    schema = Schema.from_dict(declared(sex={"missing": "suppress"} if seed == 4 else {}))
    memory = velado.anonymize(frame, schema, method, more, k=3, key=KEY, **asked)
    spark = velado.anonymize(as_spark(session, frame), schema, method, more, k=3, key=KEY, **asked)
    assert multiset(rows_of(spark)) == multiset(memory.frame)
    assert verdicts(spark) == verdicts(memory)
    assert spark.facts()["cost"]["ncp"] == pytest.approx(memory.facts()["cost"]["ncp"])
    wanted = run_settings(method=method, guarantees=more, k=3, **asked)
    ready = prepare_source(of_arrow(as_arrow(frame)), schema, per=wanted.per)
    planned = plan_release(
        ready, wanted.method, k=3, guarantees=wanted.guarantees, suppression=wanted.suppression
    )
    assert planned.planned.verdicts == spark.plan.planned.verdicts
    assert planned.shown.equals(spark.plan.shown)
    assert planned.counts.tolist() == spark.plan.counts.tolist()


def test_neither_parts_nor_their_order_change_anything(session) -> None:
    """One part, seven, sixty-four of which most are empty, and the rows turned around."""
    frame = drawn_table(5, 60)
    schema = Schema.from_dict(declared())
    asked = {"method": "mondrian", "k": 3, "per": "row", "key": KEY}
    tables = [
        rows_of(velado.anonymize(as_spark(session, given, parts), schema, **asked))
        for given, parts in ((frame, 1), (frame, 7), (frame.reverse(), 64))
    ]
    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])
    other = velado.anonymize(as_spark(session, frame, 1), schema, **(asked | {"key": Key(bytes(40))}))
    assert not rows_of(other).equals(tables[0])  # another owner's order
    assert multiset(rows_of(other)) == multiset(tables[0])


def test_the_driver_never_collects_rows(session, monkeypatch) -> None:
    """Every way from Spark to Python is counted; the table has texts that only one row holds."""
    from pyspark.sql.classic.dataframe import DataFrame

    rows, sampled = 4000, 200
    frame = pl.DataFrame(
        {
            "age": [at % 10 for at in range(rows)],
            "sex": ["F" if at % 2 else "M" for at in range(rows)],
            "note": [f"note {at}" for at in range(rows)],
            "illness": ["flu" if at % 3 else "cold" for at in range(rows)],
        }
    )
    columns = {
        "age": {"role": "quasi", "kind": "numeric"},
        "sex": {"role": "quasi"},
        "note": {"role": "other", "kind": "text", "identifier_reason": "made up"},
        "illness": {"role": "sensitive"},
    }
    given = as_spark(session, frame)
    monkeypatch.setattr(source_gate, "SAMPLE_ROWS", sampled)
    brought: list[int] = []

    def counted(way):
        def came(self, *args, **more):
            found = way(self, *args, **more)
            brought.append(found.num_rows if isinstance(found, pa.Table) else len(found))
            return found

        return came

    for name in ("toArrow", "collect", "toPandas", "take", "head", "tail"):
        monkeypatch.setattr(DataFrame, name, counted(getattr(DataFrame, name)))
    release = velado.anonymize(given, Schema.from_dict({"columns": columns}), "mondrian", k=5, key=KEY)
    assert release.plan.rows == rows
    assert len(brought) > 5
    assert max(brought) < 2 * sampled


def test_a_plan_that_would_bring_rows_is_refused(session) -> None:
    from velado.engines.spark_source import refuse_rows

    rows = session.range(100)
    counts = rows.groupBy((rows.id % 3).alias("id")).count()
    refuse_rows(counts.where("count > 1"))
    for plan in (rows, rows.where("id > 1"), rows.join(counts, "id"), rows.union(counts.select("id"))):
        with pytest.raises(EngineError, match="bring rows"):
            refuse_rows(plan)


def test_a_sample_is_bounded_steady_and_of_whole_people(session) -> None:
    from velado.engines.spark_source import of_spark

    same = pl.DataFrame({"age": [1] * 3000 + list(range(1000)), "who": [at // 4 for at in range(4000)]})
    one = of_spark(as_spark(session, same, 1)).sample(400)
    many = of_spark(as_spark(session, same, 9)).sample(400)
    assert one.equals(many)
    assert 200 < one.num_rows < 800
    whole = pl.from_arrow(of_spark(as_spark(session, same)).sample(400, "who"))
    assert set(whole["who"].value_counts()["count"]) == {4}
    equal = of_spark(as_spark(session, same.with_columns(who=pl.lit(1, pl.Int64), age=pl.lit(1, pl.Int64))))
    assert equal.sample(400).num_rows <= 1600


def test_a_table_that_cannot_be_counted_twice_is_refused(session) -> None:
    from pyspark.sql import functions as F

    schema = Schema.from_dict({"columns": {"id": {"role": "quasi", "kind": "numeric"}}})
    with pytest.raises(TableError, match="at random"):
        velado.anonymize(session.range(10).select((F.rand() * 10).alias("id")), schema, k=2)
    with pytest.raises(TableError, match="stream"):
        stream = session.readStream.format("rate").load().select(F.col("value").alias("id"))
        velado.anonymize(stream, schema, k=2)
    with pytest.raises(TableError, match="twice|same name|several"):
        velado.anonymize(session.range(9).selectExpr("id", "id"), schema, k=2)
    with pytest.raises(VeladoErrors, match="id"):
        velado.anonymize(session.range(9).selectExpr("array(id) AS id"), schema, k=2)


VeladoErrors = (TableError, SchemaError)


def test_what_spark_cannot_do_is_said(session) -> None:
    frame = session.range(10)
    schema = Schema.from_dict({"columns": {"id": {"role": "quasi", "kind": "numeric"}}})
    with pytest.raises(SchemaError, match="needs a schema"):
        velado.anonymize(frame)
    with pytest.raises(ParameterError, match="no order"):
        velado.anonymize(frame, schema, keep_order=True)
    with pytest.raises(ParameterError, match="population"):
        velado.anonymize(frame, schema, population=pl.DataFrame({"id": [1]}))


def test_an_error_of_spark_quotes_no_cell(session) -> None:
    from pyspark.sql import functions as F

    broken = session.range(10).select(F.assert_true(F.col("id") < 5, F.concat(F.lit("secret"), "id")).alias("id"))
    schema = Schema.from_dict({"columns": {"id": {"role": "quasi", "kind": "categorical"}}})
    with pytest.raises(EngineError) as found:
        velado.anonymize(broken, schema, k=2)
    assert "secret" not in str(found.value)


def test_what_was_counted_is_what_leaves(session, tmp_path) -> None:
    """The source's files change afterwards; the release does not, for it is kept and never computed again."""
    frame = pl.DataFrame({"age": [at % 7 for at in range(70)]})
    place = tmp_path / "lake"
    place.mkdir()
    frame.write_parquet(place / "part.parquet")
    schema = Schema.from_dict({"columns": {"age": {"role": "quasi", "kind": "numeric"}}})
    release = velado.anonymize(session.read.parquet(str(place)), schema, "mondrian", k=5, key=KEY)
    before = rows_of(release)
    pl.DataFrame({"age": [99] * 3}).write_parquet(place / "part.parquet")
    assert rows_of(release).equals(before)
    assert release.to_native() is release.frame
    assert before.height == 70
