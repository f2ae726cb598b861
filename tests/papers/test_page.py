"""docs/explanation/what-the-papers-measured.md says what the reproductions give, and leaves none of them out."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from velado.papers.paper_registry import Reproduced, reproduction_named, reproductions
from velado.release.goal import silent

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def papers():
    spec = importlib.util.spec_from_file_location("make_papers", ROOT / "docs" / "make_papers.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_papers"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def record(papers):
    return json.loads(papers.RECORD.read_text("utf-8"))


@pytest.fixture(scope="module")
def text(papers):
    return papers.PAGE.read_text("utf-8")


def test_the_page_is_what_the_script_writes_of_the_record(papers, record, text) -> None:
    assert papers.page(record) == text, "run python docs/make_papers.py --data DIR"


def test_every_reproduction_is_on_the_page_and_nothing_else_is(papers, record, text) -> None:
    known = {one.name for one in reproductions()}
    assert set(record) <= known
    listed = [name for section in papers.SECTIONS for name in papers.names_of(section)]
    assert sorted(listed) == sorted(known), "each belongs to one section"
    for name in known:
        assert f"`velado reproduce {name}" in text
    # Only what needs data that is not handed out here has no table.
    assert {name.rsplit("-", 1)[1] for name in known - set(record)} == {"hapt", "icu"}
    assert "Not made here" in text and "icu/icu.csv" in text and "velado data get hapt" in text


def test_every_table_says_why_its_columns_differ(record) -> None:
    assert [name for name, kept in record.items() if kept["note"].count("Why they differ:") != 1] == []
    assert [
        name for name, kept in record.items() if not any("published" in one for one in kept["columns"])
    ] == []


def test_which_tables_are_of_quick_runs_is_said(papers, record, text) -> None:
    for name, kept in record.items():
        assert (f"velado reproduce {name} --quick`" in text) == kept["quick"]
    shortened = {name: {**kept, "quick": name == "das-table-1"} for name, kept in record.items()}
    assert f"1 of the {len(record)} tables are of quick runs" in papers.page(shortened)
    whole = {name: {**kept, "quick": False} for name, kept in record.items()}
    assert "Every table below is of a full run." in papers.page(whole)


def test_a_record_keeps_six_digits_and_everything_else(papers) -> None:
    found = Reproduced(("k", "published"), ((3, 0.123456789), (None, "figure only")), "a note", "none")
    kept = papers.entry(found, False, 1.26)
    assert kept["rows"] == [[3, 0.123457], [None, "figure only"]]
    assert (kept["seconds"], kept["note"], kept["quick"]) == (1.3, "a note", False)


def test_what_was_made_is_kept_and_made_again_only_when_asked(papers, tmp_path, monkeypatch, capsys) -> None:
    kept = tmp_path / "record.json"

    def run(*arguments: str) -> str:
        monkeypatch.setattr(
            sys, "argv", ["make_papers", "--data", str(tmp_path), "--record", str(kept), *arguments]
        )
        papers.main()
        return capsys.readouterr().err

    assert "das-table-1: 0 s for 1" in run("--only", "das-table-[13]")
    assert list(json.loads(kept.read_text("utf-8"))) == ["das-table-1"]  # the other needs a file
    assert run("--only", "das-table-1") == ""
    assert "das-table-1" in run("--only", "das-table-1", "--again", "das-*", "--quick")
    assert json.loads(kept.read_text("utf-8"))["das-table-1"]["quick"] is True
    assert "das-table-1" in run("--only", "das-table-1", "--full")
    assert run("--only", "das-table-1", "--full") == ""


def again(papers, record, name, folder) -> None:
    found = reproduction_named(name).carry_out(folder, silent, record[name]["quick"])
    made = papers.entry(found, record[name]["quick"], record[name]["seconds"])
    assert json.loads(json.dumps(made)) == record[name]


@pytest.mark.parametrize("name", ["das-table-1", "das-table-2"])
def test_the_examples_of_the_page_are_what_comes_out(papers, record, name, tmp_path) -> None:
    again(papers, record, name, tmp_path)


@pytest.mark.parametrize("name", ["das-table-3", "das-table-4", "das-table-6"])
def test_the_fast_tables_of_the_page_are_what_comes_out(papers, record, name, data_folder) -> None:
    again(papers, record, name, data_folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["das-table-5", "gfkmc-figure-6.4", "gfkmc-figure-6.6"])
def test_the_other_tables_without_models_are_what_comes_out(papers, record, name, data_folder) -> None:
    again(papers, record, name, data_folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gok-figure-4-mgm", "gok-figure-6-cmc"])
def test_a_model_table_comes_out_again_up_to_its_library(record, name, data_folder) -> None:
    pytest.importorskip("sklearn", reason="models are the extra velado[ml]")
    found = reproduction_named(name).carry_out(data_folder, silent)
    # Versions of scikit-learn break ties in their own ways.
    for row, kept in zip(found.rows, record[name]["rows"], strict=True):
        assert row[:3] == tuple(kept[:3]) and row[6] == kept[6]
        assert [x for x in row[3:6] if x is not None] == pytest.approx(
            [x for x in kept[3:6] if x is not None], abs=0.03
        )


def test_every_published_cell_of_the_das_tables_stands_beside_its_equal(record) -> None:
    for number in (3, 4, 5, 6):
        rows = record[f"das-table-{number}"]["rows"]
        assert len(rows) == 10 and all(row[2] == row[3] for row in rows)


def test_the_loss_of_gfkmc_is_within_a_point_and_a_half_of_the_authors_code(record) -> None:
    known = {row[0]: row for row in record["gfkmc-figure-6.3"]["rows"] if row[2] is not None}
    assert list(known) == [3, 5, 10, 20, 50, 100]
    assert all(abs(row[3] - row[2]) <= 1.5 for row in known.values())
