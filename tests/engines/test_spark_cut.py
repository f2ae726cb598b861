"""Cut first on Spark: the table that memory and compressing give, whatever the parts; the driver sees cells, never tuples."""

import shutil
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from tests.engines.same_table import KEY, Case, in_memory, rows_of, verdicts_of
from tests.engines.spark_tables import as_spark
from tests.engines.test_cut_first import differing, few, near_unique

import velado
from velado.data.schema import Schema
from velado.engines.row_source import as_read
from velado.errors import EngineError, ParameterError, VeladoError
from velado.release.methods import DAS, Mondrian
from velado.release.sources import source_check
from velado.release.sources.source_plan import choose_plan
from velado.release.sources.source_release import plan_release, prepare_source
from velado.release.sources.source_tuples import read_codes
from velado.release.sources.source_written import check_written

if find_spec("pyspark") is None:
    pytest.skip("pyspark is not installed: `make test-spark` runs these", allow_module_level=True)
if shutil.which("java") is None:
    pytest.skip("Java is not installed, and Spark runs on it", allow_module_level=True)

pytestmark = pytest.mark.slow


def by_plan(case: Case, session, parts: int, most: int | None) -> tuple[object, ...]:
    """What Spark publishes of rows in *parts*, cut into parts of at most *most* rows, or compressed for None."""
    from velado.engines.spark_source import held, of_spark

    source = as_read(of_spark(as_spark(session, case.frame, parts)), case.schema)
    try:
        plan_name = "compress" if most is None else "cut"
        ready = prepare_source(source, case.schema, per=case.per, method=case.method, plan=plan_name)
        if most is not None:
            ready = replace(ready, chosen=replace(ready.chosen, part_rows=most))
        plan = plan_release(
            ready, case.method, k=case.k, guarantees=case.guarantees, suppression=case.suppression
        )
        written = of_spark(held(source.recoded(plan.recoding(KEY))))
        made = check_written(plan, written)
    except VeladoError as error:
        return (type(error).__name__,)
    finally:
        source.let_go()
    sizes, times = plan.prepared.tuples.sizes
    if times is None:
        sizes, times = np.unique(sizes, return_counts=True)
    return (
        "held",
        rows_of(pl.DataFrame(written.sample(written.rows))),
        verdicts_of(made),
        plan.suppressed,
        round(plan.loss, 9),
        (sizes.tolist(), times.tolist()),
    )


@pytest.mark.parametrize(
    ("case", "parts", "most"),
    [(near_unique(5), 1, 60), (near_unique(12), 64, 40), (few(0), 2, 20)],
    ids=["blanks", "64-parts", "people"],
)
def test_memory_compress_and_cut_on_spark_publish_the_same_table(session, case, parts, most) -> None:
    expected = in_memory(case)
    compressed = by_plan(case, session, 2, None)
    assert differing(compressed[: len(expected)], expected) == []
    assert differing(by_plan(case, session, parts, most), compressed) == []
    assert not [view for view in session.catalog.listTables() if view.name.startswith("velado")]


def test_the_driver_sees_cells_and_never_tuples(session, monkeypatch) -> None:
    """Every way from Spark to Python is counted: far fewer rows come than there are distinct tuples."""
    from pyspark.sql.classic.dataframe import DataFrame

    draw = np.random.default_rng(0)
    rows, sampled = 6000, 100
    frame = pl.DataFrame(
        {
            "age": draw.integers(0, 100, rows),
            "height": draw.integers(0, 60, rows),
            "stay": draw.integers(0, 40, rows),
            "illness": draw.choice(["flu", "cold"], rows),
        }
    )
    columns = {name: {"role": "quasi", "kind": "numeric"} for name in ("age", "height", "stay")}
    schema = Schema.from_dict({"columns": columns | {"illness": {"role": "sensitive"}}})
    assert frame.drop("illness").unique().height > 5000
    given = as_spark(session, frame)
    monkeypatch.setattr(source_check, "SAMPLE_ROWS", sampled)
    monkeypatch.setattr("velado.release.sources.source_plan._LEAST_PART", 500)
    brought: list[int] = []

    def counted(way):
        def came(self, *args, **more):
            found = way(self, *args, **more)
            brought.append(found.num_rows if isinstance(found, pa.Table) else len(found))
            return found

        return came

    for name in ("toArrow", "collect", "toPandas", "take", "head", "tail"):
        monkeypatch.setattr(DataFrame, name, counted(getattr(DataFrame, name)))
    release = velado.anonymize(given, schema, "mondrian", k=50, key=KEY, memory="200KB")
    how = release.facts()["how"]
    assert how["plan"] == "cut" and how["rounds"] >= 3 and how["parts"] >= 8
    assert release.plan.rows == rows
    assert len(brought) > 10 and max(brought) < rows // 10
    brought.clear()
    whole = velado.anonymize(given, schema, "mondrian", k=50, key=KEY, plan="compress")
    assert max(brought) > 5000  # so that what is counted above could have been seen
    assert [v.achieved for v in whole.verdicts] == [v.achieved for v in release.verdicts]
    assert rows_of(pl.from_arrow(whole.frame.toArrow())) == rows_of(pl.from_arrow(release.frame.toArrow()))


def test_the_plan_is_chosen_by_what_fits_and_says_so(session) -> None:
    from velado.engines.spark_source import of_spark

    case = near_unique(12)
    source = of_spark(as_spark(session, case.frame))

    def chosen(memory: str | None, asked: str = "auto", method: object = None):
        return choose_plan(
            asked, read_codes(replace(source, memory=memory), case.schema), method or Mondrian()
        )

    assert chosen(None).name == "compress"
    found = chosen("20KB")
    tuples = case.frame.select(c.name for c in case.schema.quasi).unique().height
    assert found.name == "cut" and "do not fit" in found.why and abs(found.about / tuples - 1) < 0.1
    with pytest.raises(ParameterError, match="from histograms"):
        chosen(None, "cut", DAS())
    with pytest.raises(ParameterError, match="not a size"):
        velado.anonymize(as_spark(session, case.frame), case.schema, "mondrian", k=2, memory="plenty")


def test_workers_without_velado_are_one_clear_error(session) -> None:
    from velado.engines.spark_source import tried

    def lost(batches):
        raise ModuleNotFoundError("No module named 'velado'")
        yield from batches

    frame = session.range(3).mapInArrow(lost, "id bigint")
    with pytest.raises(EngineError, match="not installed on Spark's workers"):
        tried("stays", frame.collect)
