"""Errors as a client reads them: what, why, fix, a code and a status.

Only sentences that velado wrote are repeated. Anything else may hold a value of the table, so the client gets
a fixed sentence with an id, and the private log gets the same id with the error's class and where in the code
it arose, without its message.
"""

from __future__ import annotations

import logging
import traceback
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePath

from velado.errors import BudgetExceeded, EngineError, LedgerError, ParameterError, QueryRefused, VeladoError
from velado.randomness import secure

LOG = logging.getLogger("velado.web")


# Not frozen: Python itself writes the traceback into an exception on its way up.
@dataclass(eq=False)
class Problem(Exception):
    """A request that is not served; *retry* is after how many seconds it may be tried again.

    >>> Problem(429, "rate", "Too often.", "Others wait.", "Wait.", retry=1.2).headers()
    {'Retry-After': '2'}
    """

    status: int
    code: str
    what: str
    why: str
    fix: str
    retry: float | None = None

    def body(self) -> dict[str, str]:
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


class Refusal(Enum):
    """Every reason of the service's own to refuse a request: status, code, what, why and fix.

    >>> raise Refusal.TOO_LARGE.problem(most=256)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.apps.service.problems.Problem: (413, 'size', "The request's body is larger than 256 bytes.", ...
    """

    # Each: status, code and what; why; fix.
    # The same words for a missing, wrong, expired and revoked token: a guesser learns nothing from them.
    NO_TOKEN = (
        *(401, "token", "The request carries no token that is in force."),
        "Only people whom the owner gave a token may ask.",
        "Send the header 'Authorization: Bearer TOKEN', or ask the owner for a new token.",
    )
    OWNERS_ONLY = (
        *(403, "role", "This is for owners."),
        "The token belongs to an analyst.",
        "Ask the owner of the data set to do it.",
    )
    # The same words for a data set that is not there and one the token does not open.
    NO_DATASET = (
        *(404, "dataset", "There is no such data set for this token."),
        "A question is about one of the data sets that /v1/datasets lists.",
        "Choose one of them.",
    )
    TOO_OFTEN = (
        *(429, "rate", "This token has asked too often."),
        "Each token has a number of requests a minute, so that everybody is served.",
        "Wait for the seconds the Retry-After header names.",
    )
    TOO_MANY_TRIES = (
        *(429, "tries", "Too many wrong tokens were tried from this address."),
        "Guessing is slowed down; tokens that are in force are served all the same.",
        "Wait for the seconds the Retry-After header names, then send the right token.",
    )
    TOO_LARGE = (
        *(413, "size", "The request's body is larger than {most} bytes."),
        "A question is short, and large bodies would keep others waiting.",
        "Send less.",
    )
    TOO_LARGE_HEADERS = (
        *(431, "headers", "The request's headers are larger than {most} bytes."),
        "A token and a few words are all a request needs.",
        "Send fewer headers.",
    )
    TOO_LONG = (
        *(413, "length", "The query is longer than {most} characters."),
        "Long texts take long to read, and others wait.",
        "Ask a shorter question.",
    )
    TOO_SLOW_CLIENT = (
        *(408, "slow", "The request did not arrive in time."),
        "A connection that sends nothing keeps others waiting.",
        "Send the whole request at once.",
    )
    TOO_BUSY = (
        *(503, "busy", "Too many questions are waiting."),
        "The service works on a few at a time. Nothing was spent on this one.",
        "Ask again in a moment.",
    )
    WAITED_TOO_LONG = (
        *(503, "busy", "The question's turn did not come in time."),
        "Others were at work all the while. Nothing was spent on this one.",
        "Ask again in a moment.",
    )
    # Only the audit file sees it.
    CLIENT_LEFT = (
        *(499, "left", "The client left before the question's turn came."),
        "Nothing was spent on it.",
        "Keep the connection open until the reply.",
    )
    NO_AUDIT = (
        *(503, "audit", "The service cannot write down who asks what."),
        "What leaves no trace is not answered. Nothing was spent.",
        "Tell the owner of the service, who finds the reason in the private log.",
    )
    TOO_LONG_AT_WORK = (
        *(504, "time", "The question was not answered in time."),
        "It may have been paid already. "
        "If its answer is recorded, asking the same again, with the same spend, costs nothing.",
        "Ask the same again later, or ask something smaller.",
    )
    # Never repeats what was sent.
    NOT_UNDERSTOOD = (
        *(400, "request", "The request cannot be understood."),
        "Its body must be one JSON object with the documented keys and types, and nothing else.",
        "See /docs for the keys of each request.",
    )
    NO_AMOUNT = (
        *(422, "parameter", "An amount in the request is not a number, or out of range."),
        "It is added up exactly.",
        'Send for example 0.1, or "1/3".',
    )
    NO_METHOD = (405, "method", "This address does not take that method.", "Nothing was done.", "See /docs.")
    NO_ADDRESS = (404, "address", "There is nothing at this address.", "Nothing was done.", "See /docs.")
    # Its sentences name files and entries of the server, which are the owner's business.
    LEDGER = (
        *(503, "ledger", "The ledger of this data set cannot be used."),
        "Every answer is paid for durably before it is drawn, so nothing is answered.",
        "Tell the owner of the service, who finds the reason in the private log.",
    )
    UNEXPECTED = (
        *(500, "unexpected", "The service met an error it did not expect (id {number})."),
        "Its details are not shown because they may hold values of the table.",
        "Give the id to the owner of the service, who finds it in the private log.",
    )

    def problem(self, retry: float | None = None, status: int | None = None, **parts: object) -> Problem:
        """A Problem of this kind, to be raised; *parts* fill the sentence's gaps."""
        own, code, what, why, fix = self.value
        return Problem(status or own, code, what.format(**parts), why, fix, retry)


_CODES: tuple[tuple[type[VeladoError], int, str], ...] = (
    (BudgetExceeded, 402, "budget-exceeded"),
    (QueryRefused, 422, "query-refused"),
    (ParameterError, 422, "parameter"),
    (EngineError, 503, "engine"),
)


def problem_of(error: BaseException) -> Problem:
    """Any error as a Problem.

    Errors of velado that a query cannot cause on purpose are as unexpected as foreign ones.

    >>> problem_of(QueryRefused("No.", "Because.", "Ask otherwise.")).status
    422
    """
    if isinstance(error, Problem):
        return error
    if isinstance(error, LedgerError):
        LOG.error("ledger: %s", error.what)
        return Refusal.LEDGER.problem()
    for kind, status, code in _CODES:
        if isinstance(error, kind):
            return Problem(status, code, error.what, error.why, error.fix)
    return unexpected(error)


def unexpected(error: BaseException) -> Problem:
    """The fixed sentence, with the id under which the private log has the error's class and place.

    >>> LOG.disabled = True
    >>> "Zebedeu" in unexpected(KeyError("Zebedeu")).what
    False
    >>> LOG.disabled = False
    """
    number = secure().randbytes(6).hex()
    frames = traceback.extract_tb(error.__traceback__)
    places = " < ".join(f"{PurePath(f.filename).name}:{f.lineno} {f.name}" for f in reversed(frames))
    LOG.error("unexpected %s: %s at %s", number, type(error).__name__, places)
    return Refusal.UNEXPECTED.problem(number=number)


def http_problem(status: int) -> Problem:
    """For an address or method that is not there.

    >>> http_problem(405).code, http_problem(418).status
    ('method', 418)
    """
    if status in (404, 405):
        return (Refusal.NO_METHOD if status == 405 else Refusal.NO_ADDRESS).problem()
    return Refusal.NOT_UNDERSTOOD.problem(status=status)
