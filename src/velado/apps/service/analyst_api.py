"""The routes for programs: what a request may say, and who answers it and writes down how it ended."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.routing import APIRoute
from pydantic import ConfigDict, Strict

from velado.apps.service.analyst_service import AnalystService
from velado.apps.service.hosted_datasets import HostedDataset
from velado.apps.service.problems import Problem, Refusal
from velado.apps.service.tokens import Token
from velado.errors import LedgerError
from velado.query.answer import Answer
from velado.query.budget import LedgerState
from velado.query.session import confidence_level
from velado.query.store import people_state

# An exponent or a thousand digits would take a long time to become a fraction.
_AMOUNT = re.compile(r"[0-9]{1,12}([./][0-9]{1,18})?\Z")
_FORBID = ConfigDict(extra="forbid")
# Otherwise true would be read as 1.
Number = Annotated[float, Strict()]


# In the docstrings below, \f ends what the OpenAPI document tells of them: an example in Python is for us.
@dataclass
class Question:
    """One query. *spend* is the most it may cost: a number, or a text such as "1/3".

    Another spend is another question.\f

    >>> Question("people", "SELECT COUNT(*) FROM people").confidence
    0.95
    """

    __pydantic_config__: ClassVar[ConfigDict] = _FORBID
    dataset: str
    sql: str
    spend: Number | str | None = None
    confidence: Number = 0.95


@dataclass
class Cap:
    """The most one analyst may spend of a data set's budget, in all.\f

    >>> Cap("people", "ana", "1/3").analyst
    'ana'
    """

    __pydantic_config__: ClassVar[ConfigDict] = _FORBID
    dataset: str
    analyst: str
    cap: Number | str


@dataclass
class Raise:
    """A larger total for a data set, with the owner's reason, which the ledger keeps.\f

    >>> Raise("people", 2, "second study").total
    2
    """

    __pydantic_config__: ClassVar[ConfigDict] = _FORBID
    dataset: str
    total: Number | str
    reason: str


@dataclass
class ProblemBody:
    """Every error: what happened, why, what to do, and a code for programs.\f

    >>> ProblemBody(**Refusal.NO_DATASET.problem().body()).code
    'dataset'
    """

    what: str
    why: str
    fix: str
    code: str


def amount(value: float | str) -> Fraction:
    """A cost as the fraction its decimals name, or the Problem that it is none.

    >>> amount(0.1), amount("1/3")
    (Fraction(1, 10), Fraction(1, 3))
    """
    if isinstance(value, str):
        readable = _AMOUNT.match(value) is not None
    else:
        readable = value == 0 or 1e-12 <= value < 1e12
    try:
        if readable:
            return Fraction(str(value))
    except ZeroDivisionError:
        pass
    raise Refusal.NO_AMOUNT.problem()


_REFUSED = {
    400: "The body is not JSON.",
    401: "No token that is in force.",
    404: "No such data set for this token.",
    413: "Body or query too long.",
    422: "The query is refused, or a value does not fit.",
    429: "Asked too often.",
    503: "Busy, or the ledger or the engine does not answer.",
}


def _replies(more: Mapping[int, str]) -> dict[int | str, dict[str, Any]]:
    """What any route may refuse with, and *more* of some, in FastAPI's shape."""
    told = {**_REFUSED, **more}
    return {status: {"model": ProblemBody, "description": text} for status, text in told.items()}


_ERRORS = _replies({})
_PAYING = _replies(
    {
        402: "The answer would cost more than what is left.",
        504: "Not answered in time; it may have been paid.",
    }
)
_OWNERS = _replies({403: "For owners alone."})


def _operation(route: APIRoute) -> str:
    """An operation's id in the OpenAPI document: generated clients have it as a function's name."""
    return re.sub(
        r"\W", "_", f"{route.name.lstrip('_')}{route.path_format}_{min(route.methods or ('any',)).lower()}"
    )


router = APIRouter(generate_unique_id_function=_operation)


# Both are async although nothing waits in them: FastAPI sends plain functions through a thread, each time.
async def _service_of(request: Request) -> AnalystService:
    service: AnalystService = request.app.state.service
    return service


Service = Annotated[AnalystService, Depends(_service_of)]


async def _caller(request: Request, service: Service) -> Token:
    address = request.client.host if request.client is not None else ""
    return service.caller(request.headers.get("authorization"), address)


Caller = Annotated[Token, Depends(_caller)]


@router.post("/v1/answers", responses=_PAYING, summary="Ask; the answer is paid from the budget")
async def _ask(question: Question, token: Caller, service: Service, request: Request) -> JSONResponse:
    """The noisy answer with its interval, its promise and its cost.

    The same question with the same spend again costs nothing.
    """
    async with service.noted("answer", token, question.dataset) as line:
        hosted, spend = _checked(service, token, question)

        def job() -> tuple[Answer, JSONResponse]:
            found = hosted.session.answer(
                question.sql, spend=spend, analyst=token.analyst, confidence=question.confidence
            )
            # Written in the thread too: a long reply must not keep other requests waiting.
            named = {**found.to_dict(), "question": service.tokens.name_of(found.entry)}
            return found, JSONResponse(named)

        answer, reply = await service.work(job, request.receive)
        line.question, line.cost = answer.entry, str(answer.cost.spent)
        line.outcome = "stored" if answer.stored else "answered"
    service.metrics.answer(question.dataset, answer.stored)
    return reply


@router.post("/v1/price", responses=_ERRORS, summary="What a question would cost and how noisy it would be")
async def _price(question: Question, token: Caller, service: Service) -> JSONResponse:
    """Mechanisms, scales and cost, from public metadata alone. Nothing is asked, spent or looked at.

    Whether an answer is stored is not told: it depends on whether the table changed since, and nobody paid to
    know that.
    """
    async with service.noted("price", token, question.dataset) as line:
        hosted, spend = _checked(service, token, question)
        sure = confidence_level(question.confidence)
        plan = await service.work(lambda: hosted.session.price(question.sql, spend))
        state = await service.work(hosted.ledger.state)
        line.cost = "0"
    own = state.by_analyst.get(token.analyst, Fraction(0))
    left = min(state.left, state.caps.get(token.analyst, own + state.left) - own)
    return JSONResponse(
        {
            "dataset": question.dataset,
            "plan": plan.to_dict(sure),
            "cost": {"measure": plan.measure, "charge": str(plan.charge), "about": float(plan.charge)},
            "left": {"exact": str(left), "about": float(left)},
            "enough": plan.charge <= left,
            "guarantee": hosted.session.guarantee(plan.charge).to_dict(),
        }
    )


@router.get("/v1/datasets", responses=_ERRORS, summary="The data sets and what is public of them")
async def _datasets(token: Caller, service: Service) -> JSONResponse:
    """Columns, kinds, bounds, domains, unit and promise, as the owner declared them."""
    return JSONResponse(
        {"datasets": [hosted.public.to_dict() for hosted in _opened(service, token).values()]}
    )


@router.get("/v1/budget", responses=_ERRORS, summary="What is spent and left")
async def _budget(token: Caller, service: Service) -> JSONResponse:
    """An analyst sees the total left and the own account; an owner sees everybody's."""
    out = []
    for hosted in _opened(service, token).values():
        state = await service.work(partial(_account, hosted))
        own, cap = state.by_analyst.get(token.analyst, Fraction(0)), state.caps.get(token.analyst)
        whole = state.to_dict()
        entry: dict[str, object] = {
            key: whole[key] for key in ("dataset", "budget", "left", "spent", "about")
        }
        entry["you"] = {
            "analyst": token.analyst,
            "role": token.role,
            "spent": str(own),
            "cap": None if cap is None else str(cap),
            "about": {"spent": float(own), "cap": None if cap is None else float(cap)},
        }
        if token.role == "owner":
            entry |= {key: whole[key] for key in ("by_analyst", "caps", "entries", "answers", "head")}
        out.append(entry)
    return JSONResponse({"budgets": out})


@router.get("/v1/answers", responses=_ERRORS, summary="Your questions so far")
async def _asked(
    dataset: str, token: Caller, service: Service, most: Annotated[int, Query(ge=1, le=1000)] = 100
) -> JSONResponse:
    """The questions you paid for, the newest first, as the ledger has them.

    Ask one again with its spend to see its answer, free.
    """
    hosted = service.dataset(token, dataset)
    found = await service.work(lambda: hosted.history.of(token.analyst, most))
    named = [asdict(replace(one, question=service.tokens.name_of(one.question))) for one in found]
    return JSONResponse({"dataset": dataset, "answers": named})


@router.post("/v1/caps", responses=_OWNERS, summary="Set the most one analyst may spend")
async def _set_cap(cap: Cap, token: Caller, service: Service) -> JSONResponse:
    """The cap is an entry of the ledger and holds from now on."""
    async with service.noted("cap", token, cap.dataset):
        hosted = service.dataset(token, cap.dataset, for_owner=True)
        most = amount(cap.cap)
        await service.work(lambda: hosted.ledger.set_cap(cap.analyst, most))
    out = {"dataset": cap.dataset, "analyst": cap.analyst, "cap": str(most)}
    if cap.analyst in hosted.settings.caps:
        out["note"] = "Write the new cap in the service file too, or the next start is refused."
    return JSONResponse(out)


@router.post("/v1/budget/raise", responses=_OWNERS, summary="Raise the budget, with a reason")
async def _raise_budget(more: Raise, token: Caller, service: Service) -> JSONResponse:
    """The larger total is an entry of the ledger; it cannot be lowered again."""
    async with service.noted("raise", token, more.dataset):
        hosted = service.dataset(token, more.dataset, for_owner=True)
        total = amount(more.total)
        await service.work(lambda: hosted.ledger.raise_budget(total, more.reason))
    note = "Write the new total in the service file too, or the next start is refused."
    return JSONResponse({"dataset": more.dataset, "total": str(total), "note": note})


@router.get("/v1/ledger/verify", responses=_OWNERS, summary="Recompute the whole chain of a ledger")
async def _verify(dataset: str, token: Caller, service: Service) -> JSONResponse:
    """The account, if every entry holds; else 503 with the first entry that does not."""
    async with service.noted("verify", token, dataset):
        hosted = service.dataset(token, dataset, for_owner=True)
        try:
            state = await service.work(lambda: people_state(hosted.ledger, hosted.ledger.verify()))
        except LedgerError as error:
            # Elsewhere these sentences stay in the private log; the owner is who they are for.
            raise Problem(503, "ledger", error.what, error.why, error.fix) from None
    return JSONResponse({"holds": True, **state.to_dict()})


@router.get("/metrics", responses=_OWNERS, summary="Counts for Prometheus; for owners")
async def _metrics(token: Caller, service: Service) -> PlainTextResponse:
    """Requests, refusals, answers, latency and budget, of the token's data sets.

    Needs an owner's token, on loopback too.
    """
    if token.role != "owner":
        raise Refusal.OWNERS_ONLY.problem()
    states = {
        name: await service.work(hosted.ledger.state) for name, hosted in _opened(service, token).items()
    }
    return PlainTextResponse(service.metrics.text(states), media_type="text/plain; version=0.0.4")


@router.get("/healthz", summary="Whether the service runs")
async def _healthz() -> PlainTextResponse:
    """Says ok and nothing else, to anybody."""
    return PlainTextResponse("ok\n")


def _opened(service: AnalystService, token: Token) -> dict[str, HostedDataset]:
    """The data sets that the token opens, by name."""
    return {name: hosted for name, hosted in service.hosted.datasets.items() if token.may_ask(name)}


def _checked(
    service: AnalystService, token: Token, question: Question
) -> tuple[HostedDataset, Fraction | None]:
    """The data set and the spend of a question whose length is within the limit."""
    hosted = service.dataset(token, question.dataset)
    most = service.settings.limits.max_query_characters
    if len(question.sql) > most:
        raise Refusal.TOO_LONG.problem(most=most)
    return hosted, None if question.spend is None else amount(question.spend)


def _account(hosted: HostedDataset) -> LedgerState:
    """The account without the entry that says what unit it is about."""
    return people_state(hosted.ledger, hosted.ledger.state())
