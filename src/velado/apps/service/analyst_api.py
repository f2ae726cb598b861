"""The routes for programs: what a request may say, and who answers it and writes down how it ended."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from fractions import Fraction
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse

from velado.apps.service.analyst_service import AnalystService
from velado.apps.service.hosted_datasets import HostedDataset
from velado.apps.service.problems import Refusal
from velado.apps.service.question_history import sql_of
from velado.apps.service.request_reading import (
    ERRORS,
    Caller,
    OneDataset,
    Service,
    ToldJSON,
    body_of,
    in_address,
    in_body,
    operation_id,
    parameters_of,
    replies,
)
from velado.apps.service.tokens import Token
from velado.query.accuracy import Within
from velado.query.answer import Answer
from velado.query.budget import LedgerState, Measure, Spend, how_many
from velado.query.session import Confidence, confidence_level
from velado.query.sql import parse
from velado.query.store import people_state
from velado.query.workload.workload import WorkloadAnswer
from velado.settings import Setting, settings
from velado.text import say


@settings
class QueryText(OneDataset):
    """A query that is to be read, not asked.

    >>> QueryText("people", "SELECT COUNT(*) FROM people").sql
    'SELECT COUNT(*) FROM people'
    """

    sql: Annotated[str, Setting("one SELECT in the accepted subset of SQL")]


@settings
class Question(QueryText):
    """One query, with how exact its values are to be or what it may cost; another of either is another question.

    >>> Question("people", "SELECT COUNT(*) FROM people").confidence
    0.95
    """

    spend: Annotated[Spend | None, Setting("the most it may cost; none: what the owner declared")] = None
    within: Within | None = None
    confidence: Confidence = 0.95


@settings
class Workload(Question):
    """Several counts for one charge.

    >>> Workload("people", "SELECT COUNT(*) FROM people;").within is None
    True
    """

    sql: Annotated[str, Setting("several SELECT of COUNT or HISTOGRAM, each ended by a semicolon")]


@settings
class QuestionsSoFar(OneDataset):
    """Whose questions are listed, and how many of them.

    >>> QuestionsSoFar("people").most
    100
    """

    most: Annotated[int, Setting("how many, the newest first", ge=1, le=1000)] = 100


_PAYING = replies(
    {
        402: say("The answer would cost more than what is left."),
        504: say("Not answered in time; it may have been paid."),
    }
)


router = APIRouter(generate_unique_id_function=operation_id)


@router.post(
    "/v1/answers",
    responses=_PAYING,
    summary=say("Ask; the answer is paid from the budget"),
    openapi_extra=in_body(Question),
)
async def _ask(token: Caller, service: Service, request: Request) -> JSONResponse:
    """The noisy answer with its interval, its promise and its cost.

    The same question with the same spend, or accuracy, again costs nothing.
    """
    question = await body_of(Question, request)
    async with service.noted("answer", token, question.dataset) as line:
        hosted = _checked(service, token, question)

        def job() -> tuple[Answer, JSONResponse]:
            found = hosted.session.answer(
                question.sql,
                spend=question.spend,
                within=question.within,
                analyst=token.analyst,
                confidence=question.confidence,
            )
            # Written in the thread too: a long reply must not keep other requests waiting.
            named = {**found.to_dict(), "question": service.tokens.name_of(found.entry)}
            return found, ToldJSON({**named, "notes": found.notes()})

        answer, reply = await service.on_tick(job, request.receive)
        line.question, line.cost = answer.entry, str(answer.cost.spent)
        line.outcome = "stored" if answer.stored else "answered"
    service.metrics.answer(question.dataset, answer.stored)
    return reply


@router.post(
    "/v1/price",
    responses=ERRORS,
    summary=say("What a question would cost and how noisy it would be"),
    openapi_extra=in_body(Question),
)
async def _price(token: Caller, service: Service, request: Request) -> JSONResponse:
    """By how much each value would be off, mechanisms and cost, from public metadata alone. Nothing is asked, spent or looked at.

    With "within" it is the least cost at which the noise of no value is more; "mostly_noise" warns of values that tell nothing;
    "questions" is how many of this cost the caller can still pay.

    Whether an answer is stored is not told: it depends on whether the table changed since, and nobody paid to
    know that.
    """
    question = await body_of(Question, request)
    async with service.noted("price", token, question.dataset) as line:
        hosted = _checked(service, token, question)
        sure = confidence_level(question.confidence)
        plan = await service.work(
            lambda: hosted.session.price(
                question.sql, question.spend, within=question.within, confidence=sure
            )
        )
        state = await service.work(hosted.ledger.state)
        line.cost = "0"
    return ToldJSON(
        {
            "dataset": question.dataset,
            "plan": plan.to_dict(sure),
            "notes": plan.sentences(sure),
            **_costs(hosted, plan.measure, plan.charge, state.left_for(token.analyst)),
        }
    )


@router.post(
    "/v1/workloads",
    responses=_PAYING,
    summary=say("Ask several counts together, for one charge"),
    openapi_extra=in_body(Workload),
)
async def _ask_together(token: Caller, service: Service, request: Request) -> JSONResponse:
    """Noisy answers to COUNT and HISTOGRAM questions that are measured together where that is more exact than one by one.

    The same questions with the same spend, or accuracy, again cost nothing.
    """
    asked = await body_of(Workload, request)
    async with service.noted("answer", token, asked.dataset) as line:
        hosted = _checked(service, token, asked)

        def job() -> tuple[WorkloadAnswer, JSONResponse]:
            found = hosted.session.workload(
                asked.sql,
                spend=asked.spend,
                within=asked.within,
                analyst=token.analyst,
                confidence=asked.confidence,
            )
            return found, ToldJSON({**found.to_dict(), "question": service.tokens.name_of(found.entry)})

        answer, reply = await service.on_tick(job, request.receive)
        line.question, line.cost = answer.entry, str(answer.cost.spent)
        line.outcome = "stored" if answer.stored else "answered"
    service.metrics.answer(asked.dataset, answer.stored)
    return reply


@router.post(
    "/v1/workloads/price",
    responses=ERRORS,
    summary=say("What several counts would cost together and how noisy they would be"),
    openapi_extra=in_body(Workload),
)
async def _price_together(token: Caller, service: Service, request: Request) -> JSONResponse:
    """As /v1/price, for all questions together: "plan.questions" has the largest half-width of each value."""
    asked = await body_of(Workload, request)
    async with service.noted("price", token, asked.dataset) as line:
        hosted = _checked(service, token, asked)
        sure = confidence_level(asked.confidence)
        plan = await service.work(
            lambda: hosted.session.price_workload(
                asked.sql, asked.spend, within=asked.within, confidence=sure
            )
        )
        state = await service.work(hosted.ledger.state)
        line.cost = "0"
    return ToldJSON(
        {
            "dataset": asked.dataset,
            "plan": plan.to_dict(sure),
            "notes": plan.sentences(sure),
            **_costs(hosted, plan.measure, plan.charge, state.left_for(token.analyst)),
        }
    )


def _costs(hosted: HostedDataset, measure: Measure, charge: Fraction, left: Fraction) -> dict[str, object]:
    """What a price says of its cost, of what the caller has left and of the promise."""
    return {
        "cost": {"measure": measure, "charge": str(charge), "about": float(charge)},
        "left": {"exact": str(left), "about": float(left)},
        "enough": charge <= left,
        "questions": how_many(left, charge) if charge else None,
        "guarantee": hosted.session.guarantee(charge).to_dict(),
    }


@router.post(
    "/v1/parse",
    responses=ERRORS,
    summary=say("A query taken apart"),
    openapi_extra=in_body(QueryText),
)
async def _parse(token: Caller, service: Service, request: Request) -> JSONResponse:
    """Aggregates, conditions and keys of a query, as a form shows them. Nothing is asked, spent or looked at."""
    text = await body_of(QueryText, request)
    hosted = _checked(service, token, text)
    query = await service.work(lambda: parse(text.sql, hosted.session.schema, hosted.session.name))
    return ToldJSON({"query": json.loads(query.canonical()), "sql": sql_of(query.canonical())})


@router.get("/v1/datasets", responses=ERRORS, summary=say("The data sets and what is public of them"))
async def _datasets(token: Caller, service: Service) -> JSONResponse:
    """Columns, kinds, bounds, domains, unit and promise, as the owner declared them."""
    shown = [hosted.public.to_dict() for hosted in service.opened(token).values()]
    manages = token.role == "owner" and not token.datasets
    return ToldJSON(
        {"datasets": shown, "you": {"analyst": token.analyst, "role": token.role, "manages": manages}}
    )


@router.get("/v1/budget", responses=ERRORS, summary=say("What is spent and left"))
async def _budget(token: Caller, service: Service) -> JSONResponse:
    """An analyst sees the total left and the own account; an owner sees everybody's."""
    out = []
    for hosted in service.opened(token).values():
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
    return ToldJSON({"budgets": out})


@router.get(
    "/v1/answers",
    responses=ERRORS,
    summary=say("Your questions so far"),
    openapi_extra=in_address(QuestionsSoFar),
)
async def _asked(token: Caller, service: Service, request: Request) -> JSONResponse:
    """The questions you paid for, the newest first, as the ledger has them.

    Ask one again with its spend to see its answer, free.
    """
    wanted = parameters_of(QuestionsSoFar, request)
    hosted = service.dataset(token, wanted.dataset)
    found = await service.work(lambda: hosted.history.of(token.analyst, wanted.most))
    named = [asdict(replace(one, question=service.tokens.name_of(one.question))) for one in found]
    return ToldJSON({"dataset": wanted.dataset, "answers": named})


@router.get("/healthz", summary=say("Whether the service runs"))
async def _healthz() -> PlainTextResponse:
    """Says ok and nothing else, to anybody."""
    return PlainTextResponse("ok\n")


def _checked(service: AnalystService, token: Token, question: QueryText) -> HostedDataset:
    """The data set of a question whose length is within the limit."""
    hosted = service.dataset(token, question.dataset)
    most = service.settings.limits.max_query_characters
    if len(question.sql) > most:
        raise Refusal.TOO_LONG.problem(most=most)
    return hosted


def _account(hosted: HostedDataset) -> LedgerState:
    """The account without the entry that says what unit it is about."""
    return people_state(hosted.ledger, hosted.ledger.state())
