"""Mondrian: hand-worked cuts, the thesis's example, two engines with one result, and the promise on any table."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from velado.data.encode import encode
from velado.data.io import read_table
from velado.data.partition import Partition
from velado.data.schema import Schema
from velado.errors import GuaranteeNotMet, ParameterError
from velado.randomness import seeded
from velado.release.anonymize import anonymize
from velado.release.goal import Goal, silent
from velado.release.guarantees import KAnonymity, LDiversity
from velado.release.methods.mondrian.mondrian import CutPlan, Mondrian, partition_levels

NUMBER = {"role": "quasi", "kind": "numeric"}


def category(**taxonomy):
    return {"role": "quasi", "kind": "categorical", "taxonomy": taxonomy}


def encoded(columns, **schema):
    return encode(read_table(pl.DataFrame(columns), Schema.from_dict({"columns": schema})))


def groups_of(labels):
    return sorted(np.flatnonzero(labels == label).tolist() for label in np.unique(labels))


def groups(data, method, k=2, goal=None):
    return groups_of(method.partition(data, goal or Goal((KAnonymity(k),)), silent).labels)


def both_engines(data, method, k):
    goal = Goal((KAnonymity(k),))
    compiled = method.partition(data, goal, silent)
    plan = CutPlan.of(data, method.categories == "ordered")
    labels, count = partition_levels(data, plan, goal, k, method.cut == "relaxed", silent)
    return compiled, labels, count


def test_the_widest_attribute_is_cut_first_and_the_next_when_it_cannot_be():
    # a spans its domain 0..10 and so does b; a comes first. At the median of a (1 1 1 | 9 10 10) each half
    # has three rows; k = 2 forbids any further cut.
    data = encoded({"a": [1, 1, 1, 9, 10, 10], "b": [0, 9, 1, 10, 0, 5]}, a=NUMBER, b=NUMBER)
    assert groups(data, Mondrian()) == [[0, 1, 2], [3, 4, 5]]
    # With a constant but for one row, strict a cannot be cut for k = 2; b can: 0 1 | 9 10.
    data = encoded({"a": [1, 1, 1, 9], "b": [0, 9, 1, 10]}, a=NUMBER, b=NUMBER)
    assert groups(data, Mondrian()) == [[0, 2], [1, 3]]


def test_strict_keeps_equal_values_together_and_relaxed_shares_them_out():
    data = encoded({"a": [1, 5, 5, 5, 5, 5, 5, 9]}, a=NUMBER)
    assert groups(data, Mondrian(), 4) == [[0, 1, 2, 3, 4, 5, 6, 7]]
    assert groups(data, Mondrian("relaxed"), 4) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_strict_takes_the_better_balanced_side_of_the_median():
    # The median is 5: keeping it left gives 5 | 1, keeping it right gives 2 | 4, which k = 2 allows.
    data = encoded({"a": [1, 2, 5, 5, 5, 9]}, a=NUMBER)
    assert groups(data, Mondrian()) == [[0, 1], [2, 3, 4, 5]]


def test_categories_are_cut_into_the_branches_of_their_common_ancestor():
    tree = {"North": ["a", "b"], "South": ["c", "d"], "West": ["e"]}
    data = encoded({"x": list("aabbccdd")}, x=category(builder="tree", nodes=tree))
    assert groups(data, Mondrian(), 4) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert groups(data, Mondrian()) == [[0, 1], [2, 3], [4, 5], [6, 7]]
    # One row in the West is too small a branch for k = 2, so the ancestor cannot be cut at all.
    data = encoded({"x": list("aabbccdde")}, x=category(builder="tree", nodes=tree))
    assert groups(data, Mondrian()) == [list(range(9))]
    assert len(groups(data, Mondrian(categories="ordered"))) == 4


def test_blanks_are_split_from_values_where_the_goal_allows_it():
    data = encoded({"a": [1, 2, None, 3, None, 4, 90, 91]}, a=NUMBER)
    assert groups(data, Mondrian()) == [[0, 1, 3], [2, 4], [5, 6, 7]]
    # A single blank cannot stand alone; it stays at the far end of the median cut.
    data = encoded({"a": [1, 2, None, 3, 4, 5]}, a=NUMBER)
    assert groups(data, Mondrian()) == [[0, 1, 3], [2, 4, 5]]


def test_the_thesis_example_gives_its_two_classes():
    # GFKMC thesis, tables 2.1 and 2.2: k = 3; the postal codes are published as 3657* and 3658*.
    frame = pl.DataFrame(
        {
            "age": [29, 30, 29, 40, 42, 43],
            "cep": ["36571-000", "36579-000", "36570-000", "36582-000", "36585-000", "36587-000"],
            "diagnosis": ["Diabetes", "Hipertensão", "Asma", "hepatite", "Câncer", "Câncer"],
        }
    )
    schema = Schema.from_dict(
        {
            "columns": {
                "age": {
                    "role": "quasi",
                    "kind": "numeric",
                    "taxonomy": {"builder": "intervals", "widths": [10]},
                },
                "cep": category(builder="prefix", keep=[4]),
                "diagnosis": {"role": "sensitive"},
            }
        }
    )
    release = anonymize(frame, schema, Mondrian(), k=3)
    assert release.aligned["cep"].to_list() == ["3657*"] * 3 + ["3658*"] * 3
    # 29 and 30 lie in two bands of ten, so the first class is true only as `*`; the thesis writes 20-30.
    assert release.aligned["age"].to_list() == ["*"] * 3 + ["[40..49]"] * 3
    assert release.recoded.notes["groups"] == 2
    plain = Schema.from_dict({"columns": {**schema.to_dict()["columns"], "age": NUMBER}})
    assert (
        anonymize(frame, plain, Mondrian(), k=3).aligned["age"].to_list()
        == ["[29..30]"] * 3 + ["[40..43]"] * 3
    )


@st.composite
def tables(draw):
    rows = draw(st.integers(6, 120))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sparse = random.integers(0, 10**6, rows) // draw(st.sampled_from([1, 1000, 200_000]))
    leaves = [f"{letter}{digit}" for letter in "abcd" for digit in range(3)]
    columns = {
        "n": sparse.tolist(),
        "m": [None if random.random() < 0.2 else int(random.integers(0, 6)) for _ in range(rows)],
        "x": random.choice(leaves, rows).tolist(),
        "y": [None if random.random() < 0.2 else str(random.choice(["u", "v", "w"])) for _ in range(rows)],
        "s": random.choice(["p", "q", "r"], rows).tolist(),
    }
    columns["n"][0], columns["m"][0], columns["y"][0] = 0, 1, "u"
    nested = {letter: [leaf for leaf in leaves if leaf[0] == letter] for letter in "abcd"}
    return encoded(
        columns,
        n=NUMBER,
        m=NUMBER,
        x=category(builder="tree", nodes={"ab": {"a": nested["a"], "b": nested["b"]}, "c": nested["c"], "d": nested["d"]}),
        y=category(builder="flat"),
        s={"role": "sensitive"},
    )  # fmt: skip


methods = st.builds(
    Mondrian,
    cut=st.sampled_from(["strict", "relaxed"]),
    categories=st.sampled_from(["taxonomy", "ordered"]),
)


@given(tables(), methods, st.integers(2, 6))
def test_both_engines_give_the_same_groups_and_every_group_has_k_rows(data, method, k):
    compiled, labels, count = both_engines(data, method, k)
    assert count == compiled.count
    np.testing.assert_array_equal(labels, compiled.labels)
    assert compiled.sizes.sum() == data.rows
    assert compiled.sizes.min() >= k


@given(tables(), methods, st.integers(2, 6))
def test_every_group_keeps_a_goal_that_counts_more_than_rows(data, method, k):
    goal = Goal((KAnonymity(k), LDiversity(2)))
    try:
        partition = method.partition(data, goal, silent)
    except GuaranteeNotMet:
        assert not goal.holds_in_parts(data, Partition(np.zeros(data.rows, dtype=np.int32), 1)).all()
        return
    assert goal.holds_in_parts(data, partition).all()


@given(tables(), st.integers(2, 6))
def test_strict_groups_do_not_depend_on_the_order_of_rows(data, k):
    order = np.random.default_rng(0).permutation(data.rows)
    before = Mondrian().partition(data, Goal((KAnonymity(k),)), silent).labels
    after = Mondrian().partition(data.subset(order), Goal((KAnonymity(k),)), silent).labels
    np.testing.assert_array_equal(before[order], after)


def test_a_table_that_cannot_keep_the_goal_is_refused():
    data = encoded({"a": [1, 2, 3, 4], "s": ["p"] * 4}, a=NUMBER, s={"role": "sensitive"})
    with pytest.raises(GuaranteeNotMet):
        Mondrian().partition(data, Goal((KAnonymity(2), LDiversity(2))), silent)


def test_no_cut_is_made_that_one_of_its_parts_would_not_survive():
    # a would be cut 1 2 | 9 10, but the left half holds one diagnosis only; b can be cut: rows 0 3 | 1 2.
    columns = {"a": [1, 2, 9, 10], "b": [0, 5, 6, 1], "s": ["p", "p", "q", "r"]}
    data = encoded(columns, a=NUMBER, b={**NUMBER, "bounds": [0, 100]}, s={"role": "sensitive"})
    goal = Goal((KAnonymity(2), LDiversity(2)))
    labels, _ = partition_levels(data, CutPlan.of(data, False), goal, 2, False, silent)
    assert groups_of(labels) == [[0, 3], [1, 2]]


def test_people_are_counted_where_the_goal_counts_people():
    # Rows 0 and 1 are one person: cutting 1 1 | 8 9 would leave a crowd of one on the left.
    columns = {"who": ["A", "A", "B", "C"], "a": [1, 1, 8, 9]}
    data = encoded(columns, who={"role": "identifier", "person": True}, a=NUMBER)
    assert groups(data, Mondrian()) == [[0, 1], [2, 3]]
    assert groups(data, Mondrian(), goal=Goal((KAnonymity(2, "person"),))) == [[0, 1, 2, 3]]


def test_wrong_settings_are_refused():
    for wrong in ({"k": 2}, {"cut": "diagonal"}, {"categories": "none"}, {"recoder": "none"}):
        with pytest.raises(ParameterError):
            Mondrian(**wrong)


def test_progress_is_told_from_start_to_end_and_notes_say_how_it_was_cut():
    data = encoded({"a": [1, 2, 3, 4]}, a=NUMBER)
    told = []
    recoded = Mondrian().anonymize(
        data, Goal((KAnonymity(2),)), seeded(0), lambda share, doing="": told.append(share)
    )
    assert told[0] == 0.0 and told[-1] == 1.0 and told == sorted(told)
    assert recoded.notes == {"groups": 2, "cut": "strict", "categories": "taxonomy"}


def adult(data_folder, age):
    names = {
        "sex": "sex", "race": "race", "marital_status": "marital-status", "education": "education",
        "native_country": "native-country", "workclass": "workclass", "occupation": "occupation", "age": "age",
    }  # fmt: skip
    columns = {}
    for name, file in names.items():
        text = (data_folder / "adult" / "hierarchies" / f"adult_hierarchy_{file}.csv").read_text()
        paths = [line.split(";") for line in text.splitlines()]
        tree = {}
        for path in paths:
            node = tree
            for label in reversed(path[1:-1]):
                node = node.setdefault(label, {})
            node.setdefault(path[0], path[0])
        columns[name] = category(builder="tree", nodes=tree)
    if age == "numeric":
        columns["age"] = NUMBER
    schema = Schema.from_dict({"columns": columns})
    return encode(read_table(data_folder / "adult" / "adult_clean.csv", schema, "drop"))


def test_adult_loses_no_more_than_the_peer_at_k_10(data_folder):
    # k-AnonML publishes 21.3 % (leaves / total, age as a tree of 100 leaves) for its Mondrian at k = 10.
    data = adult(data_folder, "tree")
    partition = Mondrian(categories="ordered").partition(data, Goal((KAnonymity(10),)), silent)
    loss = 0.0
    for column in data.columns:
        node = column.tree.common_ancestor(*partition.least_and_greatest(column.codes))
        leaves = column.tree.leaf_count[node]
        loss += float((np.where(leaves > 1, leaves / column.tree.leaves, 0.0) * partition.sizes).sum())
    assert partition.sizes.min() >= 10
    assert loss / (data.rows * len(data.columns)) < 0.213


@pytest.mark.parametrize("cut", ["strict", "relaxed"])
@pytest.mark.parametrize("categories", ["taxonomy", "ordered"])
def test_both_engines_agree_on_adult(data_folder, cut, categories):
    data = adult(data_folder, "numeric")
    compiled, labels, _ = both_engines(data, Mondrian(cut, categories), 5)
    np.testing.assert_array_equal(labels, compiled.labels)
