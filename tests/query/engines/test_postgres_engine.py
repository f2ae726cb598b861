"""PostgreSQL: checked by its catalogue, read only, one snapshot, and silent about rows and passwords."""

import threading
from fractions import Fraction

import psycopg
import pytest

from velado.data.schema import Column, Schema
from velado.errors import EngineError, SchemaError
from velado.query.engines import engine_for_postgres
from velado.query.needs import Grid, GridSum, GroupKey, Rows
from velado.query.unit import Unit
from velado.query.values import Compare, Like

SCHEMA = Schema(
    {
        "id": Column("id"),
        "n": Column("n", kind="numeric", bounds=(0, 10), step=0.1),
        "day": Column("day", kind="date"),
        "word": Column("word"),
    }
)
N = Grid.of(SCHEMA.columns["n"])


@pytest.fixture(scope="module")
def server(postgres_url: str):
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("""
            CREATE TABLE typed (id bigint, n numeric, day timestamp, word text);
            INSERT INTO typed VALUES (1, 'NaN', '2000-01-01 23:59', 'a'), (1, 1e400, NULL, 'A'), (2, -1e400, NULL, ''),
                (2, 1e-400, NULL, 'a'), (9007199254740993, 0.15, NULL, 'a'), (9007199254740992, 'Infinity', NULL, 'b')
        """)
        yield connection


@pytest.fixture
def engine(server, postgres_url: str):
    made = engine_for_postgres(postgres_url, "typed", SCHEMA, Unit())
    yield made
    made.close()


def test_numbers_beyond_a_double_count_with_their_bound_and_none_is_an_error(engine) -> None:
    found = engine.tally(None, (), (Rows("n"), GridSum(N), Rows("day"), Rows("word")))
    assert [int(array[0]) for array in found] == [5, 100 + 0 + 0 + 1 + 100, 1, 5]
    assert int(engine.tally(Compare("n", ">", Fraction(10**300)), (), (Rows(),))[0][0]) == 2


def test_texts_compare_exactly_and_case_counts(engine) -> None:
    assert int(engine.tally(Compare("word", "=", "a"), (), (Rows(),))[0][0]) == 3
    assert int(engine.tally(Like("word", "A"), (), (Rows(),))[0][0]) == 1
    assert engine.tally(None, (GroupKey("word", ("A", "a")),), (Rows(),))[0].tolist() == [1, 3, 2]


def test_units_are_told_apart_by_the_servers_own_equality(server, postgres_url) -> None:
    engine = engine_for_postgres(postgres_url, "public.typed", SCHEMA, Unit("id", 1))
    assert int(engine.tally(None, (), (Rows(),))[0][0]) == 4
    engine.close()


def test_a_relation_or_column_that_does_not_fit_is_named_from_the_catalogue(server, postgres_url) -> None:
    with pytest.raises(SchemaError, match="'nowhere'"):
        engine_for_postgres(postgres_url, "nowhere", SCHEMA, Unit())
    more = SCHEMA.with_columns([*SCHEMA.columns.values(), Column("absent")])
    with pytest.raises(SchemaError, match="'absent'"):
        engine_for_postgres(postgres_url, "typed", more, Unit())
    swapped = Schema({"word": Column("word", kind="numeric"), "n": Column("n", kind="date")})
    with pytest.raises(SchemaError, match="'word', 'n'"):
        engine_for_postgres(postgres_url, "typed", swapped, Unit())
    with pytest.raises(SchemaError):
        engine_for_postgres(postgres_url, "typed; DROP TABLE typed", SCHEMA, Unit())


@pytest.mark.parametrize(
    "url",
    ["postgresql://ana:hunter2@127.0.0.1:1/x?connect_timeout=2", "postgresql://ana:hunter2@[bad", "hunter2"],
)
def test_a_server_that_is_not_there_is_an_error_without_the_password(server, url: str) -> None:
    with pytest.raises(EngineError) as error:
        engine_for_postgres(url, "typed", SCHEMA, Unit())
    assert "hunter2" not in str(error.value)
    assert error.value.__cause__ is None and error.value.__suppress_context__


def test_a_slow_query_is_stopped_and_the_engine_lives_on(server, postgres_url) -> None:
    server.execute(
        "CREATE VIEW slow AS SELECT id, n, day, word FROM typed, LATERAL (SELECT pg_sleep(0.2)) AS nap"
    )
    engine = engine_for_postgres(postgres_url, "slow", SCHEMA, Unit(), version="1")
    with pytest.raises(EngineError, match=r"0\.1 seconds"):
        engine.tally(None, (), (Rows(),), 0.1)
    assert int(engine.tally(None, (), (Rows(),), 30.0)[0][0]) == 6
    engine.close()


def test_a_dropped_connection_is_replaced(engine, server) -> None:
    assert int(engine.tally(None, (), (Rows(),))[0][0]) == 6
    server.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname IS NOT NULL"
    )
    assert int(engine.tally(None, (), (Rows(),))[0][0]) == 6


def test_the_engine_cannot_write(server, postgres_url) -> None:
    server.execute("""
        CREATE TABLE seen (i int);
        CREATE FUNCTION note() RETURNS text LANGUAGE sql VOLATILE AS 'INSERT INTO public.seen VALUES (1) RETURNING ''x''';
        CREATE VIEW writing AS SELECT id, n, day, note() AS word FROM typed
    """)
    engine = engine_for_postgres(postgres_url, "writing", SCHEMA, Unit(), version="1")
    with pytest.raises(EngineError):
        engine.tally(None, (), (Rows("word"),))
    assert server.execute("SELECT count(*) FROM seen").fetchone() == (0,)
    engine.close()


def test_the_version_follows_content_and_not_order(server, postgres_url) -> None:
    def version(declared: str | None = None) -> str:
        engine = engine_for_postgres(postgres_url, "changing", schema, Unit(), version=declared)
        engine.close()
        return engine.version

    schema = Schema({"a": Column("a"), "b": Column("b")})
    server.execute(
        "CREATE TABLE changing (a text, b text); INSERT INTO changing VALUES ('x', 'y'), ('z', NULL)"
    )
    first, named = version(), version("2024-01")
    server.execute("TRUNCATE changing; INSERT INTO changing VALUES ('z', NULL), ('x', 'y')")
    assert version() == first
    server.execute("UPDATE changing SET b = '' WHERE a = 'z'")
    assert version() != first
    assert version("2024-01") == named != version("2024-02")


def test_many_threads_get_the_same_answer_and_a_closed_engine_none(engine) -> None:
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(engine.tally(None, (), (Rows(),))[0].tolist()))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[6]] * 6
    engine.close()
    with pytest.raises(EngineError):
        engine.tally(None, (), (Rows(),))
