"""One table, one ledger: by its place, by its content, and through every door."""

from __future__ import annotations

import hashlib
import shutil
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import polars as pl
import psycopg
import pytest

from velado.data.io import read_table
from velado.data.schema import Column, Schema
from velado.data.table import Table
from velado.errors import LedgerError, ParameterError
from velado.query.budget import Budget
from velado.query.engines import engine_for_file, engine_for_postgres, identity_of
from velado.query.engines._row_marks import identity_of_table
from velado.query.identity import TableIdentity
from velado.query.session import Session
from velado.query.store import (
    account_of,
    address_of,
    agree_version,
    claim,
    create_ledger,
    has_ledger,
    ledger_known,
    open_ledger,
    seal_of,
)
from velado.query.unit import Unit


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "state"))
    path = tmp_path / "people.csv"
    path.write_text("a,b\n1,2\n", "utf-8")
    return path


def ask(file: Path, **more: object) -> str:
    account = account_of(file, Budget.epsilon(1), **more)  # type: ignore[arg-type]
    account.ledger.close()
    return account.where


def test_a_second_ledger_for_one_file_is_refused(table: Path, tmp_path: Path) -> None:
    first = ask(table, where=tmp_path / "elsewhere.ledger")
    with pytest.raises(LedgerError, match="another ledger"):
        ask(table)
    with pytest.raises(LedgerError, match="another ledger"):
        ask(table, where=tmp_path / "third.ledger")
    assert ask(table, where=first) == first
    assert not (tmp_path / "people.csv.ledger").exists()


def test_a_copy_a_link_and_a_changed_file_belong_to_the_same_ledger(table: Path, tmp_path: Path) -> None:
    first = ask(table)
    copy = tmp_path / "copy.csv"
    shutil.copy(table, copy)
    link = tmp_path / "link.csv"
    link.symlink_to(table)
    for other in (copy, link):
        assert has_ledger(other)
        with pytest.raises(LedgerError, match="another ledger"):
            ask(other)
        assert ask(other, where=first) == first
    table.write_text("a,b\n1,2\n3,4\n", "utf-8")
    assert has_ledger(table)
    with pytest.raises(LedgerError, match="another ledger"):
        ask(table, where=tmp_path / "new.ledger")


def test_a_table_nobody_asked_about_has_no_ledger(table: Path, tmp_path: Path) -> None:
    assert not has_ledger(table)
    other = tmp_path / "other.csv"
    other.write_text("a,b\n5,6\n", "utf-8")
    ask(other)
    assert not has_ledger(table) and has_ledger(other)


def test_a_note_that_was_damaged_stops_the_asking(table: Path, tmp_path: Path) -> None:
    first = ask(table)
    for note in (tmp_path / "state" / "tables").iterdir():
        assert note.stat().st_mode & 0o077 == 0
        note.write_text("{", "utf-8")
    with pytest.raises(LedgerError, match="cannot be read"):
        ask(table, where=first)


PEOPLE = Schema(
    {"age": Column("age", kind="numeric", bounds=(0, 120)), "sex": Column("sex", values=("F", "M"))}
)
COUNT = "SELECT COUNT(*) FROM people"


def written(folder: Path, frame: pl.DataFrame, name: str, **how: object) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    if name.endswith(".parquet"):
        frame.write_parquet(path)
    else:
        frame.write_csv(path, **how)  # type: ignore[arg-type]
    return path


@pytest.fixture
def people(tmp_path: Path) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "age": [31, 7, None, 31],
            "sex": ["F", "M", None, "F"],
            "seen": [date(2024, 1, 5), date(2024, 2, 6), None, date(2024, 1, 5)],
            "weight": [61.5, 20.25, 1e-7, 61.5],
        }
    )


def test_the_same_rows_in_another_form_are_the_same_table(tmp_path: Path, people: pl.DataFrame) -> None:
    first = written(tmp_path / "a", people, "people.csv")
    ledger = ask(first)
    more = written(tmp_path / "a", people, "newline.csv")
    more.write_text(more.read_text("utf-8") + "\n", "utf-8")
    spelled = written(tmp_path / "e", people.with_columns(pl.col("age").cast(pl.Float64)), "spelled.csv")
    spelled.write_text(spelled.read_text("utf-8").replace("F", " f"), "utf-8")
    moments = people.with_columns(pl.col("seen").cast(pl.Datetime))
    others = [
        more,
        spelled,
        written(tmp_path / "b", people, "people.parquet"),
        written(tmp_path / "c", people.reverse(), "reversed.csv"),
        written(tmp_path / "c", people.select("weight", "sex", "seen", "age"), "columns.csv"),
        written(tmp_path / "d", people, "semicolons.csv", separator=";"),
        written(tmp_path / "d", moments, "moments.parquet"),
    ]
    for other in others:
        with pytest.raises(LedgerError, match="another ledger"):
            ask(other)
        assert ask(other, where=ledger) == ledger


def test_days_in_their_declared_form_are_the_days_they_say(tmp_path: Path, people: pl.DataFrame) -> None:
    """A CSV file with 05/01/2024 and the Parquet file of days that is made from it are one table, whichever was asked first."""
    schema = Schema(
        {
            "seen": Column("seen", kind="date", format="%d/%m/%Y"),
            "left": Column("left", kind="date", format="%d/%m/%Y %H:%M"),
        }
    )
    moments = people.with_columns(left=pl.col("seen").cast(pl.Datetime) + pl.duration(hours=7))
    texts = moments.with_columns(
        pl.col("seen").dt.strftime("%d/%m/%Y"), pl.col("left").dt.strftime("%d/%m/%Y %H:%M")
    )
    typed = written(tmp_path / "a", moments, "days.parquet")
    written_out = written(tmp_path / "b", texts, "days.csv")
    ledger = ask(written_out, table=identity_of(written_out, schema))
    for where in (typed, written(tmp_path / "c", moments.reverse(), "days.parquet")):
        with pytest.raises(LedgerError, match="another ledger"):
            ask(where, table=identity_of(where, schema))
        assert ask(where, table=identity_of(where, schema), where=ledger) == ledger
    # In memory too; and a day that is another is another table.
    one, other = (
        identity_of_table(Table.of(frame, schema, undeclared="keep")).marks
        for frame in (texts, texts.with_columns(seen=pl.col("seen").str.replace("05/01", "06/01")))
    )
    assert set(one) & set(identity_of(typed, schema).marks) and not set(one) & set(other)


def test_numbers_truths_and_accents_are_what_they_say(tmp_path: Path) -> None:
    plain = Schema({"cost": Column("cost", kind="numeric")})
    comma = Schema({"cost": Column("cost", kind="numeric")}, decimal=",")
    frame = pl.DataFrame(
        {
            "cost": ["1234.56", "0.1", "7"],
            "died": ["1", "0", "1"],
            "city": ["S\u00e3o Paulo", "Bel\u00e9m", "Uba"],
        }
    )
    asked = set(identity_of(written(tmp_path, frame, "asked.csv"), plain).marks[2:])
    same = {
        "float.parquet": frame.with_columns(pl.col("cost").cast(pl.Float32)),
        "true.csv": frame.with_columns(died=pl.Series(["true", "False", "TRUE"])),
        "bool.parquet": frame.with_columns(died=pl.Series([True, False, True])),
        "nfd.csv": frame.with_columns(pl.col("city").str.normalize("NFD")),
    }
    for name, other in same.items():
        assert asked & set(identity_of(written(tmp_path, other, name), plain).marks), name
    marked = frame.with_columns(cost=pl.Series(["1.234,56", "0,1", "7"]))
    assert asked & set(identity_of(written(tmp_path, marked, "comma.csv", separator=";"), comma).marks)
    cheaper = frame.with_columns(cost=pl.Series(["1234.57", "0.1", "7"]))
    assert not asked & set(identity_of(written(tmp_path, cheaper, "cheaper.csv"), plain).marks)


def test_what_is_not_noticed_is_what_the_documents_say(tmp_path: Path, people: pl.DataFrame) -> None:
    ask(written(tmp_path / "a", people, "people.csv"))
    renamed = people.rename({"age": "years"})
    for name, other in {
        "row.csv": people.with_columns(pl.col("age").fill_null(8)),
        "subset.csv": people.head(3),
        "column.csv": people.drop("seen"),
        "renamed.csv": renamed,
    }.items():
        ask(written(tmp_path / "b", other, name))


def test_rows_that_repeat_are_counted(tmp_path: Path, people: pl.DataFrame) -> None:
    twice = pl.concat([people, people.head(1)])
    marks = {
        identity_of(written(tmp_path, one, f"{n}.csv")).marks[-1] for n, one in enumerate((people, twice))
    }
    assert len(marks) == 2


def test_a_lost_ledger_and_seal_are_no_new_budget(table: Path, tmp_path: Path) -> None:
    where = Path(ask(table))
    seal = seal_of(where)
    content, kept = where.read_bytes(), seal.read_bytes()
    where.unlink()
    seal.unlink()
    for again in ({}, {"where": where}, {"budget": Budget.epsilon(5)}):
        with pytest.raises(LedgerError, match="gone, and its seal too"):
            ask(table, **again)
    # Nor is a new ledger at the old place.
    create_ledger(where, "people.csv", Budget.epsilon(5)).close()
    with pytest.raises(LedgerError, match="newer one at its place"):
        ask(table)
    where.write_bytes(content)
    seal.write_bytes(kept)
    assert ask(table) == str(where)


def test_python_claims_its_table_like_the_command_line(tmp_path: Path, people: pl.DataFrame) -> None:
    schema = Schema({**PEOPLE.columns, "seen": Column("seen", kind="date"), "weight": Column("weight")})
    path = written(tmp_path / "a", people, "people.csv")
    table = read_table(path, schema)
    first = create_ledger(tmp_path / "one.ledger", "people", Budget.epsilon(3))
    second = create_ledger(tmp_path / "two.ledger", "people", Budget.epsilon(3))
    with Session(table, budget=first) as session:
        session.answer(COUNT, spend=1)
    with pytest.raises(LedgerError, match="another ledger"):
        Session(table, budget=second)
    with pytest.raises(LedgerError, match="accounted for in a ledger"):
        Session(table, budget=1.0)
    with pytest.raises(LedgerError, match="another ledger"):
        ask(written(tmp_path / "b", people.reverse(), "people.parquet"))
    engine = engine_for_file(written(tmp_path / "c", people, "c.csv"), schema, Unit())
    with pytest.raises(LedgerError, match="another ledger"):
        Session(engine, budget=second, schema=schema)
    with Session(
        engine, budget=open_ledger(tmp_path / "one.ledger"), schema=schema, name="people"
    ) as session:
        assert session.state().spent > 0
    engine.close()


def test_notes_of_cells_are_named_under_a_key(table: Path, tmp_path: Path) -> None:
    ask(table)
    names = {path.name for path in (tmp_path / "state" / "tables").iterdir()}
    for mark in identity_of(table).marks:
        plain = hashlib.sha256(mark.encode()).hexdigest() + ".json"
        assert (plain in names) == mark.startswith("path:")


def test_a_relation_is_one_table_however_it_is_reached(postgres_url: str, tmp_path: Path) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as base:
        base.execute("DROP TABLE IF EXISTS public.held")
        base.execute("CREATE TABLE public.held (age int)")
        base.execute("INSERT INTO public.held VALUES (31)")
    schema = Schema({"age": Column("age", kind="numeric", bounds=(0, 120))})
    mark = "&" if "?" in postgres_url else "?"
    doors = [
        (postgres_url, "held"),
        (postgres_url, "public.held"),
        (f"{postgres_url}{mark}application_name=x", "held"),
    ]
    found = []
    for url, relation in doors:
        engine = engine_for_postgres(url, relation, schema, Unit())
        found.append(engine.identity)
        engine.close()
    claim(found[0], address_of(tmp_path / "a.ledger"))
    for other in found[1:]:
        with pytest.raises(LedgerError, match="another ledger"):
            claim(other, address_of(tmp_path / "b.ledger"))
    assert "postgres" not in repr(found[0])
    with psycopg.connect(postgres_url, autocommit=True) as base:
        base.execute("ALTER TABLE public.held RENAME TO moved")
    engine = engine_for_postgres(postgres_url, "moved", schema, Unit())
    assert ledger_known(engine.identity) == address_of(tmp_path / "a.ledger")
    engine.close()


def test_a_relation_without_a_server_is_known_by_its_address(tmp_path: Path) -> None:
    one = TableIdentity(("relation:host:5432/base#admissions?",))
    claim(one, address_of(tmp_path / "a.ledger"))
    assert ledger_known(one) == address_of(tmp_path / "a.ledger")


def test_first_questions_at_once_share_one_ledger(table: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        places = list(pool.map(lambda _: ask(table), range(16)))
    assert len(set(places)) == 1


def test_a_changed_table_needs_a_new_declared_version(table: Path, tmp_path: Path) -> None:
    ledger = address_of(tmp_path / "a.ledger")
    agree_version(ledger, "1", "content a")
    agree_version(ledger, "1", "content a")
    with pytest.raises(ParameterError, match="new version"):
        agree_version(ledger, "1", "content b")
    agree_version(ledger, "2", "content b")
    agree_version(address_of(tmp_path / "other.ledger"), "1", "content b")
