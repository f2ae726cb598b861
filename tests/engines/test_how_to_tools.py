"""The pages on dbt and Airflow: their functions run as they are written, with stand-ins for the two tools, which are not installed."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import polars as pl
import pytest
from tests.engines.test_lake import stays

import velado
from velado.apps.cli import run
from velado.data.keys import owner_key
from velado.errors import SchemaError
from velado.release.guarantees import KAnonymity
from velado.release.verify import verify

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: velado[duckdb]")
HOW_TO = Path(__file__).resolve().parents[2] / "docs" / "how-to"


def blocks(page: str) -> dict[str, str]:
    """The one block of each language on a page."""
    found = re.findall(r"^```(\w+)\n(.*?)^```$", (HOW_TO / page).read_text("utf-8"), flags=re.M | re.S)
    assert len(dict(found)) == len(found)
    return dict(found)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "owner.key").write_bytes(owner_key(None).secret)
    (tmp_path / "owner.key").chmod(0o600)
    return tmp_path


def test_a_dbt_model_hands_a_checked_table_over(place: Path) -> None:
    page = blocks("dbt-model.md")
    (place / "velado").mkdir()
    (place / "velado" / "stays.toml").write_text(page["toml"])
    warehouse = duckdb.connect()
    warehouse.register("frame", stays(600).rename({"ill": "diagnosis"}).to_arrow())
    configured: dict[str, str] = {}
    names: dict[str, Any] = {}
    exec(page["python"], names)
    names["KEY"] = place / "owner.key"
    dbt = SimpleNamespace(config=configured.update, ref=lambda name: warehouse.sql("SELECT * FROM frame"))
    made = names["model"](dbt, warehouse)
    assert configured == {"materialized": "table"}
    assert verify(pl.DataFrame(made), "velado/stays.toml", [KAnonymity(5)]).holds and made.num_rows == 600
    test = page["sql"].replace('{{ ref("stays_k5") }}', "made")
    warehouse.register("made", made)
    assert warehouse.sql(test).fetchall() == []
    assert warehouse.sql(test.replace("from made", "from frame")).fetchall() != []
    dbt.ref = lambda name: warehouse.sql("SELECT *, 1 AS undeclared FROM frame")
    with pytest.raises(SchemaError, match="undeclared"):
        names["model"](dbt, warehouse)


class Failed(Exception):
    """What Airflow does not try again."""


def airflow(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], object]]:
    """Stand-ins for the modules that the page imports; the pipelines that were declared."""
    declared: list[Callable[[], object]] = []

    def task(function: Any = None, **how: object) -> Any:
        return function if function is not None else lambda own: own

    def dag(**how: object) -> Any:
        def join(function: Callable[[], object]) -> Callable[[], None]:
            declared.append(function)
            return lambda: None

        return join

    for name, members in {
        "airflow": {},
        "airflow.sdk": {"dag": dag, "task": task},
        "airflow.exceptions": {"AirflowFailException": Failed},
    }.items():
        module = ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)
    return declared


def test_airflow_s_tasks_publish_and_check_a_month(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declared = airflow(monkeypatch)
    lake = place / "lake" / "2026-01"
    lake.mkdir(parents=True)
    for part in range(2):
        stays(300, part).rename({"ill": "diagnosis"}).write_parquet(lake / f"{part}.parquet")
    Path("schema.toml").write_text(blocks("dbt-model.md")["toml"])
    names: dict[str, Any] = {}
    exec(blocks("airflow-task.md")["python"], names)
    assert [one.__name__ for one in declared] == ["publish_stays"]
    for _ in range(2):  # a task that is tried again replaces what it made
        table = names["publish"]("2026-01")
        names["check"](table)
        assert pl.read_parquet(table).height == 600
    raw = lake / "0.parquet"
    with pytest.raises(Failed, match="k-anonymity"):
        names["check"](str(raw))
    stays(9).write_parquet(raw)  # which has no column 'diagnosis'
    with pytest.raises(Failed, match="lacks the column"):
        names["publish"]("2026-01")
    assert pl.read_parquet(table).height == 600  # the release that stood there still does


def test_airflow_s_key_and_recipe_are_made_and_used_as_the_page_says(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    airflow(monkeypatch)
    lake = place / "lake" / "2026-02"
    lake.mkdir(parents=True)
    stays(300).rename({"ill": "diagnosis"}).write_parquet(lake / "0.parquet")
    Path("schema.toml").write_text(blocks("dbt-model.md")["toml"])
    page = (HOW_TO / "airflow-task.md").read_text("utf-8")
    (line,) = re.findall(r"`(velado pseudonymize --new-key .*?)`", page)
    (again,) = re.findall(r"`(velado\.apply_recipe_to_files\(.*?\))`", page)
    Path("owner.key").unlink()
    assert run(line.split()[1:]) == 0 and Path("owner.key").exists()
    names: dict[str, Any] = {"velado": velado}
    exec(blocks("airflow-task.md")["python"], names)
    table = names["publish"]("2026-02")
    Path("releases/2026-02").rename("first")
    done = eval(again, {**names, "month": "2026-02", "out": Path("releases/2026-02")})
    names["check"](table)
    assert Path(table).read_bytes() == Path("first/release/table.parquet").read_bytes()
    assert done.release.plan.method.name == "mondrian"
