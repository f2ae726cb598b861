"""What a request may say and how it is read: one reader of bodies and addresses, who calls, and what any route may refuse."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeVar

from fastapi import Depends, Request
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute

from velado.apps.service.analyst_service import AnalystService
from velado.apps.service.problems import Refusal
from velado.apps.service.tokens import Token
from velado.errors import ParameterError
from velado.settings import Setting, Where, form, from_form, read, settings
from velado.text import Sentence, say, told

T = TypeVar("T")
REQUEST = Where("form", say("the request"))


@settings
class OneDataset:
    """Which data set a request is about.

    >>> OneDataset("people").dataset
    'people'
    """

    name: ClassVar[str] = say("the request")

    dataset: Annotated[str, Setting("name of the data set, as /v1/datasets lists it")]


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


async def body_of(kind: type[T], request: Request) -> T:
    """The request's body as *kind*; what is wrong is told by the one reader of settings.

    >>> import asyncio
    >>> async def sent(): return {"type": "http.request", "body": b'{"dataset": "people"}'}
    >>> asyncio.run(body_of(OneDataset, Request({"type": "http"}, sent))).dataset
    'people'
    """
    body = await request.body()
    try:
        table = json.loads(body, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise Refusal.NOT_UNDERSTOOD.problem(status=400 if body else 422) from None
    if not isinstance(table, Mapping):
        raise Refusal.NOT_UNDERSTOOD.problem(status=422)
    return read(kind, table, REQUEST)


def parameters_of(kind: type[T], request: Request) -> T:
    """What stands behind the address's question mark as *kind*; the language was read before.

    >>> parameters_of(OneDataset, Request({"type": "http", "query_string": b"dataset=people&lang=pt"})).dataset
    'people'
    """
    given = _once(request.query_params.multi_items())
    return from_form(kind, {key: text for key, text in given.items() if key != "lang"})


def _once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """The pairs as a table, if no key stands twice: which of the two is meant, nobody could know."""
    out: dict[str, Any] = {}
    for key, value in pairs:
        if key in out:
            raise ParameterError(
                say("{field} is given twice.", field=REQUEST.of(key)),
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


def replies(more: Mapping[int, str]) -> dict[int | str, dict[str, Any]]:
    """What any route may refuse with, and *more* of some, in FastAPI's shape.

    >>> replies({403: "For owners alone."})[403]["description"]
    'For owners alone.'
    """
    told = {**_REFUSED, **more}
    return {status: {"model": ProblemBody, "description": text} for status, text in told.items()}


def in_body(kind: type[Any]) -> dict[str, Any]:
    """The body as the OpenAPI document has it.

    >>> list(in_body(OneDataset)["requestBody"]["content"])
    ['application/json']
    """
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": form(kind)}}}}


def in_address(kind: type[Any]) -> dict[str, Any]:
    """The parameters as the OpenAPI document has them.

    >>> [part["name"] for part in in_address(OneDataset)["parameters"]]
    ['dataset']
    """
    document = form(kind)
    required, properties = document["required"], document["properties"]
    assert isinstance(required, list) and isinstance(properties, dict)
    return {
        "parameters": [
            {"in": "query", "name": name, "required": name in required, "schema": schema}
            for name, schema in properties.items()
        ]
    }


ERRORS = replies({})
OWNERS = replies({403: say("For owners alone.")})


def operation_id(route: APIRoute) -> str:
    """An operation's id in the OpenAPI document: generated clients have it as a function's name.

    >>> async def _ask(): ...
    >>> operation_id(APIRoute("/v1/answers", _ask, methods=["POST"]))
    'ask_v1_answers_post'
    """
    return re.sub(
        r"\W", "_", f"{route.name.lstrip('_')}{route.path_format}_{min(route.methods or ('any',)).lower()}"
    )


# Async although nothing waits in it: FastAPI sends plain functions through a thread, each time.
async def _service_of(request: Request) -> AnalystService:
    service: AnalystService = request.app.state.service
    return service


Service = Annotated[AnalystService, Depends(_service_of)]


async def _caller_of(request: Request, service: Service) -> Token:
    await service.settle()
    address = request.client.host if request.client is not None else ""
    return service.caller(request.headers.get("authorization"), address)


Caller = Annotated[Token, Depends(_caller_of)]
