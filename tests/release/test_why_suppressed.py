"""For every suppressed row there is a reason, and it is the true one."""

import numpy as np
import polars as pl
import pytest

from velado.data.keys import Key
from velado.data.schema import Schema
from velado.release.anonymize import anonymize
from velado.release.methods import METHODS
from velado.release.why_suppressed import why_suppressed

DRAW = np.random.default_rng(1)
FRAME = pl.DataFrame(
    {
        "age": [*(str(n) for n in DRAW.integers(20, 60, 200)), "99", ""],
        "sex": DRAW.choice(["F", "M"], 202),
        "ill": DRAW.choice(["a", "b", "c"], 202, p=[0.9, 0.05, 0.05]),
    }
)
SCHEMA = Schema.from_dict(
    {
        "table": {"missing": "suppress"},
        "columns": {
            "age": {"role": "quasi", "kind": "numeric"},
            "sex": {"role": "quasi"},
            "ill": {"role": "sensitive"},
        },
    }
)
KEY = Key(bytes(range(40)))


@pytest.mark.parametrize("method", ["fixed-interval", "full-domain", "mondrian", "mdav"])
def test_every_suppressed_row_has_a_reason(method: str) -> None:
    assert method in {one.name for one in METHODS}
    release = anonymize(FRAME, SCHEMA, method, k=5, suppression=0.1, key=KEY)
    told = why_suppressed(release)
    assert [one.row for one in told] == np.flatnonzero(~release.kept).tolist()
    blank = next(one for one in told if one.row == 201)
    assert (blank.reason, blank.cost) == ("blank", None)
    assert all(one.cost is None or one.cost >= 0 for one in told)


def test_a_row_alone_in_its_interval_is_in_a_small_group() -> None:
    told = why_suppressed(anonymize(FRAME, SCHEMA, "fixed-interval", k=5, suppression=0.1, key=KEY))
    (lone,) = [one for one in told if one.row == 200]
    assert (lone.reason, lone.group_rows) == ("small group", 1)
    assert "5" in lone.sentence and "99" not in lone.sentence
    assert lone.cost is not None and lone.cost > 0


def test_a_group_that_is_large_but_all_alike_breaks_its_promise() -> None:
    release = anonymize(FRAME, SCHEMA, "gfkmc", "l-diversity", k=5, suppression=0.3, blind=True, key=KEY)
    told = [one for one in why_suppressed(release) if one.reason == "promise"]
    assert told and all(one.group_rows >= 5 for one in told)
    assert len(why_suppressed(release, most=1)) == 1
