"""Cut first: the table that compressing and memory give, whatever the parts; few questions; what cannot be cut is said."""

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.engines.same_table import KEY, Case, in_memory, random_case, rows_of, seeds, verdicts_of

from velado.data.io import attach_taxonomies, read_table
from velado.data.schema import Schema
from velado.engines.duckdb_source import DuckDBSource, of_arrow, open_files
from velado.engines.row_source import FileSink, as_read
from velado.errors import ParameterError, VeladoError
from velado.release.guarantees import EntropyLDiversity, LDiversity, TCloseness
from velado.release.methods import DAS, Mondrian
from velado.release.sources import source_plan
from velado.release.sources.source_plan import choose_plan
from velado.release.sources.source_release import plan_release, prepare_source
from velado.release.sources.source_tuples import read_codes
from velado.release.sources.source_written import check_written
from velado.study.engine_run import publish_files

pytest.importorskip("duckdb", reason="duckdb is not installed: velado[duckdb]")

REGIONS = {"north": ["a", "b", "c"], "south": ["d", "e"], "west": ["f", "g", "h", "i"]}
PROMISES: list[tuple[Any, ...]] = [
    (),
    (LDiversity(2),),
    (TCloseness(0.3),),
    (TCloseness(0.35, "hierarchical", "ill"),),
    (EntropyLDiversity(1.8),),
    (TCloseness(0.25, "ordered", "cost"), LDiversity(2, "ill")),
]


def near_unique(seed: int) -> Case:
    """A table whose rows hardly repeat: numbers, a tree, flat categories, blanks, people, two sensitive columns."""
    draw = np.random.default_rng(seed)
    rows = int(draw.integers(150, 700))
    frame = pl.DataFrame(
        {
            "age": draw.integers(0, 90, rows),
            "home": draw.choice([leaf for leaves in REGIONS.values() for leaf in leaves], rows),
            "pay": np.round(draw.lognormal(3, 1, rows), 2),
            "work": draw.choice(["x", "y", "z"], rows, p=[0.9, 0.07, 0.03]),
            "ill": draw.choice(["flu", "cold", "asthma", "gout"], rows),
            "cost": draw.integers(0, 6, rows),
            "who": [f"P{n}" for n in draw.integers(0, rows // int(draw.integers(1, 4)), rows)],
        }
    )
    if seed % 2:
        for name in ("pay", "home", "ill"):
            blank = pl.Series(draw.random(rows) < 0.1)
            frame = frame.with_columns(pl.when(~blank).then(pl.col(name)).alias(name))
    tree = {"lung": ["flu", "cold", "asthma"], "joint": ["gout"]}
    columns: dict[str, dict[str, object]] = {
        "age": {"role": "quasi", "kind": "numeric", **({"weight": 2.0} if seed % 3 == 0 else {})},
        "home": {"role": "quasi", "taxonomy": {"builder": "tree", "nodes": REGIONS}, "missing": "value"},
        "pay": {"role": "quasi", "kind": "numeric", "missing": "suppress" if seed % 5 == 0 else "value"},
        "work": {"role": "quasi"},
        "ill": {"role": "sensitive", "taxonomy": {"builder": "tree", "nodes": tree}},
        "cost": {"role": "sensitive", "kind": "numeric"},
        "who": {"role": "identifier", "kind": "text", "person": True},
    }
    return Case(
        frame=frame,
        schema=Schema.from_dict({"columns": columns}),
        method=Mondrian(categories="ordered") if seed % 4 == 1 else Mondrian(),
        k=int(draw.choice([2, 3, 5, 10])),
        guarantees=PROMISES[seed % len(PROMISES)],
        suppression=0.3,
        per=str(draw.choice(["row", "person"])),
    )


def by_plan(case: Case, source: DuckDBSource, folder: Path, most: int | None) -> tuple[object, ...]:
    """What DuckDB publishes, cut into parts of at most *most* rows, or compressed for None; and the written bytes."""
    path = folder / f"out-{most}.parquet"
    try:
        plan_name = "compress" if most is None else "cut"
        ready = prepare_source(source, case.schema, per=case.per, method=case.method, plan=plan_name)
        if most is not None:
            ready = replace(ready, chosen=replace(ready.chosen, part_rows=most))
        plan = plan_release(
            ready, case.method, k=case.k, guarantees=case.guarantees, suppression=case.suppression
        )
        source.write(plan.recoding(KEY), FileSink(path, "parquet"))
        written = open_files(path, case.schema, folder)
        made = check_written(plan, written)
    except VeladoError as error:
        return (type(error).__name__,)
    table = rows_of(pl.DataFrame(written.sample(written.rows)))
    known = plan.prepared.tuples.distinct, [part.tolist() for part in _sizes(plan)]
    return (
        "held",
        table,
        verdicts_of(made),
        plan.suppressed,
        round(plan.loss, 9),
        known,
        sha256(path.read_bytes()).hexdigest(),
    )


def _sizes(plan: Any) -> tuple[Any, Any]:
    sizes, times = plan.prepared.tuples.sizes
    return np.unique(sizes, return_counts=True) if times is None else (sizes, times)


def differing(one: tuple[object, ...], other: tuple[object, ...]) -> list[str]:
    """The names of what is not alike; the tables themselves would be a long message."""
    if len(one) != len(other):
        return [f"{one[0]}, {other[0]}"]
    names = ("outcome", "rows", "verdicts", "suppressed", "loss", "tuples", "bytes")
    return [name for name, a, b in zip(names, one, other, strict=False) if a != b]


def compare(cases: list[Case], folder: Path, rows_of_parts: tuple[int, ...]) -> int:
    """All three ways are equal for every case, and for every size of parts; how many tables could be published."""
    held = 0
    for number, case in enumerate(cases):
        place = folder / str(number)
        place.mkdir()
        expected = in_memory(case)
        source = as_read(of_arrow(case.frame.to_arrow()), case.schema)
        compressed = by_plan(case, source, place, None)
        assert differing(compressed[: len(expected)], expected) == [], number
        for most in rows_of_parts:
            assert differing(by_plan(case, source, place, most), compressed) == [], (number, most)
        held += expected[0] == "held"
    return held


def test_memory_compress_and_cut_publish_the_same_table(tmp_path: Path) -> None:
    assert compare([near_unique(seed) for seed in range(6)], tmp_path, (50, 10_000)) >= 4


def test_one_tuple_with_half_of_all_rows_in_small_parts(tmp_path: Path) -> None:
    """No part can be made smaller than a tuple: the cuts end, and the table is the one of memory."""
    case = near_unique(0)
    rows = case.frame.height
    skewed = case.frame[[max(at - rows // 2, 0) for at in range(rows)]]
    assert compare([replace(case, frame=skewed, per="row", guarantees=(), k=3)], tmp_path, (20, 10_000)) == 1


def few(seed: int) -> Case:
    """A table of few people with many rows each, and of values that are rare: promises, not rows, end the cuts of large parts."""
    case, draw = near_unique(4 * seed), np.random.default_rng(seed)
    rows = case.frame.height
    age = case.frame["age"].to_numpy()
    # People and rare values keep to an end of the ages, so that a side of a cut may lack them.
    frame = case.frame.with_columns(
        who=pl.Series([f"P{n}" for n in np.minimum(age // 6, draw.integers(0, 15, rows))]),
        ill=pl.Series(np.where((age < 30) & (draw.random(rows) < 0.2), "gout", "flu")),
    )
    promises: tuple[Any, ...] = ((), (LDiversity(2, "ill"),), (TCloseness(0.1, "equal", "ill"),))[seed % 3]
    return replace(case, frame=frame, k=5, guarantees=promises, per="person" if seed % 3 == 0 else "row")


@pytest.mark.slow
def test_people_and_values_end_cuts_by_histograms_as_in_memory(tmp_path: Path) -> None:
    cases = [few(seed) for seed in range(9)]
    assert compare(cases, tmp_path, (20,)) >= 6
    for number in (0, 1, 2):
        asked = replace(cases[number], suppression=0.3)
        alone = replace(asked, per="row", guarantees=())
        parts = [
            cut(one, 20, tmp_path / f"{number}-{at}")[0].prepared.tuples.parts
            for at, one in enumerate((asked, alone))
        ]
        assert 1 < parts[0] < parts[1]  # what is promised beyond rows forbade some of the cuts


def test_tuples_too_long_for_one_key_are_cut_too(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    names = [f"n{at}" for at in range(8)]
    frame = pl.DataFrame({name: draw.random(400) for name in names} | {"ill": draw.choice(["a", "b"], 400)})
    columns = {name: {"role": "quasi", "kind": "numeric"} for name in names} | {"ill": {"role": "sensitive"}}
    case = replace(near_unique(0), frame=frame, schema=Schema.from_dict({"columns": columns}), per="row", k=3)
    assert len(read_codes(of_arrow(frame.to_arrow()), case.schema).keys.names) == 2
    assert compare([case], tmp_path, (60,)) == 1


@pytest.mark.slow
def test_they_publish_the_same_of_many_tables(tmp_path: Path) -> None:
    mixed = [replace(random_case(seed), method=Mondrian()) for seed in seeds(300, 10)]
    assert compare([near_unique(seed) for seed in seeds(100, 12)] + mixed, tmp_path, (1, 40)) >= 11


class Told:
    """A connection that notes what it is asked."""

    def __init__(self, connection: Any) -> None:
        self.connection, self.asked, self.rows = connection, list[str](), list[int]()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.connection, name)
        if name not in ("sql", "execute"):
            return found

        def noted(sql: str) -> Any:
            self.asked.append(sql)
            if "WHERE part BETWEEN" in sql:
                ((held,),) = self.connection.execute(f"SELECT sum(rows) FROM ({sql}) AS lot").fetchall()
                self.rows.append(held)
            return found(sql)

        return noted


def cut(case: Case, most: int, place: Path, files: int = 1) -> tuple[Any, Told, bytes]:
    """The plan of a case whose rows lie in *files*, cut into parts of *most* rows; what was asked; the written bytes."""
    place.mkdir()
    shuffled = case.frame.sample(fraction=1.0, shuffle=True, seed=files)
    step = -(-shuffled.height // files)
    for at in range(files):
        shuffled[at * step : (at + 1) * step].write_parquet(place / f"part-{at}.parquet")
    source = open_files(f"{place}/part-*.parquet", case.schema, place)
    told = Told(source.connection)
    source = replace(source, connection=told)
    ready = prepare_source(source, case.schema, per=case.per, method=case.method, plan="cut")
    ready = replace(ready, chosen=replace(ready.chosen, part_rows=most))
    plan = plan_release(
        ready, case.method, k=case.k, guarantees=case.guarantees, suppression=case.suppression
    )
    source.write(plan.recoding(KEY), FileSink(place / "out.parquet", "parquet"))
    return plan, told, (place / "out.parquet").read_bytes()


def test_the_table_does_not_depend_on_files_order_or_parts(tmp_path: Path) -> None:
    case = near_unique(4)
    made = [
        cut(case, most, tmp_path / f"{files}", files)[2] for files, most in ((1, 300), (5, 100), (64, 30))
    ]
    assert made[0] == made[1] == made[2]


@pytest.mark.parametrize("seed", [12, 7])  # k alone, and a promise about two sensitive columns
def test_a_round_asks_as_often_for_many_parts_as_for_few(seed: int, tmp_path: Path) -> None:
    case = near_unique(seed)
    seen = []
    for most in (200, 25):
        plan, told, _ = cut(case, most, tmp_path / f"{most}")
        tuples = plan.prepared.tuples
        read = [
            sql
            for sql in told.asked
            if "FROM cut_rows" in sql and sql.startswith("SELECT") and "v0" not in sql
        ]
        ends = [sql for sql in read if "min(" in sql]
        histograms = [sql for sql in read if "cut_open AS q" in sql]
        columns = len(case.schema.quasi) + 2  # whether a cell is blank is a column too
        assert len(ends) <= tuples.rounds + (tuples.parts if seed == 7 else 0)
        assert tuples.rounds <= len(histograms) <= tuples.rounds * columns
        seen.append((tuples.rounds, tuples.parts))
    assert seen[1][1] > 3 * seen[0][1] and seen[1][0] <= seen[0][0] + 4


def test_only_a_part_of_the_tuples_is_here_at_a_time() -> None:
    case = near_unique(12)
    most = case.frame.height // 6
    source = of_arrow(case.frame.to_arrow())
    ready = prepare_source(source, case.schema, per=case.per, method=case.method, plan="cut")
    ready = replace(ready, chosen=replace(ready.chosen, part_rows=most))
    told = Told(source.connection)
    seen = replace(ready, codes=replace(ready.codes, used=replace(source, connection=told)))
    plan_release(seen, case.method, k=case.k, suppression=case.suppression)
    assert len(told.rows) >= 6 and max(told.rows) <= most and sum(told.rows) == case.frame.height


def test_the_plan_is_chosen_by_what_fits_and_says_so() -> None:
    draw = np.random.default_rng(0)
    rows = 200_000
    frame = pl.DataFrame({"pay": draw.random(rows), "ill": draw.choice(["a", "b"], rows)})
    columns = {"pay": {"role": "quasi", "kind": "numeric"}, "ill": {"role": "sensitive"}}
    schema = Schema.from_dict({"columns": columns})

    def chosen(frame: pl.DataFrame, method: object, memory: str, asked: str = "auto") -> Any:
        codes = read_codes(of_arrow(frame.to_arrow(), memory=memory), schema, values=False)
        return choose_plan(asked, codes, method)

    found = chosen(frame, Mondrian(), "20MB")
    assert found.name == "cut" and "do not fit in 20 MB" in found.why and abs(found.about / rows - 1) < 0.1
    assert chosen(frame, Mondrian(), "1GB").name == "compress"
    few = frame.with_columns(pl.col("pay").round(2))
    assert chosen(few, Mondrian(), "20MB").name == "compress" and chosen(few, Mondrian(), "20MB").about < 120
    assert "'das' needs all distinct tuples" in chosen(frame, DAS(), "20MB").why
    assert chosen(frame, Mondrian(), "20MB", "compress").name == "compress"
    for method in (DAS(), Mondrian("relaxed"), Mondrian(recoder="mean")):
        with pytest.raises(ParameterError, match="from histograms"):
            chosen(frame, method, "1GB", "cut")


def test_other_methods_on_too_many_tuples_are_told_what_to_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_plan, "MOST_TUPLES", 1000)
    frame = pl.DataFrame({"pay": np.random.default_rng(0).random(200_000)})
    schema = Schema.from_dict({"columns": {"pay": {"role": "quasi", "kind": "numeric"}}})
    codes = read_codes(of_arrow(frame.to_arrow(), memory="20MB"), schema)
    with pytest.raises(ParameterError, match="Use --method mondrian, which cuts"):
        choose_plan("auto", codes, DAS())


def test_manifest_report_and_progress_name_the_plan(tmp_path: Path) -> None:
    case = near_unique(12)
    case.frame.write_parquet(tmp_path / "rows.parquet")
    said: list[str] = []
    made = publish_files(
        tmp_path / "rows.parquet",
        case.schema,
        Mondrian(),
        k=3,
        per="row",
        out=tmp_path / "out",
        key=KEY,
        plan="cut",
        progress=lambda share, doing="": said.append(str(doing)),
    )
    how = json.loads((tmp_path / "out" / "release" / "manifest.json").read_text())["how"]
    assert how["plan"] == "cut" and how["plan_because"] == "It was asked for." and how["parts"] == 1
    assert any("plan cut: It was asked for." in line for line in said)
    assert "plan: cut first" in made.facts.plan_line
    assert "rounds of histograms" in (tmp_path / "out" / "private" / "report.html").read_text()
    with pytest.raises(ParameterError, match="plan= cannot be 'cutt'"):
        publish_files(tmp_path / "rows.parquet", case.schema, out=tmp_path / "o", plan="cutt")


@pytest.mark.slow
def test_adult_eight_times_is_the_same_table_by_both_plans(data_folder: Path, tmp_path: Path) -> None:
    trees = ("sex", "race", "marital-status", "education", "workclass", "native-country")
    columns: dict[str, dict[str, object]] = {
        name.replace("-", "_"): {
            "role": "quasi",
            "taxonomy": f"adult/hierarchies/adult_hierarchy_{name}.csv",
        }
        for name in trees
    }
    columns |= {"age": {"role": "quasi", "kind": "numeric"}, "occupation": {"role": "quasi"}}
    schema = attach_taxonomies(Schema.from_dict({"columns": columns}), data_folder)
    whole = read_table(data_folder / "adult" / "adult_clean.csv", schema, undeclared="drop")
    frame = pl.concat([whole.frame.select(list(columns))] * 8)
    cases = [Case(frame, schema, Mondrian(), k, (), 0.0, "row") for k in (2, 100)]
    assert compare(cases, tmp_path, (frame.height // 64,)) == 2
