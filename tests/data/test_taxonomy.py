"""Taxonomies: trees as arrays, every builder, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from velado.data import taxonomy as builders
from velado.data.schema import TaxonomySpec
from velado.data.taxonomy import from_paths
from velado.errors import ParameterError, TaxonomyError


def countries():
    return builders.from_tree(
        {"Asia": ["Japan", "India"], "Europe": {"North": ["Norway"], "South": ["Italy", "Malta"]}}
    )


def test_the_common_ancestor_of_a_set_is_that_of_its_ends():
    tree = countries()
    codes = tree.code_of
    pairs = {
        ("Japan", "India"): "Asia",
        ("Norway", "Malta"): "Europe",
        ("Japan", "Norway"): "*",
        ("Italy", "Italy"): "Italy",
    }
    for (one, other), expected in pairs.items():
        low, high = sorted((codes[one], codes[other]))
        node = tree.common_ancestor(np.array([low]), np.array([high]))[0]
        assert tree.labels[node] == expected


def test_loss_counts_leaves_under_the_node():
    tree = countries()
    node = tree.widest_node["South"]
    assert tree.loss(np.array([node, tree.root, 0])).tolist() == [0.25, 1.0, 0.0]


@given(
    st.recursive(
        st.integers(1, 3), lambda inner: st.lists(inner, min_size=1, max_size=3), max_leaves=12
    ).filter(lambda shape: isinstance(shape, list))
)
def test_any_tree_has_leaves_in_runs_and_parents_above(shape):
    counter = iter(range(10_000))

    def build(node):
        if isinstance(node, int):
            return [f"leaf{next(counter)}" for _ in range(node)]
        return {f"node{next(counter)}": build(below) for below in node}

    tree = builders.from_tree(build(shape))
    for node in range(tree.root):
        parent = tree.parent[node]
        assert parent > node or parent == tree.root
        assert tree.first[parent] <= tree.first[node] <= tree.last[node] <= tree.last[parent]
    assert (tree.levels[:, 0] == np.arange(tree.leaves)).all()
    assert (tree.levels[:, -1] == tree.root).all()
    for low in range(tree.leaves):
        for high in range(low, tree.leaves):
            node = int(tree.common_ancestor(np.array([low]), np.array([high]))[0])
            covering = [n for n in range(tree.root + 1) if tree.first[n] <= low and tree.last[n] >= high]
            assert tree.leaf_count[node] == min(tree.leaf_count[n] for n in covering)


def test_postal_codes_lose_their_last_digits():
    tree = builders.prefix(["36570-000", "36579-000", "36600-000"], [4, 3])
    path = [tree.labels[node] for node in tree.levels[tree.code_of["36570-000"]]]
    assert path == ["36570-000", "3657*", "365*", "*"]


def test_dates_go_by_month_year_and_decade():
    tree = builders.dates(["2024-03-07", "2023-12-31"])
    path = [tree.labels[node] for node in tree.levels[tree.code_of["2024-03-07"]]]
    assert path == ["2024-03-07", "2024-03", "2024", "2020s", "*"]


def test_brazilian_dates_are_read_by_their_format_and_ordered_by_time():
    tree = builders.dates(["01/02/2024", "31/01/2024"], form="%d/%m/%Y")
    assert tree.labels[:2] == ("31/01/2024", "01/02/2024")


def test_intervals_nest_and_say_what_they_hold():
    tree = builders.intervals(["3", "23", "29"], [3.0, 23.0, 29.0], [5, 10])
    assert [tree.labels[node] for node in tree.levels[tree.code_of["23"]]] == [
        "23",
        "[20..24]",
        "[20..29]",
        "*",
    ]
    halves = builders.intervals(["0.5"], [0.5], [0.25])
    assert halves.labels[1] == "[0.5..0.75)"


def test_a_column_of_codes_gets_prefixes_and_a_column_of_words_stays_flat():
    assert builders.automatic(["A01", "A02", "B11"]).height == 3
    assert builders.automatic(["red", "green", "blue"]).height == 1


def test_a_level_file_may_use_any_depth_but_one_path_per_value():
    assert from_paths([["a", "x", "*"], ["b", "x", "*"], ["c", "*"]]).leaves == 3
    with pytest.raises(TaxonomyError):
        from_paths([["a", "x", "*"], ["a", "y", "*"]])


def test_a_label_with_two_broader_labels_is_refused():
    with pytest.raises(TaxonomyError):
        from_paths([["a", "x", "p"], ["b", "x", "q"]])


def test_errors_never_repeat_a_value():
    with pytest.raises(TaxonomyError) as caught:
        from_paths([["secret-value", "x"], ["secret-value", "y"]])
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("keep", [[], [3, 4], [0], [2, 2]])
def test_prefix_lengths_must_fall(keep):
    with pytest.raises(ParameterError):
        TaxonomySpec("prefix", keep=keep)


@pytest.mark.parametrize("widths", [[], [5, 7], [10, 5], [0]])
def test_interval_widths_must_nest(widths):
    with pytest.raises(ParameterError):
        TaxonomySpec("intervals", widths=widths)
