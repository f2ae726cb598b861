"""Ways to make a Taxonomy: level rows, nested trees, intervals, prefixes, dates, flat, automatic.

All are pure: files are read by `velado.data.io`. Each takes the distinct values of the column (as the
text that stands in the file) so that the tree has exactly the leaves it needs; a level file and a nested
tree bring their own leaves.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

from velado.data.taxonomy import ROOT_LABEL, Taxonomy, from_paths
from velado.errors import SchemaError, TaxonomyError

DATE_LEVELS = ("day", "month", "year", "decade")


def from_tree(tree: Mapping[str, Any], column: str = "") -> Taxonomy:
    """From nested tables: ``{Asia = ["Japan", "India"], Europe = {North = ["Norway"], ...}}``."""
    paths: list[list[str]] = []

    def walk(node: Any, above: list[str]) -> None:
        if isinstance(node, Mapping):
            for label, below in node.items():
                walk(below, [str(label), *above])
        elif isinstance(node, Sequence) and not isinstance(node, str):
            for leaf in node:
                paths.append([str(leaf), *above])
        else:
            paths.append([str(node), *above])

    walk(tree, [])
    return from_paths(paths, column)


def flat(values: Sequence[str], column: str = "") -> Taxonomy:
    """Every value directly below the root: published as it is, or not at all."""
    return from_paths([[value] for value in values], column)


def prefix(values: Sequence[str], keep: Sequence[int], mask: str = "*", column: str = "") -> Taxonomy:
    """Codes by ever shorter prefixes: with ``keep=[4, 3]``, `36570-000` -> `3657*` -> `365*` -> `*`."""
    lengths = _listed(keep)
    if (
        not lengths
        or any(type(length) is not int or length < 1 for length in lengths)
        or lengths != sorted(set(lengths), reverse=True)
    ):
        raise SchemaError(
            f"The prefix taxonomy of column '{column}' needs `keep` as a list of falling lengths of at least 1.",
            "Each level must be broader than the one before.",
            "Write for example keep = [5, 3, 2].",
        )
    paths = []
    for value in values:
        path = [value]
        for length in lengths:
            if length < len(value):
                path.append(value[:length] + mask)
        paths.append(path)
    return from_paths(_aligned(paths), column)


def intervals(
    values: Sequence[str],
    numbers: Sequence[float],
    widths: Sequence[float],
    origin: float = 0.0,
    column: str = "",
    decimal: str = ".",
) -> Taxonomy:
    """Numbers by ever wider intervals: with ``widths=[5, 10]``, 23 -> `[20..24]` -> `[20..29]` -> `*`.

    Intervals start at *origin* + a multiple of the width. Where every value and width is whole they are
    closed (`[20..24]`), else half open (`[20..25)`). Every width must divide the next one, else the
    intervals would not nest. Ends are written with *decimal*.
    """
    if not _listed(widths) or not all(_is_finite(item) for item in (*widths, origin)):
        raise SchemaError(
            f"The interval taxonomy of column '{column}' needs `widths` as a list of numbers and `origin` as a number.",
            "Intervals begin at the origin and are as wide as the widths say.",
            "Write for example widths = [5, 10, 20].",
        )
    steps, _ = _in_units([float(width) for width in widths])
    if steps[0] <= 0 or any(wide % narrow or wide <= narrow for narrow, wide in pairwise(steps)):
        raise SchemaError(
            f"The interval widths of column '{column}' must be positive, rise, and each divide the next.",
            "Otherwise a narrow interval would straddle two wide ones.",
            "Write for example widths = [5, 10, 20].",
        )
    whole = all(float(n).is_integer() for n in [*numbers, *widths, origin])
    order = sorted(range(len(values)), key=lambda i: (numbers[i], values[i]))
    above = interval_paths(
        [numbers[i] for i in order], widths[0], [step // steps[0] for step in steps], origin, whole, decimal
    )
    return from_paths([[values[i], *path] for i, path in zip(order, above, strict=True)], column)


def interval_paths(
    numbers: Sequence[float],
    width: float,
    factors: Sequence[int],
    origin: float = 0.0,
    whole: bool = False,
    decimal: str = ".",
) -> list[tuple[str, ...]]:
    """For each number the labels of the intervals of *width* x each factor that hold it: start <= number < end.

    Computed in whole multiples of the last decimal place in use, because 0.3 / 0.1 in doubles is below 3. Numbers
    are taken as they are written, not as the double nearest to them. Whole intervals leave out their end.
    """
    (step, start, *units), places = _in_units([width, origin, *numbers])
    last = 10**places if whole else 0
    close = "]" if whole else ")"
    known: dict[tuple[int, int], str] = {}
    out = []
    for unit in units:
        path = []
        for factor in factors:
            at = (unit - start) // (step * factor)
            if (factor, at) not in known:
                low = start + at * step * factor
                high = low + step * factor - last
                known[factor, at] = (
                    f"[{_unit_text(low, places, decimal)}..{_unit_text(high, places, decimal)}{close}"
                )
            path.append(known[factor, at])
        out.append(tuple(path))
    return out


def _listed(value: object) -> list[Any]:
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else []


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _in_units(numbers: Sequence[float]) -> tuple[list[int], int]:
    # Each number as a whole multiple of 10^-places; a double is written with 17 digits at most, so it is exact.
    written = [Decimal(repr(float(number))) for number in numbers]
    places = max((-int(d.as_tuple().exponent) for d in written), default=0)
    places = max(places, 0)
    return [int(d.scaleb(places)) for d in written], places


def _unit_text(units: int, places: int, decimal: str) -> str:
    if not places:
        return str(units)
    digits = str(abs(units)).zfill(places + 1)
    fraction = digits[-places:].rstrip("0")
    return ("-" if units < 0 else "") + digits[:-places] + (decimal + fraction if fraction else "")


def dates(
    values: Sequence[str], levels: Sequence[str] = DATE_LEVELS[1:], form: str = "%Y-%m-%d", column: str = ""
) -> Taxonomy:
    """Days by month, year, decade: `2024-03-07` -> `2024-03` -> `2024` -> `2020s` -> `*`."""
    unknown = [level for level in levels if level not in DATE_LEVELS]
    if unknown:
        raise SchemaError(
            f"The date taxonomy of column '{column}' names {len(unknown)} unknown level(s).",
            "Levels are " + ", ".join(DATE_LEVELS) + ".",
            'Write for example levels = ["month", "year"].',
        )
    wanted = [level for level in DATE_LEVELS if level in levels]
    parsed = parse_dates(values, form, column)
    order = sorted(range(len(values)), key=lambda i: (parsed[i], values[i]))
    paths = [[values[i], *(_date_label(parsed[i], level) for level in wanted)] for i in order]
    return from_paths(paths, column)


def parse_dates(values: Sequence[str], form: str, column: str) -> list[date]:
    """Each text as a date, or one error that counts those that are none."""
    out: list[date] = []
    bad = 0
    for value in values:
        try:
            out.append(datetime.strptime(value, form).date())
        except ValueError:
            bad += 1
    if bad:
        raise TaxonomyError(
            f"Column '{column}' has {bad} distinct value(s) that are no date of the form {form}.",
            "A value without a place in the calendar cannot be generalized.",
            'Set the column\'s `format`, for example format = "%d/%m/%Y", or correct the values.',
        )
    return out


def _date_label(day: date, level: str) -> str:
    if level == "day":
        return day.isoformat()
    if level == "month":
        return f"{day.year:04d}-{day.month:02d}"
    if level == "year":
        return f"{day.year:04d}"
    return f"{day.year // 10 * 10:04d}s"


def automatic(values: Sequence[str], column: str = "") -> Taxonomy:
    """A tree for a column without one: prefixes if the values are codes of one shape, else flat.

    Codes have at least three letters or digits, all of one length, and digits in every value (postal codes,
    ICD-10, municipality numbers); their tree drops one character at a time. Names and words have no meaning
    a program could guess, so they stay flat.
    """
    plain = [value for value in values if value]
    lengths = {len(value) for value in plain}
    coded = (
        len(lengths) == 1
        and len(plain) > 2
        and all(re.fullmatch(r"(?=.*\d)[A-Za-z0-9.\-/]{3,}", v) for v in plain)
    )
    if coded:
        length = lengths.pop()
        return prefix(values, list(range(length - 1, 0, -1)), column=column)
    return flat(values, column)


def _aligned(paths: list[list[str]]) -> list[list[str]]:
    # Short codes skip the long prefixes; padding at the leaf keeps equal prefixes on equal levels.
    height = max((len(path) for path in paths), default=0)
    return [[path[0]] * (height - len(path)) + path for path in paths]


__all__ = [
    "DATE_LEVELS",
    "ROOT_LABEL",
    "automatic",
    "dates",
    "flat",
    "from_tree",
    "interval_paths",
    "intervals",
    "parse_dates",
    "prefix",
]
