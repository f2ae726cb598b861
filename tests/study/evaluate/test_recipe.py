"""The study file: five sections, every mistake named with its place and the nearest right word."""

import polars as pl
import pytest

from velado.errors import MissingExtra, ParameterError, SchemaError, TableError
from velado.measures.models import _model as registry
from velado.study.evaluate.load import load
from velado.study.evaluate.study_settings import StudyRecipe


def test_defaults_are_written_out_and_read_back(example) -> None:
    recipe = load(example.study).recipe
    document = recipe.to_dict()
    assert set(document) == {"data", "anonymization", "models", "metrics", "analyses"}
    assert document["analyses"]["protocols"] == ["split-first"]
    assert StudyRecipe.from_dict(document) == recipe


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[models]", "[modles]", "Did you mean 'models'"),
        ("target =", "traget =", "Did you mean 'target'"),
        ("seeds =", "seed =", "Did you mean 'seeds'"),
        ("use =", "used =", "Did you mean 'use'"),
        ('"mondrian", ', '"mondrain", ', "Did you mean 'mondrian'"),
        ('"decision-tree"', '"decisiontree"', "Did you mean 'decision-tree'"),
        ('"mondrian", ', '{ name = "mondrian", cutt = "strict" }, ', "Did you mean 'cut'"),
        ('"mondrian", ', '{ name = "mondrian", k = 5 }, ', "k is an axis of the grid"),
        ('"mondrian", ', '"progressive", ', "different methods"),
        ('"decision-tree"', '{ name = "decision-tree", leaf = 0 }', "at least 1"),
        ("k = [3, 6]", "k = [1, 6]", "at least 2"),
        ("k = [3, 6]", 'k = "3"', "cannot hold '3'"),
        ("seeds = [0, 1]", "seeds = [0, 0]", "different whole numbers"),
        (
            "seeds = [0, 1]",
            "seeds = [0]\nguarantees = [{ name = 'l-diversty' }]",
            "Did you mean 'l-diversity'",
        ),
        ("[models]", "[metrics]\nquality = ['acuracy']\n[models]", "Did you mean 'accuracy'"),
        ("[models]", "[metrics]\nrisk = 'linkage'\n[models]", "Did you mean 'record_linkage'"),
        ("[models]", "[analyses]\nprotocols = ['paper-gfk']\n[models]", "Did you mean 'paper-gfkmc'"),
        ("[models]", "[analyses]\ntest_share = 1.0\n[models]", "above 0 and below 1"),
        ("[models]", "[analyses]\nfolds = 1\n[models]", "at least 2"),
        ("[models]", "[models]\ninterval = 'middle'", "midpoint, bounds"),
        ("[models]", "[models]\ntaxonomies = 'shares'", "Did you mean 'taxonomy'"),
        ("[models]", "[metrics]\nqualities = ['auc']\n[models]", "Did you mean 'quality'"),
        ("[models]", "[analyses]\nprotocol = ['split-first']\n[models]", "Did you mean 'protocols'"),
        ('"decision-tree"', '{ name = "decision-tree", leef = 3 }', "Did you mean 'leaf'"),
        (
            "seeds = [0, 1]",
            "seeds = [0]\nguarantees = [{ name = 'l-diversity', ll = 2 }]",
            "Did you mean 'l'",
        ),
        ("seeds = [0, 1]", "seeds = [0]\nguarantees = [[], []]", "listed twice"),
        ('"mondrian", ', '"mondrian", { name = "mondrian", cut = "strict" }, ', "different methods"),
        ("seeds = [0, 1]", "seeds = [4294967296]", "4294967295 or less"),
        ("[data]\n", "federated = 3\n[data]\n", "It takes a table"),
        ("k = [3, 6]", "k = [9223372036854775808]", "'k' in .* go up to 9007199254740991"),
        *(
            (
                "seeds = [0, 1]",
                f"seeds = [0]\nguarantees = [{{ name = 'recursive-l-diversity', c = {number}, l = 2 }}]",
                "'c' in .* finite number",
            )
            for number in ("nan", "inf")
        ),
        (
            '"decision-tree"',
            '{ name = "decision-tree", leaf = 9223372036854775808 }',
            "'leaf' in .* go up to 9007199254740991",
        ),
        ("[models]", "[metrics]\nquality = ['acc']\n[models]", "Did you mean 'accuracy'"),
        ("[models]", "[analyses]\nfolds = 2.0\n[models]", "'folds' in .* takes a whole number"),
        ('positive = "yes"', "positive = 1", "'positive' in .* takes a text.*quotes"),
        (
            "seeds = [0, 1]",
            "seeds = [0]\nguarantees = [[{ name = 'l-diversity' }, { name = 'l-diversity', l = 2 }]]",
            "the same one twice",
        ),
    ],
)
def test_a_mistake_is_named_with_the_nearest_right_word(example, old: str, new: str, words: str) -> None:
    with pytest.raises((SchemaError, ParameterError), match=words):
        load(example.change((old, new)))


@pytest.mark.parametrize("section", ["data", "anonymization", "models"])
def test_a_phase_that_is_missing_is_named(example, section: str) -> None:
    document = load(example.study).recipe.to_dict()
    del document[section]
    with pytest.raises(SchemaError, match=rf"'{section}' in the study is missing"):
        StudyRecipe.from_dict(document)


@pytest.mark.parametrize(
    ("old", "new", "error", "words"),
    [
        ('target = "ill"', 'target = "ills"', SchemaError, "Did you mean 'ill'"),
        ('target = "ill"\npositive = "yes"', 'target = "city"', SchemaError, "quasi-identifier"),
        ('positive = "yes"', 'positive = "maybe"', ParameterError, "no class of the target"),
        ('positive = "yes"', 'features = ["name"]', SchemaError, "'name' cannot be a feature"),
        ('table = "people.csv"', 'table = "persons.csv"', TableError, "no file 'persons.csv'"),
        ("seeds = [0, 1]", "per = 'person'", ParameterError, "no person column"),
        ('target = "ill"\npositive = "yes"', 'target = "name"', SchemaError, "is not published"),
        ('target = "ill"\npositive = "yes"', 'target = "dose"', ParameterError, "at most 50 classes"),
        ("seeds = [0, 1]", "guarantees = [{ name = 'delta-presence' }]", ParameterError, "no population"),
    ],
)
def test_what_does_not_fit_the_table_is_refused_before_anything_runs(
    example, old: str, new: str, error: type, words: str
) -> None:
    with pytest.raises(error, match=words):
        load(example.change((old, new)))


def test_a_constant_target_is_refused(example) -> None:
    path = example.folder / "people.csv"
    path.write_text(path.read_text("utf-8").replace(",no\n", ",yes\n"), "utf-8")
    with pytest.raises(TableError, match="has 1 class"):
        load(example.study)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda table: table.head(0), TableError, "no rows"),
        (lambda table: table.with_columns(ill=pl.lit(None, dtype=pl.String)), TableError, "has 0 class"),
        (lambda table: table.with_columns(sex=pl.lit("F")), TableError, "'sex' has the same value"),
        (
            lambda table: table.head(30).with_columns(ill=pl.col("name")),
            TableError,
            "No class has two members",
        ),
    ],
)
def test_a_table_that_nothing_can_be_learned_from_is_refused_before_anything_runs(
    example, change, error: type, words: str
) -> None:
    path = example.folder / "people.csv"
    change(pl.read_csv(path)).write_csv(path)
    with pytest.raises(error, match=words):
        load(example.change(('positive = "yes"\n', "")))


@pytest.mark.parametrize(
    ("role", "lines", "words"),
    [
        ("quasi", "", "no published quasi-identifier"),
        ("sensitive", "\nguarantees = [{ name = 'l-diversity' }]", "no sensitive column"),
    ],
)
def test_a_schema_that_leaves_nothing_to_promise_is_refused_before_anything_runs(
    example, role: str, lines: str, words: str
) -> None:
    path = example.folder / "schema.toml"
    path.write_text(path.read_text("utf-8").replace(f'"{role}"', '"other"'), "utf-8")
    with pytest.raises((SchemaError, ParameterError), match=words):
        load(example.change(("seeds = [0, 1]", f"seeds = [0]{lines}")))


def test_files_are_looked_for_beside_the_study_wherever_it_is_run(example, tmp_path, monkeypatch) -> None:
    inside = example.folder / "data"
    inside.mkdir()
    (example.folder / "people.csv").rename(inside / "people.csv")
    monkeypatch.chdir(tmp_path)
    study = example.change(('"people.csv"', '"data/people.csv"'))
    assert load(study).table.rows == load(study.relative_to(tmp_path)).table.rows == 240


def test_all_six_metrics_are_shown_unless_the_study_says_otherwise(example) -> None:
    shown = load(example.study).recipe.metrics.quality
    assert shown == ("accuracy", "precision", "recall", "f1", "auc", "log_loss")


def test_a_model_whose_library_is_missing_is_refused_before_anything_runs(example, monkeypatch) -> None:
    monkeypatch.setattr(registry, "find_spec", lambda name: None if name == "xgboost" else True)
    with pytest.raises(MissingExtra, match="xgboost"):
        load(example.change(('"decision-tree"', '"xgboost"')))


def test_rows_without_a_target_are_counted_and_left_out(example) -> None:
    path = example.folder / "people.csv"
    lines = path.read_text("utf-8").splitlines()
    lines[5] = lines[5].rsplit(",", 1)[0] + ","
    path.write_text("\n".join(lines) + "\n", "utf-8")
    material = load(example.study)
    assert (material.dropped, material.table.rows) == (1, 239)


def test_not_a_number_is_no_class(example) -> None:
    schema = example.folder / "schema.toml"
    schema.write_text("[table]\nmissing_values = ['?']\n" + schema.read_text("utf-8"), "utf-8")
    table = pl.read_csv(example.folder / "people.csv").with_columns(
        ill=pl.when(pl.int_range(pl.len()) < 9)
        .then(float("nan"))
        .otherwise((pl.col("ill") == "yes").cast(float))
    )
    table.write_parquet(example.folder / "people.parquet")
    study = example.change(('"people.csv"', '"people.parquet"'), ('positive = "yes"\n', ""))
    material = load(study)
    assert (material.dropped, material.table.rows, len(material.classes)) == (9, 231, 2)


def test_the_classes_never_asked_about_are_those_of_every_seed(example) -> None:
    # Everybody has two rows; one has a class of their own in the second, as nobody else does.
    schema = example.folder / "schema.toml"
    text = schema.read_text("utf-8")
    schema.write_text(text.replace("[columns.name]\n", "[columns.name]\nperson = true\n"), "utf-8")
    path = example.folder / "people.csv"
    table = pl.read_csv(path)
    second = table.with_columns(
        ill=pl.when(pl.int_range(pl.len()) == 11).then(pl.lit("unsure")).otherwise(pl.col("ill"))
    )
    pl.concat([table, second]).write_csv(path)
    for seed in range(6):
        material = load(example.change(("seeds = [0, 1]", f"seeds = [{seed}]")))
        split = material.split(seed)
        assert material.alone == split.alone == 1
        assert set(material.labels[split.test]) <= set(material.labels[split.train])


def test_a_folder_in_place_of_the_study_or_the_table_is_called_by_its_name(example, monkeypatch) -> None:
    monkeypatch.chdir(example.folder)
    with pytest.raises(SchemaError, match="'in' cannot be read"):
        load(".")
    example.change(('"people.csv"', '"."'))
    with pytest.raises(TableError, match="'in'"):
        load("study.toml")


def test_a_class_that_some_seed_asks_about_is_not_called_never_asked(example) -> None:
    # Two people have class c; under some seeds both are needed to teach the other class that each has.
    schema = example.folder / "schema.toml"
    text = schema.read_text("utf-8")
    schema.write_text(text.replace("[columns.name]\n", "[columns.name]\nperson = true\n"), "utf-8")
    path = example.folder / "people.csv"
    table = pl.read_csv(path)
    classes = pl.Series("ill", ["a", "a", "b", "b", *table.get_column("ill").to_list()[4:]])
    extra = table[[0, 2]].with_columns(ill=pl.lit("c"))
    pl.concat([table.with_columns(classes), extra]).write_csv(path)
    material = load(example.study)
    by_count = {material.split(seed).alone: seed for seed in range(40)}
    assert set(by_count) == {0, 1}
    for seeds, alone in (([by_count[1]], 1), ([by_count[1], by_count[0]], 0)):
        assert load(example.change(("seeds = [0, 1]", f"seeds = {seeds}"))).alone == alone
