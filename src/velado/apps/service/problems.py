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
from velado.text import Sentence, say, told

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
        """As JSON has it, in the language spoken: that of the request."""
        return {"what": told(self.what), "why": told(self.why), "fix": told(self.fix), "code": self.code}

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
        *(401, "token", say("The request carries no token that is in force.")),
        say("Only people whom the owner gave a token may ask."),
        say("Send the header 'Authorization: Bearer TOKEN', or ask the owner for a new token."),
    )
    OWNERS_ONLY = (
        *(403, "role", say("This is for owners.")),
        say("The token belongs to an analyst."),
        say("Ask the owner of the data set to do it."),
    )
    OWNERS_OF_ALL = (
        *(403, "role", say("This is for owners of every data set.")),
        say("The token opens some data sets only, and this would reach beyond them."),
        say("Use an owner's token that is not limited to data sets."),
    )
    OWN_TOKEN = (
        *(422, "parameter", say("A token cannot end itself.")),
        say("Somebody must be left who can make tokens."),
        say("End it with another owner's token, or with `velado serve token revoke`."),
    )
    NO_SUCH_TOKEN = (
        *(422, "parameter", say("There is no token with that id.")),
        say("Nothing was revoked."),
        say("Choose one of those that /v1/tokens lists."),
    )
    # The same words for a data set that is not there and one the token does not open.
    NO_DATASET = (
        *(404, "dataset", say("There is no such data set for this token.")),
        say("A question is about one of the data sets that /v1/datasets lists."),
        say("Choose one of them."),
    )
    TOO_OFTEN = (
        *(429, "rate", say("This token has asked too often.")),
        say("Each token has a number of requests a minute, so that everybody is served."),
        say("Wait for the seconds the Retry-After header names."),
    )
    TOO_MANY_TRIES = (
        *(429, "tries", say("Too many wrong tokens were tried from this address.")),
        say("Guessing is slowed down; tokens that are in force are served all the same."),
        say("Wait for the seconds the Retry-After header names, then send the right token."),
    )
    TOO_LARGE = (
        *(413, "size", say("The request's body is larger than {most} bytes.")),
        say("A question is short, and large bodies would keep others waiting."),
        say("Send less."),
    )
    TOO_LARGE_HEADERS = (
        *(431, "headers", say("The request's headers are larger than {most} bytes.")),
        say("A token and a few words are all a request needs."),
        say("Send fewer headers."),
    )
    TOO_LONG = (
        *(413, "length", say("The query is longer than {most} characters.")),
        say("Long texts take long to read, and others wait."),
        say("Ask a shorter question."),
    )
    TOO_SLOW_CLIENT = (
        *(408, "slow", say("The request did not arrive in time.")),
        say("A connection that sends nothing keeps others waiting."),
        say("Send the whole request at once."),
    )
    TOO_BUSY = (
        *(503, "busy", say("Too many questions are waiting.")),
        say("The service works on a few at a time. Nothing was spent on this one."),
        say("Ask again in a moment."),
    )
    WAITED_TOO_LONG = (
        *(503, "busy", say("The question's turn did not come in time.")),
        say("Others were at work all the while. Nothing was spent on this one."),
        say("Ask again in a moment."),
    )
    # Only the audit file sees it.
    CLIENT_LEFT = (
        *(499, "left", say("The client left before the question's turn came.")),
        say("Nothing was spent on it."),
        say("Keep the connection open until the reply."),
    )
    NO_AUDIT = (
        *(503, "audit", say("The service cannot write down who asks what.")),
        say("What leaves no trace is not answered. Nothing was spent."),
        say("Tell the owner of the service, who finds the reason in the private log."),
    )
    TOO_LONG_AT_WORK = (
        *(504, "time", say("The question was not answered in time.")),
        say(
            "It may have been paid already. "
            "If its answer is recorded, asking the same again, with the same spend, costs nothing."
        ),
        say("Ask the same again later, or ask something smaller."),
    )
    # Never repeats what was sent.
    NOT_UNDERSTOOD = (
        *(400, "request", say("The request cannot be understood.")),
        say("Its body must be one JSON object with the documented keys and types, and nothing else."),
        say("See /docs for the keys of each request."),
    )
    NO_METHOD = (
        *(405, "method", say("This address does not take that method.")),
        say("Nothing was done."),
        say("See /docs."),
    )
    NO_ADDRESS = (
        *(404, "address", say("There is nothing at this address.")),
        say("Nothing was done."),
        say("See /docs."),
    )
    # Its sentences name files and entries of the server, which are the owner's business.
    LEDGER = (
        *(503, "ledger", say("The ledger of this data set cannot be used.")),
        say("Every answer is paid for durably before it is drawn, so nothing is answered."),
        say("Tell the owner of the service, who finds the reason in the private log."),
    )
    UNEXPECTED = (
        *(500, "unexpected", say("The service met an error it did not expect (id {number}).")),
        say("Its details are not shown because they may hold values of the table."),
        say("Give the id to the owner of the service, who finds it in the private log."),
    )

    def problem(self, retry: float | None = None, status: int | None = None, **parts: object) -> Problem:
        """A Problem of this kind, to be raised; *parts* fill the sentence's gaps."""
        own, code, what, why, fix = self.value
        return Problem(status or own, code, Sentence(what, parts), why, fix, retry)


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
