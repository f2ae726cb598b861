"""Progressive generalization, row by row and beyond the rows it searches so: the very table in memory and on an engine."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.engines.same_table import KEY, Case, in_memory, random_case, rows_of
from tests.engines.test_same_table import by_duckdb

from velado.data.io import attach_taxonomies, read_table
from velado.data.schema import Schema
from velado.engines.duckdb_source import of_arrow, open_files
from velado.engines.row_source import FileSink
from velado.errors import VeladoError
from velado.release.anonymize import anonymize
from velado.release.methods import Progressive, _method
from velado.release.sources.source_release import plan_release, prepare_source
from velado.release.sources.source_written import check_written

pytest.importorskip("duckdb", reason="duckdb is not installed: velado[duckdb]")


def test_random_tables_are_the_same_where_tuples_are_searched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(_method, "MOST_SEARCHED_ROWS", 10)
    held = 0
    for seed in range(400, 412):
        case = replace(random_case(seed), method=Progressive())
        source = of_arrow(case.frame.to_arrow())
        expected = in_memory(case)
        assert by_duckdb(case, source, tmp_path, "parquet", judge=False) == expected, seed
        held += expected[0] == "held"
    assert held >= 6


@pytest.mark.slow
def test_random_tables_are_the_same_where_rows_are_searched(tmp_path: Path) -> None:
    """Up to MOST_SEARCHED_ROWS rows a tuple may be parted: which of its rows is in which group is the same too."""
    held = parted = 0
    for seed in range(400, 410):
        case = replace(random_case(seed), method=Progressive())
        expected = in_memory(case)
        assert (
            by_duckdb(case, of_arrow(case.frame.to_arrow()), tmp_path, "parquet", judge=False) == expected
        ), seed
        held += expected[0] == "held"
        parted += parts_tuples(case)
    assert held >= 5
    assert parted >= 1  # else whole tuples would have done


def parts_tuples(case: Case) -> bool:
    """Whether memory publishes rows with the same quasi-identifiers in different groups."""
    try:
        made = anonymize(
            case.frame,
            case.schema,
            case.method,
            case.guarantees,
            k=case.k,
            suppression=case.suppression,
            per=case.per,
            key=KEY,
        )
    except VeladoError:
        return False
    groups = made.recoded.partition
    assert groups is not None
    pairs = {(t, g) for t, g in zip(made.data.classes.labels.tolist(), groups.labels.tolist(), strict=True)}
    return len(pairs) > made.data.classes.count


@pytest.mark.slow
def test_rows_are_searched_below_and_tuples_beyond(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(0)
    frame = pl.DataFrame({"age": draw.integers(20, 60, 300), "stay": draw.integers(0, 9, 300)})
    columns = {name: {"role": "quasi", "kind": "numeric"} for name in frame.columns}
    schema = Schema.from_dict({"columns": columns})

    def told(most: int, method: Progressive) -> str:
        monkeypatch.setattr(_method, "MOST_SEARCHED_ROWS", most)
        made = anonymize(frame, schema, method, k=5, key=KEY)
        return str(made.recoded.notes.get("search", ""))

    assert "whole tuples" not in told(300, Progressive())
    assert "whole tuples" in told(299, Progressive())
    assert "whole tuples" not in told(299, Progressive(objective="sse"))  # which needs the rows


@pytest.mark.slow
@pytest.mark.parametrize(("times", "k"), [(1, 5), (8, 50)])
def test_adult_is_the_same_table(times: int, k: int, data_folder: Path, tmp_path: Path) -> None:
    trees = ("sex", "race", "marital-status", "education", "workclass")
    columns: dict[str, dict[str, object]] = {
        name.replace("-", "_"): {
            "role": "quasi",
            "taxonomy": f"adult/hierarchies/adult_hierarchy_{name}.csv",
        }
        for name in trees
    }
    columns |= {"age": {"role": "quasi", "kind": "numeric"}, "income": {"role": "sensitive"}}
    schema = attach_taxonomies(Schema.from_dict({"columns": columns}), data_folder)
    whole = read_table(data_folder / "adult" / "adult_clean.csv", schema, undeclared="drop")
    once = whole.frame.select(list(columns))
    frame = pl.concat([once] * times)
    assert (frame.height > _method.MOST_SEARCHED_ROWS) == (times > 1)
    memory = anonymize(frame, schema, Progressive(), k=k, per="row", key=KEY)
    source = of_arrow(frame.to_arrow())
    plan = plan_release(prepare_source(source, schema, per="row"), Progressive(), k=k)
    source.write(plan.recoding(KEY), FileSink(tmp_path / "out.parquet", "parquet"))
    made = check_written(plan, open_files(tmp_path / "out.parquet", schema, tmp_path))
    assert plan.loss == pytest.approx(memory.loss, abs=1e-12)
    assert [v.achieved for v in made.verdicts] == [v.achieved for v in memory.verdicts]
    assert rows_of(pl.read_parquet(tmp_path / "out.parquet")) == rows_of(memory.frame)
