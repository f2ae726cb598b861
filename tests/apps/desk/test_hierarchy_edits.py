"""Edits of a hierarchy are undone one by one, and nothing else is; days have bands as numbers do."""

import re
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from velado.apps.desk import undoing
from velado.apps.desk.tree_shown import bundled, children
from velado.apps.desk.wording import error_at_the_desk
from velado.data.encode import encode
from velado.data.hierarchies import tree_of
from velado.data.hierarchies.icd10 import BLOCKS, CHAPTERS, ICD10
from velado.data.schema import Column, Schema, TaxonomySpec
from velado.data.table import Table
from velado.data.taxonomy import from_paths
from velado.errors import TaxonomyError
from velado.text import say_n, speaking, told

from .desks import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path).ready()


def age(desk: Desk) -> Column:
    recipe = desk.project.recipe()
    assert recipe is not None
    return recipe.schema.columns["age"]


def test_edits_are_undone_one_by_one(desk: Desk) -> None:
    place = f"/hierarchies/{desk.number('age')}"
    first = age(desk)
    assert 'id="undo"' not in desk.get(place).text
    assert desk.post(f"{place}/bands", edges="20 40 60").status == 303
    second = age(desk)
    assert desk.post(f"{place}/builder", builder="intervals", options="5 10").status == 303
    assert 'id="undo"' in desk.get(place).text and age(desk) not in (first, second)
    assert desk.post(f"{place}/undo").status == 303
    assert age(desk) == second
    assert desk.post(f"{place}/undo").status == 303
    assert age(desk) == first and 'id="undo"' not in desk.get(place).text
    reply = desk.post(f"{place}/undo")
    assert reply.status == 409 and "nothing to undo" in reply.words


def test_what_was_changed_otherwise_since_is_not_undone(desk: Desk) -> None:
    place = f"/hierarchies/{desk.number('age')}"
    desk.post(f"{place}/bands", edges="20 40 60")
    shown = desk.state()

    def heavier(answers, recipe):
        columns = {**recipe.schema.columns, "age": replace(recipe.schema.columns["age"], weight=2.0)}
        return answers, replace(recipe, schema=recipe.schema.with_columns(columns.values()))

    desk.project.change(heavier)
    assert "changed after" in desk.post(f"{place}/undo", state=shown).words
    assert "nothing to undo" in desk.post(f"{place}/undo").words and age(desk).weight == 2.0


def test_an_edit_that_changes_nothing_and_a_broken_file_are_no_edits(desk: Desk) -> None:
    undoing.keep(desk.project, age(desk), age(desk))
    assert not undoing.can_undo(desk.project, age(desk))
    undoing.keep(desk.project, age(desk), replace(age(desk), weight=3.0))
    for file in desk.project.desk.rglob("undo-*.json"):
        file.write_text("{")
    assert not undoing.can_undo(desk.project, replace(age(desk), weight=3.0))


def test_days_have_bands_as_numbers_do(tmp_path: Path) -> None:
    rows = "".join(
        f"P{i:03d},{1 + i % 28:02d}/{1 + i % 12:02d}/{2019 + i % 4},{'FM'[i % 2]}\n" for i in range(90)
    )
    desk = Desk(tmp_path).opened(f"patient_id,admission,sex\n{rows}").read().person()
    admission = desk.number("admission")
    assert desk.roles(**{f"role-{admission}": "quasi"}).status == 303
    place = f"/hierarchies/{admission}"
    page = desk.get(place).text
    assert 'data-kind="days"' in page and "bands.js" in page
    assert desk.post(f"{place}/bands", edges="2021-01-01 2020-01-01").status == 303
    recipe = desk.project.recipe()
    assert recipe is not None
    spec = recipe.schema.columns["admission"].taxonomy
    assert spec is not None and spec.paths is not None
    groups = {path[0]: path[1] for path in spec.paths}
    assert set(groups.values()) == {"<2020-01-01", "[2020-01-01..2021-01-01)", ">=2021-01-01"}
    assert groups["02/02/2020"] == "[2020-01-01..2021-01-01)"
    assert 'value="2020-01-01 2021-01-01"' in desk.get(place).text
    # Days may be written as the column writes them.
    assert desk.post(f"{place}/bands", edges="01/02/2020 2021-01-01").status == 303
    assert 'value="2020-02-01 2021-01-01"' in desk.get(place).text
    assert "This is no day." in desk.post(f"{place}/bands", edges="yesterday").words
    # The words of the Portuguese page are levels too.
    assert desk.post(f"{place}/builder", builder="dates", options="mês ano").status == 303
    assert spec_of(desk, "admission").options["levels"] == ["month", "year"]
    for wrong in ("2020-13-01", "yesterday", ""):
        assert desk.post(f"{place}/bands", edges=wrong).status == 409


def test_codes_of_diagnoses_stand_with_what_they_stand_for() -> None:
    tree = tree_of(ICD10, ["J18.9", "J20", "C50.1"])
    with speaking("pt"):
        shown = children(tree, tree.root)["nodes"]
    assert {one["label"]: one["title"] for one in shown} == {
        "C00-D48": "tumores",
        "J00-J99": told(CHAPTERS["J00-J99"], "pt"),
    }
    below = children(tree, tree.labels.index("J00-J99"))["nodes"]
    assert [one["title"] for one in below] == [BLOCKS["J09-J18"], BLOCKS["J20-J22"]]
    shelves = from_paths([("shelf 1", "J00-J99"), ("shelf 2", "J00-J99")], "place")
    assert [one["title"] for one in children(shelves, shelves.root)["nodes"]] == [""]


LEVELS = "Belém;North;*\nRecife;Coast;*\nViçosa;Inland;*\n"


def spec_of(desk: Desk, name: str):
    recipe = desk.project.recipe()
    assert recipe is not None
    return recipe.schema.columns[name].taxonomy


def test_a_hierarchy_goes_out_and_comes_back_as_a_level_file(desk: Desk) -> None:
    place = f"/hierarchies/{desk.number('city')}"
    assert desk.post(f"{place}/levels", levels=f"\ufeff{LEVELS}").status == 303
    spec = spec_of(desk, "city")
    assert spec is not None and spec.file is not None
    assert (desk.folder / spec.file).read_text() == LEVELS  # what other commands read
    saved = desk.get(f"{place}/levels.csv")
    assert "attachment" in saved.headers["content-disposition"]
    assert desk.post(f"{place}/builder", builder="flat", options="").status == 303
    assert spec_of(desk, "city") != spec
    assert desk.post(f"{place}/levels", levels=saved.text).status == 303
    assert spec_of(desk, "city").paths == spec.paths
    before = desk.state()
    for broken in ("Belém;North\nBelém;South\n", "Belém;North;*\nRecife;*\n"):
        assert desk.post(f"{place}/levels", levels=broken).status == 409, broken
    assert desk.state() == before


def test_values_without_a_place_are_listed_and_placed(desk: Desk) -> None:
    place = f"/hierarchies/{desk.number('city')}"
    assert desk.post(f"{place}/levels", levels=LEVELS.replace("Viçosa;Inland;*\n", "")).status == 303
    page = desk.get(place)
    assert "1 value has no place" in page.words and '<option value="Viçosa" selected>' in page.text
    options = page.text.split('id="under"')[1].split("</select>")[0]
    coast = next(part.split('"')[0] for part in options.split('value="')[1:] if ">Coast<" in part)
    assert desk.post(f"{place}/place", value="Viçosa", under=coast).status == 303
    assert "has no place" not in desk.get(place).words
    assert ("Viçosa", "Coast") in {tuple(path[:2]) for path in spec_of(desk, "city").paths}


def test_every_bundled_hierarchy_can_be_taken(desk: Desk) -> None:
    place = f"/hierarchies/{desk.number('city')}"
    for name, _ in bundled():
        assert f'<option value="{name}"' in desk.get(place).text
        assert desk.post(f"{place}/builder", builder=name, options="").status == 303
        assert spec_of(desk, "city").builder in (name, "levels")  # known in part: the rest is placed by hand
        assert desk.get(place).status == 200  # values that it does not know are told, not an error


def test_what_a_bundled_hierarchy_does_not_know_is_placed_by_hand(desk: Desk) -> None:
    place = f"/hierarchies/{desk.number('city')}"
    assert desk.post(f"{place}/builder", builder="municipality", options="").status == 303
    page = desk.get(place)
    # Several states have a Viçosa, and a Belém: which one is meant only a person can say.
    assert "2 values have no place" in page.words and '<option value="Viçosa" selected>' in page.text
    assert ("Recife", "PE", "Nordeste") in {tuple(path[:3]) for path in spec_of(desk, "city").paths}
    options = page.text.split('id="under"')[1].split("</select>")[0]
    state = next(part.split('"')[0] for part in options.split('value="')[1:] if ">PE<" in part)
    assert desk.post(f"{place}/place", value=["Viçosa", "Belém"], under=state).status == 303
    assert "has no place" not in desk.get(place).words
    # "Edited by hand" is what stands: to take it is no edit.
    before = desk.state()
    assert desk.post(f"{place}/builder", builder="levels", options="").status == 303
    assert desk.state() == before


def test_a_ready_hierarchy_that_fits_is_offered_and_not_taken_by_itself(tmp_path: Path) -> None:
    places = ["Recife", "Olinda", "Manaus", "Natal", "Curitiba", "Niterói", "Campinas", "Viçosa"]
    codes = ["J18.9", "O80", "A09", "E11", "N39", "K35", "I50", "J45"]
    lines = ["patient_id,city,cid10,team"]
    lines += [f"P{i:03d},{places[i % 8]},{codes[i * 7 // 3 % 8]},team {i % 5}" for i in range(200)]
    desk = Desk(tmp_path).opened("\n".join(lines) + "\n").read().person()
    schema = desk.project.recipe().schema  # type: ignore[union-attr]
    numbers = {name: at for at, name in enumerate(schema.columns)}
    roles = {f"role-{numbers['city']}": "quasi", f"role-{numbers['cid10']}": "sensitive"}
    roles[f"role-{numbers['team']}"] = "quasi"
    assert desk.roles(**roles).status == 303
    assert (
        "2 columns have no groups yet, and ready hierarchies fit them: city , cid10"
        in desk.get("/promise").words
    )
    page = desk.get("/hierarchies")
    assert re.findall(r'name="builder" value="([^"]+)"', page.text) == ["municipality", "icd-10"]
    assert spec_of(desk, "city") is None  # nothing was taken
    assert (
        desk.post(f"/hierarchies/{numbers['city']}/builder", builder="municipality", options="").status == 303
    )
    assert "1 column has no groups yet" in desk.get("/promise").words
    assert desk.post(f"/hierarchies/{numbers['cid10']}/builder", builder="icd-10", options="").status == 303
    assert "no groups yet" not in desk.get("/promise").words
    page = desk.get("/hierarchies")
    assert "A ready one that fits" not in page.words and "ICD-10: category, block and chapter" in page.words


def test_values_without_a_place_are_named_before_and_after_a_run(tmp_path: Path) -> None:
    places = ["Recife", "Olinda", "Manaus", "Natal", "Curitiba", "Niterói", "Atlântida Qx", "Lemúria Zy"]
    lines = ["patient_id,city,team"]
    lines += [f"P{i:03d},{places[i % 8]},team {i % 5}" for i in range(200)]
    desk = Desk(tmp_path).opened("\n".join(lines) + "\n").read().person()
    schema = desk.project.recipe().schema  # type: ignore[union-attr]
    numbers = {name: at for at, name in enumerate(schema.columns)}
    assert (
        desk.roles(**{f"role-{numbers['city']}": "quasi", f"role-{numbers['team']}": "quasi"}).status == 303
    )
    assert "no place" not in desk.get("/promise").words
    place = f"/hierarchies/{numbers['city']}"
    assert desk.post(f"{place}/builder", builder="municipality", options="").status == 303
    page = desk.get("/promise")
    assert "city : 2 values have no place" in page.words and f'href="{place}#uncovered"' in page.text
    assert "Lemúria" not in page.text
    with speaking("pt"):
        assert "2 valores não têm lugar" in str(
            told(say_n("{n:,} value has no place", "{n:,} values have no place", 2))
        )


def test_a_refusal_for_values_without_a_place_speaks_of_the_desk() -> None:
    codes = Column("city", "quasi", taxonomy=TaxonomySpec("levels", paths=(("Recife", "PE"),)))
    table = Table.of(pl.DataFrame({"city": ["Recife", "Lemúria"]}), Schema({"city": codes}))
    with pytest.raises(TaxonomyError) as refused:
        encode(table)
    for language, place in (("en", "At Hierarchies"), ("pt", "Em Hierarquias")):
        said = " ".join(told(one, language) for one in error_at_the_desk(refused.value))
        assert place in said and "--show-values" not in said and "Lemúria" not in said
