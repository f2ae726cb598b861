"""Reproductions by name: found, run on the right files, and shown in three forms."""

import re
from pathlib import Path

import pytest

from velado.errors import ParameterError, TableError
from velado.papers import paper_registry as registry
from velado.papers.paper_registry import Reproduced, Reproduction, reproduction_named, reproductions
from velado.release.goal import silent
from velado.text import Sentence, say, speaking
from velado.text.languages import catalogue

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


def untold(text: object) -> list[str]:
    """The templates of a sentence and its parts that the Portuguese catalogue lacks; a plain text of words is one."""
    if not isinstance(text, Sentence):
        return []
    known = catalogue("pt")
    holds = known.single if text.many is None else known.plural
    only_places = not any(letter.isalpha() for letter in re.sub(r"\{[^}]*\}", "", text.template))
    own = [] if text.template in holds or only_places else [text.template]
    return own + [one for part in text.parts.values() for one in untold(part)]


_NAMES = re.compile(
    r"[\d\W]*|k|q|eps|ID|F1|sd|DAS|MDAV|Mondrian|GOK-Privacy|Top-Down|TDG|CB|GFKMC|Adult|HAPT|WEF|Auto MPG|Forest Fires|"
    r"Wine Quality|Bike Sharing"
)


def unsaid(result: Reproduced) -> list[str]:
    """What a person reads of a result that is neither a sentence nor a name."""
    texts = [*result.columns, result.note, result.promise, *(cell for row in result.rows for cell in row)]
    plain = [text for text in texts if isinstance(text, str) and not isinstance(text, Sentence)]
    return [text for text in plain if not _NAMES.fullmatch(text)]


@pytest.mark.parametrize(
    "name", ["das-table-1", "das-table-2", "das-table-3", "das-table-4", "regression-table-9",
             "correlated-figure-13-adult", "correlated-table-11-adult"]
)  # fmt: skip
def test_a_result_is_portuguese_all_through(name, data_folder) -> None:
    chosen = reproduction_named(name)
    told: list[str] = []
    result = chosen.carry_out(data_folder, lambda share, doing="": told.append(doing), quick=True)
    assert unsaid(result) == []
    texts = [
        chosen.title,
        result.note,
        result.promise,
        *result.columns,
        *(c for row in result.rows for c in row),
    ]
    assert [one for text in [*texts, *told] for one in untold(text)] == []
    with speaking("pt"):
        text = registry.to_markdown(chosen, result)
    assert "Por que diferem:" in text and "Why they differ" not in text
    assert "publicado" in text and "published" not in text


def test_every_title_and_reason_is_portuguese() -> None:
    for one in reproductions():
        if not one.name.startswith("gfkmc-"):
            assert isinstance(one.title, Sentence) and untold(one.title) == []
        assert one.not_run is None or untold(one.not_run) == []


def test_what_cannot_be_run_is_listed_and_says_why(tmp_path) -> None:
    chosen = reproduction_named("correlated-table-10-hapt")
    with pytest.raises(ParameterError, match="Not run: full covariances of 561 columns"):
        chosen.carry_out(tmp_path, silent)


def test_numbers_are_written_as_the_language_writes_them() -> None:
    with speaking("pt"):
        assert [registry.shown(cell) for cell in (0.1234567, 12345.6, 12345)] == [
            "0,1235",
            "12.346",
            "12.345",
        ]
        assert registry.shown(say("published")) == "publicado"
        assert registry.to_csv(Reproduced((say("published"),), ((0.5,),), "", "")) == "publicado\n0.5\n"
