"""The attacks on a ledger in a file, made on one that a PostgreSQL server keeps, by somebody who may do anything there."""

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import TupleRow

from velado.errors import LedgerError
from velado.query.budget import Budget, Charge
from velado.query.store import ChainedLedger, create_ledger, open_ledger, seal_of
from velado.query.store._chain import START, make_entry

NUMBERS = itertools.count()
Change = Callable[..., list[TupleRow]]


def ask(ledger: ChainedLedger, question: str) -> str:
    held = ledger.reserve(Charge("ana", question, "SELECT COUNT(*)", Fraction(1, 10)))
    return ledger.record(held, question, json.dumps({"n": question}))


def refused(where: str, pattern: str) -> None:
    with pytest.raises(LedgerError, match=pattern) as caught:
        open_ledger(where)
    assert caught.value.why and caught.value.fix and "postgres:" not in str(caught.value)


def address(url: str) -> tuple[str, str]:
    """Where a new ledger will be, and the schema that it will have there."""
    name = f"tampered{next(NUMBERS)}"
    return f"{url}{'&' if '?' in url else '?'}ledger={name}", f'"velado_ledger_{name}"'


def filled(where: str) -> None:
    """Three answers, a cap and a raise: nine entries."""
    with closing(create_ledger(where, "patients", Budget.epsilon(1))) as ledger:
        for question in "xyz":
            ask(ledger, question)
        ledger.set_cap("rui", Fraction(1, 2))
        ledger.raise_budget(Fraction(2), "second study")


@pytest.fixture
def change(postgres_url: str) -> Iterator[Change]:
    """Runs statements on the server, as its master may."""
    with psycopg.connect(postgres_url, autocommit=True) as base:

        def run(*statements: str, values: tuple[Any, ...] | None = None) -> list[TupleRow]:
            found = base.cursor()
            for statement in statements:
                found = base.execute(statement, values)
            return found.fetchall() if found.description else []

        yield run


@pytest.fixture
def kept(postgres_url: str, state: Path) -> tuple[str, str]:
    """A closed ledger's address and schema."""
    where, schema = address(postgres_url)
    filled(where)
    return where, schema


def test_an_edited_cell_of_any_entry_is_refused_by_its_number(kept: tuple[str, str], change: Change) -> None:
    where, schema = kept
    for number, column in itertools.product(range(1, 10), ("kind", "payload", "previous", "hash")):
        cell = f"UPDATE {schema}.entries SET {column} = %s WHERE number = {number}"
        ((before,),) = change(f"SELECT {column} FROM {schema}.entries WHERE number = {number}")
        change(cell, values=(before[:-1] + ("0" if before[-1] != "0" else "1"),))
        refused(where, f"Entry {number} of the ledger|entry {number}, which its seal knows")
        change(cell, values=(before,))
    open_ledger(where).close()


def test_deleted_moved_and_renumbered_entries_are_refused(kept: tuple[str, str], change: Change) -> None:
    where, schema = kept
    change(f"CREATE TABLE {schema}.copy AS SELECT * FROM {schema}.entries")

    def after(*statements: str) -> str:
        change(*(statement.format(f"{schema}.entries") for statement in statements))
        with pytest.raises(LedgerError) as caught:
            open_ledger(where)
        change(f"DELETE FROM {schema}.entries", f"INSERT INTO {schema}.entries SELECT * FROM {schema}.copy")
        return caught.value.what

    for number in range(1, 9):
        assert f"Entry {number} " in after(f"DELETE FROM {{}} WHERE number = {number}")
        assert "rolled back" in after(f"DELETE FROM {{}} WHERE number > {number}")
    for one, other in ((2, 4), (3, 5), (6, 7), (8, 9)):
        swap = (
            f"= -1 WHERE number = {one}",
            f"= {one} WHERE number = {other}",
            f"= {other} WHERE number = -1",
        )
        assert f"Entry {one} " in after(*(f"UPDATE {{}} SET number {part}" for part in swap))
    closed = after(
        "DELETE FROM {} WHERE number IN (4, 5)",
        *(f"UPDATE {{}} SET number = {n - 2} WHERE number = {n}" for n in range(6, 10)),
    )
    assert "Entry 4 " in closed
    open_ledger(where).close()


def test_an_older_copy_put_back_is_refused_and_the_newest_goes_on(
    postgres_url: str, state: Path, change: Change
) -> None:
    where, schema = address(postgres_url)
    create_ledger(where, "patients", Budget.epsilon(1)).close()
    for n in range(6):
        with closing(open_ledger(where)) as ledger:
            change(f"CREATE TABLE {schema}.copy{n} AS SELECT * FROM {schema}.entries")
            # Copies lie between debit and answer too: none gives the debit back.
            held = ledger.reserve(Charge("ana", f"q{n}", "", Fraction(1, 10)))
            if n < 5:
                ledger.record(held, f"q{n}", "{}")
    change(f"CREATE TABLE {schema}.newest AS SELECT * FROM {schema}.entries")
    back = f"INSERT INTO {schema}.entries SELECT * FROM {schema}."
    for n in range(6):
        change(f"DELETE FROM {schema}.entries", f"{back}copy{n}")
        refused(where, "rolled back, edited or replaced")
    change(f"DELETE FROM {schema}.entries", f"{back}newest")
    with closing(open_ledger(where)) as ledger:
        ask(ledger, "one more")
        assert ledger.verify().spent == Fraction(7, 10)


def test_what_is_done_under_a_running_process_is_refused(kept: tuple[str, str], change: Change) -> None:
    where, schema = kept
    with closing(open_ledger(where)) as ledger:
        change(f"UPDATE {schema}.entries SET payload = replace(payload, 'x', 'X') WHERE number = 3")
        with pytest.raises(LedgerError, match=r"Entry 3 .*changed while"):
            ledger.stored("x")
        with pytest.raises(LedgerError, match=r"Entry 3 .*not the one that was signed"):
            ledger.verify()
        change(f"UPDATE {schema}.entries SET payload = replace(payload, 'X', 'x') WHERE number = 3")
        assert ledger.stored("x") is not None
        change(f"CREATE TABLE {schema}.tail AS SELECT * FROM {schema}.entries WHERE number > 3")
        change(f"DELETE FROM {schema}.entries WHERE number > 3")
        with pytest.raises(LedgerError, match="rolled back"):
            ask(ledger, "w")
        with pytest.raises(LedgerError, match="rolled back"):
            ledger.state()
        change(f"INSERT INTO {schema}.entries SELECT * FROM {schema}.tail")
    with closing(open_ledger(where)) as ledger:
        # A connection that the server ends: nothing was told, and the next one goes on.
        change(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'velado ledger'"
        )
        with pytest.raises(LedgerError):
            ask(ledger, "w")
    with closing(open_ledger(where)) as ledger:
        assert ledger.verify().spent == Fraction(3, 10)
        change(f"ALTER TABLE {schema}.entries RENAME TO elsewhere")
        with pytest.raises(LedgerError):
            ask(ledger, "w")
        change(f"CREATE TABLE {schema}.entries AS SELECT * FROM {schema}.elsewhere WHERE number < 4")
        with pytest.raises(LedgerError, match="rolled back"):
            ask(ledger, "w")


def test_a_deleted_ledger_or_seal_is_no_new_budget(kept: tuple[str, str], change: Change) -> None:
    where, schema = kept
    seal = seal_of(where)
    whole = seal.read_bytes()
    seal.unlink()
    refused(where, "seal of the ledger is missing.*whole budget as spent")
    with pytest.raises(LedgerError):
        create_ledger(where, "patients", Budget.epsilon(1))
    seal.write_bytes(whole)
    change(f"DROP SCHEMA {schema} CASCADE")
    refused(where, "is gone, though its seal says")
    with pytest.raises(LedgerError, match="is gone, though its seal says"):
        create_ledger(where, "patients", Budget.epsilon(1))
    assert change("SELECT 1 FROM pg_namespace WHERE nspname = %s", values=(schema.strip('"'),)) == []


def test_swapped_ledgers_and_seals_are_refused(
    kept: tuple[str, str], postgres_url: str, change: Change
) -> None:
    where, schema = kept
    other, its = address(postgres_url)
    create_ledger(other, "staff", Budget.epsilon(1)).close()
    swap = (f"{schema} RENAME TO held", f"{its} RENAME TO {schema}", f"held RENAME TO {its}")
    change(*(f"ALTER SCHEMA {part}" for part in swap))
    refused(where, "Entry 1 of the ledger")
    refused(other, "Entry 1 of the ledger")
    change(*(f"ALTER SCHEMA {part}" for part in swap))
    open_ledger(where).close()
    mine, theirs = seal_of(where).read_bytes(), seal_of(other).read_bytes()
    seal_of(where).write_bytes(theirs)
    seal_of(other).write_bytes(mine)
    refused(where, "Entry 1 of the ledger")
    refused(other, "Entry 1 of the ledger")


@pytest.mark.parametrize("key", [b"", b"\0" * 32])
def test_a_chain_made_again_without_the_key_is_refused(
    kept: tuple[str, str], change: Change, key: bytes
) -> None:
    where, schema = kept
    previous = START
    for number, kind, payload in change(
        f"SELECT number, kind, payload FROM {schema}.entries ORDER BY number"
    ):
        said = json.loads(payload)
        said |= {"cost": "0", "analyst_spent": "0"} if kind == "reserve" else {}
        made = make_entry(key, number, previous, kind, said | {"spent": "0"})
        change(
            f"UPDATE {schema}.entries SET payload = %s, previous = %s, hash = %s WHERE number = {number}",
            values=(made.payload, previous, made.hash),
        )
        previous = made.hash
    refused(where, "Entry 1 of the ledger")


@pytest.mark.parametrize(
    "planted",
    [
        "CREATE RULE forget AS ON INSERT TO {0}.entries DO INSTEAD NOTHING",
        "CREATE FUNCTION {0}.forget() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; "
        "CREATE TRIGGER forget BEFORE INSERT ON {0}.entries FOR EACH ROW EXECUTE FUNCTION {0}.forget()",
        "ALTER TABLE {0}.entries RENAME TO held; CREATE VIEW {0}.entries AS SELECT * FROM {0}.held WHERE number < 10",
        "ALTER TABLE {0}.entries ENABLE ROW LEVEL SECURITY; ALTER TABLE {0}.entries FORCE ROW LEVEL SECURITY; "
        "CREATE POLICY first ON {0}.entries USING (number < 10) WITH CHECK (true); "
        "CREATE ROLE {1} LOGIN; GRANT USAGE ON SCHEMA {0} TO {1}; GRANT ALL ON ALL TABLES IN SCHEMA {0} TO {1}",
    ],
    ids=["rule", "trigger", "view", "row level security"],
)
def test_what_is_planted_on_the_server_gives_no_debit_back(
    kept: tuple[str, str], change: Change, planted: str
) -> None:
    where, schema = kept
    role = f"reader_{schema.strip(chr(34))}"
    change(planted.format(schema, role))
    if "ROLE" in planted:
        # The ledger's own user is then one whom the server shows old entries alone.
        where = where.replace("postgres:@", f"{role}:@")
    with pytest.raises(LedgerError), closing(open_ledger(where)) as ledger:
        for question in ("u", "v"):
            ask(ledger, question)
    with pytest.raises(LedgerError), closing(open_ledger(where)) as ledger:
        ledger.reserve(Charge("ana", "t", "", Fraction(1, 10)))
