"""The application: the gate every request passes, pages for people, routes for programs."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from importlib.resources import files
from urllib.parse import parse_qs

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from velado import __version__
from velado.apps.service import analyst_api
from velado.apps.service.analyst_service import AnalystService
from velado.apps.service.connection_guard import HEADER_BYTES
from velado.apps.service.page_words import page_words
from velado.apps.service.problems import Problem, Refusal, http_problem, problem_of, unexpected
from velado.apps.service.service_metrics import ServiceMetrics
from velado.apps.service.service_settings import ServiceLimits, ServiceSettings
from velado.text import Language, choose, language, speaking, told

ABOUT = "Aggregate questions about tables of people, answered with differential privacy from a budget."
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
STRICT_TRANSPORT = (b"strict-transport-security", b"max-age=31536000")
STATIC = {"page.js": "text/javascript", "chart.js": "text/javascript", "page.css": "text/css"}


def create_app(settings: ServiceSettings) -> FastAPI:
    """The application of these settings.

    Data sets and ledgers are open when it returns, so that a mistake stops the start.

    >>> from pathlib import Path
    >>> create_app(ServiceSettings({}, Path("nowhere.json"), Path("audit.jsonl")))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.InputError: The tokens file cannot be read. ...
    """
    service = AnalystService(settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await service.close()

    app = FastAPI(
        title="velado",
        version=__version__,
        description=ABOUT,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        # A redirect would repeat the address that a client or proxy named.
        redirect_slashes=False,
    )
    app.state.service = service
    app.add_middleware(
        RequestGate,
        limits=settings.limits,
        metrics=service.metrics,
        secure_transport=settings.secure_transport,
    )

    def refuse(problem: Problem) -> Response:
        service.metrics.refusal(problem.code)
        return JSONResponse(problem.body(), problem.status, problem.headers())

    @app.exception_handler(RequestValidationError)
    async def not_valid(request: Request, error: RequestValidationError) -> Response:
        return refuse(Refusal.NOT_UNDERSTOOD.problem(status=422))

    @app.exception_handler(HTTPException)
    async def not_served(request: Request, error: HTTPException) -> Response:
        return refuse(http_problem(error.status_code))

    app.include_router(analyst_api.router)
    app.include_router(_pages)
    return app


class RequestGate:
    """Passes on a request whose body is whole and small enough; what goes wrong inside leaves as a Problem.

    Plain ASGI, because it must hold for bodies that name no length and for errors that no route foresees.

    >>> async def broken(scope, receive, send): raise Refusal.TOO_BUSY.problem(1)
    >>> async def receive(): return {"type": "http.request"}
    >>> async def send(message): print(message.get("status", message["type"]))
    >>> gate = RequestGate(broken, ServiceLimits(), ServiceMetrics(), secure_transport=True)
    >>> asyncio.run(gate({"type": "http", "headers": []}, receive, send))
    503
    http.response.body
    """

    def __init__(
        self, app: ASGIApp, limits: ServiceLimits, metrics: ServiceMetrics, secure_transport: bool
    ) -> None:
        self._app = app
        self._limits = limits
        self._metrics = metrics
        self._headers = [*HEADERS, STRICT_TRANSPORT] if secure_transport else list(HEADERS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, from its first byte to its reply, which speaks the language that was asked for."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with speaking(_tongue(scope)):
            await self._serve(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.monotonic()
        status = 0

        async def reply(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(h for h in self._headers if h[0] not in own)]
            await send(message)

        try:
            # The server limits headers that are still arriving; what came in one piece is measured here.
            if sum(len(name) + len(value) for name, value in scope["headers"]) > HEADER_BYTES:
                raise Refusal.TOO_LARGE_HEADERS.problem(most=HEADER_BYTES)
            body = await self._body(scope, receive)
            await self._app(scope, _replay(body, receive), reply)
        except Exception as error:  # The one place where nothing may pass by.
            if status:
                unexpected(error)
                raise ConnectionAbortedError from None
            problem = problem_of(error)
            self._metrics.refusal(problem.code)
            headers = problem.headers()
            if problem.status in (408, 413, 431):
                # The client may still be sending.
                headers["Connection"] = "close"
            await JSONResponse(problem.body(), problem.status, headers)(scope, receive, reply)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.request(route, status or 499, time.monotonic() - started)

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """The whole body, which is at most the limit, within the time a client has."""
        most = self._limits.max_body_bytes
        named = dict(scope["headers"]).get(b"content-length", b"0")
        if not named.isdigit() or int(named[:20]) > most:
            raise Refusal.TOO_LARGE.problem(most=most)
        body = bytearray()
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refusal.TOO_SLOW_CLIENT.problem()
                    body += message.get("body", b"")
                    if len(body) > most:
                        raise Refusal.TOO_LARGE.problem(most=most)
                    if not message.get("more_body", False):
                        return bytes(body)
        except TimeoutError:
            raise Refusal.TOO_SLOW_CLIENT.problem() from None


def _tongue(scope: Scope) -> Language:
    """The language of ?lang=, else of Accept-Language, else of VELADO_LANG, which the owner of the service set."""
    asked = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("lang", [""])[0]
    accepted = dict(scope["headers"]).get(b"accept-language", b"").decode("latin-1")
    return choose(asked[:2].lower(), os.environ, accepted)


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body once, and then what the connection says."""
    given = False

    async def again() -> Message:
        nonlocal given
        if not given:
            given = True
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return again


# The pages for people: one to ask, one that tells the API. Everything they load comes from this service.
_pages = APIRouter(include_in_schema=False)


@_pages.get("/")
async def _page(request: Request) -> HTMLResponse:
    """The page to ask from. It holds no data: its script fetches with the token that is typed in."""
    return _rendered("page.html", title=request.app.state.service.settings.title)


@_pages.get("/docs")
async def _docs(request: Request) -> HTMLResponse:
    """The API as a page, written from the same document as /openapi.json."""
    return _rendered("docs.html", told=told, document=request.app.openapi())


@_pages.get("/static/{name}")
async def _static(name: str) -> Response:
    """One of the few files the pages load."""
    if name not in STATIC:
        raise http_problem(404)
    return Response(_static_bytes(name), media_type=STATIC[name])


@_pages.get("/favicon.ico")
async def _icon() -> Response:
    """Nothing, without an error in the log of every browser."""
    return Response(status_code=204)


@cache
def _static_bytes(name: str) -> bytes:
    return files("velado.apps.service").joinpath("static", name).read_bytes()


@cache
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("velado.apps.service", "templates"),
        autoescape=select_autoescape(("html",)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _rendered(template: str, **values: object) -> HTMLResponse:
    return HTMLResponse(_templates().get_template(template).render(w=page_words(language()), **values))
