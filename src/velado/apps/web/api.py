"""The routes for programs. Each checks the token, hands the work to a thread, and writes down how it ended."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse, PlainTextResponse

from velado.apps.web import failures
from velado.apps.web.bodies import ERRORS, OWNERS, PAYING, Cap, Question, Raise, amount
from velado.apps.web.service import Service
from velado.apps.web.shelf import Shelved
from velado.apps.web.tokens import Token
from velado.errors import LedgerError
from velado.query.answer import Answer
from velado.query.budget import LedgerState
from velado.query.session import confidence_level
from velado.query.store import people_state

router = APIRouter()


def service_of(request: Request) -> Service:
    """The service that the application was made with."""
    service: Service = request.app.state.service
    return service


async def caller(request: Request) -> Token:
    """Whoever sent the request."""
    address = request.client.host if request.client is not None else ""
    return service_of(request).caller(request.headers.get("authorization"), address)


Caller = Annotated[Token, Depends(caller)]


@router.post("/v1/answers", responses=PAYING, summary="Ask; the answer is paid from the budget")
async def ask(question: Question, token: Caller, request: Request) -> JSONResponse:
    """The noisy answer with its interval, its promise and its cost. The same question with the same spend again costs nothing."""
    service = service_of(request)
    async with service.noted("answer", token, question.dataset) as note:
        shelved, spend = _checked(service, token, question)

        def job() -> tuple[Answer, JSONResponse]:
            found = shelved.session.answer(
                question.sql, spend=spend, analyst=token.analyst, confidence=question.confidence
            )
            # Written in the thread too: a long reply must not keep other requests waiting.
            return found, JSONResponse(_shown(found, service))

        answer, reply = await service.work(job, request.receive)
        note |= {"question": answer.entry, "cost": str(answer.cost.spent)}
        note["outcome"] = "stored" if answer.stored else "answered"
    service.metrics.answer(question.dataset, answer.stored)
    return reply


@router.post("/v1/price", responses=ERRORS, summary="What a question would cost and how noisy it would be")
async def price(question: Question, token: Caller, request: Request) -> JSONResponse:
    """Mechanisms, scales and cost, from public metadata alone. Nothing is asked, spent or looked at.

    Whether an answer is stored is not told: it depends on whether the table changed since, and nobody paid to know that.
    """
    service = service_of(request)
    async with service.noted("price", token, question.dataset) as note:
        shelved, spend = _checked(service, token, question)
        sure = confidence_level(question.confidence)
        plan = await service.work(lambda: shelved.session.price(question.sql, spend))
        state = await service.work(shelved.ledger.state)
        note["cost"] = "0"
    own = state.by_analyst.get(token.analyst, Fraction(0))
    left = min(state.left, state.caps.get(token.analyst, own + state.left) - own)
    return JSONResponse(
        {
            "dataset": question.dataset,
            "plan": plan.to_dict(sure),
            "cost": {"measure": plan.measure, "charge": str(plan.charge), "about": float(plan.charge)},
            "left": {"exact": str(left), "about": float(left)},
            "enough": plan.charge <= left,
            "guarantee": shelved.session.guarantee(plan.charge).to_dict(),
        }
    )


@router.get("/v1/datasets", responses=ERRORS, summary="The data sets and what is public of them")
async def datasets(token: Caller, request: Request) -> JSONResponse:
    """Columns, kinds, bounds, domains, unit and promise, as the owner declared them."""
    shelf = service_of(request).shelf
    return JSONResponse(
        {"datasets": [shelved.public for name, shelved in shelf.datasets.items() if token.may_ask(name)]}
    )


@router.get("/v1/budget", responses=ERRORS, summary="What is spent and left")
async def budget(token: Caller, request: Request) -> JSONResponse:
    """An analyst sees the total left and the own account; an owner sees everybody's."""
    service = service_of(request)
    out = []
    for name, shelved in service.shelf.datasets.items():
        if token.may_ask(name):
            state = await service.work(partial(_account, shelved))
            own = state.by_analyst.get(token.analyst, Fraction(0))
            cap = state.caps.get(token.analyst)
            whole = state.to_dict()
            entry: dict[str, Any] = {
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


@router.get("/v1/answers", responses=ERRORS, summary="Your questions so far")
async def asked(
    dataset: str, token: Caller, request: Request, most: Annotated[int, Query(ge=1, le=1000)] = 100
) -> JSONResponse:
    """The questions you paid for, the newest first, as the ledger has them. Ask one again with its spend to see its answer, free."""
    service = service_of(request)
    shelved = service.dataset(token, dataset)
    found = await service.work(lambda: shelved.history.of(token.analyst, most))
    for entry in found:
        entry["question"] = service.tokens.name_of(entry["question"])
    return JSONResponse({"dataset": dataset, "answers": found})


@router.post("/v1/caps", responses=OWNERS, summary="Set the most one analyst may spend")
async def set_cap(cap: Cap, token: Caller, request: Request) -> JSONResponse:
    """The cap is an entry of the ledger and holds from now on."""
    service = service_of(request)
    async with service.noted("cap", token, cap.dataset):
        shelved = service.dataset(service.owner(token), cap.dataset)
        most = amount(cap.cap) or Fraction(0)
        await service.work(lambda: shelved.ledger.set_cap(cap.analyst, most))
    out = {"dataset": cap.dataset, "analyst": cap.analyst, "cap": str(most)}
    if cap.analyst in shelved.settings.caps:
        out["note"] = "Write the new cap in the service file too, or the next start is refused."
    return JSONResponse(out)


@router.post("/v1/budget/raise", responses=OWNERS, summary="Raise the budget, with a reason")
async def raise_budget(more: Raise, token: Caller, request: Request) -> JSONResponse:
    """The larger total is an entry of the ledger; it cannot be lowered again."""
    service = service_of(request)
    async with service.noted("raise", token, more.dataset):
        shelved = service.dataset(service.owner(token), more.dataset)
        total = amount(more.total) or Fraction(0)
        await service.work(lambda: shelved.ledger.raise_budget(total, more.reason))
    return JSONResponse(
        {
            "dataset": more.dataset,
            "total": str(total),
            "note": "Write the new total in the service file too, or the next start is refused.",
        }
    )


@router.get("/v1/ledger/verify", responses=OWNERS, summary="Recompute the whole chain of a ledger")
async def verify(dataset: str, token: Caller, request: Request) -> JSONResponse:
    """The account, if every entry holds; else 503 with the first entry that does not."""
    service = service_of(request)
    async with service.noted("verify", token, dataset):
        shelved = service.dataset(service.owner(token), dataset)
        try:
            state = await service.work(lambda: people_state(shelved.ledger, shelved.ledger.verify()))
        except LedgerError as error:
            # Elsewhere these sentences stay in the private log; the owner is who they are for.
            raise failures.Problem(503, "ledger", error.what, error.why, error.fix) from None
    return JSONResponse({"holds": True, **state.to_dict()})


@router.get("/metrics", responses=OWNERS, summary="Counts for Prometheus; for owners")
async def metrics(token: Caller, request: Request) -> PlainTextResponse:
    """Requests, refusals, answers, latency and budget, of the token's data sets. Needs an owner's token, on loopback too."""
    service = service_of(request)
    service.owner(token)
    states = {
        name: await service.work(shelved.ledger.state)
        for name, shelved in service.shelf.datasets.items()
        if token.may_ask(name)
    }
    return PlainTextResponse(service.all_metrics().text(states), media_type="text/plain; version=0.0.4")


@router.get("/healthz", summary="Whether the service runs")
async def healthz() -> PlainTextResponse:
    """Says ok and nothing else, to anybody."""
    return PlainTextResponse("ok\n")


def _checked(service: Service, token: Token, question: Question) -> tuple[Shelved, Fraction | None]:
    """The data set and the spend of a question whose length is within the limit."""
    shelved = service.dataset(token, question.dataset)
    most = service.settings.limits.max_query_characters
    if len(question.sql) > most:
        raise failures.too_long(most)
    return shelved, amount(question.spend)


def _account(shelved: Shelved) -> LedgerState:
    """The account without the entry that says what unit it is about."""
    return people_state(shelved.ledger, shelved.ledger.state())


def _shown(answer: Answer, service: Service) -> dict[str, Any]:
    """The answer, its question under the name that the history has it by."""
    return {**answer.to_dict(), "question": service.tokens.name_of(answer.entry)}
