"""Rows of one person: columns that join them are named, others are not, and who stands alone is counted exactly."""

import random
from collections import Counter

import numpy as np
import polars as pl

from velado.data.schema import Schema
from velado.measures.risk.rows_together import steady_columns, told_together
from velado.study.run import publish

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
