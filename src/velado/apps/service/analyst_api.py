"""The routes for programs: what a request may say, and who answers it and writes down how it ended."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, ClassVar, TypeVar

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.routing import APIRoute

from velado.apps.service.analyst_service import AnalystService
from velado.apps.service.hosted_datasets import HostedDataset
from velado.apps.service.problems import Problem, Refusal
from velado.apps.service.tokens import Token
from velado.errors import LedgerError, ParameterError
from velado.query.answer import Answer
from velado.query.budget import CapAmount, LedgerState, Spend
from velado.query.session import Confidence, confidence_level
from velado.query.store import people_state
from velado.settings import Setting, Where, form, from_form, read, settings
from velado.text import Sentence, say, told

T = TypeVar("T")
_REQUEST = Where("form", say("the request"))


@settings
class OneDataset:
    """Which data set a request is about.

    >>> OneDataset("people").dataset
    'people'
    """

    name: ClassVar[str] = say("the request")

    dataset: Annotated[str, Setting("name of the data set, as /v1/datasets lists it")]


@settings
class Question(OneDataset):
    """One query; another spend is another question.

    >>> Question("people", "SELECT COUNT(*) FROM people").confidence
    0.95
    """

    sql: Annotated[str, Setting("one SELECT in the accepted subset of SQL")]
    spend: Annotated[Spend | None, Setting("the most it may cost; none: what the owner declared")] = None
    confidence: Confidence = 0.95


@settings
class Cap(OneDataset):
    """The most one analyst may spend of a data set's budget, in all.

    >>> Cap("people", "ana", "1/3").cap
    Fraction(1, 3)
    """

    analyst: Annotated[str, Setting("who asks, as the ledger writes it down")]
    cap: Annotated[CapAmount, Setting("the most that the analyst may spend in all")]


@settings
class Raise(OneDataset):
    """A larger total for a data set, with the owner's reason, which the ledger keeps.

    >>> Raise("people", 2, "second study").total
    Fraction(2, 1)
    """

    total: Annotated[Spend, Setting("the new total of the budget")]
    reason: Annotated[str, Setting("why more is allowed", example="second study approved")]


@settings
class QuestionsSoFar(OneDataset):
    """Whose questions are listed, and how many of them.

    >>> QuestionsSoFar("people").most
    100
    """

    most: Annotated[int, Setting("how many, the newest first", ge=1, le=1000)] = 100


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


class ToldJSON(JSONResponse):
    """JSON whose sentences are told in the language of the request; keys and words for programs stay.

    >>> ToldJSON({"note": say("none"), "rows": [1]}).body
    b'{"note":"none","rows":[1]}'
    """

    def render(self, content: object) -> bytes:
        """The bytes that are sent."""
        return super().render(_told_parts(content))


def _told_parts(value: object) -> object:
    if isinstance(value, Sentence):
        return told(value)
    if isinstance(value, Mapping):
        return {key: _told_parts(part) for key, part in value.items()}
    return [_told_parts(part) for part in value] if isinstance(value, list | tuple) else value


async def _body(kind: type[T], request: Request) -> T:
    """The request's body as *kind*; what is wrong is told by the one reader of settings."""
    body = await request.body()
    try:
        table = json.loads(body, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise Refusal.NOT_UNDERSTOOD.problem(status=400 if body else 422) from None
    if not isinstance(table, Mapping):
        raise Refusal.NOT_UNDERSTOOD.problem(status=422)
    return read(kind, table, _REQUEST)


def _parameters(kind: type[T], request: Request) -> T:
    """What stands behind the address's question mark as *kind*; the language was read before."""
    given = _once(request.query_params.multi_items())
    return from_form(kind, {key: text for key, text in given.items() if key != "lang"})


def _once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """The pairs as a table, if no key stands twice: which of the two is meant, nobody could know."""
    out: dict[str, Any] = {}
    for key, value in pairs:
        if key in out:
            raise ParameterError(
                say("{field} is given twice.", field=_REQUEST.of(key)),
                "One of the two would be passed over.",
                "Give it once.",
            )
        out[key] = value
    return out


_REFUSED = {
    400: say("The body is not JSON."),
    401: say("No token that is in force."),
    404: say("No such data set for this token."),
    413: say("Body or query too long."),
    422: say("The query is refused, or a value does not fit."),
    429: say("Asked too often."),
    503: say("Busy, or the ledger or the engine does not answer."),
}


def _replies(more: Mapping[int, str]) -> dict[int | str, dict[str, Any]]:
    """What any route may refuse with, and *more* of some, in FastAPI's shape."""
    told = {**_REFUSED, **more}
    return {status: {"model": ProblemBody, "description": text} for status, text in told.items()}


def _in_body(kind: type[Any]) -> dict[str, Any]:
    """The body as the OpenAPI document has it."""
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": form(kind)}}}}


def _in_address(kind: type[Any]) -> dict[str, Any]:
    """The parameters as the OpenAPI document has them."""
    document = form(kind)
    required, properties = document["required"], document["properties"]
    assert isinstance(required, list) and isinstance(properties, dict)
    return {
        "parameters": [
            {"in": "query", "name": name, "required": name in required, "schema": schema}
            for name, schema in properties.items()
        ]
    }


_ERRORS = _replies({})
_PAYING = _replies(
    {
        402: say("The answer would cost more than what is left."),
        504: say("Not answered in time; it may have been paid."),
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


@router.post(
    "/v1/answers",
    responses=_PAYING,
    summary=say("Ask; the answer is paid from the budget"),
    openapi_extra=_in_body(Question),
)
async def _ask(token: Caller, service: Service, request: Request) -> JSONResponse:
    """The noisy answer with its interval, its promise and its cost.

    The same question with the same spend again costs nothing.
    """
    question = await _body(Question, request)
    async with service.noted("answer", token, question.dataset) as line:
        hosted = _checked(service, token, question)

        def job() -> tuple[Answer, JSONResponse]:
            found = hosted.session.answer(
                question.sql, spend=question.spend, analyst=token.analyst, confidence=question.confidence
            )
            # Written in the thread too: a long reply must not keep other requests waiting.
            named = {**found.to_dict(), "question": service.tokens.name_of(found.entry)}
            return found, ToldJSON(named)

        answer, reply = await service.work(job, request.receive)
        line.question, line.cost = answer.entry, str(answer.cost.spent)
        line.outcome = "stored" if answer.stored else "answered"
    service.metrics.answer(question.dataset, answer.stored)
    return reply


@router.post(
    "/v1/price",
    responses=_ERRORS,
    summary=say("What a question would cost and how noisy it would be"),
    openapi_extra=_in_body(Question),
)
async def _price(token: Caller, service: Service, request: Request) -> JSONResponse:
    """Mechanisms, scales and cost, from public metadata alone. Nothing is asked, spent or looked at.

    Whether an answer is stored is not told: it depends on whether the table changed since, and nobody paid to
    know that.
    """
    question = await _body(Question, request)
    async with service.noted("price", token, question.dataset) as line:
        hosted = _checked(service, token, question)
        sure = confidence_level(question.confidence)
        plan = await service.work(lambda: hosted.session.price(question.sql, question.spend))
        state = await service.work(hosted.ledger.state)
        line.cost = "0"
    own = state.by_analyst.get(token.analyst, Fraction(0))
    left = min(state.left, state.caps.get(token.analyst, own + state.left) - own)
    return ToldJSON(
        {
            "dataset": question.dataset,
            "plan": plan.to_dict(sure),
            "cost": {"measure": plan.measure, "charge": str(plan.charge), "about": float(plan.charge)},
            "left": {"exact": str(left), "about": float(left)},
            "enough": plan.charge <= left,
            "guarantee": hosted.session.guarantee(plan.charge).to_dict(),
        }
    )


@router.get("/v1/datasets", responses=_ERRORS, summary=say("The data sets and what is public of them"))
async def _datasets(token: Caller, service: Service) -> JSONResponse:
    """Columns, kinds, bounds, domains, unit and promise, as the owner declared them."""
    return ToldJSON({"datasets": [hosted.public.to_dict() for hosted in _opened(service, token).values()]})


@router.get("/v1/budget", responses=_ERRORS, summary=say("What is spent and left"))
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
    return ToldJSON({"budgets": out})


@router.get(
    "/v1/answers",
    responses=_ERRORS,
    summary=say("Your questions so far"),
    openapi_extra=_in_address(QuestionsSoFar),
)
async def _asked(token: Caller, service: Service, request: Request) -> JSONResponse:
    """The questions you paid for, the newest first, as the ledger has them.

    Ask one again with its spend to see its answer, free.
    """
    wanted = _parameters(QuestionsSoFar, request)
    hosted = service.dataset(token, wanted.dataset)
    found = await service.work(lambda: hosted.history.of(token.analyst, wanted.most))
    named = [asdict(replace(one, question=service.tokens.name_of(one.question))) for one in found]
    return ToldJSON({"dataset": wanted.dataset, "answers": named})


@router.post(
    "/v1/caps",
    responses=_OWNERS,
    summary=say("Set the most one analyst may spend"),
    openapi_extra=_in_body(Cap),
)
async def _set_cap(token: Caller, service: Service, request: Request) -> JSONResponse:
    """The cap is an entry of the ledger and holds from now on."""
    cap = await _body(Cap, request)
    async with service.noted("cap", token, cap.dataset):
        hosted = service.dataset(token, cap.dataset, for_owner=True)
        await service.work(lambda: hosted.ledger.set_cap(cap.analyst, cap.cap))
    out = {"dataset": cap.dataset, "analyst": cap.analyst, "cap": str(cap.cap)}
    if cap.analyst in hosted.settings.caps:
        out["note"] = say("Write the new cap in the service file too, or the next start is refused.")
    return ToldJSON(out)


@router.post(
    "/v1/budget/raise",
    responses=_OWNERS,
    summary=say("Raise the budget, with a reason"),
    openapi_extra=_in_body(Raise),
)
async def _raise_budget(token: Caller, service: Service, request: Request) -> JSONResponse:
    """The larger total is an entry of the ledger; it cannot be lowered again."""
    more = await _body(Raise, request)
    async with service.noted("raise", token, more.dataset):
        hosted = service.dataset(token, more.dataset, for_owner=True)
        await service.work(lambda: hosted.ledger.raise_budget(more.total, more.reason))
    note = say("Write the new total in the service file too, or the next start is refused.")
    return ToldJSON({"dataset": more.dataset, "total": str(more.total), "note": note})


@router.get(
    "/v1/ledger/verify",
    responses=_OWNERS,
    summary=say("Recompute the whole chain of a ledger"),
    openapi_extra=_in_address(OneDataset),
)
async def _verify(token: Caller, service: Service, request: Request) -> JSONResponse:
    """The account, if every entry holds; else 503 with the first entry that does not."""
    dataset = _parameters(OneDataset, request).dataset
    async with service.noted("verify", token, dataset):
        hosted = service.dataset(token, dataset, for_owner=True)
        try:
            state = await service.work(lambda: people_state(hosted.ledger, hosted.ledger.verify()))
        except LedgerError as error:
            # Elsewhere these sentences stay in the private log; the owner is who they are for.
            raise Problem(503, "ledger", error.what, error.why, error.fix) from None
    return ToldJSON({"holds": True, **state.to_dict()})


@router.get("/metrics", responses=_OWNERS, summary=say("Counts for Prometheus; for owners"))
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


@router.get("/healthz", summary=say("Whether the service runs"))
async def _healthz() -> PlainTextResponse:
    """Says ok and nothing else, to anybody."""
    return PlainTextResponse("ok\n")


def _opened(service: AnalystService, token: Token) -> dict[str, HostedDataset]:
    """The data sets that the token opens, by name."""
    return {name: hosted for name, hosted in service.hosted.datasets.items() if token.may_ask(name)}


def _checked(service: AnalystService, token: Token, question: Question) -> HostedDataset:
    """The data set of a question whose length is within the limit."""
    hosted = service.dataset(token, question.dataset)
    most = service.settings.limits.max_query_characters
    if len(question.sql) > most:
        raise Refusal.TOO_LONG.problem(most=most)
    return hosted


def _account(hosted: HostedDataset) -> LedgerState:
    """The account without the entry that says what unit it is about."""
    return people_state(hosted.ledger, hosted.ledger.state())
