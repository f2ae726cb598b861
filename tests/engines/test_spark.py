"""Spark gives the very table that memory and DuckDB give, whatever its parts, and its driver never holds rows."""

import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from tests.engines.same_table import Case, in_memory, on_engine, random_case, seeds
from tests.engines.spark_tables import as_arrow, as_spark, declared, drawn_table, multiset

import velado
from velado.data.keys import Key
from velado.data.schema import Schema
from velado.data.table import Table
from velado.engines.duckdb_source import of_arrow
from velado.engines.row_source import as_read
from velado.errors import EngineError, MissingExtra, ParameterError, SchemaError, TableError, VeladoError
from velado.release.guarantees import LDiversity, TCloseness
from velado.release.methods import _method
from velado.release.run_settings import run_settings
from velado.release.side_doors.row_order import find_row_order
from velado.release.sources import source_check
from velado.release.sources.source_release import plan_release, prepare_source
from velado.study.engine_run import publish_files

if find_spec("pyspark") is None:
    pytest.skip("pyspark is not installed: `make test-spark` runs these", allow_module_level=True)
if shutil.which("java") is None:
    pytest.skip("Java is not installed, and Spark runs on it", allow_module_level=True)

pytestmark = pytest.mark.slow
KEY = Key(bytes(range(40)))


def rows_of(release) -> pl.DataFrame:
    return pl.from_arrow(release.frame.toArrow())


def verdicts(release) -> list[tuple[object, ...]]:
    return [
        (v.guarantee, v.holds, pytest.approx(v.achieved) if isinstance(v.achieved, float) else v.achieved)
        for v in release.verdicts
    ]


def on_spark(case: Case, session, parts: int) -> tuple[object, ...]:
    """What Spark publishes of a case, from the frame that it keeps."""
    from velado.engines.spark_source import held, of_spark

    source = as_read(of_spark(as_spark(session, case.frame, parts)), case.schema)
    return on_engine(case, source, lambda recoding: of_spark(held(source.recoded(recoding))))


@pytest.mark.parametrize("seed", [0, 1, 3, 5] if len(seeds(0, 4)) == 4 else seeds(0, 4))
def test_spark_publishes_what_memory_publishes(session, seed) -> None:
    """Random tables of spellings, blanks and people: rows, verdicts, loss, or the same refusal."""
    case = random_case(seed)
    assert on_spark(case, session, 1 + seed % 64) == in_memory(case)


RUNS = [
    (0, {"per": "row"}, [LDiversity(2, column="illness")]),
    (1, {}, []),
    (3, {"per": "row"}, [TCloseness(0.6, column="illness")]),
    (4, {"suppression": 0.2}, []),
]


@pytest.mark.parametrize(("seed", "asked", "more"), RUNS)
def test_days_moments_decimals_and_skew_are_the_same_table(session, seed, asked, more) -> None:
    frame = drawn_table(seed, 240)
    schema = Schema.from_dict(declared(sex={"missing": "suppress"} if seed == 4 else {}))
    memory = velado.anonymize(frame, schema, "mondrian", more, k=3, key=KEY, **asked)
    spark = velado.anonymize(as_spark(session, frame), schema, "mondrian", more, k=3, key=KEY, **asked)
    assert multiset(rows_of(spark)) == multiset(memory.frame)
    assert verdicts(spark) == verdicts(memory)
    assert spark.facts()["cost"]["ncp"] == pytest.approx(memory.facts()["cost"]["ncp"])


def test_the_default_method_decides_as_it_does_on_duckdb(session, monkeypatch) -> None:
    """Beyond the rows that are searched one by one: Spark's have no order, and are searched in whole tuples at any size."""
    from velado.engines.spark_source import of_spark

    monkeypatch.setattr(_method, "MOST_SEARCHED_ROWS", 10)
    frame = drawn_table(2, 240)
    schema = Schema.from_dict(declared())
    asked = run_settings(method="progressive", k=3)
    duckdb, spark = (
        plan_release(prepare_source(source, schema, per="row"), asked.method, k=3, suppression=0.1)
        for source in (of_arrow(as_arrow(frame)), of_spark(as_spark(session, frame)))
    )
    assert duckdb.shown.equals(spark.shown)
    assert duckdb.counts.tolist() == spark.counts.tolist()
    assert duckdb.planned.verdicts == spark.planned.verdicts


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
    other = velado.anonymize(
        as_spark(session, frame, 1), schema, **(asked | {"key": Key(bytes(range(40, 80)))})
    )
    assert not rows_of(other).equals(tables[0])  # another owner's order
    assert multiset(rows_of(other)) == multiset(tables[0])


@pytest.mark.parametrize("parts", [1, 5])
def test_rows_that_are_published_alike_do_not_lie_together(session, parts) -> None:
    """Who verifies a release of few different rows finds no order in it."""
    draw = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "age": draw.integers(20, 30, 1_000),
            "sex": draw.choice(["F", "M"], 1_000),
            "illness": draw.choice(["flu", "cold"], 1_000),
        }
    )
    columns = {
        "age": {"role": "quasi", "kind": "numeric"},
        "sex": {"role": "quasi"},
        "illness": {"role": "sensitive"},
    }
    schema = Schema.from_dict({"columns": columns})
    made = velado.anonymize(as_spark(session, frame, parts), schema, "mondrian", k=5, per="row", key=KEY)
    assert find_row_order(Table.of(rows_of(made), schema)) == []


def test_rows_of_spark_have_no_order_and_verify_says_so(session) -> None:
    """A sample brings equal rows together: what that tells is no order of the table's."""
    frame = pl.DataFrame({"age": ["20", "30", "40"] * 200, "sex": ["F", "M", "F"] * 200})
    columns = {"age": {"role": "quasi", "kind": "numeric"}, "sex": {"role": "quasi"}}
    schema = Schema.from_dict({"columns": columns})
    found = velado.verify(as_spark(session, frame, 2), schema, ["k-anonymity"])
    assert found.holds and "row-order" not in {door.kind for door in found.side_doors}
    assert "stand in no order" in found.judged

    from velado.engines.spark_source import of_spark

    assert of_spark(as_spark(session, frame, 2)).order == "none"


def test_the_driver_never_collects_rows(session, monkeypatch) -> None:
    """Every way from Spark to Python is counted; the table has texts that only one row holds."""
    from pyspark.sql.classic.dataframe import DataFrame

    rows, sampled = 4000, 200
    frame = pl.DataFrame(
        {
            "age": [at % 10 for at in range(rows)],
            "sex": ["F" if at % 2 else "M" for at in range(rows)],
            "note": [f"note {at}" for at in range(rows)],
            "code": [at % 10 * rows + at for at in range(rows)],
            "illness": ["flu" if at % 3 else "cold" for at in range(rows)],
        }
    )
    columns = {
        "age": {"role": "quasi", "kind": "numeric"},
        "sex": {"role": "quasi"},
        "note": {"role": "other", "kind": "text", "identifier": "accept", "reason": "made up"},
        # It tells the age, and every row has its own: groups behind it are as many as rows.
        "code": {
            "role": "other",
            "kind": "numeric",
            "identifier": "accept",
            "side_door": "accept",
            "reason": "made up",
        },
        "illness": {"role": "sensitive"},
    }
    given = as_spark(session, frame)
    monkeypatch.setattr(source_check, "SAMPLE_ROWS", sampled)
    brought: list[int] = []

    def counted(way):
        def came(self, *args, **more):
            found = way(self, *args, **more)
            brought.append(found.num_rows if isinstance(found, pa.Table) else len(found))
            return found

        return came

    for name in ("toArrow", "collect", "toPandas", "take", "head", "tail"):
        monkeypatch.setattr(DataFrame, name, counted(getattr(DataFrame, name)))
    for name in ("toLocalIterator", "rdd"):  # ways that nobody counts are not taken at all
        monkeypatch.setattr(
            DataFrame, name, property(lambda frame: pytest.fail("rows leave Spark uncounted"))
        )
    release = velado.anonymize(given, Schema.from_dict({"columns": columns}), "mondrian", k=5, key=KEY)
    assert release.plan.rows == rows
    assert release.behind == 1
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
    with pytest.raises(TableError, match="more than once"):
        velado.anonymize(session.range(9).selectExpr("id", "id"), schema, k=2)
    with pytest.raises((TableError, SchemaError), match="id"):
        velado.anonymize(session.range(9).selectExpr("array(id) AS id"), schema, k=2)


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

    broken = session.range(10).select(
        F.assert_true(F.col("id") < 5, F.concat(F.lit("secret"), "id")).alias("id")
    )
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


def lake(case: Case, folder: Path, ending: str) -> Path:
    """The case's table in three files."""
    folder.mkdir()
    for at in range(3):
        part = case.frame[at::3]
        file = folder / f"part-{at}.{ending}"
        part.write_parquet(file) if ending == "parquet" else part.write_csv(file)
    return folder


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_are_published_as_duckdb_publishes_them(session, tmp_path, ending) -> None:
    texts = ['say "no"', "two\nlines", "a,b", " x ", "=1+1", "-5", "a;@b", "\u3164=2", None]
    rows = 90
    frame = pl.DataFrame(
        {
            "age": [str(at % 9) for at in range(rows)],
            "note": [texts[at % len(texts)] for at in range(rows)],
            "illness": ["é" if at % 4 else "cold" for at in range(rows)],
        }
    )
    columns = {
        "age": {"role": "quasi", "kind": "numeric"},
        "note": {"role": "other", "kind": "text", "side_door": "accept", "reason": "made up"},
        "illness": {"role": "sensitive"},
    }
    schema = Schema.from_dict({"columns": columns})
    case = Case(frame, schema, None, 5, (), 0.0, "row")
    place = lake(case, tmp_path / "lake", ending)
    made = {
        engine: publish_files(
            place, schema, "mondrian", k=5, out=tmp_path / engine, engine=engine, key=KEY, reports=()
        )
        for engine in ("duckdb", "spark")
    }
    tables = [velado.read_table(tmp_path / engine / "release" / f"table.{ending}").frame for engine in made]
    assert multiset(tables[0]) == multiset(tables[1])
    assert tables[0].schema == tables[1].schema
    spark, duckdb = made["spark"].facts, made["duckdb"].facts
    assert spark.output.formulas == duckdb.output.formulas > 0
    assert spark.source.keyed_sha256 == duckdb.source.keyed_sha256
    assert spark.release.verdicts == duckdb.release.verdicts
    assert sorted(path.name for path in tmp_path.iterdir()) == ["duckdb", "lake", "spark"]


def test_bad_files_are_one_clear_error_and_nothing_is_published(session, tmp_path) -> None:
    schema = Schema.from_dict(
        {"columns": {"age": {"role": "quasi", "kind": "numeric"}, "sex": {"role": "quasi"}}}
    )
    good = "age,sex\n" + "31,F\n32,M\n" * 10
    bad = {
        "lacks the column": {"a.csv": good, "b.csv": "age\n31\n"},
        "Spark could not answer": {"a.csv": good + "31,F,secret\n"},
        "leaves '_a.csv' out": {"_a.csv": good},
    }
    for at, (said, files) in enumerate(bad.items()):
        place = tmp_path / f"lake{at}"
        place.mkdir()
        for name, text in files.items():
            (place / name).write_text(text)
        first = place / next(iter(files))
        with pytest.raises(VeladoError, match=said) as found:
            publish_files(
                first if len(files) == 1 else place,
                schema,
                k=2,
                out=tmp_path / "out",
                engine="spark",
                key=KEY,
            )
        assert "secret" not in str(found.value)
        assert not (tmp_path / "out").exists()
    place = tmp_path / "damaged"
    place.mkdir()
    frame = pl.DataFrame({"age": list(range(5000)), "sex": ["F"] * 5000})
    frame.write_parquet(place / "a.parquet")
    whole = (place / "a.parquet").read_bytes()
    (place / "a.parquet").write_bytes(whole[:200] + bytes(400) + whole[600:])
    with pytest.raises(VeladoError):
        publish_files(place, schema, k=2, out=tmp_path / "out", engine="spark", key=KEY)
    assert not (tmp_path / "out").exists()


def test_files_that_change_meanwhile_are_noticed(session, tmp_path) -> None:
    from velado.engines.spark_files import open_spark_files

    file = tmp_path / "stays.csv"
    file.write_text("age\n31\n")
    opened = open_spark_files(file, Schema({}), tmp_path)
    opened.unchanged()
    file.write_text("age\n31\n32\n")
    with pytest.raises(TableError, match="changed while it was read"):
        opened.unchanged()


def test_without_java_it_is_said_what_to_install(monkeypatch, tmp_path) -> None:
    from velado.engines.spark_files import need_spark

    need_spark()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(MissingExtra, match="Install Java 17"):
        need_spark()
