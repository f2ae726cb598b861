"""Numbers, percents, dates and sizes are written in one place, as each language writes them."""

import math
from datetime import UTC, date, datetime

import numpy as np
import pytest

from velado.text import (
    count,
    day,
    duration,
    few_digits,
    moment,
    number,
    percent,
    plain,
    points,
    share,
    size,
    speaking,
)


@pytest.mark.parametrize(
    ("english", "portuguese", "write"),
    [
        ("1,234.5", "1.234,5", lambda tongue: number(1234.5, 1, tongue)),
        ("1,234", "1.234", lambda tongue: number(1234.0, None, tongue)),
        ("0.1235", "0,1235", lambda tongue: number(0.12345678, None, tongue)),
        (
            "12,345,678",
            "12.345.678",
            lambda tongue: count(12345678, tongue),
        ),
        ("-0.1", "-0,1", lambda tongue: number(-0.06, 1, tongue)),
        ("0.0", "0,0", lambda tongue: number(-0.04, 1, tongue)),
        ("-10", "-10", lambda tongue: number(-10, 0, tongue)),
        ("1.25", "1,25", lambda tongue: number(np.float32(1.25), 2, tongue)),
        ("–", "–", lambda tongue: number(None, 1, tongue)),
        ("–", "–", lambda tongue: percent(math.nan, 1, tongue)),
        ("–", "–", lambda tongue: few_digits(math.inf, tongue)),
        ("12.3%", "12,3%", lambda tongue: percent(0.1234, 1, tongue)),
        ("1,250%", "1.250%", lambda tongue: percent(12.5, 0, tongue)),
        ("-3.0", "-3,0", lambda tongue: points(-0.03, 1, tongue)),
        ("< 0.1%", "< 0,1%", lambda tongue: share(0.0004, 1, tongue)),
        ("0.1%", "0,1%", lambda tongue: share(0.0005, 1, tongue)),
        ("0.0%", "0,0%", lambda tongue: share(0.0, 1, tongue)),
        ("2.50", "2,50", lambda tongue: plain(2.5, tongue)),
        ("1,000", "1.000", lambda tongue: plain(1000.0, tongue)),
        ("0.001235", "0,001235", lambda tongue: few_digits(0.00123456, tongue)),
        ("1,234.6", "1.234,6", lambda tongue: few_digits(1234.56, tongue)),
        ("2024-03-01", "01/03/2024", lambda tongue: day(datetime(2024, 3, 1, 5), tongue)),
        ("2024-03-01", "01/03/2024", lambda tongue: day(date(2024, 3, 1), tongue)),
        (
            "2024-03-01 05:06 UTC",
            "01/03/2024 05:06 UTC",
            lambda t: moment(datetime(2024, 3, 1, 5, 6, tzinfo=UTC), t),
        ),
        ("89 s", "89 s", lambda tongue: duration(89.4, tongue)),
        ("2 min", "2 min", lambda tongue: duration(90, tongue)),
        ("1.5 MB", "1,5 MB", lambda tongue: size(1_500_000, 1, tongue)),
        ("0.3 MB", "0,3 MB", lambda tongue: size(300_000, 1, tongue, unit="MB")),
        ("2 GB", "2 GB", lambda tongue: size(2e9, 0, tongue)),
        ("0 B", "0 B", lambda tongue: size(0, 1, tongue)),
    ],
)
def test_each_language_writes_its_own_marks(english: str, portuguese: str, write) -> None:
    assert write("en") == write(None) == english
    assert write("pt") == portuguese
    with speaking("pt"):
        assert write(None) == portuguese
