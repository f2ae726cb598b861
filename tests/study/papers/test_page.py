"""docs/explanation/what-the-papers-measured.md says what the reproductions give."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def make_papers():
    spec = importlib.util.spec_from_file_location("make_papers", ROOT / "docs" / "make_papers.py")
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["make_papers"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def papers():
    return make_papers()


@pytest.fixture(scope="module")
def text(papers):
    return papers.PAGE.read_text("utf-8")


def test_the_frame_of_the_page_is_what_the_script_writes(papers, text) -> None:
    assert papers.page(papers.tables_of(text)) == text, "run python docs/make_papers.py --data DIR"


def test_every_table_of_the_page_was_made(papers, text) -> None:
    assert "Not made yet" not in text
    assert set(papers.tables_of(text)) == {name for section in papers.SECTIONS for name in section.names}
    assert text.count("Why they differ:") == len(papers.tables_of(text))


@pytest.mark.parametrize("name", ["das-table-1", "das-table-2"])
def test_the_examples_of_the_page_are_what_comes_out(papers, text, name, tmp_path) -> None:
    assert papers.tables_of(text)[name] == papers.made(name, False, tmp_path)


@pytest.mark.parametrize("name", ["das-table-3", "das-table-4", "das-table-6"])
def test_the_fast_tables_of_the_page_are_what_comes_out(papers, text, name, data_folder) -> None:
    assert papers.tables_of(text)[name] == papers.made(name, False, data_folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["das-table-5", "gfkmc-figure-6.4", "gfkmc-figure-6.6"])
def test_the_other_tables_without_models_are_what_comes_out(papers, text, name, data_folder) -> None:
    assert papers.tables_of(text)[name] == papers.made(name, False, data_folder)


def test_every_published_cell_of_the_das_tables_stands_beside_its_equal(papers, text) -> None:
    for number in (3, 4, 5, 6):
        rows = re.findall(r"^\| (?:fixed interval|MDAV|Mondrian|DAS) .*$", papers.tables_of(text)[f"das-table-{number}"], re.M)  # fmt: skip
        cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
        assert len(cells) == 10 and all(row[2] == row[3] for row in cells)
