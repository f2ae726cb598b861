"""`velado apply` takes what `velado anonymize` takes, and gives the release that `anonymize` gives with these settings."""

import sqlite3
from pathlib import Path

import polars as pl
import pytest
from tests.engines.test_lake import stays

import velado
from velado.apps.cli import run
from velado.engines.postgres_connection import connected
from velado.errors import ParameterError
from velado.study.recipe import Recipe
from velado.study.run import read_recipe

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: velado[duckdb]")

SCHEMA = """
[columns.age]
role = "quasi"
kind = "numeric"
[columns.sex]
role = "quasi"
[columns.ill]
role = "sensitive"
"""
HOW = ["--schema", "schema.toml", "-k", "5", "--l-diversity", "2", "--method", "full-domain"]
HOW += ["--suppression", "0.05", "--key", "owner.key"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    Path("schema.toml").write_text(SCHEMA)
    Path("owner.key").write_bytes(bytes(range(65, 105)))
    Path("owner.key").chmod(0o600)
    months("lake", 1)
    return tmp_path


def months(folder: str, seed: int) -> None:
    for part in range(2):
        at = Path(folder, f"{part}.parquet")
        at.parent.mkdir(exist_ok=True)
        stays(200, 10 * seed + part).write_parquet(at)


def databases(folder: str) -> None:
    rows = pl.read_parquet(f"{folder}/*.parquet")
    with duckdb.connect(f"{folder}.duckdb") as made:
        made.execute(f"CREATE TABLE stays AS SELECT * FROM '{folder}/*.parquet'")
    made = sqlite3.connect(f"{folder}.sqlite")
    made.execute("CREATE TABLE stays (age INTEGER, sex TEXT, ill TEXT)")
    made.executemany("INSERT INTO stays VALUES (?, ?, ?)", rows.rows())
    made.commit()
    made.close()


def table_of(out: str) -> list[tuple[object, ...]]:
    (file,) = Path(out, "release").glob("table.*")
    read = pl.read_parquet(file) if file.suffix == ".parquet" else pl.read_csv(file)
    return sorted(read.cast(pl.String).rows())


SOURCES = {
    "folder": ("{}", []),
    "duckdb": ("{}.duckdb", ["--table", "stays"]),
    "sqlite": ("{}.sqlite", ["--table", "stays"]),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_a_recipe_is_applied_where_rows_lie_as_anonymize_would(kind: str, place: Path) -> None:
    source, more = SOURCES[kind]
    months("next", 2)
    databases("lake")
    databases("next")
    made = ["--report", "json", "-q"]
    assert run(["anonymize", source.format("lake"), *more, *HOW, *made, "-o", "one"]) == 0
    assert run(["anonymize", source.format("next"), *more, *HOW, *made, "-o", "two"]) == 0
    recipe = ["apply", "one/private/recipe.toml"]
    for name, same in (("lake", "one"), ("next", "two")):
        out = f"{same}-again"
        assert run([*recipe, source.format(name), *more, "--key", "owner.key", "-o", out, "-q"]) == 0
        for part in ("release/manifest.json", "private/recipe.toml", "private/measured.json"):
            assert Path(out, part).read_bytes() == Path(same, part).read_bytes(), part
        (file,) = (path.name for path in Path(same, "release").glob("table.*"))
        assert Path(out, "release", file).read_bytes() == Path(same, "release", file).read_bytes()
    if kind == "folder":
        pattern = ["next/**/*.parquet", "--engine", "memory"]
        assert run([*recipe, *pattern, "--key", "owner.key", "-o", "all", "-q"]) == 0
        assert table_of("all") == table_of("two")


def test_a_recipe_of_memory_is_applied_to_a_lake(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["anonymize", "lake/0.parquet", *HOW, "--format", "parquet", "-o", "one", "-q"]) == 0
    assert run(["apply", "one/private/recipe.toml", "lake", "--key", "owner.key", "-o", "two"]) == 0
    told = capsys.readouterr()
    assert "Engine: DuckDB" in told.out and "Table: 2 files, 400 rows" in told.out
    assert "an engine cannot measure it yet" in told.err + told.out
    again = velado.apply_recipe_to_files("one/private/recipe.toml", "lake", "three", key="owner.key")
    assert again.release.plan.rows == 400 - again.release.plan.suppressed
    assert table_of("two") == table_of("three")
    assert (
        run(["apply", "one/private/recipe.toml", "lake", "--key", "owner.key", "-o", "one", "--force"]) != 0
    )
    assert "holds 'recipe.toml', which this run reads" in capsys.readouterr().err


def test_a_lake_in_memory_is_called_what_duckdb_calls_it(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["anonymize", "lake", *HOW, "--engine", "memory", "-o", "one"]) == 0
    assert "Table: 2 files, 400 rows" in capsys.readouterr().out
    assert read_recipe("one/private/recipe.toml").input.name == "2 files"


@pytest.mark.parametrize(
    ("flags", "source", "told"),
    [
        (["--history", "h"], "lake", "--history cannot be used with an engine yet."),
        (["--population", "p.csv"], "lake", "--population cannot be used with an engine yet."),
        (["--history", "h"], "lake.duckdb", "write the rows to a file first"),
        (["--plan", "cut"], "lake/0.parquet", "--plan was given, but the rows are worked on in memory."),
        (["--table", "stays"], "lake", "--table was given, but the source is neither"),
        (["--to-table", "stays"], "lake", "--to-table was given, but the source is no postgresql"),
        ([], "postgresql://", "A postgresql:// source needs --table."),
        ([], "nowhere/*.parquet", "No file matches 'nowhere/*.parquet'."),
    ],
)
def test_what_cannot_be_applied_is_one_sentence(
    flags: list[str], source: str, told: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["anonymize", "lake", *HOW, "-o", "one", "-q"]) == 0
    databases("lake")
    more = ["--table", "stays"] if source.endswith(".duckdb") else []
    assert run(["apply", "one/private/recipe.toml", source, *more, *flags, "-o", "two"]) != 0
    assert told in capsys.readouterr().err and not Path("two").exists()


@pytest.mark.parametrize("setting", ["keep_order", "improve", "blind", 'bound = "tight"'])
def test_what_a_recipe_asks_of_rows_at_hand_is_refused_by_name(setting: str, place: Path) -> None:
    assert run(["anonymize", "lake", *HOW, "-o", "one", "-q"]) == 0
    name, _, value = setting.partition(" = ")
    text = Path("one/private/recipe.toml").read_text("utf-8")
    Path("other.toml").write_text(text.replace("version = 1", f"version = 1\n{name} = {value or 'true'}", 1))
    assert isinstance(read_recipe("other.toml"), Recipe)
    with pytest.raises(ParameterError, match=f"The recipe's `{name}` cannot be done with an engine yet"):
        velado.apply_recipe_to_files("other.toml", "lake", "two", key="owner.key")
    assert not Path("two").exists()


@pytest.mark.slow
def test_a_recipe_is_applied_to_a_server_s_table(postgres_url: str, place: Path) -> None:
    databases("lake")
    rows = pl.read_parquet("lake/*.parquet")
    with connected(postgres_url) as connection:
        connection.execute("DROP TABLE IF EXISTS recipe_stays, recipe_one, recipe_two")
        connection.execute("CREATE TABLE recipe_stays (age bigint, sex text, ill text)")
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO recipe_stays VALUES (%s, %s, %s)", rows.rows())
    server = [postgres_url, "--table", "recipe_stays", "--to-table"]
    try:
        assert run(["anonymize", *server, "recipe_one", *HOW, "-o", "one", "-q"]) == 0
        recipe = ["apply", "one/private/recipe.toml"]
        assert run([*recipe, *server, "recipe_two", "--key", "owner.key", "-o", "two", "-q"]) == 0
        assert run([*recipe, "lake", "--key", "owner.key", "-o", "three", "-q"]) == 0
        assert run([*recipe, *server, "recipe_three", "--history", "h", "-o", "four"]) != 0
        with connected(postgres_url) as connection:
            one, two = (
                connection.execute(f"SELECT * FROM {name}").fetchall()
                for name in ("recipe_one", "recipe_two")
            )
        assert one == two
        shown = [tuple(None if cell is None else str(cell) for cell in row) for row in two]
        assert sorted(shown) == table_of("three")
    finally:
        with connected(postgres_url) as connection:
            connection.execute("DROP TABLE IF EXISTS recipe_stays, recipe_one, recipe_two")
