"""Reproductions by name: found, run on the right files, and shown in three forms."""

from pathlib import Path

import pytest

from velado.errors import ParameterError, TableError
from velado.papers import paper_registry as registry
from velado.papers.paper_registry import Reproduced, Reproduction, reproduction_named, reproductions
from velado.release.goal import silent

RESULT = Reproduced(
    ("k", "published", "ours"), ((2, "figure only", 0.123456), (3, None, 12345.6)), "A note.", "none"
)


def made_up(name="one", needs=(), quick=None) -> Reproduction:
    return Reproduction(name, "a paper", "A title", needs, lambda data, progress: RESULT, quick)


def test_every_name_is_known_once_and_says_what_it_needs() -> None:
    known = reproductions()
    assert len({one.name for one in known}) == len(known) > 30
    assert all(one.title and one.source for one in known)
    # Two tables of the DAS paper are an example whose numbers are printed there; all others need a file.
    assert [one.name for one in known if not one.needs] == ["das-table-1", "das-table-2"]
    assert not any(Path(name).is_absolute() for one in known for name in one.needs)


@pytest.mark.parametrize(
    "what", [*(f"figure-{n}" for n in (11, 12, 13, 14, 15, 17, 18, 19)), "table-10", "table-11", "table-12"]
)
@pytest.mark.parametrize("data", ["adult", "ccc"])
def test_every_figure_and_table_of_the_correlated_source_is_there(what, data) -> None:
    assert reproduction_named(f"correlated-{what}-{data}").quick is not None


def test_a_misspelt_name_gets_the_nearest() -> None:
    with pytest.raises(ParameterError, match="Did you mean 'correlated-table-10-adult'"):
        reproduction_named("correlated-table10-adult")


def test_a_missing_file_is_named_with_the_place_to_put_it(tmp_path) -> None:
    with pytest.raises(TableError, match=r"hapt/hapt\.csv.*below the data folder"):
        made_up(needs=("hapt/hapt.csv",)).carry_out(tmp_path, silent)


def test_a_quick_run_is_taken_where_there_is_one(tmp_path) -> None:
    short = Reproduced((), (), "short", "none")
    assert made_up(quick=lambda data, progress: short).carry_out(tmp_path, silent, quick=True) is short
    assert made_up().carry_out(tmp_path, silent, quick=True) is RESULT
    assert made_up(quick=lambda data, progress: short).carry_out(tmp_path, silent) is RESULT


def test_two_reproductions_of_one_name_are_an_error(monkeypatch) -> None:
    monkeypatch.setattr(registry, "MODULES", registry.MODULES * 2)
    with pytest.raises(ParameterError, match="Two reproductions"):
        reproductions()


def test_a_result_reads_as_markdown_and_as_json() -> None:
    text = registry.to_markdown(made_up(), RESULT)
    assert "| 2 | figure only | 0.1235 |" in text
    assert "| 3 | - | 12,346 |" in text
    assert "Promise: none." in text
    found = registry.to_dict(made_up(), RESULT)
    assert found["rows"][1] == {"k": 3, "published": None, "ours": 12345.6}
    assert (found["name"], found["promise"]) == ("one", "none")
