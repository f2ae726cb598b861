"""DAS gives the paper's tables again, and states what it does not promise."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from velado.data.encode import encode
from velado.data.schema import Column, Schema, TaxonomySpec
from velado.data.table import Table
from velado.data.taxonomy import from_paths
from velado.errors import ParameterError
from velado.randomness import seeded
from velado.release.anonymize import anonymize
from velado.release.goal import Goal, silent
from velado.release.methods.das import DAS, _bin_costs, knee_level
from velado.release.methods.fixed_interval import FixedInterval
from velado.settings import specs

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "das.json").read_text())
FILES = {"wef": "wef/wef.csv", "adult": "adult/adult_clean.csv"}


def numeric(columns, **settings):
    entries = {name: {"role": "quasi", "kind": "numeric"} for name in columns}
    return Table.of(pl.DataFrame(columns), Schema.from_dict({"columns": entries, "table": settings}))


def run(table, method):
    return method.anonymize(encode(table), Goal(()), seeded(0, "das"), silent)


def cells(recoded, at=0):
    column = recoded.columns[at]
    return [column.values[code] for code in column.codes]


def test_the_paper_profile_gives_table_2_from_table_1():
    release = anonymize(
        (table := numeric(VECTORS["table_1"])).frame, table.schema, DAS(bins=3, profile="paper")
    )
    for name, wanted in VECTORS["table_2"].items():
        assert np.round(release.aligned[name].cast(pl.Float64).to_numpy(), 2).tolist() == wanted
    assert release.promise == "measured"


def test_means_are_kept_by_default_and_rounded_or_truncated_on_request():
    table = numeric({"Height": VECTORS["table_1"]["Height"]})
    assert cells(run(table, DAS(bins=3)))[3] == pytest.approx(515 / 3, abs=1e-4)
    assert cells(run(table, DAS(bins=3, rounding="round")))[3] == "172"
    assert cells(run(table, DAS(bins=3, rounding="truncate")))[3] == "171"


def test_the_paper_profile_does_what_its_help_says_and_nothing_else():
    help_text = specs(DAS)["profile"].setting.help
    assert help_text == (
        "paper: means of whole-number columns lose their decimals whatever --rounding says, "
        "others keep every digit"
    )
    table = numeric({"whole": [-5, -4, -4, 7, 8, 8], "other": [0.1, 0.2, 0.2, 7.5, 8.5, 8.5]})
    default = run(table, DAS(bins=2))
    for rounding in ("keep", "round", "truncate"):
        paper = run(table, DAS(bins=2, rounding=rounding, profile="paper"))
        # -13/3 and 23/3, cut towards 0; rounding would give -4 and 8.
        assert cells(paper, 0) == ["-4"] * 3 + ["7"] * 3
        assert cells(paper, 1) == pytest.approx([0.5 / 3] * 3 + [24.5 / 3] * 3, abs=1e-15)
        assert paper.notes == default.notes
        for one, other in zip(paper.columns, default.columns, strict=True):
            assert np.array_equal(one.codes, other.codes)
    # By default a mean is given to six digits of the column's range.
    assert cells(default, 1)[0] == 0.16667


@pytest.mark.parametrize("name", FILES)
def test_the_loss_is_that_of_equation_1_and_the_published_one_is_a_fifth_of_it_on_adult(name, data_folder):
    columns = list(VECTORS["elbow"][name])
    frame = pl.read_csv(data_folder / FILES[name]).select(columns)
    table = numeric(frame.to_dict(as_series=False))
    recoded = run(table, DAS())
    assert recoded.notes["bins"] == VECTORS["elbow"][name]
    per_column = [
        float(published.losses(column).mean())
        for published, column in zip(recoded.columns, encode(table).columns, strict=True)
    ]
    assert sum(per_column) / 3 == pytest.approx(VECTORS["loss_by_equation_1"][name], abs=5e-5)
    if name == "adult":
        assert sum(per_column) / 15 == pytest.approx(VECTORS["loss_as_published"][name], abs=5e-5)


def test_a_constant_column_and_early_ties_of_the_maximum_do_not_fail():
    table = numeric({"a": [4, 4, 4, 4, 4, 4], "b": [1, 9, 9, 9, 9, 9]}, constant="allow")
    recoded = run(table, DAS(bins=4))
    assert cells(recoded, 0) == [4.0] * 6
    assert len(set(cells(recoded, 1))) == 1


def test_a_missing_number_stays_a_blank_of_its_own():
    table = numeric({"a": [1, None, 2, 30, 31, None, 32]})
    recoded = run(table, DAS(bins=2))
    assert [cell is None for cell in cells(recoded)] == [False, True, False, False, False, True, False]
    column = recoded.columns[0]
    blank = column.values.index(None)
    assert column.low[blank] == column.high[blank] == encode(table).columns[0].missing


def test_columns_with_a_taxonomy_are_left_as_they_are():
    schema = Schema.from_dict(
        {"columns": {"age": {"role": "quasi", "kind": "numeric"}, "sex": {"role": "quasi"}}}
    )
    frame = pl.DataFrame({"age": [1, 2, 3, 50, 51, 52], "sex": ["f", "m", "f", "m", "f", "m"]})
    release = anonymize(frame, schema, DAS(bins=2))
    assert release.aligned["sex"].to_list() == frame["sex"].to_list()
    assert release.aligned["age"].to_list() == [2.0, 2.0, 2.0, 51.0, 51.0, 51.0]


def test_a_decimal_comma_is_kept():
    table = numeric({"a": ["1,5", "2,5", "7,5", "9,25"]}, decimal=",")
    assert cells(run(table, DAS(bins=2))) == ["2", "2", "8,375", "8,375"]


@given(
    st.lists(st.integers(-40, 40), min_size=2, max_size=40), st.sampled_from(["keep", "round", "truncate"])
)
def test_every_mean_lies_in_its_bin_and_the_bin_holds_the_value(values, rounding):
    table = numeric({"a": values}, constant="allow")
    recoded, column = run(table, DAS(rounding=rounding)), encode(table).columns[0]
    published = recoded.columns[0]
    low, high = published.low[published.codes], published.high[published.codes]
    assert ((low <= column.codes) & (column.codes <= high)).all()
    means = np.array([float(cell) for cell in cells(recoded)])
    assert (means >= column.points[low] - 1e-3).all() and (means <= column.points[high] + 1e-3).all()


def test_a_part_of_a_table_has_bins_of_its_own_rows_only():
    whole = encode(numeric({"a": [1, 2, 3, 4, 5, 100, 200, 300]}))
    recoded = DAS(bins=2).anonymize(whole.subset(np.array([0, 2, 6, 7])), Goal(()), seeded(0), silent)
    assert cells(recoded) == [2.0, 2.0, 250.0, 250.0]


@pytest.mark.parametrize("wrong", [{"bins": 1}, {"rounding": "up"}, {"profile": "fast"}])
def test_settings_outside_their_limits_are_refused(wrong):
    with pytest.raises(ParameterError):
        DAS(**wrong)


TOWNS = (("a", "MG", "SE"), ("b", "MG", "SE"), ("c", "SP", "SE"), ("d", "SP", "SE"), ("e", "BA", "NE"))


def people(taxonomy: TaxonomySpec | None = None) -> Table:
    frame = pl.DataFrame({"age": [20, 21, 30, 31, 60], "town": list("abcde"), "sex": list("FMFMF")})
    columns = [
        Column("age", "quasi", "numeric"),
        Column("town", "quasi", taxonomy=taxonomy or TaxonomySpec("levels", paths=TOWNS)),
        Column("sex", "quasi"),
    ]
    return Table.of(frame, Schema({column.name: column for column in columns}))


@pytest.mark.parametrize("method", [DAS(bins=2), FixedInterval(bins=2)], ids=lambda one: one.name)
def test_categories_that_stay_raw_are_named_in_a_warning(method):
    table = people()
    release = anonymize(table.frame, table.schema, method)
    assert [text for text in release.warnings if "'town', 'sex'" in text and "Left as they came" in text]
    assert release.aligned["town"].to_list() == list("abcde")
    numbers = numeric({"age": [20, 21, 30, 60]})
    assert anonymize(numbers.frame, numbers.schema, method).warnings == ()


def test_the_level_of_a_taxonomy_is_that_of_the_knee():
    """By hand: bins 5, 3, 2, 1 cost 0, 0.16, 0.72, 1.376; above the line by 0, 0.384, 0.227, 0."""
    tree = from_paths(TOWNS)
    costs = [_bin_costs(tree, np.arange(5))[np.unique(tree.levels[:, level])].sum() for level in range(4)]
    assert costs == pytest.approx([0, 0.16, 0.72, 1.376])
    assert knee_level(tree, np.arange(5)) == 1
    # Of three towns in as many states, two of them in one region, only the region joins any.
    assert knee_level(tree, np.array([0, 2, 4])) == 2


def test_costs_of_bins_are_those_of_all_pairs():
    tree = from_paths([(f"v{at}", f"w{at // 2}", f"x{at // 6}", f"y{at // 12}") for at in range(29)])
    present = np.flatnonzero(seeded(3).random(29) < 0.7)
    for level in range(1, tree.height + 1):
        nodes = tree.levels[present, level]
        for node in np.unique(nodes):
            members = present[nodes == node]
            one, two = np.meshgrid(members, members)
            meet = tree.common_ancestor(np.minimum(one, two).ravel(), np.maximum(one, two).ravel())
            far = np.where(one.ravel() == two.ravel(), 0.0, tree.leaf_count[meet] / tree.leaves)
            assert _bin_costs(tree, present)[node] == pytest.approx((far**2).sum() / (2 * members.size))


def test_categories_go_up_their_taxonomy_where_that_is_asked_for():
    table = people()
    release = anonymize(table.frame, table.schema, DAS(bins=2, categories="taxonomy"))
    assert release.aligned["town"].to_list() == ["MG", "MG", "SP", "SP", "e"]  # all that BA has
    assert dict(release.notes)["levels"] == {"town": "1 of 3"}
    (warning,) = release.warnings
    assert "'sex'" in warning and "town" not in warning  # F and M have no level below everything
    assert release.promise == "measured"


def test_a_blank_category_stays_blank():
    table = people()
    frame = table.frame.with_columns(pl.Series("town", ["a", None, "c", "d", "e"]))
    release = anonymize(frame, table.schema, DAS(bins=2, categories="taxonomy"))
    assert release.aligned["town"][1] is None and release.aligned["town"][0] != "a"
