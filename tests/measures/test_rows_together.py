"""Rows of one person: columns that join them are named, others are not, and who stands alone is counted exactly."""

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from velado.data.keys import Key
from velado.data.schema import Schema
from velado.measures.risk import rows_together
from velado.measures.risk.rows_together import joined_people, steady_columns, told_together
from velado.release.side_doors import DoorDecision
from velado.study.evidence import gather_evidence
from velado.study.run import apply_recipe, publish, read_recipe

OWNER = Key(bytes(range(40)))

PEOPLE, ROWS = 80, 6


def dialysis(seed: int = 3) -> pl.DataFrame:
    """People with several sessions: weight drifts a little, what is drawn for each session is nobody's."""
    draw = random.Random(seed)
    rows = []
    for who in range(PEOPLE):
        weight, machine = draw.uniform(45, 110), f"m{draw.randrange(9)}"
        for _ in range(ROWS):
            rows.append(
                {
                    "who": f"P{who:03d}",
                    "age": 20 + who % 50,
                    "weight": f"{weight + draw.uniform(-1.5, 1.5):.1f}",
                    "pulse": str(draw.randrange(60, 100)),
                    "machine": machine if draw.random() < 0.98 else "m0",
                    "shift": draw.choice(["morning", "noon", "night"]),
                    "always": "yes",
                    "mostly": "yes" if who % 10 else "no",
                }
            )
    return pl.DataFrame(rows)


def owners(frame: pl.DataFrame) -> np.ndarray:
    return frame["who"].rank("dense").to_numpy().astype(np.int32)


def test_columns_that_stay_the_same_within_a_person_are_named() -> None:
    frame = dialysis()
    others = ["weight", "pulse", "machine", "shift", "always", "mostly"]
    assert steady_columns(frame, others, owners(frame)) == ("weight", "machine")


def test_numbers_with_a_decimal_comma_are_numbers() -> None:
    frame = dialysis()
    commas = pl.col("weight").cast(pl.Float64).round(2).cast(pl.String).str.replace(".", ",", literal=True)
    written = frame.with_columns(commas)
    assert steady_columns(frame, ["weight"], owners(frame)) == ("weight",)
    assert steady_columns(written, ["weight"], owners(frame), ",") == ("weight",)
    visited, groups, people = visits(0.05)
    found = joined_people(visited.select(commas)["weight"], groups, people, ",")
    assert found == joined_people(visited["weight"], groups, people) and found.people


def test_blanks_and_rows_of_nobody_do_not_decide() -> None:
    frame = dialysis()
    gaps = frame.with_columns(
        pl.when(pl.int_range(pl.len()) % 5 == 0).then(None).otherwise(pl.col("weight")).alias("weight")
    )
    assert steady_columns(gaps, ["weight", "pulse"], owners(frame)) == ("weight",)
    assert steady_columns(frame, ["weight"], np.zeros(frame.height, dtype=np.int32)) == ()


def test_one_row_a_person_names_nothing() -> None:
    frame = dialysis().unique("who", keep="first", maintain_order=True)
    assert steady_columns(frame, ["weight", "machine"], owners(frame)) == ()


def test_a_column_without_values_is_not_named() -> None:
    frame = dialysis().with_columns(pl.lit(None, dtype=pl.String).alias("weight"))
    assert steady_columns(frame, ["weight"], owners(frame)) == ()


def test_who_stands_alone_is_counted_as_by_hand() -> None:
    frame = dialysis().select("who", "machine", "shift", "mostly")
    shown = frame.drop("who")
    tuples = list(shown.iter_rows())
    seen = Counter(tuples)
    assert told_together(shown).alone == sum(seen[one] == 1 for one in tuples)
    holders: dict[tuple[object, ...], set[str]] = {}
    for one, who in zip(tuples, frame["who"], strict=True):
        holders.setdefault(one, set()).add(who)
    alone = {who for people in holders.values() if len(people) == 1 for who in people}
    found = told_together(shown, owners(frame))
    assert (found.unit, found.units, found.alone) == ("people", PEOPLE, len(alone))


def test_the_report_warns_and_limits_its_chances_to_one_row(tmp_path) -> None:
    columns = {
        "who": {"role": "identifier", "kind": "text", "person": True},
        "age": {"role": "quasi", "kind": "numeric"},
        "weight": {"role": "other", "kind": "numeric"},
        "pulse": {"role": "other", "kind": "numeric"},
    }
    frame = dialysis().select(*columns)
    done = publish(frame, Schema.from_dict({"columns": columns}), "mondrian", k=5, out=tmp_path / "out")
    warnings = " ".join(done.facts.warnings)
    assert "may be joined by 'weight':" in warnings and "'pulse'" not in warnings
    report = (tmp_path / "out/private/report.html").read_text("utf-8")
    about = "".join(path.read_text("utf-8") for path in (tmp_path / "out/release").glob("*.html"))
    assert "for one row at a time" in report and "by all published columns together" in report.lower()
    for page in (report, about):
        assert "stay the same within a person" in page
    assert "weight&#39;: hardly" not in about


def visits(noise: float, per: int = 4, people: int = 60) -> tuple[pl.DataFrame, np.ndarray, np.ndarray]:
    """Visits of people whose weights differ, in groups of six people each that a person changes at every visit."""
    draw = np.random.default_rng(8)
    who = np.repeat(np.arange(people), per)
    visit = np.tile(np.arange(per), people)
    groups = ((who + visit * 7) % people) // 6 * per + visit
    weight = np.round(40 + who * 37 % people + draw.normal(0, noise, who.size), 1)
    frame = pl.DataFrame(
        {"weight": weight, "room": [f"r{one % 3}" for one in who], "nobody": ["x"] * who.size}
    )
    return frame, groups, (who + 1).astype(np.int64)


def test_rows_that_a_steady_column_joins_are_counted_in_people() -> None:
    frame, groups, people = visits(0.05)
    found = joined_people(frame["weight"], groups, people)
    assert found.several == 60 and found.people == 60
    loose, groups, people = visits(20.0)
    assert joined_people(loose["weight"], groups, people).share < 0.5
    assert joined_people(frame["nobody"], groups, people).people == 0
    assert joined_people(frame["weight"], groups, np.arange(1, frame.height + 1)).several == 0


def test_a_part_of_the_people_stands_for_all_where_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    frame, groups, people = visits(0.05)
    monkeypatch.setattr(rows_together, "MOST_NEAR", 500)
    assert joined_people(frame["weight"], groups, people).people == 60


def test_a_release_names_the_door_and_the_recipe_accepts_it(tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    who = np.repeat(np.arange(80), 3)
    pl.DataFrame(
        {
            "patient": [f"P{one}" for one in who],
            "age": 20 + who // 4 + draw.integers(0, 2, who.size),
            "sex": np.where(who % 2, "F", "M"),
            "weight": np.round(40 + who * 0.7 + draw.normal(0, 0.05, who.size), 1),
        }
    ).write_csv(tmp_path / "visits.csv")
    columns = {
        "patient": {"role": "identifier", "person": True},
        "age": {"role": "quasi", "kind": "numeric"},
        "sex": {"role": "quasi"},
        "weight": {"role": "other", "kind": "numeric", "side_door": "accept", "reason": "trial"},
    }
    schema = Schema.from_dict({"columns": columns})
    made = publish(
        tmp_path / "visits.csv", schema, "mondrian", k=3, out=tmp_path / "one", reports=(), key=OWNER
    )
    (door,) = [one for one in made.release.side_doors if one.kind == "joins"]
    assert door.column == "weight" and door.rows_revealed > 40 and door.accepted
    assert f"joins the rows of {door.rows_revealed} people" in door.sentence()
    recipe = read_recipe(tmp_path / "one/private/recipe.toml")
    less = replace(door, guess=door.guess / 2)
    for told, accepted, words in ((door, True, b"accepted by ana: trial"), (less, False, b"it is worse now")):
        taken = DoorDecision.of(told, reason="trial", by="ana", at="2026-05-01")
        out = tmp_path / f"again-{accepted}"
        again = apply_recipe(replace(recipe, doors=(taken,)), tmp_path / "visits.csv", out, key=OWNER)
        assert [one.accepted for one in again.release.side_doors if one.kind == "joins"] == [accepted]
        assert read_recipe(out / "private/recipe.toml").doors == (taken,)
        pack = gather_evidence(out, "lgpd", key=OWNER)
        assert any(words in content for name, content in pack.files.items() if name.endswith(".html"))
