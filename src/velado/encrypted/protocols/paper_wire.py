"""The plain fields of Method 1's messages: how large they may be, and how they are written and read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction

from velado.encrypted.job import Job
from velado.encrypted.protocols.base import refused
from velado.encrypted.protocols.paper_arithmetic import hidden_bits

Solution = tuple[Fraction, ...]


def prime_bytes(job: Job) -> int:
    """How many bytes the prime of q bits takes."""
    return (job.bits + 7) // 8


def shift_bytes(job: Job) -> int:
    """The most bytes a shift takes that follows from values within the public bounds."""
    reach = max(Fraction(0), *(-column.low for column in (*job.features, job.target)))
    return (int(reach * (1 << job.bits)) + 1).bit_length() // 8 + 1


def shift_in(data: bytes) -> int:
    """The shift, in units of 2^-q."""
    if not data:
        raise refused("holds no shift")
    return int.from_bytes(data, "big")


def solutions_size(job: Job) -> int:
    """The most bytes both solutions take: by Cramer's rule quotients of determinants of masked sums."""
    digits = job.width * (hidden_bits(job) + job.width.bit_length()) // 4 + 8
    return 64 + 2 * job.width * (2 * digits + 8)


def solutions_bytes(xi: Sequence[Fraction], eta: Sequence[Fraction]) -> bytes:
    """Both solutions as exact fractions in hexadecimal."""
    texts = [[f"{value.numerator:x}/{value.denominator:x}" for value in part] for part in (xi, eta)]
    return json.dumps(texts, separators=(",", ":")).encode()


def solutions_in(data: bytes, width: int) -> tuple[Solution, Solution]:
    """Both solutions as the provider wrote them, or ProtocolError."""
    try:
        found = [tuple(_fraction(text) for text in part) for part in json.loads(data)]
        good = len(found) == 2 and all(len(part) == width for part in found)
    except (ValueError, TypeError, AttributeError, ZeroDivisionError, RecursionError):
        good = False
    if not good:
        raise refused("holds no solutions of this job")
    return found[0], found[1]


def _fraction(text: str) -> Fraction:
    over, under = text.split("/")
    return Fraction(int(over, 16), int(under, 16))
