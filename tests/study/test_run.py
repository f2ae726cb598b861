"""A release folder is whole, repeatable byte for byte, free of cell values where it travels, or not there."""

import hashlib
import json
import shutil
import sys
import tomllib
from collections import Counter
from dataclasses import replace
from datetime import date
from pathlib import Path

import polars as pl
import pytest

from velado.data.io import read_schema
from velado.data.keys import Key, owner_key
from velado.data.samples import hospital_csv, hospital_schema
from velado.data.schema import Schema
from velado.errors import GuaranteeNotMet, OutputError, ParameterError, TaxonomyError
from velado.release.guarantees import LDiversity
from velado.release.methods import DAS, GFKMC, Mondrian
from velado.release.prepare import Prepared
from velado.study.run import apply_recipe, publish, read_recipe

FIXED = Key(bytes(range(40)))
ALWAYS = ("about.html", "manifest.json", "measured.json", "owner.key", "recipe.toml", "rows.csv")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_release_folder_is_complete_and_the_published_table_is_the_release(example, tmp_path) -> None:
    done = publish(example.table, example.schema, Mondrian(), out=tmp_path / "out", k=4)
    assert sorted(contents(done.folder)) == sorted([*ALWAYS, "report.html", "table.csv"])
    table = pl.read_csv(done.folder / "release/table.csv", infer_schema=False)
    assert table.columns == ["age", "city", "diagnosis"]
    assert table.height == 40
    assert table.group_by("age", "city").len()["len"].min() >= 4


def test_cells_held_in_lists_give_the_same_bytes_as_texts(tmp_path, monkeypatch) -> None:
    schema = read_schema(hospital_schema())

    def folder(name: str) -> dict[str, bytes]:
        given = {"k": 4, "undeclared": "drop", "made_on": date(2026, 1, 2), "reports": ("html", "json")}
        done = publish(hospital_csv(), schema, Mondrian(), out=tmp_path / name, key=FIXED, **given)
        held = {type(kind) for kind in done.release.original.frame.dtypes}
        assert (pl.Enum in held) == (name == "lists")
        return contents(done.folder)

    listed = folder("lists")
    monkeypatch.setattr(Prepared, "packed", lambda prepared: prepared)
    assert listed == folder("texts")


def test_every_report_that_was_asked_for_is_written(example, tmp_path) -> None:
    done = publish(
        example.table,
        example.schema,
        Mondrian(),
        out=tmp_path / "out",
        format="parquet",
        reports=("html", "md", "json"),
        k=4,
    )
    expected = {*ALWAYS, "report.html", "report.md", "report.json", "table.parquet"}
    assert set(contents(done.folder)) == expected
    assert pl.read_parquet(done.folder / "release/table.parquet").height == 40
    told = json.loads((done.folder / "private/report.json").read_text("utf-8"))
    assert told["report"]["title"] == done.page.title and told["facts"]["output"]["file"] == "table.parquet"


def test_a_release_without_any_report_is_whole_and_its_recipe_says_so(example, tmp_path) -> None:
    done = publish(example.table, example.schema, Mondrian(), out=tmp_path / "out", reports=(), k=4)
    assert set(contents(done.folder)) == {*ALWAYS, "table.csv"}
    assert "reports = []" in (done.folder / "private/recipe.toml").read_text("utf-8")
    again = apply_recipe(done.folder / "private/recipe.toml", example.table, tmp_path / "again")
    assert contents(again.folder) == contents(done.folder)


@pytest.mark.parametrize("method", [Mondrian(), GFKMC(), DAS()])
def test_a_seed_gives_the_same_folder_byte_for_byte(example, tmp_path, method) -> None:
    settings = {"seed": 3, "reports": ("html", "md", "json"), "suppression": 0.1}
    settings["k"] = None if method.promise == "measured" else 4
    one = publish(example.table, example.schema, method, out=tmp_path / "one", **settings)
    two = publish(example.table, example.schema, method, out=tmp_path / "two", **settings)
    assert contents(one.folder) == contents(two.folder)


def test_the_manifest_holds_no_cell_value_and_no_clock(example, tmp_path) -> None:
    done = publish(example.table, example.schema, Mondrian(), (LDiversity(2),), out=tmp_path / "out", k=4)
    text = (done.folder / "release/manifest.json").read_text("utf-8")
    assert [secret for secret in (*example.secrets, "North", "South") if secret in text] == []
    assert [word for word in ("time", "seconds", "duration", "elapsed", "2026") if word in text] == []


def test_the_manifest_says_what_was_made_from_what(example, tmp_path) -> None:
    done = publish(
        example.table, example.schema, Mondrian(), (LDiversity(2),), out=tmp_path / "out", seed=9, k=4
    )
    found = json.loads((done.folder / "release/manifest.json").read_text("utf-8"))
    digest = lambda path: hashlib.sha256(path.read_bytes()).hexdigest()  # noqa: E731
    key = owner_key()
    assert found["input"]["keyed_sha256"] == key.digest(hashlib.sha256(example.table.read_bytes()).digest())
    assert found["input"]["key"] == key.fingerprint
    assert (found["input"]["rows"], found["output"]["rows"]) == (40, 40)
    assert found["output"]["sha256"] == digest(done.folder / "release/table.csv")
    taxonomy = found["schema"]["columns"]["city"]["taxonomy"]
    assert len(taxonomy["keyed_sha256"]) == 64 and "sha256" not in taxonomy
    assert found["how"]["seed"] == 9
    assert found["promise"]["verdicts"][0]["parameters"]["k"] == 4 and "k" not in found["how"]["method"]
    assert found["promise"]["type"] == "guaranteed"
    assert [v["guarantee"] for v in found["promise"]["verdicts"]] == ["k-anonymity", "l-diversity"]
    assert len(found["promise"]["readings_of_blanks"]) == 2
    assert found["metrics"]["ncp"]["overall"] == pytest.approx(done.release.loss, abs=0.0005)
    assert [door["column"] for door in found["side_doors"]] == [d.column for d in done.release.side_doors]
    assert found["libraries"]["numpy"]


def test_the_recipe_on_the_same_file_gives_the_same_folder(example, tmp_path) -> None:
    first = publish(example.table, example.schema, GFKMC(), (LDiversity(2),), out=tmp_path / "a", seed=5, k=4)
    again = apply_recipe(first.folder / "private/recipe.toml", example.table, tmp_path / "b")
    assert contents(first.folder) == contents(again.folder)


def test_the_recipe_holds_its_taxonomies(example, tmp_path) -> None:
    done = publish(example.table, example.schema, Mondrian(), out=tmp_path / "deep" / "er" / "out", k=4)
    recipe = tomllib.loads((done.folder / "private/recipe.toml").read_text("utf-8"))
    file = example.folder / "trees" / "city.csv"
    assert recipe["taxonomies"]["city"]["levels"] == file.read_text("utf-8")
    assert recipe["schema"]["columns"]["city"]["taxonomy"] == "city.csv"


def test_a_taxonomy_file_changed_after_the_release_does_not_change_what_the_recipe_does(
    example, tmp_path
) -> None:
    first = publish(example.table, example.schema, Mondrian(), out=tmp_path / "a", k=4)
    (example.folder / "trees" / "city.csv").write_text(
        "Aldenia;East;*\nBrumosa;West;*\nCantaro;East;*\nDorvelha;West;*\n", "utf-8"
    )
    again = apply_recipe(first.folder / "private/recipe.toml", example.table, tmp_path / "b")
    assert contents(first.folder) == contents(again.folder)


def test_a_release_that_was_moved_can_be_applied(example, tmp_path) -> None:
    first = publish(example.table, example.schema, Mondrian(), out=tmp_path / "a", k=4)
    (tmp_path / "far" / "away").mkdir(parents=True)
    moved = first.folder.rename(tmp_path / "far" / "away" / "a")
    again = apply_recipe(moved / "private/recipe.toml", example.table, tmp_path / "b")
    assert contents(moved) == contents(again.folder)


def test_a_release_below_a_linked_folder_can_be_applied(example, tmp_path) -> None:
    (tmp_path / "real" / "deeper").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real" / "deeper", target_is_directory=True)
    first = publish(example.table, example.schema, Mondrian(), out=tmp_path / "link" / "a", k=4)
    again = apply_recipe(tmp_path / "link" / "a" / "private/recipe.toml", example.table, tmp_path / "b")
    assert contents(first.folder) == contents(again.folder)


@pytest.mark.parametrize("separator", [None, "|"])
def test_a_taxonomy_of_any_form_comes_back_from_the_recipe_as_it_was(example, tmp_path, separator) -> None:
    if separator is None:
        tree = 'North = ["Aldenia", "Brumosa"]\nSouth = ["Cantaro", "Dorvelha"]\n'
        (example.folder / "trees" / "city.toml").write_text(tree, "utf-8")
        entry = 'taxonomy = "trees/city.toml"'
    else:
        levels = '"Aldenia"|"No ""r""; th"\nBrumosa|"No ""r""; th"\nCantaro|South\nDorvelha|South\n'
        (example.folder / "trees" / "city.csv").write_text(levels, "utf-8")
        entry = 'taxonomy = { builder = "levels", file = "trees/city.csv", separator = "|" }'
    text = example.schema.read_text("utf-8").replace('taxonomy = "trees/city.csv"', entry)
    example.schema.write_text(text, "utf-8")
    first = publish(example.table, example.schema, Mondrian(), out=tmp_path / "a", k=4)
    shutil.rmtree(example.folder / "trees")
    again = apply_recipe(first.folder / "private/recipe.toml", example.table, tmp_path / "b")
    assert contents(first.folder) == contents(again.folder)


def test_a_recipe_without_its_taxonomies_reads_the_files_it_names(example, tmp_path) -> None:
    done = publish(example.table, example.schema, Mondrian(), out=tmp_path / "a", k=4)
    path = done.folder / "private/recipe.toml"
    text = path.read_text("utf-8")
    path.write_text(text[: text.index("\n[taxonomies")] + text[text.index("\n[schema") :], "utf-8")
    with pytest.raises(TaxonomyError):
        apply_recipe(path, example.table, tmp_path / "b")
    shutil.copy(example.folder / "trees" / "city.csv", done.private / "city.csv")
    again = apply_recipe(path, example.table, tmp_path / "b")
    assert contents(again.folder)["table.csv"] == contents(done.folder)["table.csv"]


def test_an_output_folder_that_holds_the_input_or_the_schema_is_never_replaced(example, tmp_path) -> None:
    done = publish(
        example.table,
        example.schema,
        Mondrian(),
        out=tmp_path / "a",
        beside={"schema.toml": b"# mine\n"},
        k=4,
    )
    schema = done.folder / "schema.toml"
    text = example.schema.read_text("utf-8").replace('taxonomy = "trees/city.csv"', "")
    schema.write_text(text, "utf-8")
    with pytest.raises(OutputError, match=r"'schema\.toml'"):
        publish(example.table, schema, Mondrian(), out=done.folder, force=True, k=4)
    released = Schema.from_dict({"columns": {n: {"role": "quasi"} for n in ("age", "city", "diagnosis")}})
    with pytest.raises(OutputError, match=r"'table\.csv'"):
        publish(done.folder / "release/table.csv", released, Mondrian(), out=done.folder, force=True, k=4)
    assert schema.exists() and (done.folder / "release/table.csv").exists()


@pytest.mark.parametrize("separator", ["~", ":"])
def test_a_population_is_read_with_the_separator_of_the_schema(example, tmp_path, separator) -> None:
    from velado.release.guarantees import KMap

    for path in (example.table, example.schema):
        text = path.read_text("utf-8")
        head = f'[table]\nseparator = "{separator}"\n' if path == example.schema else ""
        path.write_text(head + (text if head else text.replace(",", separator)), "utf-8")
    done = publish(
        example.table,
        example.schema,
        Mondrian(),
        (KMap(4),),
        out=tmp_path / "a",
        population=example.table,
        k=4,
    )
    assert all(verdict.holds for verdict in done.release.verdicts)


def test_a_recipe_is_applied_to_another_file_and_checked_there(example, tmp_path) -> None:
    first = publish(example.table, example.schema, Mondrian(), out=tmp_path / "a", k=4)
    second = apply_recipe(
        first.folder / "private/recipe.toml",
        example.folder / "next.csv",
        tmp_path / "elsewhere" / "b",
        language="pt",
    )
    assert second.release.frame.height == 30
    assert second.release.verdicts[0].achieved >= 4
    recipe = read_recipe(second.folder / "private/recipe.toml")
    assert recipe.input.name == "next.csv"
    assert recipe.language == "pt"
    assert apply_recipe(second.folder / "private/recipe.toml", example.folder / "next.csv", tmp_path / "c")


def test_a_recipe_whose_promise_fails_on_another_file_writes_nothing(example, tmp_path) -> None:
    first = publish(example.table, example.schema, Mondrian(), (LDiversity(3),), out=tmp_path / "a", k=4)
    lines = (example.folder / "next.csv").read_text("utf-8").splitlines()
    same = [line.rsplit(",", 1)[0] + ",qx-asthma" for line in lines[1:]]
    (example.folder / "same.csv").write_text("\n".join([lines[0], *same]) + "\n", "utf-8")
    with pytest.raises(GuaranteeNotMet):
        apply_recipe(first.folder / "private/recipe.toml", example.folder / "same.csv", tmp_path / "b")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "in"]


def test_a_schema_made_in_memory_is_written_whole_into_the_recipe(example, tmp_path) -> None:
    frame = pl.read_csv(example.table, infer_schema=False)
    done = publish(frame, read_schema(example.schema), Mondrian(), out=tmp_path / "a", k=4)
    (example.folder / "trees" / "city.csv").unlink()
    again = apply_recipe(done.folder / "private/recipe.toml", frame, tmp_path / "b")
    assert contents(done.folder)["table.csv"] == contents(again.folder)["table.csv"]
    manifest = (done.folder / "release/manifest.json").read_text("utf-8")
    assert [secret for secret in (*example.secrets, "North") if secret in manifest] == []
    assert len(json.loads(manifest)["input"]["keyed_sha256"]) == 64


def test_a_taxonomy_written_into_the_schema_reaches_the_manifest_only_as_a_digest(example, tmp_path) -> None:
    inline = 'taxonomy = { builder = "tree", nodes = { North = ["Aldenia", "Brumosa"], South = ["Cantaro", "Dorvelha"] } }'
    text = example.schema.read_text("utf-8").replace('taxonomy = "trees/city.csv"', inline)
    example.schema.write_text(text, "utf-8")
    done = publish(example.table, example.schema, Mondrian(), out=tmp_path / "a", k=4)
    manifest = (done.folder / "release/manifest.json").read_text("utf-8")
    assert [secret for secret in (*example.secrets, "North") if secret in manifest] == []
    assert len(json.loads(manifest)["schema"]["columns"]["city"]["taxonomy"]["keyed_sha256"]) == 64
    assert apply_recipe(done.folder / "private/recipe.toml", example.table, tmp_path / "b")


def test_formula_like_cells_are_counted_when_kept_and_escaped_when_asked(example, tmp_path) -> None:
    text = example.table.read_text("utf-8").replace("qx-asthma", "=asthma()")
    example.table.write_text(text, "utf-8")
    kept = publish(example.table, example.schema, Mondrian(), k=4, out=tmp_path / "a")
    assert kept.facts.output.formulas == text.count("=asthma()") > 0
    safe = publish(example.table, example.schema, Mondrian(), k=4, out=tmp_path / "b", formulas="escape")
    assert safe.facts.output.formulas == 0
    assert b",'=asthma()" in contents(safe.folder)["table.csv"]


def test_a_recipe_object_needs_no_folder(example, tmp_path) -> None:
    done = publish(example.table, example.schema, Mondrian(), out=tmp_path / "a", k=4)
    recipe = replace(read_recipe(done.folder / "private/recipe.toml"), seed=8)
    (example.folder / "trees" / "city.csv").unlink()
    again = apply_recipe(recipe, example.table, tmp_path / "b")
    assert read_recipe(again.folder / "private/recipe.toml").seed == 8


def test_a_folder_that_exists_is_replaced_only_when_forced(example, tmp_path) -> None:
    first = publish(example.table, example.schema, Mondrian(), out=tmp_path / "out", k=4)
    before = contents(first.folder)
    with pytest.raises(OutputError):
        publish(example.table, example.schema, Mondrian(), out=tmp_path / "out", k=8)
    assert contents(first.folder) == before
    publish(example.table, example.schema, Mondrian(), out=tmp_path / "out", force=True, k=8)
    assert contents(first.folder) != before


def test_further_files_are_put_beside_but_never_over_the_release(example, tmp_path) -> None:
    done = publish(
        example.table,
        example.schema,
        Mondrian(),
        out=tmp_path / "a",
        beside={"schema.toml": b"# roles\n"},
        k=4,
    )
    assert contents(done.folder)["schema.toml"] == b"# roles\n"
    for name in ("recipe.toml", "../escaped.txt"):
        with pytest.raises(ParameterError):
            publish(example.table, example.schema, Mondrian(), out=tmp_path / "b", beside={name: b""}, k=4)
    assert not (tmp_path / "b").exists()


def test_progress_only_rises_and_ends_at_one(example, tmp_path) -> None:
    seen: list[float] = []
    publish(
        example.table,
        example.schema,
        Mondrian(),
        out=tmp_path / "a",
        progress=lambda share, doing="": seen.append(share),
        k=4,
    )
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_a_run_reads_judges_and_encodes_once_and_reruns_the_method_alone(example, tmp_path) -> None:
    calls: Counter[str] = Counter()

    def seen(frame, event, argument) -> None:
        if event == "call" and "velado" in frame.f_code.co_filename:
            calls[f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_qualname}"] += 1

    sys.setprofile(seen)
    try:
        done = publish(example.table, example.schema, Mondrian(), k=4, out=tmp_path / "out")
    finally:
        sys.setprofile(None)
    assert len(done.facts.what_ifs.runs) == 4
    assert calls["mondrian.Mondrian.anonymize"] == 1 + 4
    once = (
        "io.read_table",
        "prepare.prepare",
        "encode.encode",
        "find.find_side_doors",
        "gate.refuse_identifiers",
    )
    assert {name: calls[name] for name in once} == dict.fromkeys(once, 1)
    # Each column's texts are brought into their normal form once, however many parts of the run ask for it.
    assert 1 <= calls["normal._spellings"] <= len(done.facts.source.columns)
