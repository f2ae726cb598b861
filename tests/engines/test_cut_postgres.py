"""Cut first on PostgreSQL: the table that memory and compressing give, whatever the parts, and nobody's own table is touched."""

from dataclasses import replace

import polars as pl
import pytest
from tests.engines.same_table import KEY, Case, in_memory, random_case, rows_of, verdicts_of
from tests.engines.test_cut_first import differing, few, near_unique
from tests.engines.test_postgres_source import load, loaded  # noqa: F401

from velado.engines.postgres_connection import connected
from velado.engines.postgres_source import new_table, open_table, within
from velado.engines.row_source import as_read
from velado.errors import ParameterError, VeladoError
from velado.release.methods import DAS, Mondrian
from velado.release.sources.source_plan import choose_plan
from velado.release.sources.source_release import plan_release, prepare_source
from velado.release.sources.source_tuples import read_codes
from velado.release.sources.source_written import check_written

pytest.importorskip("psycopg", reason="psycopg is not installed: velado[postgres]")
pytestmark = pytest.mark.slow


def by_plan(case: Case, url: str, name: str, most: int | None) -> tuple[object, ...]:
    """What the server publishes, cut into parts of at most *most* rows, or compressed for None."""
    source = as_read(open_table(url, name), case.schema)
    try:
        plan_name = "compress" if most is None else "cut"
        ready = prepare_source(source, case.schema, per=case.per, method=case.method, plan=plan_name)
        if most is not None:
            ready = replace(ready, chosen=replace(ready.chosen, part_rows=most))
        plan = plan_release(
            ready, case.method, k=case.k, guarantees=case.guarantees, suppression=case.suppression
        )
        with new_table(url, f"{name}_k", force=True) as sink:
            source.write(plan.recoding(KEY), sink)
            written = within(sink.connection, f"{name}_k")
            made = check_written(plan, written)
            table = pl.DataFrame(written.sample(written.rows))
    except VeladoError as error:
        return (type(error).__name__,)
    finally:
        source.close()
    return "held", rows_of(table), verdicts_of(made), plan.suppressed, round(plan.loss, 9), table.rows()


def test_memory_compress_and_cut_on_the_server_publish_the_same_table(loaded) -> None:  # noqa: F811
    url, names = loaded
    cases = [near_unique(seed) for seed in range(8)] + [few(seed) for seed in range(3)]
    cases += [replace(random_case(seed), method=Mondrian()) for seed in range(300, 304)]
    held = 0
    for number, case in enumerate(cases):
        name = load(url, names, case.frame)
        expected = in_memory(case)
        compressed = by_plan(case, url, name, None)
        assert differing(compressed[: len(expected)], expected) == [], number
        for most in (max(case.frame.height // 64, 1), 10_000) if number % 2 else (50,):
            assert differing(by_plan(case, url, name, most), compressed) == [], (number, most)
        held += expected[0] == "held"
    assert held >= 8


def test_tables_of_the_same_names_on_the_server_stay(loaded) -> None:  # noqa: F811
    url, names = loaded
    case = near_unique(12)
    name = load(url, names, case.frame)
    own = ["cut_rows", "cut_tuples", "cut_open"]
    names += own
    with connected(url) as connection:
        for table in own:
            connection.execute(f"CREATE TABLE {table} AS SELECT 7 AS mine")
    assert by_plan(case, url, name, 50)[0] == "held"
    with connected(url) as connection:
        for table in own:
            assert connection.execute(f"SELECT mine FROM {table}").fetchall() == [(7,)]


def test_the_plan_is_chosen_by_what_fits(loaded) -> None:  # noqa: F811
    url, names = loaded
    case = near_unique(12)
    name = load(url, names, case.frame)

    def chosen(memory: str | None, asked: str = "auto", method: object = None):
        source = open_table(url, name, memory=memory)
        try:
            return choose_plan(asked, read_codes(source, case.schema), method or Mondrian())
        finally:
            source.close()

    assert chosen(None).name == "compress"
    found = chosen("20KB")
    assert found.name == "cut" and "do not fit" in found.why
    tuples = case.frame.select(c.name for c in case.schema.quasi).unique().height
    assert found.about == tuples  # small tables are counted, not estimated
    with pytest.raises(ParameterError, match="from histograms"):
        chosen(None, "cut", DAS())
    with pytest.raises(ParameterError, match="not a size"):
        open_table(url, name, memory="plenty")
