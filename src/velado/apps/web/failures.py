"""Errors as a client reads them: what, why, fix, a code and a status.

Only sentences that velado wrote are repeated. Anything else may hold a value of the table, so the client gets a fixed sentence
with an id, and the private log gets the same id with the error's class and where in the code it arose, without its message.
"""

from __future__ import annotations

import logging
import traceback
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from velado.errors import (
    BudgetExceeded,
    EngineError,
    LedgerError,
    ParameterError,
    QueryRefused,
    VeladoError,
)
from velado.randomness import secure

LOG = logging.getLogger("velado.web")


# Not frozen: Python itself writes the traceback into an exception on its way up.
@dataclass(eq=False)
class Problem(Exception):
    """A request that is not served; *retry* is after how many seconds it may be tried again."""

    status: int
    code: str
    what: str
    why: str
    fix: str
    retry: float | None = None

    def body(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"what": self.what, "why": self.why, "fix": self.fix, "code": self.code}

    def headers(self) -> dict[str, str]:
        """What the status obliges to send along."""
        out = {}
        if self.retry is not None:
            out["Retry-After"] = str(max(1, int(self.retry + 0.999)))
        if self.status == 401:
            out["WWW-Authenticate"] = 'Bearer realm="velado"'
        return out


_CODES: tuple[tuple[type[VeladoError], int, str], ...] = (
    (BudgetExceeded, 402, "budget-exceeded"),
    (QueryRefused, 422, "query-refused"),
    (ParameterError, 422, "parameter"),
    (EngineError, 503, "engine"),
)


def problem_of(error: BaseException) -> Problem:
    """Any error as a Problem. Errors of velado that a query cannot cause on purpose are as unexpected as foreign ones."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, LedgerError):
        # Its sentences name files and entries of the server, which are the owner's business.
        LOG.error("ledger: %s", error.what)
        return Problem(
            503,
            "ledger",
            "The ledger of this data set cannot be used.",
            "Every answer is paid for durably before it is drawn, so nothing is answered.",
            "Tell the owner of the service, who finds the reason in the private log.",
        )
    for kind, status, code in _CODES:
        if isinstance(error, kind):
            return Problem(status, code, error.what, error.why, error.fix)
    return unexpected(error)


def unexpected(error: BaseException) -> Problem:
    """The fixed sentence, with the id under which the private log has the error's class and place."""
    number = secure().randbytes(6).hex()
    frames = traceback.extract_tb(error.__traceback__)
    places = " < ".join(f"{PurePath(f.filename).name}:{f.lineno} {f.name}" for f in reversed(frames))
    LOG.error("unexpected %s: %s at %s", number, type(error).__name__, places)
    return Problem(
        500,
        "unexpected",
        f"The service met an error it did not expect (id {number}).",
        "Its details are not shown because they may hold values of the table.",
        "Give the id to the owner of the service, who finds it in the private log.",
    )


def no_token() -> Problem:
    """The same words for a missing, wrong, expired and revoked token: a guesser learns nothing from them."""
    return Problem(
        401,
        "token",
        "The request carries no token that is in force.",
        "Only people whom the owner gave a token may ask.",
        "Send the header 'Authorization: Bearer TOKEN', or ask the owner for a new token.",
    )


def owners_only() -> Problem:
    """For what an analyst's token does not open."""
    return Problem(
        403,
        "role",
        "This is for owners.",
        "The token belongs to an analyst.",
        "Ask the owner of the data set to do it.",
    )


def no_dataset() -> Problem:
    """The same words for a data set that is not there and one the token does not open."""
    return Problem(
        404,
        "dataset",
        "There is no such data set for this token.",
        "A question is about one of the data sets that /v1/datasets lists.",
        "Choose one of them.",
    )


def too_often(wait: float) -> Problem:
    """For a token that asks faster than its limit."""
    return Problem(
        429,
        "rate",
        "This token has asked too often.",
        "Each token has a number of requests a minute, so that everybody is served.",
        "Wait for the seconds the Retry-After header names.",
        wait,
    )


def too_many_tries(wait: float) -> Problem:
    """For an address that tried too many wrong tokens."""
    return Problem(
        429,
        "tries",
        "Too many wrong tokens were tried from this address.",
        "Guessing is slowed down; tokens that are in force are served all the same.",
        "Wait for the seconds the Retry-After header names, then send the right token.",
        wait,
    )


def too_large(most: int) -> Problem:
    """For a body beyond the limit."""
    return Problem(
        413,
        "size",
        f"The request's body is larger than {most} bytes.",
        "A question is short, and large bodies would keep others waiting.",
        "Send less.",
    )


def too_large_headers(most: int) -> Problem:
    """For headers beyond the limit."""
    return Problem(
        431,
        "headers",
        f"The request's headers are larger than {most} bytes.",
        "A token and a few words are all a request needs.",
        "Send fewer headers.",
    )


def too_long(most: int) -> Problem:
    """For a query text beyond the limit."""
    return Problem(
        413,
        "length",
        f"The query is longer than {most} characters.",
        "Long texts take long to read, and others wait.",
        "Ask a shorter question.",
    )


def too_slow_client() -> Problem:
    """For a body that does not arrive."""
    return Problem(
        408,
        "slow",
        "The request did not arrive in time.",
        "A connection that sends nothing keeps others waiting.",
        "Send the whole request at once.",
    )


def too_busy() -> Problem:
    """For a query that would wait behind too many others."""
    return Problem(
        503,
        "busy",
        "Too many questions are waiting.",
        "The service works on a few at a time. Nothing was spent on this one.",
        "Ask again in a moment.",
        1,
    )


def waited_too_long() -> Problem:
    """For a query whose time was up before its turn came."""
    return Problem(
        503,
        "busy",
        "The question's turn did not come in time.",
        "Others were at work all the while. Nothing was spent on this one.",
        "Ask again in a moment.",
        1,
    )


def left() -> Problem:
    """For a query whose client closed the connection before its turn came; only the audit file sees it."""
    return Problem(
        499,
        "left",
        "The client left before the question's turn came.",
        "Nothing was spent on it.",
        "Keep the connection open until the reply.",
    )


def no_audit() -> Problem:
    """For what would change a ledger while it cannot be written down who asked."""
    return Problem(
        503,
        "audit",
        "The service cannot write down who asks what.",
        "What leaves no trace is not answered. Nothing was spent.",
        "Tell the owner of the service, who finds the reason in the private log.",
    )


def too_long_at_work() -> Problem:
    """For a query that goes on beyond its time; it may have been paid."""
    return Problem(
        504,
        "time",
        "The question was not answered in time.",
        "It may have been paid already. If its answer is recorded, asking the same again, with the same spend, costs nothing.",
        "Ask the same again later, or ask something smaller.",
    )


def not_understood(status: int = 400) -> Problem:
    """For a body that is no JSON object of the documented shape; never repeats what was sent."""
    return Problem(
        status,
        "request",
        "The request cannot be understood.",
        "Its body must be one JSON object with the documented keys and types, and nothing else.",
        "See /docs for the keys of each request.",
    )


def http_problem(status: int) -> Problem:
    """For an address or method that is not there."""
    if status == 405:
        return Problem(
            405, "method", "This address does not take that method.", "Nothing was done.", "See /docs."
        )
    if status == 404:
        return Problem(404, "address", "There is nothing at this address.", "Nothing was done.", "See /docs.")
    return not_understood(status)
