"""The application: the gate every request passes, pages for people, routes for programs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from velado import __version__
from velado.apps.service import analyst_api, owner_api
from velado.apps.service.analyst_service import AnalystService
from velado.apps.service.connection_guard import HEADER_BYTES
from velado.apps.service.problems import Problem, Refusal, http_problem, problem_of, unexpected
from velado.apps.service.service_metrics import ServiceMetrics
from velado.apps.service.service_settings import ServiceLimits, ServiceSettings
from velado.apps.web.page import headers, static_bytes, templates, tongue
from velado.text import Language, Sentence, language, say, speaking, told

_PACKAGE = "velado.apps.service"

# Every text of the page by the key that its template and its script know it by. Places such as {column} are filled in by the page's script, which has the numbers.
_WORDS: Mapping[str, Sentence] = {
    "title": say("Ask without seeing"),
    "lead": say("Questions about people, answered with noise that protects each of them."),
    "skip": say("Skip to the question"),
    "token": say("Token"),
    "token_hint": say(
        "The owner of the data gave it to you. It stays in this tab and is forgotten when you close it."
    ),
    "enter": say("Log in"),
    "leave": say("Log out"),
    "you_are": say("You are {analyst} ({role})."),
    "owner": say("owner"),
    "analyst": say("analyst"),
    "dataset": say("Data set"),
    "columns": say("Columns"),
    "column": say("Column"),
    "kind": say("Kind"),
    "range": say("Declared bounds or values"),
    "groupable": say("For GROUP BY"),
    "yes": say("yes"),
    "no": say("no"),
    "numeric": say("number"),
    "categorical": say("category"),
    "date": say("date"),
    "text": say("text"),
    "and_more": say("and {count} more"),
    "promise": say("What is promised"),
    "promise_groups": say(
        "Protected together: all rows with the same {column}, of which at most {rows} count. "
        "{definition}, over all answers to all analysts."
    ),
    "promise_strict": say(
        "Protected: each single row. Holds for rows that tell nothing of one another. {definition}, "
        "over all answers to all analysts."
    ),
    "promise_if": say(
        "Only if a related row's contribution to any answer asked moves by at most the declared "
        "fraction {dependence}."
    ),
    "pure": say("Epsilon-differential privacy"),
    "zcdp": say("Zero-concentrated differential privacy (rho)"),
    "question": say("Your question"),
    "sql": say("Query (SQL)"),
    "sql_hint": say(
        "One SELECT with COUNT, SUM, AVG, MIN, MAX, a quantile or a histogram; WHERE and GROUP BY are "
        "allowed. Ctrl+Enter asks."
    ),
    "build": say("Build a query"),
    "what": say("Compute"),
    "of": say("of"),
    "by": say("for each"),
    "nothing": say("(nothing)"),
    "every_row": say("(rows)"),
    "where": say("of the rows where"),
    "match": say("what must hold"),
    "match_all": say("all of these"),
    "match_any": say("any of these"),
    "add_condition": say("Add a condition"),
    "remove": say("Remove"),
    "test": say("Comparison"),
    "test_value": say("Compared with"),
    "test_in": say("is one of (separated by commas)"),
    "test_like": say("is like (% any text, _ one character)"),
    "test_missing": say("is missing"),
    "test_present": say("is not missing"),
    "beyond_form": say("The query says more than this form can show; what is written below counts."),
    "token_fix": say("Type the token as the owner gave it, or ask for a new one."),
    "unfinished": say("A condition has no value yet: nothing is asked before it has one, or is removed."),
    "no_bounds": say("No column has declared bounds, so only rows can be counted."),
    "within": say("How exact do you need it?"),
    "within_hint": say("By how much each value may be off: a number such as 10, or a percentage such as 5%."),
    "spend": say("Spend at most"),
    "spend_hint": say("More spent, less noise. Empty: as exactness needs, else {each}."),
    "drawn_how": say("How it is drawn"),
    "pay_noise": say("Pay for it all the same"),
    "pay_not": say("Do not pay; change how exact"),
    "unknown": say("unknown at this spend"),
    "save_csv": say("Save as CSV"),
    "save_json": say("Save as JSON"),
    "manage": say("Manage"),
    "done": say("Done."),
    "really": say("Really? Press again"),
    "role": say("Role"),
    "cap_title": say("The most one analyst may spend of the chosen data set"),
    "cap": say("The most, in all"),
    "cap_set": say("Set it"),
    "raise_title": say("A larger budget for the chosen data set; it cannot be lowered again"),
    "raise_total": say("New total"),
    "raise_reason": say("Reason, for the ledger"),
    "raise_set": say("Raise it"),
    "tokens": say("Tokens"),
    "token_days": say("Days until it ends (empty: never)"),
    "token_make": say("Make a token"),
    "token_once": say("This token is not shown again; hand it over by a safe way."),
    "revoke": say("Revoke"),
    "state": say("State"),
    "state_valid": say("valid"),
    "state_expired": say("expired"),
    "state_revoked": say("revoked"),
    "expires": say("Ends"),
    "every_dataset": say("every data set"),
    "datasets": say("Data sets"),
    "dataset_title": say("Title"),
    "dataset_add": say("Add the data set"),
    "take_out": say("Take out"),
    "taken_out": say("taken out"),
    "put_back": say("Put back"),
    "no_folder": say(
        "Data sets can be added here when the service file names a folder of tables: folder = 'tables'."
    ),
    "new_name": say("Name after FROM"),
    "new_file": say("Table (file)"),
    "new_schema": say("Schema (file)"),
    "new_budget": say("Budget in all, for ever"),
    "new_version": say("Version of this content"),
    "measure": say("Measure"),
    "confidence": say("Confidence of the interval"),
    "price": say("See the price"),
    "ask": say("Ask and pay"),
    "price_title": say("Price"),
    "price_cost": say("Costs {measure} {cost}; {left} is left."),
    "price_free": say("Costs nothing: no row is looked at."),
    "price_enough": say("There is enough left for it."),
    "price_room": say("That is enough for {n} such questions."),
    "price_short": say("There is not enough left for it."),
    "mechanism": say("Mechanism"),
    "sensitivity": say("One unit moves it by at most"),
    "scale": say("Noise scale"),
    "charge": say("Cost"),
    "draw": say("Drawn"),
    "rank_error": say("May miss the rank by"),
    "rank_rows": say("{rows} rows"),
    "rank_chance": say("Ranks are missed by no more than that with a chance of at least {level}."),
    "need_rows": say("rows"),
    "need_rows with": say("rows with '{column}'"),
    "need_sum of": say("sum of '{column}'"),
    "need_centred sum of": say("centred sum of '{column}'"),
    "need_histogram of": say("histogram of '{column}'"),
    "need_quantile of": say("{quantile} quantile of '{column}'"),
    "level": say("at level"),
    "bins": say("bins"),
    "tiny": say("less than 0.000001"),
    "asked_before": say(
        "You asked this before with this spend. As long as the table is the same, asking again gives "
        "the same numbers at no cost."
    ),
    "answer": say("Answer"),
    "answer_cost": say("Cost {measure} {cost}. {left} is left."),
    "answer_stored": say("Asked before with the same spend: the same numbers again, at no cost."),
    "interval": say("{level} interval"),
    "value_of": say("{name}: value"),
    "missing_key": say("(missing or undeclared)"),
    "chart_of": say("Bars of {name} with intervals: {text}"),
    "chart_cut": say("The chart shows the first {count} rows."),
    "noisy": say(
        "Every number carries noise. Each interval holds the exact value over {rows}, with numbers "
        "moved to their declared bounds and steps, with a chance of at least {level}. It is about the "
        "noise alone."
    ),
    "all_rows": say("every row"),
    "rows_that_count": say("the rows that count (at most {rows} with one value of {column})"),
    "bound": say("{name} is the declared bound of '{column}'; no rows were looked at."),
    "extreme": say("{name}: {asked} is answered as the {quantile} quantile."),
    "quantile": say("{name}: the {quantile} quantile."),
    "rank": say("It may miss the asked rank by {rows} rows, by no more with a chance of at least {level}."),
    "rank_best": say(
        "It may miss the asked rank by {rows} rows more than the best of {candidates} candidates "
        "does, by no more with a chance of at least {level}."
    ),
    "implied": say("At delta {delta} this answer alone implies an epsilon of {epsilon}."),
    "steps": say("in steps of {step}"),
    "budget": say("Budget"),
    "budget_line": say("{spent} of {total} ({measure}) spent by everybody; {left} left."),
    "budget_you": say("You have spent {spent}."),
    "budget_cap": say("You have spent {spent} of your share of {cap}."),
    "everybody": say("Everybody"),
    "spent": say("Spent"),
    "share": say("Share"),
    "implies": say("Implies epsilon {epsilon} at delta {delta}."),
    "implies_all": say("The whole budget keeps epsilon {epsilon} at delta {delta}."),
    "history": say("Your questions"),
    "history_none": say("You have asked nothing yet."),
    "again": say("Show again"),
    "when": say("When"),
    "asked": say("Question"),
    "error": say("This did not work"),
    "why": say("Why"),
    "fix": say("What to do"),
    "working": say("Working…"),
    "offline": say("The service did not answer."),
    "offline_why": say("It may have been stopped, or the network is down."),
    "offline_fix": say(
        "Try again in a moment. If the question was paid, asking it again with the same spend is free."
    ),
    "print": say("Print"),
    "noscript": say(
        "This page needs its script to ask questions; programs can use the API described at /docs."
    ),
    "api": say("For programs"),
    "docs_title": say("The API of this service"),
    "docs_lead": say(
        "Send the token with every request, as the header Authorization: Bearer TOKEN. Errors are "
        "JSON with what, why, fix and code."
    ),
    "docs_machine": say("The same for machines"),
    "body": say("Body"),
    "parameters": say("Parameters"),
    "replies": say("Replies"),
    "required": say("required"),
    "served": say("Served."),
    "epsilon": say("epsilon"),
    "rho": say("rho"),
}
_OTHERS: Mapping[Language, tuple[Language, str]] = {"en": ("pt", "Português"), "pt": ("en", "English")}


def page_words(tongue: Language) -> dict[str, str]:
    """The texts in a language, which is their key "lang"; "other" leads to the page in the other one.

    >>> page_words("pt")["other"], page_words("en")["rank_rows"]
    ('English', '{rows} rows')
    """
    code, other = _OTHERS[tongue]
    told_words = {key: told(text, tongue) for key, text in _WORDS.items()}
    return {"lang": tongue, "other_lang": code, "other": other, **told_words}


ABOUT = "Aggregate questions about tables of people, answered with differential privacy from a budget."
HEADERS = headers(form_action="'none'")
STRICT_TRANSPORT = (b"strict-transport-security", b"max-age=31536000")
STATIC = {
    "page.js": "text/javascript",
    "chart.js": "text/javascript",
    "builder.js": "text/javascript",
    "owner.js": "text/javascript",
    "page.css": "text/css",
}


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
    app.include_router(owner_api.router)
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
        with speaking(tongue(scope)):
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
    return Response(static_bytes(_PACKAGE, name), media_type=STATIC[name])


@_pages.get("/favicon.ico")
async def _icon() -> Response:
    """Nothing, without an error in the log of every browser."""
    return Response(status_code=204)


def _rendered(template: str, **values: object) -> HTMLResponse:
    return HTMLResponse(templates(_PACKAGE).get_template(template).render(w=page_words(language()), **values))
