"""Interval ends rounded to a declared step: multiples, still covering, charged for what they state, read back alike."""

from __future__ import annotations

import csv
import re
import tomllib
from collections import Counter
from dataclasses import replace
from decimal import Decimal

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from velado.apps.cli import run
from velado.data.encode import encode
from velado.data.encoded import Rounding, with_rounding
from velado.data.published_column import read_texts
from velado.data.schema import Column, Schema
from velado.data.table import Table
from velado.errors import ParameterError, SchemaError, VeladoError
from velado.measures.measured import measure, measure_files
from velado.release.anonymize import anonymize
from velado.release.guarantees import KAnonymity, KMap, LDiversity
from velado.release.joined import anonymize_joined
from velado.release.methods import (
    DAS,
    GFKMC,
    MDAV,
    METHODS,
    FixedInterval,
    FullDomain,
    KMember,
    Mondrian,
    Progressive,
)
from velado.release.release import Release
from velado.release.verify import verify
from velado.study.run import publish
from velado.testing.contracts import check_cover, check_population, check_promise

from ..covering import pairs_in
from ..tables import table

INTERVAL = re.compile(r"\[(-?[\d.]+)\.\.(-?[\d.]+)\]")


def ends(text: str, decimal: str = ".") -> tuple[Decimal, Decimal]:
    """The two numbers of a published interval, exactly as they are written."""
    found = INTERVAL.fullmatch(text.replace(decimal, "."))
    assert found is not None, "what is published is no interval"
    return Decimal(found[1]), Decimal(found[2])


def people(rows: int = 60, blanks: bool = False, seed: int = 3, **more) -> Table:
    random = np.random.default_rng(seed)
    age: list = random.integers(18, 70, rows).tolist()
    if blanks:
        age[::9] = [None] * len(age[::9])
    return table(
        {
            "age": {"role": "quasi", "kind": "numeric", "round": 5, **more},
            "weight": {"role": "quasi", "kind": "numeric"},
            "city": {"role": "quasi"},
            "illness": {"role": "sensitive"},
        },
        {
            "age": age,
            "weight": random.integers(45, 110, rows).tolist(),
            "city": [f"place {n}" for n in random.integers(0, 3, rows)],
            "illness": [f"ill {n}" for n in random.integers(0, 4, rows)],
        },
    )


def check_ends(release: Release, name: str, step: str) -> None:
    """Every published interval end of the column is a multiple, and every interval holds its row's true value."""
    truth = release.table.frame.get_column(name).filter(pl.Series(release.kept)).to_list()
    for text, value in zip(release.aligned.get_column(name).cast(pl.String).to_list(), truth, strict=True):
        if text is None:
            assert value is None
        elif text != "*":
            low, high = ends(text)
            assert low % Decimal(step) == 0 and high % Decimal(step) == 0 and low < high
            assert low <= Decimal(value) <= high


# the grid itself
@given(
    st.lists(st.decimals(-5000, 5000, places=3), min_size=2, max_size=2),
    st.sampled_from(["5", "10", "1", "0.5", "0.1", "0.25", "0.3", "0.001", "7", "1000"]),
)
def test_an_interval_goes_outwards_to_the_nearest_multiples_without_dust(numbers, step) -> None:
    low, high = sorted(numbers)
    grid = Rounding(float(step))
    found = [float(end[0]) for end in grid.outwards(np.array([float(low)]), np.array([float(high)]))]
    lower, upper = (Decimal(repr(end)) for end in found)
    assert lower % Decimal(step) == 0 and upper % Decimal(step) == 0
    assert lower <= low and high <= upper and lower < upper
    if low != high or low % Decimal(step):
        assert low - lower < Decimal(step) and upper - high < Decimal(step)
    else:
        assert upper - lower == Decimal(step)


@given(st.lists(st.integers(0, 60), min_size=3, max_size=3), st.sampled_from([2.0, 5.0, 7.0, 100.0]))
def test_a_wider_group_never_gets_a_narrower_interval_and_public_bounds_are_never_passed(
    values, step
) -> None:
    grid = Rounding(step, (-1.0, 61.0))
    low, middle, high = sorted(float(value) for value in values)
    widths = []
    for pair in ((middle, middle), (low, middle), (low, high)):
        lower, upper = (float(end[0]) for end in grid.outwards(*(np.array([end]) for end in pair)))
        assert -1 <= lower <= pair[0] and pair[1] <= upper <= 61 and lower < upper
        widths.append(upper - lower)
    assert widths == sorted(widths)


@given(st.integers(-3000, 3000), st.sampled_from([0.1, 0.3, 0.7, 0.01, 5.0]), st.sampled_from([-1, 1]))
def test_a_number_next_to_a_multiple_is_covered_though_dividing_it_gives_the_multiple(
    steps, step, side
) -> None:
    multiple = float(Decimal(repr(step)) * steps)
    near = np.array([np.nextafter(multiple, side * np.inf)])
    lower, upper = Rounding(step).outwards(near, near)
    assert lower[0] <= near[0] <= upper[0]
    assert multiple in (lower[0], upper[0])


# every method
@pytest.mark.parametrize(
    ("method", "blanks"),
    pairs_in(2, [m for m in METHODS if m is not DAS], [False, True], lambda m, b: f"{m.name}-{b}"),
)
def test_every_method_that_publishes_covers_rounds_and_charges_for_what_it_states(method, blanks) -> None:
    source = people(blanks=blanks)
    release = anonymize(source, source.schema, method(), k=None if method is FixedInterval else 3)
    check_ends(release, "age", "5")
    check_promise(release)
    check_cover(release)
    in_process, on_files = measure(release), measure_files(source, release.aligned, kept=release.kept)
    assert in_process.ncp is not None and on_files.ncp is not None
    for name, loss in release.losses.items():
        assert in_process.ncp.by_column[name] == pytest.approx(loss, abs=1e-12)
        assert on_files.ncp.by_column[name] == pytest.approx(loss, abs=1e-12)
    assert in_process.false_cells is not None and in_process.false_cells.cells == 0


def test_with_public_bounds_whoever_has_the_schema_without_the_step_measures_the_same() -> None:
    source = people(bounds=[0, 100])
    release = anonymize(source, source.schema, Mondrian(), k=3)
    plain = Table.of(source.frame, with_columns(source.schema, age={"round": None}))
    assert measure_files(plain, release.aligned).ncp == measure_files(source, release.aligned).ncp


def test_somebody_elses_tight_release_is_charged_for_its_own_texts_whatever_the_schema_rounds_to() -> None:
    source = people(bounds=[0, 100])
    plain = with_columns(source.schema, age={"round": None})
    release = anonymize(source.frame, plain, Mondrian(), k=3)
    measured = measure_files(source, release.aligned)
    assert measured.ncp is not None and measured.ncp.by_column == pytest.approx(release.losses)


def test_the_loss_does_not_give_the_observed_range_away() -> None:
    """Published widths over the loss give the width of the domain: that is a multiple of the step, too."""
    source = people(seed=4)
    release = anonymize(source, source.schema, Mondrian(), k=3)
    widths = [float(high - low) for low, high in map(ends, release.aligned["age"])]
    domain = np.mean(widths) / release.losses["age"]
    ages = source.frame["age"].cast(pl.Int64)
    assert ages.max() - ages.min() != pytest.approx(domain)
    assert domain == pytest.approx(5 * np.ceil(ages.max() / 5) - 5 * np.floor(ages.min() / 5))


def with_columns(schema: Schema, **changes) -> Schema:
    columns = {**schema.columns}
    for name, change in changes.items():
        columns[name] = replace(columns[name], **change)
    return schema.with_columns(columns.values())


def test_the_loss_is_the_stated_width_over_the_width_of_the_domain() -> None:
    source = table(
        {"age": {"role": "quasi", "kind": "numeric", "round": 5, "bounds": [0, 100]}},
        {"age": [21, 22, 22, 21, 47, 48, 58, 61]},
    )
    release = anonymize(source, source.schema, Mondrian(), k=4)
    assert sorted(set(release.aligned["age"])) == ["[20..25]", "[45..65]"]
    assert release.losses["age"] == pytest.approx((0.05 + 0.20) / 2)


def test_a_group_of_one_value_is_an_interval_too() -> None:
    source = table(
        {"age": {"role": "quasi", "kind": "numeric", "round": 5}}, {"age": [22, 22, 25, 25, 40, 40, 40]}
    )
    release = anonymize(source, source.schema, Mondrian(), k=2)
    assert dict(Counter(release.aligned["age"])) == {"[20..25]": 2, "[25..30]": 2, "[40..45]": 3}


def test_groups_that_are_published_alike_are_one_group_and_one_text() -> None:
    source = table(
        {"age": {"role": "quasi", "kind": "numeric", "round": 10}}, {"age": [21, 21, 24, 24, 27, 27, 45, 45]}
    )
    release = anonymize(source, source.schema, Progressive(), k=2)
    assert dict(Counter(release.aligned["age"])) == {"[20..30]": 6, "[40..50]": 2}
    assert release.checked.partition.count == 2
    assert len(release.recoded.columns[0].values) == 2


def test_tenths_negative_numbers_and_decimal_commas_are_written_as_the_column_writes_them() -> None:
    texts = ["-0,35", "-0,31", "0,3", "0,3", "0,7", "0,71", "1,05", "1,1"]
    source = table({"dose": {"role": "quasi", "kind": "numeric", "round": 0.1}}, {"dose": texts}, decimal=",")
    release = anonymize(source, source.schema, Mondrian(), k=2)
    assert sorted(set(release.aligned["dose"])) == ["[-0,4..-0,3]", "[0,3..0,4]", "[0,7..0,8]", "[1..1,1]"]
    read = read_texts(encode(source).columns[0], release.aligned["dose"], ("",))
    assert read.stated[read.codes].all()
    assert verify(release.aligned, source.schema, [KAnonymity(2)]).holds
    measured = measure_files(source, release.aligned)
    assert measured.ncp is not None and measured.ncp.overall == pytest.approx(release.loss)


def test_a_fraction_of_a_step_is_kept_in_a_column_of_whole_numbers() -> None:
    source = table({"age": {"role": "quasi", "kind": "numeric", "round": 2.5}}, {"age": [21, 22, 31, 32]})
    release = anonymize(source, source.schema, Mondrian(), k=2)
    assert sorted(set(release.aligned["age"])) == ["[20..22.5]", "[30..32.5]"]


def test_an_end_never_lies_beyond_the_public_bounds() -> None:
    source = table(
        {"age": {"role": "quasi", "kind": "numeric", "round": 10, "bounds": [18, 65]}},
        {"age": [18, 19, 20, 20, 64, 65, 65, 65]},
    )
    release = anonymize(source, source.schema, Mondrian(), k=2)
    shown = {ends(text) for text in release.aligned["age"]}
    assert shown == {(18, 20), (60, 65)}
    assert release.losses["age"] == pytest.approx((2 + 5) / 2 / 47)


def test_blanks_alone_stay_blank_and_blanks_with_numbers_are_a_star() -> None:
    column = encode(people(blanks=True)).columns[0]
    gone = column.missing
    low, high = np.array([gone, 0, 0]), np.array([gone, gone, gone - 1])
    assert column.label(low, high)[:2] == [None, "*"]
    assert column.loss(low, high).tolist() == [0.0, 1.0, 1.0]
    first, last = column.stated(low, high)
    assert (first.tolist(), last.tolist()) == ([gone, 0, 0], [gone, gone, gone - 1])


@given(st.integers(0, 2**32 - 1), st.sampled_from([1.0, 3.0, 5.0, 20.0]), st.booleans())
@settings(max_examples=25)
def test_any_table_keeps_its_promises_covers_and_losses_when_rounded(seed, step, blanks) -> None:
    source = people(40, blanks, seed)
    schema = with_columns(source.schema, age={"round": step}, weight={"round": 10.0})
    release = anonymize(source.frame, schema, Mondrian(), [LDiversity(2)], k=3)
    check_ends(release, "age", str(step))
    check_ends(release, "weight", "10")
    check_promise(release)
    check_cover(release)
    scores = measure_files(release.table, release.aligned)
    assert scores.ncp is not None and scores.ncp.overall == pytest.approx(release.loss, abs=1e-12)


# a population, several tables
@pytest.mark.parametrize("method", [Mondrian(), FullDomain(), Progressive()], ids=lambda m: m.name)
def test_people_of_the_population_inside_the_rounded_interval_count_as_matches(method) -> None:
    source = table(
        {"age": {"role": "quasi", "kind": "numeric", "round": 10}}, {"age": [22, 23, 24, 24, 45, 46, 47, 47]}
    )
    ages = [*range(20, 31), *range(40, 51)]
    population = pl.DataFrame({"age": [str(age) for age in ages]})
    release = anonymize(source, source.schema, method, [KMap(2)], k=2, population=population)
    check_population(release, population)
    checked = release.checked
    assert checked.counts.population is not None
    matches = checked.counts.population[checked.partition.labels]
    for text, found in zip(release.aligned["age"], matches, strict=True):
        low, high = ends(text)
        assert found == sum(low <= age <= high for age in ages)
    assert verify(release.aligned, source.schema, [KMap(2)], population=population).holds


def test_joined_tables_round_too() -> None:
    def one(seed: int, name: str) -> Table:
        random = np.random.default_rng(seed)
        return table(
            {
                "who": {"role": "identifier", "kind": "text", "person": True},
                name: {"role": "quasi", "kind": "numeric", "round": 5},
            },
            {"who": [f"p{n}" for n in range(30)], name: random.integers(0, 90, 30).tolist()},
        )

    made = anonymize_joined({"a": one(1, "age"), "b": one(2, "weight")}, Mondrian(), k=3)
    for frame, name in ((made.frames["a"], "age"), (made.frames["b"], "weight")):
        assert all(end % 5 == 0 for text in frame[name] for end in ends(text))


# refusals
@pytest.mark.parametrize(
    "method",
    [
        DAS(),
        FixedInterval(publish="mean"),
        MDAV(recoder="mean"),
        KMember(recoder="most-common-value"),
        Mondrian(recoder="centroid"),
        GFKMC(profile="paper"),
    ],
    ids=lambda m: m.name,
)
def test_a_substitution_has_no_ends_to_round_and_is_refused(method) -> None:
    source = people()
    with pytest.raises(ParameterError, match="single numbers"):
        anonymize(source, source.schema, method, k=None if method.promise == "measured" else 3)


@pytest.mark.parametrize(
    "entry",
    [
        {"role": "quasi", "kind": "categorical", "round": 5},
        {"role": "sensitive", "kind": "numeric", "round": 5},
        {"role": "quasi", "kind": "numeric", "round": 5, "taxonomy": {"builder": "intervals", "widths": [5]}},
        *(
            {"role": "quasi", "kind": "numeric", "round": bad}
            for bad in (0, -5, True, "5", 1e-7, 1 / 3, 1e13)
        ),
        {"role": "quasi", "kind": "numeric", "round": float("nan")},
    ],
)
def test_a_step_that_could_not_be_kept_is_refused_with_its_place(entry) -> None:
    with pytest.raises(SchemaError, match=r"columns\.age"):
        Schema.from_dict({"columns": {"age": entry}})


def test_a_step_too_fine_for_the_numbers_is_refused() -> None:
    source = table(
        {"code": {"role": "quasi", "kind": "numeric", "round": 0.000001}},
        {"code": [10**14, 10**14 + 1, 10**14 + 2, 10**14 + 3]},
    )
    with pytest.raises(SchemaError, match="too fine"):
        anonymize(source, source.schema, Mondrian(), k=2)


def test_the_step_stands_in_the_schema_file_and_comes_back() -> None:
    column = Column("age", "quasi", "numeric", round=5.0)
    schema = Schema({"age": column})
    assert schema.to_dict()["columns"]["age"]["round"] == 5.0
    assert Schema.from_dict(schema.to_dict()) == schema
    plain = Schema({"age": replace(column, round=None)})
    assert "round" not in plain.to_dict()["columns"]["age"]
    assert with_rounding(plain, {"age": 5}) == schema
    with pytest.raises(VeladoError):
        with_rounding(plain, {"weight": 5})


# the command line
@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory):
    """A table and its schema on disk."""
    path = tmp_path_factory.mktemp("rounded")
    source = people(seed=8)
    source.frame.write_csv(path / "people.csv")
    (path / "schema.toml").write_text(
        '[columns.age]\nrole = "quasi"\nkind = "numeric"\n[columns.weight]\nrole = "quasi"\nkind = "numeric"\n'
        '[columns.city]\nrole = "quasi"\n[columns.illness]\nrole = "sensitive"\n'
    )
    return path


def test_the_flag_rounds_is_recorded_in_the_recipe_and_repeats(folder, capsys) -> None:
    made, again = folder / "made", folder / "again"
    common = [str(folder / "people.csv"), "--schema", str(folder / "schema.toml"), "-k", "3"]
    flag = ["--round-intervals", "age=5,weight=0.5"]
    assert run(["anonymize", *common, *flag, "-o", str(made), "--quiet"]) == 0
    (table_file,) = made.rglob("table.csv")
    (recipe,) = made.rglob("recipe.toml")
    with table_file.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert all(end % 5 == 0 for row in rows for end in ends(row["age"]))
    assert all(end % Decimal("0.5") == 0 for row in rows for end in ends(row["weight"]))
    columns = tomllib.loads(recipe.read_text("utf-8"))["schema"]["columns"]
    assert (columns["age"]["round"], columns["weight"]["round"]) == (5.0, 0.5)
    assert run(["apply", str(recipe), str(folder / "people.csv"), "-o", str(again), "--quiet"]) == 0
    assert next(again.rglob("table.csv")).read_bytes() == table_file.read_bytes()
    assert run(["verify", str(table_file), "-s", str(folder / "schema.toml"), "-k", "3", "--quiet"]) == 0
    capsys.readouterr()


@pytest.mark.parametrize(
    "flag", ["age", "age=", "=5", "age=x", "age=0", "age=5,age=10", "height=5", "city=5", ""]
)
def test_a_flag_that_cannot_be_understood_is_refused_before_anything_is_written(folder, flag, capsys) -> None:
    out = folder / "refused"
    command = ["anonymize", str(folder / "people.csv"), "-s", str(folder / "schema.toml")]
    assert run([*command, "--round-intervals", flag, "-o", str(out)]) in (2, 3)
    assert not out.exists()
    capsys.readouterr()


# what the report says, and what the manifest does not
def reported(source: Table, schema: Schema, out, language: str = "en", asked=(), method=None) -> str:
    made = publish(
        source.frame,
        schema,
        method or Mondrian(),
        asked,
        k=3,
        out=out,
        language=language,
        reports=("html", "md"),
    )
    return (made.private / "report.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("language", "true", "rounded"),
    [
        (
            "en",
            "Interval ends of weight are true values of somebody in the group",
            "multiples of a declared step (5 in age)",
        ),
        (
            "pt",
            "Os extremos dos intervalos de weight são valores verdadeiros de alguém do grupo",
            "múltiplos de um passo declarado (5 em age)",
        ),
    ],
)
def test_the_report_says_which_interval_ends_are_true_values(tmp_path, language, true, rounded) -> None:
    source = people()
    text = reported(source, source.schema, tmp_path / "one", language)
    assert text.count(true) == 1 and text.count(rounded) == 1 and text.count("--round-intervals") == 1
    leaves = (tmp_path / "one" / "release" / "about.html").read_text("utf-8")  # its readers can round nothing
    assert leaves.count(true) == 1 and "--round-intervals" not in leaves
    all_rounded = with_columns(source.schema, weight={"round": 2.5})
    text = reported(source, all_rounded, tmp_path / "two", language)
    assert true.split(" weight")[0] not in text
    assert ("2.5 in weight" if language == "en" else "2,5 em weight") in text


def test_a_report_on_means_says_nothing_of_interval_ends(tmp_path) -> None:
    source = people()
    plain = with_columns(source.schema, age={"round": None})
    text = reported(source, plain, tmp_path / "means", method=Mondrian(recoder="mean"))
    assert "Interval ends" not in text


@pytest.mark.parametrize(
    ("method", "step"), pairs_in(2, METHODS, [None, 500], lambda m, step: f"{m.name}-{step}")
)
def test_no_manifest_holds_a_true_value_an_interval_end_or_the_edge_of_a_bin(tmp_path, method, step) -> None:
    """Seven digits that nothing else in a manifest has by chance: any of them found there was read off the rows."""
    if method is DAS and step is not None:
        pytest.skip("DAS publishes means, which have no ends")
    random = np.random.default_rng(11)
    values = (7_310_021 + 137 * random.choice(4000, 48, replace=False)).tolist()
    source = table(
        {
            "code": {"role": "quasi", "kind": "numeric"} | ({} if step is None else {"round": step}),
            "sex": {"role": "quasi"},
            "illness": {"role": "sensitive"},
        },
        {
            "code": values,
            "sex": [f"s{n}" for n in random.integers(0, 2, 48)],
            "illness": [f"ill {n}" for n in random.integers(0, 4, 48)],
        },
    )
    made = publish(
        source.frame,
        source.schema,
        method(),
        k=None if method.promise == "measured" else 3,
        out=tmp_path / "made",
    )
    (path,) = made.folder.rglob("manifest.json")
    text = path.read_text("utf-8")
    shown = {
        number
        for cell in made.release.aligned["code"].cast(pl.String)
        for number in re.findall(r"\d{7}", cell)
    }
    assert shown
    assert not [number for number in {*map(str, values), *shown} if number in text]
