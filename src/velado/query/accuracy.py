"""How exact an answer is to be, and the least spend that makes it so; all from public things, before anything is paid.

A wish is a half-width: with the stated chance (95 % unless said otherwise) a value is off by no more. A number is meant in the
value's own unit (rows, or the column's numbers; for quantiles ranks). A percentage is one of the largest that the value can
be by what was declared: of the declared rows for a count or a rank, of those rows times the column's range for a sum, of
the column's range for an average. Nothing here sees a row, so a price tells nothing of one.

How exact an average is depends on how many rows are averaged. Before paying, the declared size of the table
(`[dataset] rows`), spread evenly over the declared keys, stands for it; the answer's own interval is exact about it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal, NotRequired, TypedDict

from velado.errors import ParameterError, QueryRefused
from velado.query.budget import MOST_TOTAL, Measure, exact, measure_word, short
from velado.query.needs import Grid, Rows
from velado.query.noise import (
    Mechanism,
    calibrate,
    half_width,
    joint_width,
    measurement,
    sensitivity,
    widest_scale,
)
from velado.query.unit import Unit
from velado.settings import Setting, Where, fraction_of, read_value
from velado.text import Sentence, say

USUAL = Fraction(19, 20)
"""The chance with which a wish holds unless another is named."""
_DIGITS = 6
"""Least spends are rounded up to as many significant digits: a person can read and write them again."""


def _is_wish(value: object) -> bool:
    try:
        return _amount(value)[0] > 0
    except (ValueError, ZeroDivisionError):
        return False


def _amount(value: object) -> tuple[Fraction, bool]:
    text = str(value).strip()
    number = text.removesuffix("%").strip()
    return fraction_of(number), number != text


Within = Annotated[
    str | int | float,
    Setting(
        "how exact: by how much each value may be off at most, a number or a percentage",
        test=_is_wish,
        takes=say("a number above 0, or a percentage such as '5%'"),
        why=say("It is by how much each value may be off at most."),
        example="10",
    ),
]
"""What every door takes as a wish."""


@dataclass(frozen=True)
class Wish:
    """By how much each value may be off at most: a number of its own unit, or a percentage of all it can be.

    >>> str(Wish.of("5 %", "within", Where("flag"))), Wish(Fraction(10)).percent
    ('5%', False)
    """

    amount: Fraction
    percent: bool = False

    @classmethod
    def of(cls, value: object, name: str, where: Where) -> Wish:
        """The wish that somebody wrote, or the one error that tells why it is none, under its *name* there."""
        plain = str(value) if isinstance(value, Fraction) else value
        return cls(*_amount(read_value(Within, plain, name, where)))

    def __str__(self) -> str:
        return f"{self.amount}%" if self.percent else str(self.amount)

    def in_units(self, largest: Fraction | None) -> Fraction:
        """The half-width in the value's own unit; *largest* is what a percentage is of, None where nobody declared it."""
        if not self.percent:
            return self.amount
        if largest is None:
            raise without_size(say("A percentage is one of the table's size, and that is not declared."))
        return self.amount / 100 * largest


def without_size(what: str) -> QueryRefused:
    """The refusal of a wish that needs the table's public size.

    >>> str(without_size("No size."))[:8]
    'No size.'
    """
    return QueryRefused(
        what,
        "Counting the rows to find out would tell of them, so the owner declares about how many there are.",
        "Declare rows = N in [dataset] of the schema, or name the spend instead.",
    )


def rows_of_a_key(rows: int | None, keys: int) -> Fraction | None:
    """About how many rows one of *keys* declared keys has, where the table's size is declared.

    >>> rows_of_a_key(1000, 4)
    Fraction(250, 1)
    """
    return None if rows is None else Fraction(rows, max(1, keys))


# The least share of a budget for one draw.


def share_for_width(
    mechanism: Mechanism, measure: Measure, most: int, width: int, confidence: Fraction = USUAL
) -> Fraction:
    """The least share with which noise that hides *most* is within *width* steps with that chance.

    >>> float(share_for_width("laplace", "epsilon", 1, 10))
    0.284349
    """
    scale = widest_scale(mechanism, width, confidence)
    return _fitting(
        mechanism, measure, most, scale, lambda found: half_width(mechanism, found, confidence) <= width
    )


def share_for_rank(
    measure: Measure, most: int, choice: tuple[int, Fraction], rows: Fraction, confidence: Fraction
) -> Fraction:
    """The least share with which a quantile misses its rank by at most *rows*; *choice* is its candidates' number and its level.

    >>> round(float(share_for_rank("epsilon", 1, (100, Fraction(1, 2)), Fraction(10), USUAL)), 3)
    0.76
    """
    number, at = choice
    scale = float(rows) * at.denominator / math.log(number / float(1 - confidence))
    return _fitting("noisy-max", measure, most, min(scale, 2.0**49), lambda found: found <= scale)


def _fitting(mechanism: Mechanism, measure: Measure, most: int, scale: float, fits: object) -> Fraction:
    """The charge of *scale*, rounded up to a few digits, at which the scale that is really taken *fits*."""
    assert callable(fits)
    asked = rounded_up(Fraction(measurement(mechanism, measure, max(scale, 2.0**-20)).map(most)))
    while asked <= MOST_TOTAL and not fits(calibrate(mechanism, measure, most, asked)[0]):
        asked = rounded_up(asked * (1 + Fraction(1, 10**_DIGITS)))
    return asked


def rounded_up(amount: Fraction) -> Fraction:
    """The amount with six significant digits, never less.

    >>> rounded_up(Fraction(1, 3)), rounded_up(Fraction(2))
    (Fraction(166667, 500000), Fraction(2, 1))
    """
    if amount <= 0:
        return amount
    unit = Fraction(10) ** (math.floor(math.log10(amount)) - _DIGITS + 1)
    return math.ceil(amount / unit) * unit


def check_total(total: Fraction, measure: Measure) -> None:
    """Nothing, where that much may be spent at all; refused otherwise.

    >>> check_total(Fraction(2), "epsilon")
    """
    if total > MOST_TOTAL:
        raise QueryRefused(
            say(
                "To be that exact takes {measure} {total}, and at most {most} may ever be spent on a table.",
                measure=measure_word(measure),
                total=short(Fraction(math.ceil(total))),
                most=MOST_TOTAL,
            ),
            "So little noise would protect nobody.",
            "Ask for a larger half-width or for fewer values at once, or declare narrower bounds.",
        )


def check_most(charge: Fraction, most: Fraction | None, measure: Measure) -> None:
    """Nothing, where the price of an accuracy is within what was allowed beside it; refused otherwise.

    >>> check_most(Fraction(1), None, "epsilon")
    """
    if most is not None and charge > most:
        raise QueryRefused(
            say(
                "To be that exact takes {measure} {charge}, more than the {most} allowed for it.",
                measure=measure_word(measure),
                charge=short(charge),
                most=short(most),
            ),
            "Nothing was asked and nothing was spent.",
            "Allow more for it, or ask for a larger half-width.",
        )


MOST_QUESTIONS = 10_000
"""So many questions a budget is for at most, unless the owner sets another least spend for each."""


def least_spend(total: Fraction) -> Fraction:
    """The least that a question spends of a budget of *total*, where its owner says nothing.

    Besides its numbers every answer tells a little by the time it takes and by its being given at all, which no noise hides. A
    least spend bounds how often that can be looked at.

    >>> least_spend(Fraction(2))
    Fraction(1, 5000)
    """
    return total / MOST_QUESTIONS


def check_least(spend: Fraction, least: Fraction, measure: Measure) -> None:
    """Nothing, where a question spends enough; refused otherwise.

    >>> check_least(Fraction(1), Fraction(1, 100), "epsilon")
    """
    if spend < least:
        raise QueryRefused(
            say(
                "A question spends at least {measure} {least} of this budget.",
                measure=measure_word(measure),
                least=short(least),
            ),
            "Each answer also tells a little by the time it takes, so there may not be any number of them.",
            "Spend at least that; an accuracy that costs less is given with it, more exactly than was asked.",
        )


def suggested_spend(unit: Unit, rows: int, measure: Measure) -> Fraction:
    """What a question may spend where nobody says: as much as keeps a COUNT's half-width at the square root of the table's size.

    That is about the chance error that a sample of that size has anyway, so noise does not decide what can be seen.

    >>> float(suggested_spend(Unit(), 10_000, "epsilon")) < 0.03
    True
    """
    mechanism: Mechanism = "laplace" if measure == "epsilon" else "gaussian"
    width = max(1, math.isqrt(rows))
    found = share_for_width(mechanism, measure, sensitivity(Rows(), unit, 1), width)
    return min(found, Fraction(MOST_TOTAL))


# Averages: a noisy sum of distances from the grid's centre over a noisy count.
#
# At the true average m the number S - m C of the noisy sum and count is noise alone, X - m Y. So with the stated chance
# |S - m C| <= q(m), the joint width at weight |m|: every m for which that holds is in the interval (Fieller 1954). q is
# convex, so the chord from q(0) to q(reach) lies above it, and with it the interval has ends in closed form.


class AverageWidths(TypedDict):
    """The chord above q: *of_sum* at 0, and *of_count* more for each step away from the centre.

    >>> AverageWidths(of_sum=30.0, of_count=2.0)["of_sum"]
    30.0
    """

    of_sum: float
    of_count: float


def average_widths(
    mechanism: Mechanism, scales: tuple[float, float], reach: int, confidence: Fraction
) -> AverageWidths:
    """How far noisy sum and noisy count (of these scales) may together be off, for averages up to *reach* steps from the centre.

    Never wider than taking each alone at half the risk.

    >>> both = average_widths("laplace", (600.0, 10.0), 60, USUAL)
    >>> both["of_sum"] + 60 * both["of_count"] < 0.6 * (600 + 60 * 10) * math.log(40)
    True
    """
    each = (1 + confidence) / 2
    alone = AverageWidths(
        of_sum=half_width(mechanism, scales[0], each), of_count=half_width(mechanism, scales[1], each)
    )
    if reach == 0:
        return alone
    near = joint_width(mechanism, scales, 0.0, confidence)
    far = max(near, joint_width(mechanism, scales, float(reach), confidence))
    if far >= alone["of_sum"] + reach * alone["of_count"]:
        return alone
    return AverageWidths(of_sum=near, of_count=(far - near) / reach)


def average_half_width(
    mechanism: Mechanism, scales: tuple[float, float], reach: int, rows: Fraction, confidence: Fraction
) -> float:
    """By how many steps an average of at least *rows* rows is off at most, wherever it lies; infinite where nothing can be told.

    >>> round(average_half_width("laplace", (600.0, 10.0), 60, Fraction(10_000), USUAL), 2)
    0.25
    """
    widths = average_widths(mechanism, scales, reach, confidence)
    # The noisy count may be this much below the exact one.
    fewer = half_width(mechanism, scales[1], confidence)
    left = float(rows) - fewer - widths["of_count"]
    return (widths["of_sum"] + reach * widths["of_count"]) / left if left > 0 else math.inf


@dataclass(frozen=True, kw_only=True)
class AverageWish:
    """An average that is to be within *width* steps over *rows* rows; one unit moves its sum and count by *most*.

    >>> AverageWish(measure="epsilon", most=(60, 1), reach=60, width=1.0, rows=Fraction(1000)).confidence
    Fraction(19, 20)
    """

    measure: Measure
    most: tuple[int, int]
    reach: int
    width: float
    rows: Fraction
    confidence: Fraction = USUAL

    def shares(self, held: tuple[Fraction, Fraction]) -> tuple[Fraction, Fraction]:
        """The least shares of sum and count, which have as much as is *held* already for other values.

        Sum and count blur the average alike at the bounds, so equal shares are best; only where one is drawn more exactly anyway does
        the other get less than it. A sum that is drawn more exactly than was needed moves the chord above q, and may ask a little more of the count.
        """
        if all(held) and self._holds(held):
            return held
        low, high = Fraction(0), Fraction(1, 1024)
        while high <= 2 * MOST_TOTAL and not self._holds(_raised(high, held)):
            low, high = high, high * 2
        if high > 2 * MOST_TOTAL:
            return _raised(high, held)
        while high - low > high / 10**_DIGITS:
            middle = rounded_up((low + high) / 2)
            if middle >= high:
                break
            low, high = (low, middle) if self._holds(_raised(middle, held)) else (middle, high)
        return _raised(rounded_up(high), held)

    def _holds(self, shares: tuple[Fraction, Fraction]) -> bool:
        mechanism: Mechanism = "laplace" if self.measure == "epsilon" else "gaussian"
        try:
            first, second = (
                calibrate(mechanism, self.measure, most, share)[0]
                for most, share in zip(self.most, shares, strict=True)
            )
        except QueryRefused:  # noise beyond any number is not exact
            return False
        return average_half_width(mechanism, (first, second), self.reach, self.rows, self.confidence) <= (
            self.width
        )


def _raised(share: Fraction, held: tuple[Fraction, Fraction]) -> tuple[Fraction, Fraction]:
    return max(share, held[0]), max(share, held[1])


# What a price and an answer say of each value's accuracy.


class ValueAccuracy(TypedDict):
    """How exact one value is before it is paid: *half_width* in its own unit, *range* of all it can be where that is declared.

    *at_rows* is over how many rows an average was taken to be, *declared* whether the table's size says so. *mostly_noise*
    tells that the interval is wider than the range. *kept* says what is done to a value that noise made impossible, *lowered* how much is then
    taken from another at most (from none of twice that or more), *levels* how exact each level of a hierarchy is, all rows first; *least* below which noisy count keys are left out, and *lifted* how many empty ones
    noise is expected to show at most.

    >>> ValueAccuracy(half_width=10.0, mostly_noise=False)["half_width"]
    10.0
    """

    half_width: NotRequired[float]
    range: NotRequired[float]
    at_rows: NotRequired[int]
    declared: NotRequired[bool]
    mostly_noise: bool
    kept: NotRequired[Literal["possible", "sum", "tree"]]
    lowered: NotRequired[float]
    levels: NotRequired[list[float]]
    least: NotRequired[int]
    lifted: NotRequired[float]


def accuracy(half: float | None, largest: Fraction | None) -> ValueAccuracy:
    """The facts of a value that is off by at most *half*, and can be *largest* in all.

    >>> accuracy(600.0, Fraction(1000))["mostly_noise"], accuracy(400.0, None)["mostly_noise"]
    (True, False)
    """
    out: ValueAccuracy = {
        "mostly_noise": half is not None and largest is not None and 2 * half > largest,
    }
    if half is not None and math.isfinite(half):
        out["half_width"] = half
    if largest is not None:
        out["range"] = float(largest)
    return out


def average_accuracy(
    mechanism: Mechanism,
    scales: tuple[float, float],
    grid: Grid,
    rows: Fraction | None,
    confidence: Fraction,
) -> ValueAccuracy:
    """The facts of an average; without a declared size those over as many rows as make it worth asking, called so.

    >>> told = average_accuracy("laplace", (600.0, 10.0), Grid("age", Fraction(1), 0, 120), None, USUAL)
    >>> told["at_rows"], told["declared"], round(told["half_width"], 1)
    (1000, False, 2.6)
    """
    span = grid.step * (grid.high - grid.low)

    def over(number: Fraction) -> float:
        steps = average_half_width(mechanism, scales, grid.centred_reach, number, confidence)
        return min(steps, grid.high - grid.low) * float(grid.step)

    if rows is not None:
        return {**accuracy(over(rows), span), "at_rows": math.floor(rows), "declared": True}
    number = next((10**power for power in range(2, 12) if over(Fraction(10**power)) <= span / 20), 10**12)
    return {**accuracy(over(Fraction(number)), span), "at_rows": number, "declared": False}


def size(value: float) -> Sentence:
    """A half-width in three digits, rounded up so that "at most" stays true.

    >>> size(239.2), size(0.01234)
    ('240', '0.0124')
    """
    if value <= 0:
        return Sentence("{amount:,}", {"amount": 0})
    unit = Fraction(10) ** (math.floor(math.log10(value)) - 2)
    up = math.ceil(Fraction(value) * (1 - Fraction(1, 10**12)) / unit) * unit
    if up >= 100 or up.denominator == 1:
        return Sentence("{amount:,}", {"amount": math.ceil(up)})
    return Sentence("{amount:.3g}", {"amount": float(up)})


def chance(confidence: float | Fraction | str) -> Sentence:
    """A level or a confidence in percent, with the digits it has: 99.99% is not 100%.

    >>> chance(Fraction(19, 20)), chance(0.9999)
    ('95%', '99.99%')
    """
    return say("{percent:.6g}%", percent=float(100 * exact(confidence)))


def accuracy_sentence(name: str, facts: ValueAccuracy, confidence: float | Fraction) -> Sentence | None:
    """By how much a value will be off at most; None where it has no interval.

    >>> accuracy_sentence("n", accuracy(240, None), 0.95)
    'n: off by up to ±240 (95%).'
    """
    half, rows = facts.get("half_width"), facts.get("at_rows")
    if half is None:
        return None
    said = {"name": name, "half": size(half), "chance": chance(confidence)}
    if rows is None:
        return say("{name}: off by up to ±{half} ({chance}).", **said)
    if facts.get("declared"):
        return say(
            "{name}: off by up to ±{half} ({chance}) where {rows:,} rows are averaged.", **said, rows=rows
        )
    return say(
        "{name}: off by up to ±{half} ({chance}) where {rows:,} rows are averaged, and by more where there are fewer.",
        **said,
        rows=rows,
    )


def lowered_sentence(name: str, lowered: float) -> Sentence:
    """What is done, beside the noise, to numbers of which several stand together, none below 0: and by how much they are off then.

    >>> lowered_sentence("n", 30.0)[:65]
    'n: numbers drawn on the wrong side of 0 are set to 0. What that a'
    """
    return say(
        "{name}: numbers drawn on the wrong side of 0 are set to 0. What that adds is taken, as far as it goes, from the others within ±{large} "
        "of 0, at most {half} from each: these may be off by {half} more, and their intervals allow for it. All others stay as drawn.",
        name=name,
        half=size(lowered),
        large=size(2 * lowered),
    )


def above_sentence(facts: ValueAccuracy, cells: int, confidence: float | Fraction) -> Sentence | None:
    """What is left out of an answer above a threshold, and what is in it by noise alone; None of another answer.

    >>> above_sentence({"mostly_noise": False, "half_width": 10.0, "least": 30, "lifted": 0.25}, 1000, 0.95)[:48]
    'Keys whose noisy count is below 30 are left out.'
    """
    least, half, shown = facts.get("least"), facts.get("half_width"), facts.get("lifted")
    if least is None or half is None or shown is None:
        return None
    return say(
        "Keys whose noisy count is below {least:,} are left out. For a key chosen beforehand the chance is at least {chance} that its interval "
        "holds the exact count or, where it is not shown, that fewer than {most:,} rows count. Of the {cells:,} keys noise alone shows "
        "at most about {lifted} that hold nothing.",
        least=least,
        most=least + math.ceil(half),
        chance=chance(confidence),
        lifted=size(shown),
        cells=cells,
    )


def noise_warning(names: Sequence[str]) -> Sentence | None:
    """The warning before noise is paid for, with the values it is about; None where there are none.

    >>> noise_warning(["n"])
    'Mostly noise: n. The interval would be wider than all that the value can be.'
    """
    if not names:
        return None
    return say(
        "Mostly noise: {names}. The interval would be wider than all that the value can be.",
        names=", ".join(names),
    )


def check_rows(rows: Fraction | None) -> Fraction:
    """The declared rows, without which an average has no accuracy to wish for.

    >>> check_rows(Fraction(5))
    Fraction(5, 1)
    """
    if rows is None:
        raise without_size(
            say("How exact an average is depends on how many rows there are, and that is not declared.")
        )
    if rows < 1:
        raise ParameterError(
            "The declared rows are fewer than the keys to answer.",
            "An average of no rows cannot be exact.",
            "Group by fewer keys, or name the spend instead.",
        )
    return rows
