"""A file sorted by what is sensitive: its order must have no part in groups that are said to be made from quasi-identifiers alone.

The attacker knows everybody's quasi-identifiers, the method, which row is whose, and that the file was sorted by illness. A method
that takes the first of several rows that are equally near told him every illness . All worlds are tried.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from velado.data.history_file import create_history
from velado.data.keys import Key
from velado.data.schema import Schema
from velado.errors import ParameterError
from velado.randomness import seeded
from velado.release.anonymize import anonymize
from velado.release.goal import Goal, silent
from velado.release.guarantees import KAnonymity, LDiversity
from velado.release.history.together import Together, cells_of, withheld_cells
from velado.release.methods import MDAV, KMember, Progressive
from velado.release.methods._method import Method
from velado.study.run import publish
from velado.testing.examples import encoded

KEY = Key(bytes(range(40)))
SCHEMA = Schema.from_dict(
    {
        "columns": {
            "id": {"role": "identifier", "person": True},
            "age": {"role": "quasi", "kind": "numeric"},
            "place": {"role": "quasi", "kind": "numeric"},
            "illness": {"role": "sensitive", "kind": "categorical"},
        }
    }
)
AGES = (20, 20, 20, 20, 30)
HALF = Fraction(1, 2)


def home_in(world: tuple[int, ...], method: Method, size: int, by_file: bool) -> np.ndarray:
    """The group of each person where the file is sorted by illness, then by person."""
    order = sorted(range(len(AGES)), key=lambda p: (world[p], p))
    data = encoded(age=[AGES[p] for p in order])
    if by_file:
        made = method.anonymize(data, Goal((KAnonymity(size),)), seeded(0, method.name), silent)
        assert made.partition is not None
        cells = made.partition.labels
    else:
        lots = np.array([3, 1, 4, 0, 2])[order]  # a number that goes with the person
        cells = cells_of(data, np.arange(len(AGES)), size, method, 0, lots)
    home = np.empty(len(AGES), np.int64)
    home[order] = cells
    return home


def largest_belief(method: Method, size: int, by_file: bool) -> Fraction:
    """The most that can be believed of a value of somebody whose group got counts, over all worlds."""
    left: dict[object, list[tuple[int, ...]]] = {}
    for world in product(range(3), repeat=len(AGES)):
        home = home_in(world, method, size, by_file)
        bad = withheld_cells(home, np.array(world), HALF)
        counts = Counter((int(g), v) for g, v in zip(home, world, strict=True) if not bad[g])
        shown = tuple(-1 if bad[g] else int(g) for g in home)
        left.setdefault((shown, tuple(sorted(counts.items()))), []).append(world)
    most = Fraction(0)
    for (shown, _), worlds in left.items():  # type: ignore[misc]
        for p, group in enumerate(shown):
            if group >= 0:
                most = max(most, Fraction(max(Counter(w[p] for w in worlds).values()), len(worlds)))
    return most


@pytest.mark.parametrize("method", [Progressive(), MDAV(), KMember()], ids=lambda m: m.name)
def test_a_sorted_file_tells_no_more_than_the_counts_of_groups(method: Method) -> None:
    assert largest_belief(method, 2, by_file=True) == 1  # what the order of the file told
    assert largest_belief(method, 2, by_file=False) == HALF


def people(count: int = 60) -> pl.DataFrame:
    random = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "id": [f"p{at}" for at in range(count)],
            "age": random.integers(20, 26, count),
            "place": random.integers(0, 3, count),
            "illness": random.choice(["asthma", "flu", "gout", "hiv"], count),
        }
    )


@pytest.mark.parametrize("what", ["values", "people"])
def test_what_is_held_together_is_the_same_however_the_file_is_sorted(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "state"))
    asked = Together(what="people") if what == "people" else Together(what="values", group=10, most="9/10")
    seen = []
    for number, frame in enumerate((people(), people().sort("illness"), people().reverse())):
        create_history(path := tmp_path / f"{number}.history", KEY)
        done = publish(
            frame, SCHEMA, "mdav", k=3, suppression=0.5, bound="off", out=tmp_path / f"{number}", key=KEY,
            history=path, together=asked,
        )  # fmt: skip
        names = done.release.original.frame["id"][done.release.rows]
        seen.append(done.release.frame.with_columns(names).sort("id"))
    assert seen[0].equals(seen[1]) and seen[0].equals(seen[2])


def test_rows_of_one_person_are_grouped_by_no_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "state"))
    moved = people().with_columns(pl.col("age") + 30, illness=pl.lit("flu"))
    twice, seen = pl.concat([people(), moved[:30]]), []
    for number, frame in enumerate((twice, twice.reverse())):
        create_history(path := tmp_path / f"{number}.history", KEY)
        asked = Together(what="values", group=10, most="9/10")
        done = publish(
            frame, SCHEMA, "mondrian", k=3, suppression=0.5, bound="off", out=tmp_path / f"{number}", key=KEY,
            history=path, together=asked,
        )  # fmt: skip
        names = done.release.original.frame["id"][done.release.rows]
        seen.append(done.release.frame.with_columns(names).sort(pl.all()))
    assert seen[0].equals(seen[1])


@pytest.mark.parametrize("improve", [False, True])
def test_blind_groups_are_the_same_however_the_file_is_sorted(improve: bool) -> None:
    """Which of several equal rows goes where is drawn; what is shown of so many of them is not."""
    seen = []
    for frame in (people(), people().sort("illness"), people().reverse()):
        made = anonymize(
            frame, SCHEMA, MDAV(), [LDiversity(2)], k=4, suppression=0.9, blind=True, key=KEY, improve=improve
        )
        boxes = [one.low[one.codes].tolist() for one in made.recoded.columns]
        seen.append(sorted(zip(frame["age"], frame["place"], *boxes, strict=True)))
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize("what", ["values", "people"])
def test_the_order_of_the_file_cannot_be_kept_beside_what_is_held_together(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a file sorted by illness the n-th row of a group has the n-th of its listed values: 200 of 200 were told so."""
    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "state"))
    create_history(path := tmp_path / "h", KEY)
    with pytest.raises(ParameterError, match="order"):
        publish(
            people().sort("illness"), SCHEMA, "mondrian", k=3, out=tmp_path / "o", key=KEY, history=path,
            keep_order=True, together=Together(what=what),
        )  # fmt: skip
    assert not (tmp_path / "o").exists()
