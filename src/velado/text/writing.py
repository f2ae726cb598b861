"""Numbers, percents, dates, durations and sizes, as each language writes them: 1,234.5 or 1.234,5.

Every function takes the language last; without one it is the language spoken now.
"""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from numbers import Number

from velado.text.languages import Language, language

NOTHING = "–"
"""What stands where there is no number."""

_SWAPPED = str.maketrans(",.", ".,")
_UNITS = {"B": 1e0, "kB": 1e3, "MB": 1e6, "GB": 1e9}


def written(value: object, spec: str = "", tongue: Language | None = None) -> str:
    """A value under Python's format *spec*; numbers and dates as the language writes them.

    >>> written(1234.5, ",", "pt"), written(0.123, ".1%", "pt"), written(date(2024, 3, 1), "", "pt")
    ('1.234,5', '12,3%', '01/03/2024')
    """
    if isinstance(value, bool) or (tongue or language()) == "en":
        return format(value, spec)
    if isinstance(value, datetime) and not spec:
        return f"{value:%d/%m/%Y} {value.timetz()}"
    if isinstance(value, date) and not spec:
        return f"{value:%d/%m/%Y}"
    text = format(value, spec)
    return text.translate(_SWAPPED) if isinstance(value, Number) else text


def read_number(text: str, tongue: Language | None = None) -> float | None:
    """The number that somebody wrote, as the language writes numbers; None where it is none.

    Digits in threes behind the language's own thousands mark are thousands; either mark before other digits is the decimal
    mark, for people write both.

    >>> read_number("1.000", "pt"), read_number("1.000", "en"), read_number("12,5", "en"), read_number("1,000.5", "en")
    (1000.0, 1.0, 12.5, 1000.5)
    >>> read_number("0.125", "pt"), read_number("soon")
    (0.125, None)
    """
    mark, point = (".", ",") if (tongue or language()) == "pt" else (",", ".")
    plain = text.strip()
    if re.fullmatch(rf"-?[1-9]\d{{0,2}}(\{mark}\d{{3}})+(\{point}\d+)?", plain):
        plain = plain.replace(mark, "").replace(point, ".")
    try:
        return float(plain.replace(",", "."))
    except ValueError:
        return None


def number(value: float | None, digits: int | None = None, tongue: Language | None = None) -> str:
    """A number with thousands marks and *digits* after the point.

    Without *digits* a whole number has none and another four. A dash where there is no number, and no
    minus sign before a zero.

    >>> number(1234.5, 1, "en"), number(1234.5, 1, "pt"), number(-0.01, 1), number(None), number(0.5)
    ('1,234.5', '1.234,5', '0.0', '–', '0.5000')
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    if digits is None:
        digits = 0 if float(value).is_integer() else 4
    text = written(float(value), f",.{digits}f", tongue)
    return text if text.strip("-0.,") else text.lstrip("-")


def count(value: float | None, tongue: Language | None = None) -> str:
    """A whole number with thousands marks.

    >>> count(1234567, "pt")
    '1.234.567'
    """
    return number(value, 0, tongue)


def points(value: float | None, digits: int = 1, tongue: Language | None = None) -> str:
    """A difference of shares in percentage points, without a unit.

    >>> points(0.0123)
    '1.2'
    """
    return number(None if value is None else 100 * value, digits, tongue)


def percent(value: float | None, digits: int = 1, tongue: Language | None = None) -> str:
    """A share in percent, written alike everywhere: the sign right after the number.

    >>> percent(0.123, 1, "pt"), percent(0.5, 0), percent(None)
    ('12,3%', '50%', '–')
    """
    text = points(value, digits, tongue)
    return text if text == NOTHING else f"{text}%"


def share(value: float | None, digits: int = 1, tongue: Language | None = None) -> str:
    """A share in percent of which a small one that is not zero is never shown as zero.

    >>> share(0.00001), share(0.0), share(0.00001, 1, "pt")
    ('< 0.1%', '0.0%', '< 0,1%')
    """
    least = 10.0**-digits
    if value is not None and 0 < value * 100 < least / 2:
        return f"< {percent(least / 100, digits, tongue)}"
    return percent(value, digits, tongue)


def plain(value: float, tongue: Language | None = None) -> str:
    """A number without needless decimals: whole, or with two.

    >>> plain(5.0), plain(2.5, "pt")
    ('5', '2,50')
    """
    return number(value, 0 if float(value).is_integer() else 2, tongue)


def few_digits(value: float, tongue: Language | None = None) -> str:
    """A number with four digits that count, large ones with one after the point.

    >>> few_digits(0.123456), few_digits(12345.67, "pt"), few_digits(3.0)
    ('0.1235', '12.345,7', '3')
    """
    if not math.isfinite(value):
        return NOTHING
    whole = float(value).is_integer()
    if whole or abs(value) >= 1000:
        return number(value, 0 if whole else 1, tongue)
    return written(float(value), ".4g", tongue)


def day(value: date, tongue: Language | None = None) -> str:
    """A day: 2024-03-01 in English, which no reader takes for January; 01/03/2024 in Portuguese.

    >>> day(date(2024, 3, 1)), day(date(2024, 3, 1), "pt")
    ('2024-03-01', '01/03/2024')
    """
    return written(value.date() if isinstance(value, datetime) else value, "", tongue)


def moment(value: datetime, tongue: Language | None = None) -> str:
    """A day and its time to the minute, with the time zone where it has one.

    >>> moment(datetime(2024, 3, 1, 14, 5), "pt"), moment(datetime(2024, 3, 1, 14, 5))
    ('01/03/2024 14:05', '2024-03-01 14:05')
    """
    zone = f" {value.tzname()}" if value.tzname() else ""
    return f"{day(value, tongue)} {value:%H:%M}{zone}"


def duration(seconds: float, tongue: Language | None = None) -> str:
    """A time in seconds, in minutes from 90 seconds on; the same in both languages.

    >>> duration(12.3), duration(150), duration(90000, "pt")
    ('12 s', '2 min', '1.500 min')
    """
    if seconds < 90:
        return f"{number(seconds, 0, tongue)} s"
    return f"{number(seconds / 60, 0, tongue)} min"


def size(octets: float, digits: int = 1, tongue: Language | None = None, unit: str | None = None) -> str:
    """An amount of bytes in the largest unit it fills, or in *unit*; a megabyte is a million bytes.

    >>> size(1_500_000), size(512), size(1_500_000, 1, "pt"), size(300, 1, unit="MB")
    ('1.5 MB', '512 B', '1,5 MB', '0.0 MB')
    """
    unit = unit or next((name for name, least in reversed(_UNITS.items()) if octets >= least), "B")
    return f"{number(octets / _UNITS[unit], 0 if unit == 'B' else digits, tongue)} {unit}"
