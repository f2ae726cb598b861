"""Record linkage: hand-worked links, a brute-force judge on any table, and the DAS paper's figures."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from velado.data.encode import EncodedColumn, EncodedTable, encode
from velado.data.io import read_table
from velado.data.schema import Schema
from velado.data.taxonomy import from_tree
from velado.errors import ParameterError
from velado.measures.risk.record_linkage import ReleasedColumn, _Side, record_linkage
from velado.randomness import seeded
from velado.release.goal import Goal, silent
from velado.release.guarantees import KAnonymity
from velado.release.methods.mondrian import Mondrian
from velado.release.recoded import PublishedColumn, Recoded

TREE = from_tree({"ab": ["a", "b"], "cd": ["c", "d", "e"], "f": ["f"]})
DIRECTIONS = ("released-to-original", "original-to-released")
TIES = ("expected", "first", "any")


def numbers(values, name="n"):
    points, codes = np.unique(np.asarray(values, dtype=float), return_inverse=True)
    return EncodedColumn(
        name, codes.astype(np.int32), points.size, points=points, span=float(np.ptp(points)), whole=True
    )


def as_value(column, values):
    return ReleasedColumn(column.codes, column.codes, np.asarray(values, dtype=float))


def correct(data, released, rows=None, **rules):
    return record_linkage(data, released, rows, **rules).correct


def test_a_table_released_as_it_is_links_everyone():
    column = numbers([1, 5, 9])
    data = EncodedTable((column,), 3)
    released = [ReleasedColumn(column.codes, column.codes)]
    for direction in DIRECTIONS:
        for ties in TIES:
            result = record_linkage(data, released, direction=direction, ties=ties)
            assert (result.correct, result.rows, result.share) == (3.0, 3, 1.0)


def test_ties_are_worth_what_the_rule_says():
    # 0 and 2 are both published as their mean 1, 10 as itself. Released to original: both 1s are as near to 0
    # as to 2. Original to released: 0 and 2 each find two records published as 1.
    column = numbers([2, 0, 10])
    data = EncodedTable((column,), 3)
    released = [as_value(column, [1, 1, 10])]
    for direction in DIRECTIONS:
        assert correct(data, released, direction=direction, ties="expected") == 2.0
        assert correct(data, released, direction=direction, ties="first") == 2.0
        assert correct(data, released, direction=direction, ties="any") == 3.0


def test_the_direction_matters():
    # Published 4 4 4 (the mean of 0 3 9): its nearest original is 3 alone, yet each original finds all three.
    column = numbers([0, 3, 9])
    data = EncodedTable((column,), 3)
    released = [as_value(column, [4, 4, 4])]
    assert correct(data, released, direction="released-to-original", ties="any") == 1.0
    assert correct(data, released, direction="original-to-released", ties="any") == 3.0


def test_scaling_and_metric_change_the_distance():
    # x spans 100, y spans 1. The one published row, (20.2, 0), came from row 3 at (40, 0.3); row 0 is at (0, 0).
    data = EncodedTable((numbers([0, 100, 60, 40], "x"), numbers([0, 1, 0, 0.3], "y")), 4)
    zero, rows = np.zeros(1, dtype=np.int32), np.array([3])
    released = [ReleasedColumn(zero, zero, np.array([20.2])), ReleasedColumn(zero, zero, np.zeros(1))]
    # 19.8 + 0.3 < 20.2 as it stands; scaled by range 0.198 + 0.3 > 0.202.
    assert correct(data, released, rows, scaling="none") == 1.0
    assert correct(data, released, rows, scaling="range") == 0.0
    assert correct(data, released, rows, scaling="standard") == 0.0
    # From (20.1, 0): 19.9 + 0.3 > 20.1, but 19.9^2 + 0.3^2 < 20.1^2.
    released = [ReleasedColumn(zero, zero, np.array([20.1])), released[1]]
    assert correct(data, released, rows, scaling="none", metric="manhattan") == 0.0
    assert correct(data, released, rows, scaling="none", metric="euclidean") == 1.0


def test_categories_are_as_far_apart_as_their_common_ancestor_is_wide():
    # Definition 2 of the GFKMC thesis. Published `ab` (2 of 6 leaves) is nearest to a and b alike, `c` to c alone.
    column = EncodedColumn("x", np.array([0, 1, 2, 5], dtype=np.int32), 6, tree=TREE)
    data = EncodedTable((column,), 4)
    low, high = np.array([0, 0, 2, 0], dtype=np.int32), np.array([1, 1, 2, 5], dtype=np.int32)
    assert correct(data, [ReleasedColumn(low, high)], ties="expected") == 0.5 + 0.5 + 1 + 0.25
    assert correct(data, [ReleasedColumn(low, high)], ties="first") == 2.0


def test_suppressed_rows_are_looked_up_and_not_found():
    column = numbers([1, 5, 9])
    data = EncodedTable((column,), 3)
    released = [ReleasedColumn(column.codes[[0, 2]], column.codes[[0, 2]])]
    rows = np.array([0, 2])
    forth = record_linkage(data, released, rows)
    assert (forth.correct, forth.rows) == (2.0, 2)
    back = record_linkage(data, released, rows, direction="original-to-released")
    assert (back.correct, back.rows, back.share) == (2.0, 3, 2 / 3)


def test_a_substitution_is_where_its_text_says_and_not_where_its_cover_lies():
    column = numbers([0, 4, 10])
    data = EncodedTable((column,), 3)
    codes = np.zeros(3, dtype=np.int32)
    cover = (np.zeros(1, np.int32), np.full(1, 2, np.int32))
    kept = np.ones(3, dtype=bool)
    as_text = Recoded((PublishedColumn("n", codes, ("10",), *cover, states_cover=False),), kept)
    as_cover = Recoded((PublishedColumn("n", codes, ("[0..10]",), *cover),), kept)
    assert correct(data, as_text, ties="first") == 1.0
    assert correct(data, as_cover, ties="any") == 1.0  # the midpoint 5 is nearest to 4
    tree = EncodedColumn("x", np.array([0, 1, 5], dtype=np.int32), 6, tree=TREE)
    trees = EncodedTable((tree,), 3)
    leaf = Recoded((PublishedColumn("x", codes, ("b",), codes[:1], cover[1] + 3, states_cover=False),), kept)
    assert correct(trees, leaf, ties="any") == 1.0


def test_a_blank_is_nearest_to_a_blank():
    frame = pl.DataFrame({"a": [1, None, 9, None]})
    data = encode(
        read_table(frame, Schema.from_dict({"columns": {"a": {"role": "quasi", "kind": "numeric"}}}))
    )
    codes = data.columns[0].codes
    assert correct(data, [ReleasedColumn(codes, codes)], ties="expected") == 3.0
    everything = [ReleasedColumn(np.zeros(4, np.int32), np.full(4, 2, np.int32))]
    assert correct(data, everything, ties="any") == 2.0  # `*` stands at 5: as near to 1 as to 9


@st.composite
def released_tables(draw):
    rows = draw(st.integers(2, 25))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    columns, released = [], []
    for at in range(draw(st.integers(1, 4))):
        if random.random() < 0.5:
            column = numbers(random.integers(0, 8, rows), f"c{at}")
            value = random.integers(0, 17, rows) / 2
            value[random.random(rows) < 0.4] = np.nan
        else:
            column = EncodedColumn(f"c{at}", random.integers(0, 6, rows).astype(np.int32), 6, tree=TREE)
            value = None
        ends = np.sort(random.integers(0, column.size, (2, rows)), axis=0).astype(np.int32)
        columns.append(column)
        released.append((ends, value))
    kept = np.flatnonzero(random.random(rows) < 0.8)
    parts = [
        ReleasedColumn(ends[0][kept], ends[1][kept], None if value is None else value[kept])
        for ends, value in released
    ]
    return EncodedTable(tuple(columns), rows), parts, kept


def brute_force(data, released, rows, direction, ties, scaling, metric):
    table = np.zeros((rows.size, data.rows))
    for column, part in zip(data.columns, released, strict=True):
        if column.tree is not None:
            node = column.tree.common_ancestor(part.low, part.high)[:, None]
            low = np.minimum(column.tree.first[node], column.codes)
            high = np.maximum(column.tree.last[node], column.codes)
            above = column.tree.common_ancestor(low.ravel(), high.ravel()).reshape(low.shape)
            step = np.where(node == column.codes, 0, column.tree.leaf_count[above] / column.tree.leaves)
        else:
            true = column.points[column.codes]
            place = (column.points[part.low] + column.points[part.high]) / 2
            place = np.where(np.isnan(part.value), place, part.value)
            spread = {"none": 1, "range": np.ptp(true), "standard": true.std()}[scaling] or 1
            step = np.abs(place[:, None] - true) / spread
        table += step**2 if metric == "euclidean" else step
    true_at = rows
    if direction == "original-to-released":
        table, true_at = table.T, np.full(data.rows, -1)
        true_at[rows] = np.arange(rows.size)
    total = 0.0
    for distances, true in zip(table, true_at, strict=True):
        nearest = np.flatnonzero(distances <= distances.min() + 1e-9)
        if true in nearest:
            total += {"expected": 1 / nearest.size, "first": float(nearest[0] == true), "any": 1.0}[ties]
    return total


@given(
    released_tables(),
    st.sampled_from(DIRECTIONS),
    st.sampled_from(TIES),
    st.sampled_from(["range", "none", "standard"]),
    st.sampled_from(["manhattan", "euclidean"]),
)
def test_the_search_finds_what_comparing_everything_finds(case, direction, ties, scaling, metric):
    data, released, rows = case
    rules = {"direction": direction, "ties": ties, "scaling": scaling, "metric": metric}
    found = record_linkage(data, released, rows, **rules)
    if rows.size:
        assert found.correct == pytest.approx(brute_force(data, released, rows, **rules))
    else:
        assert found.correct == 0


def test_a_recoded_table_and_its_arrays_give_the_same(data_folder):
    frame = pl.read_csv(data_folder / "wef" / "wef.csv").select("Age", "Height(cm)", "Weight(kg)")
    quasi = {name: {"role": "quasi", "kind": "numeric"} for name in frame.columns}
    data = encode(read_table(frame, Schema.from_dict({"columns": quasi})))
    recoded = Mondrian().anonymize(data, Goal((KAnonymity(3),)), seeded(0), silent)
    parts = [ReleasedColumn(part.low[part.codes], part.high[part.codes]) for part in recoded.columns]
    for direction in DIRECTIONS:
        assert record_linkage(data, recoded, direction=direction) == record_linkage(
            data, parts, direction=direction
        )


@pytest.mark.parametrize(
    ("file", "bins", "code", "text"),
    [
        # The DAS paper counts 111 (Adult) and 51 (WEF) links: original to released, first index, Euclidean, not
        # scaled, bin means rounded to whole numbers. The direction its text describes gives 170 on Adult.
        ("adult/adult_clean.csv", {"age": 8, "education_num": 5, "hours_per_week": 9}, 111, 170),
        ("wef/wef.csv", {"Age": 4, "Height(cm)": 6, "Weight(kg)": 6}, 51, 50),
    ],
)
def test_the_das_papers_links_are_found_again(data_folder, file, bins, code, text):
    frame = pl.read_csv(data_folder / file)
    columns = [numbers(frame[name].to_numpy(), name) for name in bins]
    released = []
    for column, k in zip(columns, bins.values(), strict=True):
        true = column.points[column.codes]
        cuts = np.percentile(true, 100 * np.arange(1, k) / k, method="closest_observation")
        bin_ = np.searchsorted(cuts, true, side="left")
        means = np.bincount(bin_, weights=true) / np.maximum(np.bincount(bin_), 1)
        released.append(as_value(column, np.round(means)[bin_]))
    data = EncodedTable(tuple(columns), frame.height)
    rules = {"ties": "first", "scaling": "none", "metric": "euclidean"}
    assert correct(data, released, direction="original-to-released", **rules) == code
    assert correct(data, released, direction="released-to-original", **rules) == text


def test_unknown_rules_and_misfitting_columns_are_refused():
    column = numbers([1, 2])
    data = EncodedTable((column,), 2)
    good = [ReleasedColumn(column.codes, column.codes)]
    for wrong in ({"direction": "up"}, {"ties": "last"}, {"scaling": "log"}, {"metric": "cosine"}):
        with pytest.raises(ParameterError):
            record_linkage(data, good, **wrong)
    for misfit in ([], [ReleasedColumn(column.codes[:1], column.codes[:1])]):
        with pytest.raises(ParameterError):
            record_linkage(data, misfit)


@pytest.mark.parametrize("seed", range(5))
def test_counted_codes_give_the_symbols_that_sorted_rows_give(seed: int) -> None:
    random = np.random.default_rng(seed)
    values = np.array([3.0, -1.0, 7.5, 7.5, np.inf, 0.0])  # out of order, and one number under two codes
    codes = random.choice([0, 2, 3, 5], size=40).astype(np.int32)
    for found, sorted_ in (
        (_Side.coded(codes), _Side.of(codes)),
        (_Side.coded(codes, values), _Side.of(values[codes])),
    ):
        assert found.symbols.tolist() == sorted_.symbols.tolist()
        assert found.codes.tolist() == sorted_.codes.tolist()
    assert _Side.coded(codes[:0]).codes.size == 0
