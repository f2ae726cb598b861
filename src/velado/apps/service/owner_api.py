"""The owner's routes: caps and budgets, who has a token, which tables may be asked. Each begins with `refuse_analysts`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, ClassVar, Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse

from velado.apps.service.analyst_service import refuse_analysts
from velado.apps.service.hosted_datasets import NewDataset, files_in
from velado.apps.service.problems import Problem, Refusal
from velado.apps.service.request_reading import (
    OWNERS,
    Caller,
    OneDataset,
    Service,
    ToldJSON,
    body_of,
    in_address,
    in_body,
    operation_id,
    parameters_of,
)
from velado.apps.service.tokens import Token, TokenDays, add_token, revoke_token
from velado.errors import LedgerError, VeladoError
from velado.query.budget import CapAmount, Spend
from velado.query.session import analyst_name
from velado.query.store import people_state
from velado.settings import Setting, settings
from velado.text import say

router = APIRouter(generate_unique_id_function=operation_id)


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
class NewToken:
    """Who gets a token, what it opens and until when.

    >>> NewToken("ana").role
    'analyst'
    """

    name: ClassVar[str] = say("the request")

    analyst: Annotated[str, Setting("who asks, as the ledger writes it down")]
    role: Annotated[Literal["analyst", "owner"], Setting("what the token opens")] = "analyst"
    days: Annotated[TokenDays | None, Setting("days until it ends; none: never")] = None
    datasets: Annotated[tuple[str, ...], Setting("the only data sets it opens; none: every one")] = ()


@settings
class EndedToken:
    """Which token ends.

    >>> EndedToken("1f2e3d4c").token
    '1f2e3d4c'
    """

    name: ClassVar[str] = say("the request")

    token: Annotated[str, Setting("the token's id, as /v1/tokens lists it", items=1)]


@router.post(
    "/v1/caps",
    responses=OWNERS,
    summary=say("Set the most one analyst may spend"),
    openapi_extra=in_body(Cap),
)
async def _set_cap(token: Caller, service: Service, request: Request) -> JSONResponse:
    """The cap is an entry of the ledger and holds from now on."""
    cap = await body_of(Cap, request)
    async with service.noted("cap", token, cap.dataset):
        hosted = service.dataset(token, cap.dataset, for_owner=True)
        await service.work(lambda: hosted.ledger.set_cap(cap.analyst, cap.cap))
    out = {"dataset": cap.dataset, "analyst": cap.analyst, "cap": str(cap.cap)}
    if cap.analyst in hosted.settings.caps:
        out["note"] = say(
            "The service file still names another cap; the ledger's holds, at the next start too."
        )
    return ToldJSON(out)


@router.post(
    "/v1/budget/raise",
    responses=OWNERS,
    summary=say("Raise the budget, with a reason"),
    openapi_extra=in_body(Raise),
)
async def _raise_budget(token: Caller, service: Service, request: Request) -> JSONResponse:
    """The larger total is an entry of the ledger; it cannot be lowered again."""
    more = await body_of(Raise, request)
    async with service.noted("raise", token, more.dataset):
        hosted = service.dataset(token, more.dataset, for_owner=True)
        await service.work(lambda: hosted.ledger.raise_budget(more.total, more.reason))
        budget = (await service.work(hosted.ledger.state)).budget
        kept = await service.work(lambda: service.hosted.raised(more.dataset, budget))
    out: dict[str, object] = {"dataset": more.dataset, "total": str(more.total)}
    if not kept:
        out["note"] = say(
            "The service file still names another total; the ledger's holds, at the next start too."
        )
    return ToldJSON(out)


@router.get(
    "/v1/ledger/verify",
    responses=OWNERS,
    summary=say("Recompute the whole chain of a ledger"),
    openapi_extra=in_address(OneDataset),
)
async def _verify(token: Caller, service: Service, request: Request) -> JSONResponse:
    """The account, if every entry holds; else 503 with the first entry that does not."""
    dataset = parameters_of(OneDataset, request).dataset
    async with service.noted("verify", token, dataset):
        hosted = service.dataset(token, dataset, for_owner=True)
        try:
            state = await service.work(lambda: people_state(hosted.ledger, hosted.ledger.verify()))
        except LedgerError as error:
            # Elsewhere these sentences stay in the private log; the owner is who they are for.
            raise Problem(503, "ledger", error.what, error.why, error.fix) from None
    return ToldJSON({"holds": True, **state.to_dict()})


@router.get("/metrics", responses=OWNERS, summary=say("Counts for Prometheus; for owners"))
async def _metrics(token: Caller, service: Service) -> PlainTextResponse:
    """Requests, refusals, answers, latency and budget, of the token's data sets.

    Needs an owner's token, on loopback too.
    """
    refuse_analysts(token)
    states = {name: await service.work(hosted.ledger.state) for name, hosted in service.opened(token).items()}
    return PlainTextResponse(service.metrics.text(states), media_type="text/plain; version=0.0.4")


@router.get("/v1/tokens", responses=OWNERS, summary=say("Who has a token"))
async def _tokens(token: Caller, service: Service) -> JSONResponse:
    """Id, analyst, role, state and dates of each token. Never the tokens: they are kept as hashes."""
    refuse_analysts(token, everywhere=True)
    now = datetime.now(UTC)
    return ToldJSON({"tokens": [_shown(one, now) for one in service.tokens.current().tokens]})


@router.post("/v1/tokens", responses=OWNERS, summary=say("Make a token"), openapi_extra=in_body(NewToken))
async def _add_token(token: Caller, service: Service, request: Request) -> JSONResponse:
    """The token's text stands in this reply and nowhere else; hand it over by a safe way."""
    new = await body_of(NewToken, request)
    async with service.noted("token-add", token, ""):
        refuse_analysts(token, everywhere=True)
        analyst_name(new.analyst)
        if any(name not in service.hosted.datasets for name in new.datasets):
            raise Refusal.NO_DATASET.problem()
        text, made = await service.work(
            lambda: add_token(service.settings.tokens, new.analyst, new.role, new.days, new.datasets)
        )
    return ToldJSON({**_shown(made, datetime.now(UTC)), "text": text})


@router.post(
    "/v1/tokens/revoke",
    responses=OWNERS,
    summary=say("End a token"),
    openapi_extra=in_body(EndedToken),
)
async def _end_token(token: Caller, service: Service, request: Request) -> JSONResponse:
    """It opens nothing from now on. The own token cannot be ended with itself: somebody must be left who can make one."""
    ended = await body_of(EndedToken, request)
    async with service.noted("token-revoke", token, ""):
        refuse_analysts(token, everywhere=True)
        if ended.token == token.id:
            raise Refusal.OWN_TOKEN.problem()
        # By its id alone: an analyst's name may be another token's id.
        if all(one.id != ended.token for one in service.tokens.current().tokens):
            raise Refusal.NO_SUCH_TOKEN.problem()
        found = await service.work(lambda: revoke_token(service.settings.tokens, ended.token))
    return ToldJSON({"revoked": [one.id for one in found]})


@router.get("/v1/files", responses=OWNERS, summary=say("Files that a data set may be made of"))
async def _files(token: Caller, service: Service) -> JSONResponse:
    """Tables and schemas in the folder that the service file names, and the data sets that were taken out."""
    refuse_analysts(token, everywhere=True)
    folder = service.settings.folder
    found = {"tables": [], "schemas": []} if folder is None else await service.work(lambda: files_in(folder))
    return ToldJSON({"open": folder is not None, **found, "taken_out": sorted(service.hosted.taken_out)})


@router.post(
    "/v1/datasets",
    responses=OWNERS,
    summary=say("Add a data set, or put one back"),
    openapi_extra=in_body(NewDataset),
)
async def _add_dataset(token: Caller, service: Service, request: Request) -> JSONResponse:
    """A table and its schema in the service's folder can be asked from now on, also after a restart.

    With the name alone, a data set that was taken out is put back.
    """
    new = await body_of(NewDataset, request)
    async with service.noted("dataset-add", token, new.dataset) as line:
        refuse_analysts(token, everywhere=True)
        try:
            await service.work(lambda: service.hosted.add(new))
        except VeladoError as error:
            # The owner is who these sentences are for, whatever they are about: schema, table or ledger.
            raise Problem(422, "dataset", error.what, error.why, error.fix) from None
        line.dataset = new.dataset
    return ToldJSON({"dataset": new.dataset})


@router.post(
    "/v1/datasets/remove",
    responses=OWNERS,
    summary=say("Take a data set out"),
    openapi_extra=in_body(OneDataset),
)
async def _remove_dataset(token: Caller, service: Service, request: Request) -> JSONResponse:
    """Nobody can ask about it from now on. Its table and its ledger stay as they are."""
    gone = await body_of(OneDataset, request)
    async with service.noted("dataset-remove", token, gone.dataset):
        refuse_analysts(token, everywhere=True)
        service.dataset(token, gone.dataset)
        await service.work(lambda: service.hosted.remove(gone.dataset))
    return ToldJSON({"dataset": gone.dataset})


def _shown(token: Token, now: datetime) -> dict[str, object]:
    """What may be told of a token: everything but its hash."""
    return {
        "id": token.id,
        "analyst": token.analyst,
        "role": token.role,
        "state": token.state(now),
        "created": token.created[:10],
        "expires": None if token.expires is None else token.expires[:10],
        "datasets": list(token.datasets),
    }
