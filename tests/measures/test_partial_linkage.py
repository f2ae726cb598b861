"""What an attacker who knows only some quasi-identifiers achieves."""

import json
from collections import Counter
from itertools import combinations

import numpy as np
import polars as pl
import pytest

from velado.data.schema import Column
from velado.errors import ParameterError
from velado.measures.recoded_columns import read_published
from velado.measures.risk.partial_linkage import linkage_with, partial_knowledge

from .conftest import make_table


@pytest.fixture
def people() -> pl.DataFrame:
    random = np.random.default_rng(4)
    return pl.DataFrame(
        {
            "age": [str(value) for value in random.integers(20, 40, 60)],
            "town": random.choice(["norte", "sul", "leste"], 60).tolist(),
            "sex": random.choice(["f", "m"], 60).tolist(),
            "job": random.choice(["a", "b", "c", "d"], 60).tolist(),
        }
    )


def table_of(frame: pl.DataFrame):
    kinds = {name: "numeric" if name == "age" else "categorical" for name in frame.columns}
    return make_table(frame, *(Column(name, "quasi", kind) for name, kind in kinds.items()))


def recoded(frame: pl.DataFrame) -> pl.DataFrame:
    age = pl.col("age").cast(pl.Int64)
    return frame.with_columns(
        pl.when(age < 30).then(pl.lit("[20..29]")).otherwise(pl.lit("[30..39]")).alias("age"),
        pl.lit("*").alias("job"),
    )


def test_every_subset_is_counted_in_both_tables(people) -> None:
    frame = recoded(people)
    found = partial_knowledge(read_published(table_of(people), frame), 3)
    assert len(found.subsets) == 4 + 6 + 4
    for size in (1, 2, 3):
        for names in combinations(people.columns, size):
            part = found.of(names)
            for crowd, shown in ((part.before, people), (part.after, frame)):
                counts = Counter(shown.select(names).rows())
                assert crowd.unique_rows == sum(number == 1 for number in counts.values())
                assert crowd.unique_share == pytest.approx(crowd.unique_rows / 60)
                assert crowd.smallest_class == min(counts.values())
                assert crowd.mean_risk == pytest.approx(len(counts) / 60)


def test_the_worst_subsets_come_first_and_the_default_is_three_columns(people) -> None:
    same = partial_knowledge(read_published(table_of(people), people))
    assert same.largest == 3
    uniques = [part.after.unique_rows for part in same.subsets]
    assert uniques == sorted(uniques, reverse=True) and uniques[0] > 0
    assert "age" in same.worst(1)[0].columns
    coarse = partial_knowledge(read_published(table_of(people), recoded(people)))
    order = [
        (-part.after.unique_rows, part.after.smallest_class, -part.after.mean_risk) for part in coarse.subsets
    ]
    assert order == sorted(order) and len({smallest for _, smallest, _ in order}) > 2
    document = same.to_dict(2)
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert len(document["worst"]) == 2 and "norte" not in json.dumps(document)


def test_suppressed_rows_are_not_in_the_published_crowd(people) -> None:
    kept = np.arange(60) % 3 != 0
    published = read_published(table_of(people), people.filter(pl.Series(kept)), kept)
    part = partial_knowledge(published, 1).of(["town"])
    assert part.after.smallest_class == min(Counter(people.filter(pl.Series(kept))["town"]).values())
    assert part.before.smallest_class == min(Counter(people["town"]).values())


def test_linkage_with_exact_values_is_the_mean_risk_and_with_less_it_is_less(people) -> None:
    published = read_published(table_of(people), people)
    for names in (["town"], ["sex", "town"], people.columns):
        # Values are published as they are, so the nearest records are the class, and a hit is worth 1 / size.
        mean = len(set(people.select(names).rows())) / 60
        assert linkage_with(published, names).share == pytest.approx(mean)
    coarse = read_published(table_of(people), recoded(people))
    assert linkage_with(coarse, ["age"]).share < linkage_with(published, ["age"]).share
    # A column published as nothing but * tells nothing: everybody is as near as everybody else.
    assert linkage_with(coarse, ["job"]).share == pytest.approx(1 / 60)


def test_columns_that_are_no_quasi_identifiers_are_refused(people) -> None:
    published = read_published(table_of(people), people)
    with pytest.raises(ParameterError, match="not all of them quasi-identifiers"):
        linkage_with(published, ["age", "shoe"])
    with pytest.raises(ParameterError, match="one or more"):
        linkage_with(published, [])
    with pytest.raises(ParameterError, match="no subset"):
        partial_knowledge(published, 1).of(["age", "sex"])
    with pytest.raises(ParameterError, match="there are 4"):
        partial_knowledge(published, 5)


def test_linkage_needs_to_know_which_row_is_which(people) -> None:
    published = read_published(table_of(people), people.head(50))
    assert partial_knowledge(published, 2).subsets
    with pytest.raises(ParameterError, match="which rows were suppressed"):
        linkage_with(published, ["age"])


def test_too_many_subsets_are_refused_with_their_number() -> None:
    frame = pl.DataFrame({f"c{i}": ["x", "y"] for i in range(60)})
    table = make_table(frame, *(Column(name, "quasi", "categorical") for name in frame.columns))
    with pytest.raises(ParameterError, match="36050 key sets of up to 3; the limit is 20000"):
        partial_knowledge(read_published(table, frame))
