"""Memoized reports: drawn as they say, private as they say over any number of reports, and estimated without bias."""

import itertools
import json
import math
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from velado.apps.cli import run
from velado.errors import ParameterError
from velado.query.memoized import MemoizedResponse

KINDS = ("calm", "pain", "panic")
ASKED = MemoizedResponse(KINDS, Fraction(1), Fraction(2))


def chance_of(told: tuple[int, ...], truth: list[int]) -> float:
    """The exact chance of a device's reports, its permanent answers (one for each value) summed out."""
    k, p, r = len(KINDS), ASKED.permanent, ASKED.instantaneous
    values = sorted(set(truth))
    total = 0.0
    for drawn in itertools.product(range(k), repeat=len(values)):
        memo = dict(zip(values, drawn, strict=True))
        here = math.prod(p if memo[v] == v else (1 - p) / (k - 1) for v in values)
        here *= math.prod(
            r if one == memo[v] else (1 - r) / (k - 1) for one, v in zip(told, truth, strict=True)
        )
        total += here
    return total


def worst(one: list[int], two: list[int]) -> float:
    every = itertools.product(range(len(KINDS)), repeat=len(one))
    return max(abs(math.log(chance_of(told, one) / chance_of(told, two))) for told in every)


def test_no_reports_tell_more_than_was_promised() -> None:
    assert (
        worst([0], [1]) == pytest.approx(1, abs=1e-6) and worst([0], [1]) <= 1
    )  # and no less exact than promised
    losses = [worst([0] * n, [1] * n) for n in (2, 4, 7)]
    assert losses == sorted(losses) and 1.5 < losses[-1] <= 2
    assert worst([0, 0, 0, 1, 1, 1], [2, 2, 2, 0, 0, 0]) <= 2 * 2  # which two values they were
    # That a value changed is not promised, and indeed told: this is why the sentence stands there.
    assert worst([0] * 4 + [1] * 4, [0] * 8) > 2


def test_draws_have_the_chances_that_are_said() -> None:
    n = 3000
    memos = [ASKED.report("pain", {}) for _ in range(n)]
    kept = sum(memo["pain"] == "pain" for _, memo in memos)
    told = Counter(report for report, _ in memos)
    for count, p in (
        (kept, ASKED.permanent),
        (told["pain"], ASKED.chance),
        (told["calm"], (1 - ASKED.chance) / 2),
    ):
        deviation = math.sqrt(n * p * (1 - p))
        assert abs(count - n * p) < 4.5 * deviation
        assert abs(count - n * p * 1.1) > 4.5 * deviation or p < 0.5  # a chance a tenth off would be seen
    report, memo = memos[0]
    again = Counter()
    for _ in range(400):
        report, after = ASKED.report("pain", memo)
        assert after == memo
        again[report] += 1
    assert again.most_common(1)[0][0] == memo["pain"]


def test_shares_are_estimated_without_bias_and_intervals_hold() -> None:
    held = 0
    for _ in range(25):
        reports = [ASKED.report(KINDS[at % 10 // 5], {})[0] for at in range(200)]
        one = ASKED.estimate(reports)["calm"]
        held += one.low <= 0.5 <= one.high
    assert held >= 19  # of 25 at 95 %: fewer has a chance below one in a thousand


def test_what_keeps_no_promise_is_refused() -> None:
    with pytest.raises(ParameterError, match="not below"):
        MemoizedResponse(KINDS, Fraction(2), Fraction(2))
    with pytest.raises(ParameterError, match="none of the declared"):
        ASKED.report("rage", {})


def test_a_device_keeps_its_memo_and_a_collector_estimates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    memo, reports = tmp_path / "memo.json", tmp_path / "reports.txt"
    asked = ["--categories", ",".join(KINDS)]
    assert run(["local", "report", "pain", *asked, "--memo", str(memo)]) == 0
    assert memo.stat().st_mode & 0o777 == 0o600
    before = json.loads(memo.read_text())["drawn"]
    assert run(["local", "report", "pain", *asked, "--memo", str(memo)]) == 0
    assert json.loads(memo.read_text())["drawn"] == before
    assert run(["local", "report", "pain", *asked, "--memo", str(memo), "--forever", "3"]) == 2
    reports.write_text("\n".join(["pain"] * 60 + ["calm"] * 20 + ["panic"] * 20))
    capsys.readouterr()
    assert run(["local", "estimate", str(reports), *asked]) == 0
    assert "0.811" in capsys.readouterr().out or ASKED.estimate(
        ["pain"] * 60 + ["calm"] * 20 + ["panic"] * 20
    )
