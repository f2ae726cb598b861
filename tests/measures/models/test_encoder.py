"""The shared encoder: every published text becomes the numbers it states, releases and true rows alike."""

import numpy as np
import polars as pl
import pytest

from velado.data.schema import Column, Schema, TaxonomySpec
from velado.data.table import Table
from velado.errors import ParameterError, SchemaError, TableError
from velado.measures.models.encoder import EncoderSettings, fit_encoder
from velado.release.anonymize import anonymize
from velado.release.methods import METHODS
from velado.release.recoders import RECODERS

from ...covering import pairs_in

TREE = TaxonomySpec("levels", paths=(("a", "AB"), ("b", "AB"), ("c", "C"), ("d", "D")))


def people(count: int = 120, blanks: bool = False) -> Table:
    """Ages 20..59, a city from a taxonomy, a declared sex, a published score, and a target that follows the age."""
    rng = np.random.default_rng(3)
    age = rng.integers(20, 60, count)
    city = rng.choice(list("abc"), count)
    frame = pl.DataFrame(
        {
            "id": [f"p{n}" for n in range(count)],
            "age": [None if blanks and n % 10 == 0 else str(value) for n, value in enumerate(age)],
            "city": city,
            "sex": rng.choice(["F", "M"], count),
            "score": np.round(rng.normal(size=count), 2),
            "ill": np.where(age + rng.integers(-5, 5, count) > 40, "yes", "no"),
        }
    )
    schema = Schema(
        {
            "id": Column("id", "identifier", "text"),
            "age": Column("age", "quasi", "numeric", bounds=(0, 100)),
            "city": Column("city", "quasi", "categorical", taxonomy=TREE),
            "sex": Column("sex", "quasi", "categorical", values=("F", "M", "X")),
            "score": Column("score", "other", "numeric"),
            "ill": Column("ill", "sensitive", "categorical"),
        }
    )
    return Table.of(frame, schema)


def rows(**columns: object) -> pl.DataFrame:
    given = {"age": ["30"], "city": ["a"], "sex": ["F"], "score": ["0.5"], "ill": ["no"]}
    return pl.DataFrame({**given, **columns}, strict=False)


def of(encoder, frame: pl.DataFrame, prefix: str, **options) -> list[list[float]]:
    matrix = encoder.features(frame, **options)
    at = [n for n, name in enumerate(encoder.names) if name.startswith(prefix)]
    return np.round(matrix[:, at].astype(float), 4).tolist()


def test_an_interval_becomes_its_midpoint_or_its_bounds() -> None:
    middle = fit_encoder(people(), "ill")
    bounds = fit_encoder(people(), "ill", EncoderSettings(interval="bounds"))
    for text, value, ends in [("[20..30]", 25, [20, 30]), ("[20..30)", 25, [20, 30]), ("44", 44, [44, 44])]:
        assert of(middle, rows(age=[text]), "age") == [[value]]
        assert of(bounds, rows(age=[text]), "age") == [ends]


def test_a_number_no_training_row_has_and_a_mean_keep_their_place() -> None:
    assert of(fit_encoder(people(), "ill"), rows(age=["33.25"]), "age") == [[33.25]]
    assert of(fit_encoder(people(), "ill"), rows(age=["99"]), "age") == [[99]]


def test_a_suppressed_cell_is_the_whole_domain() -> None:
    table = people()
    encoder = fit_encoder(table, "ill", EncoderSettings(interval="bounds"))
    ((low, high),) = of(encoder, rows(age=["*"]), "age")
    assert high - low == 100
    shares = fit_encoder(table, "ill")
    assert of(shares, rows(city=["*"]), "city") == [[0.25] * 4]
    assert of(shares, rows(city=[None]), "city") == [[0.25] * 4]


@pytest.mark.parametrize(
    ("style", "label", "leaf"),
    [
        ("shares", [[0.5, 0.5, 0, 0]], [[0, 0, 1, 0]]),
        ("multi-hot", [[1, 1, 0, 0]], [[0, 0, 1, 0]]),
        ("ordinal", [[0.5]], [[2]]),
    ],
)
def test_a_taxonomy_label_is_its_leaves_or_its_place(style: str, label: list, leaf: list) -> None:
    encoder = fit_encoder(people(), "ill", EncoderSettings(taxonomy=style))
    assert of(encoder, rows(city=["AB"]), "city") == label
    assert of(encoder, rows(city=["c"]), "city") == leaf


def test_ordinal_labels_have_bounds_too_and_wide_trees_are_ordinal() -> None:
    bounds = fit_encoder(people(), "ill", EncoderSettings("bounds", "ordinal"))
    assert of(bounds, rows(city=["AB"]), "city") == [[0, 1]]
    narrow = fit_encoder(people(), "ill", EncoderSettings(widest=3))
    assert of(narrow, rows(city=["AB"]), "city") == [[0.5]]
    assert len(of(narrow, rows(), "sex")[0]) == 3


def test_public_leaves_and_declared_values_have_a_place_though_no_row_has_them() -> None:
    encoder = fit_encoder(people(), "ill")
    assert of(encoder, rows(city=["d"]), "city") == [[0, 0, 0, 1]]
    assert of(encoder, rows(sex=["X"]), "sex") == [[0, 0, 1]]


def test_an_unknown_category_is_refused_in_a_release_and_says_nothing_in_a_true_row() -> None:
    encoder = fit_encoder(people(), "ill")
    with pytest.raises(TableError) as caught:
        encoder.features(rows(sex=["secretvalue"]))
    assert "secretvalue" not in str(caught.value)
    third = round(1 / 3, 4)
    assert of(encoder, rows(sex=["secretvalue"]), "sex", unknown="whole") == [[third] * 3]


def test_blanks_are_a_value_of_their_own_where_the_training_part_has_them() -> None:
    encoder = fit_encoder(people(blanks=True), "ill")
    blank, known = of(
        encoder,
        rows(age=[None, "30"], city=["a", "a"], sex=["F", "F"], score=["0", "0"], ill=["no", "no"]),
        "age",
    )
    assert blank[1] == 1 and known == [30, 0]


def test_a_drawn_lesson_is_one_value_out_of_each_range_and_every_value_is_as_likely() -> None:
    count = 4000
    release = pl.concat([rows(age=["[20..30]"], city=["AB"], sex=["*"])] * count)
    encoder = fit_encoder(people(), "ill", EncoderSettings(taught_with="drawn"))
    lessons = encoder.lessons(release, np.random.default_rng(0))
    named = dict(zip(encoder.names, lessons.T, strict=True))
    age = named["age:middle"]
    assert age.min() >= 20 and age.max() <= 30 and abs(age.mean() - 25) < 0.2 and abs(age.std() - 2.89) < 0.15
    city = np.stack([named[f"city#{leaf}"] for leaf in range(4)], axis=1)
    assert set(np.unique(city)) == {0.0, 1.0} and np.array_equal(city.sum(axis=1), np.ones(count))
    assert abs(city[:, 0].mean() - 0.5) < 0.04 and city[:, 2:].sum() == 0
    assert [round(float(named[f"sex#{leaf}"].mean()), 1) for leaf in range(3)] == [0.3, 0.3, 0.3]
    # Columns are drawn by themselves: what was drawn for the age says nothing about the city.
    assert abs(np.corrcoef(age, city[:, 0])[0, 1]) < 0.06
    assert (named["score:middle"] == 0.5).all()


@pytest.mark.parametrize("style", ["shares", "multi-hot", "ordinal"])
@pytest.mark.parametrize("interval", ["midpoint", "bounds"])
@pytest.mark.parametrize("blanks", [False, True])
def test_drawn_true_rows_are_those_rows(style: str, interval: str, blanks: bool) -> None:
    table = people(blanks=blanks)
    encoder = fit_encoder(table, "ill", EncoderSettings(interval, style, taught_with="drawn"))
    lessons = encoder.lessons(table.frame, np.random.default_rng(0))
    assert np.array_equal(lessons, encoder.features(table.frame))


def test_lessons_are_the_ranges_as_they_stand_unless_asked_for() -> None:
    encoder = fit_encoder(people(), "ill")
    release = rows(age=["[20..30]"], city=["AB"])
    lessons = encoder.lessons(release, np.random.default_rng(0))
    assert np.array_equal(lessons, encoder.features(release))
    with pytest.raises(TableError, match="age"):
        fit_encoder(people(), "ill", EncoderSettings(taught_with="drawn")).lessons(
            release.drop("age"), np.random.default_rng(0)
        )


def test_names_and_repr_hold_no_cell_value() -> None:
    encoder = fit_encoder(people(), "ill")
    assert all("AB" not in name for name in encoder.names)
    assert repr(encoder) == f"Encoder(4 columns, {len(encoder.names)} features, 2 classes)"


@pytest.mark.parametrize("kind", METHODS, ids=lambda kind: kind.name)
def test_a_release_of_every_method_can_be_read(kind) -> None:
    table = people()
    release = anonymize(table, table.schema, kind())
    encoder = fit_encoder(table, "ill")
    matrix = encoder.features(release.aligned)
    assert matrix.shape == (release.aligned.height, len(encoder.names))
    assert np.isfinite(matrix).all()
    assert encoder.labels(release.aligned).size == release.aligned.height


@pytest.mark.parametrize(
    ("recoder", "interval"),
    pairs_in(2, [r.name for r in RECODERS], ["midpoint", "bounds"], lambda *two: "-".join(two)),
)
def test_a_release_by_every_recoder_can_be_read(recoder: str, interval: str) -> None:
    from velado.release.methods import MDAV, Mondrian
    from velado.settings import reference

    table = people()
    for kind in (Mondrian, MDAV):
        if recoder in next(row.limits for row in reference(kind) if row.name == "recoder").removeprefix(
            "one of "
        ).split(", "):
            frame = anonymize(table, table.schema, kind(recoder=recoder), k=4).aligned
            assert np.isfinite(fit_encoder(table, "ill", EncoderSettings(interval)).features(frame)).all()


def test_untouched_rows_encode_the_same_as_a_release_that_changed_nothing() -> None:
    table = people()
    copies = pl.concat([table.frame] * 5)
    own = pl.Series(
        "id", [f"p{i}" for i in range(copies.height)]
    )  # each row is a person, so no score links any
    twice = table.with_frame(copies.with_columns(own))
    from velado.release.methods import Mondrian

    release = anonymize(twice, twice.schema, Mondrian(), per="row", k=5)
    encoder = fit_encoder(twice, "ill")
    same = release.loss == 0
    assert same == bool((encoder.features(release.aligned) == encoder.features(twice.frame)).all())


@pytest.mark.parametrize(
    ("target", "error", "words"),
    [
        ("il", SchemaError, "Did you mean 'ill'"),
        ("city", SchemaError, "is a quasi-identifier"),
        ("id", SchemaError, "is not published"),
        ("score", ParameterError, "distinct values"),
    ],
)
def test_a_target_that_cannot_be_learned_is_refused(target: str, error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        fit_encoder(people(), target)


def test_a_constant_target_is_refused() -> None:
    table = people()
    with pytest.raises(TableError, match="has 1 class"):
        fit_encoder(table.with_frame(table.frame.with_columns(ill=pl.lit("no"))), "ill")


def test_features_are_those_named_and_nothing_that_is_not_published() -> None:
    encoder = fit_encoder(people(), "ill", features=["score", "age"])
    assert [column.name for column in encoder.columns] == ["score", "age"]
    with pytest.raises(SchemaError, match="'id' cannot be a feature"):
        fit_encoder(people(), "ill", features=["id"])
    with pytest.raises(TableError, match="lack columns the model was trained on: age"):
        encoder.features(rows().drop("age"))


@pytest.mark.parametrize("taxonomy", ["shares", "multi-hot", "ordinal"])
@pytest.mark.parametrize("interval", ["midpoint", "bounds"])
def test_ranges_bring_every_feature_to_one_size_whatever_a_release_says(taxonomy: str, interval: str) -> None:
    table = people(blanks=True)
    encoder = fit_encoder(table, "ill", EncoderSettings(interval=interval, taxonomy=taxonomy))
    ranges = encoder.ranges
    assert ranges.low.size == ranges.reach.size == len(encoder.names) and ranges.columns == 4
    true = ranges.unit(encoder.features(table.frame))
    assert (
        true.min() >= -0.5 and true.max() <= 1.5
    )  # bounds may lie to one side of the values, by half at most
    assert (true.max(axis=0) - true.min(axis=0)).max() <= 1 + 1e-6
    wide = encoder.features(rows(age=["[0..100]"], city=["*"], sex=["*"]))
    assert np.abs(ranges.unit(wide)).max() <= 1.5
    age = [at for at, name in enumerate(encoder.names) if name.startswith("age") and "blank" not in name]
    assert np.allclose(ranges.reach[age], 100)  # the declared bounds, not what these rows happen to span
