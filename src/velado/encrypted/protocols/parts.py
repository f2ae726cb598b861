"""What the regression protocols share: a client's part up to its sums, the key's arrival, and the result's form."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from velado.encrypted.crypto.keys import PublicKey
from velado.encrypted.crypto.validation import key_from_bytes
from velado.encrypted.exact import Moments, covariance_diagonal
from velado.encrypted.fit import Fit
from velado.encrypted.job import Job
from velado.encrypted.protocols.base import refused
from velado.encrypted.protocols.learned import learned, promise
from velado.encrypted.protocols.messages import Message
from velado.errors import KeyRefused

KEY_BYTES = 4096
RESULT_BYTES = 1 << 20


def key_in(message: Message, job: Job) -> PublicKey:
    """The public key a provider sent, if it is sound and of the size the job agreed on."""
    key = key_from_bytes(message.fields["key"], job.key_bits)
    if key.bits != job.key_bits:
        raise KeyRefused(
            f"The provider's key has {key.bits} bits and the job says {job.key_bits}.",
            "Parties must work with the key they agreed on.",
            "Start the job again with a provider that reads the same job file.",
        )
    return key


def result_bytes(coefficients: Sequence[Fraction], errors: Sequence[float] | None, rows: int | None) -> bytes:
    """The result as it is told to who may know it: coefficients rounded once to floats, exactly written."""
    return json.dumps(
        {
            "coefficients": [float(value).hex() for value in coefficients],
            "standard_errors": None if errors is None else [float(value).hex() for value in errors],
            "rows": rows,
        },
        separators=(",", ":"),
    ).encode()


def result_in(data: bytes, job: Job) -> tuple[tuple[float, ...], tuple[float, ...] | None, int | None]:
    """The coefficients, standard errors and rows of a result message, or ProtocolError."""
    try:
        document = json.loads(data)
        coefficients = tuple(float.fromhex(text) for text in document["coefficients"])
        errors = document["standard_errors"]
        deviations = None if errors is None else tuple(float.fromhex(text) for text in errors)
        rows = document["rows"]
        good = len(coefficients) == job.width and all(map(math.isfinite, coefficients))
        if deviations is not None:
            good = good and job.moments and len(deviations) == job.width
            good = good and all(math.isfinite(value) and value >= 0 for value in deviations)
        # JSON's true is an int to Python.
        good = good and (rows is None or (type(rows) is int and 0 <= rows <= job.most_rows))
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
        good = False
    if not good:
        raise refused("holds no result of this job")
    return coefficients, deviations, rows


def standard_errors(moments: Moments, job: Job) -> tuple[float, ...] | None:
    """The square roots of the exact variances, where the textbook formula holds."""
    squares = covariance_diagonal(moments, job)
    return None if squares is None else tuple(math.sqrt(max(0.0, float(value))) for value in squares)


def fit_of(
    job: Job,
    coefficients: Sequence[float],
    errors: Sequence[float] | None,
    rows: int | None,
    cost: Mapping[str, Any] | None = None,
) -> Fit:
    """The outcome a party holds: result, promise, cost, how."""
    return Fit(
        target=job.target.name,
        names=job.unknowns,
        coefficients=tuple(coefficients),
        promise=promise(job),
        learned=learned(job),
        standard_errors=None if errors is None else tuple(errors),
        cost=dict(cost or {}),
        how={"job": job.to_dict(), "digest": job.digest(), "rows": rows},
    )
