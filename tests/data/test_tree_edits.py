"""Every edit of a taxonomy gives a valid tree that has lost and doubled no value; level files say the same tree."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from velado.data import tree_edits as edits
from velado.data.level_files import levels_text, paths_from_levels
from velado.data.taxonomy import ROOT_LABEL, Taxonomy, flat, from_paths, from_tree
from velado.errors import TaxonomyError

STATES = from_tree({"South": {"S1": ["PR", "SC"], "S2": ["RS"]}, "North": ["PA", "AM", "RR"]})


def values(tree: Taxonomy) -> list[str]:
    return sorted(tree.labels[: tree.leaves])


def parent(tree: Taxonomy, label: str) -> str:
    return tree.labels[tree.parent[tree.widest_node[label]]]


def assert_valid(tree: Taxonomy) -> None:
    assert len(set(tree.labels[: tree.leaves])) == tree.leaves
    assert tree.labels[tree.root] == ROOT_LABEL
    for leaf in range(tree.leaves):
        node, steps = leaf, 0
        while node != tree.root:
            assert tree.first[node] <= leaf <= tree.last[node]
            node, steps = int(tree.parent[node]), steps + 1
            assert steps <= len(tree.labels)


@st.composite
def trees(draw: st.DrawFn) -> Taxonomy:
    count = draw(st.integers(2, 12))
    paths = []
    for value in range(count):
        low = draw(st.integers(0, 3))
        path = [f"v{value}"] + ([f"g{low}"] if draw(st.booleans()) else [])
        paths.append([*path, f"h{low // 2}"] if len(path) == 2 else path)
    return from_paths(paths)


def edited(tree: Taxonomy, which: int, several: list[int], one: int, label: str) -> Taxonomy:
    made: list[Callable[[], Taxonomy]] = [
        lambda: edits.group(tree, several, label),
        lambda: edits.merge(tree, several, label),
        lambda: edits.move(tree, several, one),
        lambda: edits.dissolve(tree, one),
        lambda: edits.split(tree, one, {label: several}),
        lambda: edits.rename(tree, max(one, tree.leaves), label),
    ]
    return made[which]()


@given(st.data(), trees())
def test_any_row_of_edits_keeps_every_value_once(data: st.DataObject, tree: Taxonomy) -> None:
    before = values(tree)
    for step in range(6):
        several = data.draw(st.lists(st.integers(0, tree.root), min_size=1, max_size=3))
        one, which = data.draw(st.integers(0, tree.root)), data.draw(st.integers(0, 5))
        try:
            tree = edited(tree, which, several, one, f"n{step}")
        except TaxonomyError:
            continue
        assert_valid(tree)
        assert values(tree) == before
    again = from_paths(paths_from_levels(levels_text(tree)))
    assert again.labels == tree.labels and again.parent.tolist() == tree.parent.tolist()


def test_each_edit_does_what_it_says() -> None:
    merged = edits.merge(STATES, ["S1", "S2"], "All south")
    assert parent(merged, "PR") == parent(merged, "RS") == "All south" and "S1" not in merged.labels
    grouped = edits.group(STATES, ["PA", "AM"], "Amazon")
    assert parent(grouped, "PA") == "Amazon" and parent(grouped, "Amazon") == "North"
    moved = edits.move(STATES, ["RS"], "S1")
    assert parent(moved, "RS") == "S1" and "S2" not in moved.labels  # left without values
    assert parent(edits.move(STATES, ["S1"], "*"), "S1") == "*"
    assert parent(edits.dissolve(STATES, "S1"), "SC") == "South"
    halves = edits.split(STATES, "North", {"West": ["AM", "RR"]})
    assert parent(halves, "AM") == "West" and parent(halves, "PA") == "North"
    placed = edits.place_values(STATES, {"AC": "North", "ZZ": "*"})
    assert (
        parent(placed, "AC") == "North" and parent(placed, "ZZ") == "*" and placed.leaves == STATES.leaves + 2
    )
    assert edits.uncovered(placed, ["ac", " PR", "TO", "TO"]) == ("TO",)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda: edits.move(STATES, ["South"], "S1"), "below itself"),
        (lambda: edits.move(STATES, ["PR"], "SC"), "where a group is needed"),
        (lambda: edits.group(STATES, ["South", "PR"], "X"), "lies below another"),
        (lambda: edits.group(STATES, [], "X"), "are none"),
        (lambda: edits.merge(STATES, ["PR"], "North"), "two"),
        (lambda: edits.rename(STATES, "PR", "SC"), "twice"),
        (lambda: edits.rename(STATES, "*", "All"), "root"),
        (lambda: edits.rename(STATES, "South", ""), "empty label"),
        (lambda: edits.rename(STATES, "South", "*"), "to be named '*'"),
        (lambda: edits.rename(STATES, "Sooth", "X"), "no node"),
        (lambda: edits.split(STATES, "North", {"X": ["PR"]}), "not right below"),
        (lambda: edits.split(STATES, "North", {"X": ["PA"], "Y": ["PA"]}), "not right below"),
        (lambda: edits.place_values(STATES, {"PR": "North"}), "twice"),
        (lambda: edits.number_bands(["1"], [1], [5, 3]), "do not rise"),
        (lambda: edits.number_bands(["1"], [1], []), "do not rise"),
        (lambda: edits.number_bands(["1"], [1], [[1, 2], [3]]), "not among"),
        (lambda: edits.number_bands(["1"], [1], [float("nan")]), "do not rise"),
        (lambda: edits.date_bands(["2020-01-01"], ["soon"]), "do not rise"),
        (lambda: edits.date_bands(["soon"], ["2020-01-01"]), "no date"),
    ],
)
def test_what_makes_no_tree_is_refused(edit: Callable[[], Taxonomy], said: str) -> None:
    with pytest.raises(TaxonomyError) as refused:
        edit()
    assert said in refused.value.what


@given(st.lists(st.integers(-50, 150), min_size=1, unique=True), st.sets(st.integers(-40, 140), min_size=1))
def test_bands_hold_the_numbers_between_their_edges(numbers: list[int], edges: set[int]) -> None:
    inner = sorted(edges)
    tree = edits.number_bands([str(n) for n in numbers], numbers, [inner, inner[::2]])
    assert_valid(tree)
    for number in numbers:
        label = parent(tree, str(number))
        if label.startswith("<"):
            assert number < int(label[1:])
        elif label.startswith(">="):
            assert number >= int(label[2:])
        else:
            low, _, high = label.strip("[]").partition("..")
            assert int(low) <= number <= int(high or low)


def test_bands_of_fractions_and_days_are_half_open() -> None:
    assert (
        parent(edits.number_bands(["1,5", "2"], [1.5, 2.0], [1, 1.75, 3], decimal=","), "1,5") == "[1..1,75)"
    )
    days = edits.date_bands(
        ["29/02/2020", "01/03/2020"], ["2020-02-01", "2020-03-01", "2020-04-01"], "%d/%m/%Y"
    )
    assert parent(days, "29/02/2020") == "[2020-02-01..2020-03-01)"
    assert parent(days, "01/03/2020") == "[2020-03-01..2020-04-01)"


def test_a_ragged_level_file_is_refused_by_its_line() -> None:
    with pytest.raises(TaxonomyError, match=r"Line 2 .* has 2 labels; the first line has 3"):
        paths_from_levels("a;b;*\nc;*\n", "city")


def test_labels_with_separators_and_quotes_survive_a_level_file() -> None:
    tree = from_paths([("a;b", 'x"y'), ("c", "z,;")])
    for separator in (";", ",", "\t"):
        assert (
            from_paths(paths_from_levels(levels_text(tree, separator), separator=separator)).labels
            == tree.labels
        )


def test_thousands_of_values_are_edited() -> None:
    tree = from_paths([(f"v{i}", f"g{i // 10}", f"h{i // 100}") for i in range(5000)])
    assert edits.merge(tree, ["h1", "h2"], "x").leaves == 5000
    assert edits.uncovered(flat(["a"]), ["A"], case="distinct") == ("A",)
