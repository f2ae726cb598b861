"""The numbers and names of a study as sentences: each is told in the reader's language when it is shown.

Differences of a quality have one unit everywhere: points of a share, the plain number of what is no share. A loss that is
below zero is told as a gain, and a digit is added where rounding would hide on which side of a limit a number lies.
"""

from __future__ import annotations

from collections.abc import Sequence

from velado.measures import measure_registry
from velado.measures.models.quality import Interval
from velado.text import NOTHING, Sentence, join, say

EVEN = 1e-9
"""Differences of this size come from how numbers are stored, not from the data."""

_MORE_DIGITS = 3

_QUALITIES = {
    "accuracy": say("accuracy"),
    "balanced_accuracy": say("balanced accuracy"),
    "precision": say("precision"),
    "recall": say("recall"),
    "f1": say("F1"),
    "auc": say("AUC"),
    "log_loss": say("log loss"),
    "r2": say("explained variance (R2)"),
    "rmse": say("root mean square error"),
    "mae": say("mean absolute error"),
}


def names() -> dict[str, str]:
    """Losses, risks and qualities as a person calls them.

    >>> names()["ncp"], names()["auc"]
    ('information loss (NCP)', 'AUC')
    """
    return {one.name: one.title for one in (*measure_registry.UTILITY, *measure_registry.RISK)} | _QUALITIES


def called(name: str) -> str:
    """What a person calls a loss, a risk or a quality.

    >>> called("f1")
    'F1'
    """
    return names()[name]


def _decimals(name: str) -> int | None:
    """The decimals of what is no share of a whole."""
    known = {one.name: one.decimals for one in measure_registry.all_measures()}
    return known.get(name, 3 if better_when_smaller(name) else None)


def number(value: float | None, digits: int = 1) -> str:
    """A number with so many digits; a dash where there is none, and no minus sign before a zero.

    >>> number(1234.56), number(-0.01), number(None)
    ('1,234.6', '0.0', '–')
    """
    if value is None:
        return NOTHING
    shown = 0.0 if float(f"{value:.{digits}f}") == 0 else value
    return Sentence(f"{{value:,.{digits}f}}", {"value": shown})


def percent(value: float | None, digits: int = 1) -> str:
    """A share as a percentage.

    >>> percent(0.125)
    '12.5%'
    """
    return NOTHING if value is None else join([number(100 * value, digits), "%"], "")


def is_share(name: str) -> bool:
    """Whether the measure is a share, written in percent and its differences in points.

    >>> is_share("accuracy"), is_share("log_loss")
    (True, False)
    """
    return _decimals(name) is None


def better_when_smaller(name: str) -> bool:
    """Whether a smaller quality is the better one.

    >>> better_when_smaller("log_loss")
    True
    """
    return name in ("log_loss", "rmse", "mae")


def figure(name: str, value: float | None) -> str:
    """One value of a measure with its unit.

    >>> figure("ncp", 0.25), figure("average_group_size", 7.04)
    ('25.0%', '7.0')
    """
    digits = _decimals(name)
    return percent(value) if digits is None else number(value, digits)


def tick(name: str, value: float) -> str:
    """A value of a measure on an axis, with no more decimals than it has.

    >>> tick("ncp", 0.25), tick("log_loss", 0.5)
    ('25%', '0.5')
    """
    scaled = 100 * value if is_share(name) else value
    digits = next((d for d in range(4) if abs(round(scaled, d) - scaled) <= 1e-9 * max(1, abs(scaled))), 4)
    return join([number(scaled, digits), "%"], "") if is_share(name) else number(scaled, digits)


def span(name: str, found: Interval) -> str:
    """The value of a measure with its interval.

    >>> span("auc", Interval(0.686, 0.604, 0.768))
    '68.6% (60.4…76.8)'
    """
    own = _decimals(name)
    scale, digits = (100, 1) if own is None else (1, own)
    return _with_ends(figure(name, found.mean), found, lambda end: number(scale * end, digits))


def at_most(value: float, limit: float) -> bool:
    """Whether *value* keeps *limit*.

    >>> at_most(0.9 - 0.89, 0.01)
    True
    """
    return value <= limit + EVEN


def bare(name: str, value: float | None, digits: int = 1) -> str:
    """A difference of the quality *name* without its unit; what is no share has two digits more.

    >>> bare("accuracy", 0.0123), bare("log_loss", 0.0123)
    ('1.2', '0.012')
    """
    if value is None:
        return NOTHING
    return number(100 * value, digits) if is_share(name) else number(value, digits + 2)


def amount(name: str, value: float | None, digits: int = 1) -> str:
    """A difference of the quality *name* with its unit.

    >>> amount("accuracy", 0.0123)
    '1.2 points'
    """
    text = bare(name, value, digits)
    return say("{value} points", value=text) if is_share(name) and value is not None else text


def digits_beside(name: str, found: Interval, limit: float, digits: int = 1) -> int:
    """As many digits as show that what lies above *limit* does.

    >>> digits_beside("accuracy", Interval(0.0104), 0.01)
    2
    """
    above = [value for value in found.ends if value is not None and not at_most(value, limit)]
    for more in range(digits, digits + _MORE_DIGITS):
        if all(bare(name, value, more) != bare(name, limit, more) for value in above):
            return more
    return digits + _MORE_DIGITS


def dropped(name: str, found: Interval, limit: float | None = None) -> str:
    """A drop of quality with its interval, as a table writes it; beside a *limit* with digits enough to see its side.

    >>> dropped("accuracy", Interval(0.0104, 0.0, 0.03), 0.01)
    '1.04 points (0.00…3.00)'
    """
    digits = 1 if limit is None else digits_beside(name, found, limit)
    return _with_ends(amount(name, found.mean, digits), found, lambda end: bare(name, end, digits))


def _with_ends(middle: str, found: Interval, write: object) -> str:
    if found.mean is None or found.low is None or found.high is None:
        return middle
    low, high = (write(end) for end in (found.low, found.high))  # type: ignore[operator]
    return Sentence("{middle} ({low}…{high})", {"middle": middle, "low": low, "high": high})


_VERBS = {
    "it": (
        say("it loses {amount} of {quality}"),
        say("it gains {amount} of {quality}"),
        say("it raises the {quality} by {amount}"),
        say("it lowers the {quality} by {amount}"),
    ),
    "seem": (
        say("seem to lose {amount} of {quality}"),
        say("seem to gain {amount} of {quality}"),
        say("seem to raise the {quality} by {amount}"),
        say("seem to lower the {quality} by {amount}"),
    ),
    "they": (
        say("lose {amount} of {quality}"),
        say("gain {amount} of {quality}"),
        say("raise the {quality} by {amount}"),
        say("lower the {quality} by {amount}"),
    ),
    "apart": (say("{amount} below untouched rows"), say("{amount} above untouched rows")),
}


def lost(verb: str, name: str, drop: float, digits: int = 1) -> str:
    """What became of the quality: lost or gained, raised or lowered; *verb* is the family of words.

    >>> lost("it", "accuracy", -0.02), lost("they", "log_loss", 0.02)
    ('it gains 2.0 points of accuracy', 'raise the log loss by 0.020')
    """
    kind = _gained(name, drop, digits) + (0 if is_share(name) else 2)
    return say(_VERBS[verb][kind], amount=amount(name, abs(drop), digits), quality=called(name))


def interval_of(name: str, found: Interval, digits: int = 1) -> str:
    """The interval of a drop in brackets, turned round where `lost` tells a gain; nothing where there is none.

    >>> interval_of("accuracy", Interval(-0.02, -0.03, -0.01))
    ' (1.0 to 3.0)'
    """
    low, high = found.low, found.high
    if found.mean is None or low is None or high is None:
        return ""
    if _gained(name, found.mean, digits):
        low, high = -high, -low
    return say(" ({low} to {high})", low=bare(name, low, digits), high=bare(name, high, digits))


def _gained(name: str, drop: float, digits: int) -> bool:
    return drop < 0 and bare(name, drop, digits) != bare(name, 0.0, digits)


def promises(label: str) -> str:
    """The promises beyond k of a label, each by its name in the reader's language; empty where there are none.

    >>> promises("l-diversity(l=3) + t-closeness")
    'l-diversity(l=3) + t-closeness'
    """
    parts: list[str] = []
    for part in label.split(" + ") if label else ():
        name, bracket, rest = part.partition("(")
        parts.append(join([Sentence(name), bracket + rest], ""))
    return join(parts, " + ") if parts else ""


def commas(names: Sequence[object], separator: str = ", ") -> str:
    """Names in a row, each told in the reader's language; a dash where there are none.

    >>> commas(["a", "b"]), commas([])
    ('a, b', '–')
    """
    return join(names, separator) if names else NOTHING
