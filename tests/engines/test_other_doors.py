"""`verify`, `inspect` and `measure` where the rows lie: what memory says of the same table, and a sample only where it is said."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.engines.same_table import KEY, random_case

from velado.data.inspect import inspect
from velado.data.schema import Schema
from velado.data.table import Table
from velado.engines.duckdb_source import of_arrow, open_files
from velado.errors import ParameterError, SchemaError, TableError, VeladoError
from velado.measures.measured import measure_files
from velado.measures.source_measured import measure_sources
from velado.release.anonymize import anonymize
from velado.release.guarantees import KAnonymity, KMap, LDiversity, TCloseness
from velado.release.sources import source_check, source_inspect
from velado.release.sources.source_inspect import inspect_source
from velado.release.sources.source_verify import published_digest, verify_source
from velado.release.verify import verify

pytest.importorskip("duckdb", reason="duckdb is not installed: velado[duckdb]")

BESIDE = ("sha256", "judged")
PROMISES = [KAnonymity(3), LDiversity(2), TCloseness(0.4)]


def published(seed: int) -> tuple[pl.DataFrame, pl.DataFrame, Schema] | None:
    """An original, what memory publishes of it (with a few cells spoilt in every second case), and the schema."""
    case = random_case(seed)
    try:
        made = anonymize(case.frame, case.schema, case.method, k=3, suppression=0.3, per="row", key=KEY)
    except VeladoError:
        return None
    frame = made.frame
    if seed % 2:
        spoilt = pl.int_range(pl.len()) < 2
        frame = frame.with_columns(
            age=pl.when(spoilt).then(pl.lit("19")).otherwise(pl.col("age").cast(pl.String))
        )
    return case.frame, frame, case.schema


def test_an_engine_finds_of_a_released_table_what_memory_finds() -> None:
    holds = []
    for seed in range(14):
        made = published(seed)
        if made is None:
            continue
        _, frame, schema = made
        promises = PROMISES[: 1 + seed % 3]
        expected = verify(frame, schema, promises)
        found = verify_source(of_arrow(frame.to_arrow()), schema, promises)
        one, two = ({k: v for k, v in f.facts().items() if k not in BESIDE} for f in (found, expected))
        assert one == two, f"seed {seed}"
        assert str(found.broken) == str(expected.broken)
        holds.append(found.holds)
    assert len(holds) >= 8 and True in holds and False in holds


def test_identifiers_and_columns_that_must_not_be_there_break_the_promise_on_an_engine() -> None:
    frame = pl.DataFrame({"age": ["*"] * 60, "mail": [f"a{n}@x.br" for n in range(60)]})
    columns = {"age": {"role": "quasi", "kind": "numeric"}, "mail": {"role": "identifier", "kind": "text"}}
    found = verify_source(of_arrow(frame.to_arrow()), Schema.from_dict({"columns": columns}), [KAnonymity(5)])
    assert found.exposed == ("mail",) and "'mail', an identifier" in str(found.broken)
    columns["mail"]["role"] = "other"
    found = verify_source(of_arrow(frame.to_arrow()), Schema.from_dict({"columns": columns}), [KAnonymity(5)])
    assert [one.column for one in found.identifying] == ["mail"]
    del columns["mail"]
    with pytest.raises(SchemaError, match="does not name"):
        verify_source(of_arrow(frame.to_arrow()), Schema.from_dict({"columns": columns}), [KAnonymity(5)])


def test_what_an_engine_cannot_verify_is_one_sentence() -> None:
    rows = of_arrow(pl.DataFrame({"age": ["*"] * 6, "who": [f"P{n % 3}" for n in range(6)]}).to_arrow())
    columns = {"age": {"role": "quasi", "kind": "numeric"}}
    with pytest.raises(ParameterError, match="counts people of a population"):
        verify_source(rows, Schema.from_dict({"columns": columns}), [KMap(2)], undeclared="drop")
    columns["who"] = {"role": "other", "kind": "text", "person": True, "identifier": "accept", "reason": "x"}
    with pytest.raises(ParameterError, match="holds the person column 'who'"):
        verify_source(rows, Schema.from_dict({"columns": columns}), [KAnonymity(2)])


def test_beyond_the_sample_groups_are_counted_on_all_rows_and_the_verdict_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_check, "SAMPLE_ROWS", 500)
    schema = Schema.from_dict({"columns": {"age": {"role": "quasi", "kind": "numeric"}}})
    pl.DataFrame({"age": ["[20..40]"] * 20_000 + ["77"]}).write_parquet(tmp_path / "t.parquet")
    rows = open_files(tmp_path / "t.parquet", schema, tmp_path)
    found = verify_source(rows, schema, [KAnonymity(5)], fingerprint=published_digest(rows))
    assert not found.holds and found.smallest == 1 and found.rows == 20_001
    assert "counted on all 20,001 rows" in found.judged and "on a sample of" in found.judged
    in_memory = verify(tmp_path / "t.parquet", schema, [KAnonymity(5)])
    assert found.facts()["sha256"] == in_memory.facts()["sha256"]


def stays(rows: int) -> pl.DataFrame:
    draw = np.random.default_rng(3)
    return pl.DataFrame(
        {
            "patient_id": [f"P{n}" for n in draw.integers(0, rows // 2, rows)],
            "age": [str(n) for n in draw.integers(18, 95, rows)],
            "sex": draw.choice(["F", "f", "M"], rows),
            "town": draw.choice(["Belém", "belém", "NA", "Macaé"], rows),
            "born": [f"19{y}-0{m}-1{d}" for y, m, d in draw.integers((51, 1, 1), (60, 9, 9), (rows, 3))],
            "diagnosis": draw.choice(["I10", "E11", "J18"], rows),
        }
    )


def test_a_small_source_is_inspected_exactly_as_in_memory(tmp_path: Path) -> None:
    stays(400).write_csv(tmp_path / "a.csv", separator=";")
    rows = open_files(tmp_path / "a.csv", Schema({}), tmp_path)
    assert replace(inspect_source(rows, rows.separator), judged="") == inspect(tmp_path / "a.csv")


def test_a_large_source_is_inspected_from_counts_of_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_check, "SAMPLE_ROWS", 3_000)
    frame = stays(12_000)
    found, expected = (
        inspect_source(of_arrow(frame.to_arrow())),
        inspect(Table.of(frame, Schema({}), undeclared="keep")),
    )
    # A sample knows no bound of a person's rows, so none is proposed.
    proposed = replace(expected.schema.columns["patient_id"], max_rows=None)
    columns = [proposed if one.name == "patient_id" else one for one in expected.schema.columns.values()]
    assert expected.schema.columns["patient_id"].max_rows is not None
    assert found.columns == expected.columns and found.schema == expected.schema.with_columns(columns)
    assert (found.rows, found.people, found.exposure) == (12_000, expected.people, expected.exposure)
    assert found.missing_codes == expected.missing_codes and found.person == "patient_id"
    assert "Judged on a sample of" in found.judged and "sample" not in str(expected.judged)
    one = frame.with_columns(
        age=pl.when(pl.int_range(pl.len()) == 11_990).then(pl.lit("x1")).otherwise("age")
    )
    monkeypatch.setattr(source_check, "SAMPLE_ROWS", 200)
    assert "x1" not in of_arrow(one.to_arrow()).sample(200)["age"].to_pylist()
    kinds = {c.name: c.kind for c in inspect_source(of_arrow(one.to_arrow())).columns}
    assert kinds["age"] == "categorical"  # one cell in 12,000 is no number: the schema must not say it is


def test_where_too_many_values_differ_the_sample_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_check, "SAMPLE_ROWS", 3_000)
    monkeypatch.setattr(source_inspect, "MOST_LISTED", 1_000)
    found = inspect_source(of_arrow(stays(12_000).to_arrow()))
    assert "'patient_id'" in found.judged and "Who is unique was counted on the sample" in found.judged
    exact = stays(12_000)["patient_id"].n_unique()
    assert found.columns[0].distinct == exact and found.people == exact
    assert found.exposure is not None and found.exposure.rows < 12_000


def test_counts_measure_what_memory_measures_without_pairing_rows() -> None:
    compared = 0
    for seed in range(12):
        made = published(2 * seed)
        if made is None:
            continue
        original, frame, schema = made
        expected = measure_files(Table.of(original, schema), frame, drawn=True, k=3).to_dict()
        sources = (of_arrow(part.to_arrow()) for part in (original, frame))
        found = measure_sources(*sources, schema, k=3).to_dict()
        assert found["rows"] == expected["rows"], seed
        utility, known = found["utility"], expected["utility"]
        for name in ("discernibility", "average_group_size"):
            assert utility[name] == known[name]
        for name in ("ncp", "distribution"):
            assert flat(utility[name]) == pytest.approx(flat(known[name])), (seed, name)
        for name in ("before", "after", "attribute_disclosure"):
            assert flat(found["risk"][name]) == pytest.approx(flat(expected["risk"][name])), (seed, name)
        assert {"false cells", "record linkage", "partial knowledge"} <= set(found["not_measured"])
        compared += 1
    assert compared >= 5


def flat(value: object, at: str = "") -> dict[str, float]:
    """Every number of a nested document by its path."""
    if isinstance(value, dict):
        return {k: v for name, part in value.items() for k, v in flat(part, f"{at}/{name}").items()}
    if isinstance(value, list | tuple):
        return {k: v for n, part in enumerate(value) for k, v in flat(part, f"{at}/{n}").items()}
    return {at: float(value)} if isinstance(value, int | float) else {}


def test_a_release_with_more_rows_or_fewer_columns_than_its_original_is_refused() -> None:
    schema = Schema.from_dict({"columns": {"age": {"role": "quasi", "kind": "numeric"}}})
    two, three = (of_arrow(pl.DataFrame({"age": ["20"] * n}).to_arrow()) for n in (2, 3))
    with pytest.raises(TableError, match="the original only 2"):
        measure_sources(two, three, schema)
    with pytest.raises(TableError, match="lacks quasi-identifiers: age"):
        measure_sources(three, of_arrow(pl.DataFrame({"x": ["1"]}).to_arrow()), schema)
