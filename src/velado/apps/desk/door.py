"""Who may speak to the desk: this machine, this browser, this page. What comes otherwise is refused in words.

The desk listens on the loopback address alone, but any page in the same browser can send requests there. So the name in
the Host header must be ours (a foreign name that leads here is DNS rebinding), the cookie must be the one that the
one-time address gave, and whatever changes something must carry the page's own token and come from our origin. Where the
browser says that another site asks, nothing is answered at all: that it keeps our cookie from such requests is not relied on.
"""

from __future__ import annotations

import hmac
import logging
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from pathlib import PurePath
from urllib.parse import parse_qs, quote

from fastapi import Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from velado.apps.desk.wording import error_at_the_desk
from velado.apps.web.page import headers, templates, tongue
from velado.errors import InputError, VeladoError
from velado.randomness import secure
from velado.text import LANGUAGES, language, say, speaking, told

PACKAGE = "velado.apps.desk"
LOG = logging.getLogger("velado.web")
HEADERS = headers(form_action="'self'", referrer="same-origin")
"""Without a referrer a browser would not say which page a form comes from; other hosts are told nothing all the same."""
MOST_FORM_BYTES = 4 << 20
MOST_FIELDS = 20_000
UNSAID = "unsaid"
"""The state of a form that does not say what it showed: no project has it, so that nothing is changed by such a form."""
_MOST_HEADER_BYTES = 16_384


@dataclass
class Session:
    """The secrets of one start of the desk: the address that is printed works once, then the cookie does.

    >>> session = Session(port=8001)
    >>> session.enter(session.ticket), session.enter(session.ticket)
    (True, False)
    """

    port: int
    ticket: str = field(default_factory=lambda: secure().randbytes(24).hex())
    cookie: str = field(default_factory=lambda: secure().randbytes(24).hex())
    csrf: str = field(default_factory=lambda: secure().randbytes(24).hex())
    used: bool = False

    @property
    def name(self) -> str:
        """The cookie's name: cookies do not know ports, and two desks may run."""
        return f"velado_desk_{self.port}"

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names under which this desk may be spoken to."""
        return (f"127.0.0.1:{self.port}", f"localhost:{self.port}")

    def enter(self, ticket: str) -> bool:
        """Whether the one-time ticket is right; it is used up then."""
        if self.used or not hmac.compare_digest(ticket.encode(), self.ticket.encode()):
            return False
        self.used = True
        return True


class Door:
    """Lets in what comes from the desk's own page. Plain ASGI, so that no route can forget it."""

    def __init__(self, app: ASGIApp, session: Session) -> None:
        self._app = app
        self._session = session

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        cookies = _cookies(given.get("cookie", ""))
        asked = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        kept = cookies.get("velado_lang", "")
        chosen = kept if kept in LANGUAGES and "lang" not in asked else tongue(scope)

        begun = False

        async def reply(message: Message) -> None:
            nonlocal begun
            begun = True
            if message["type"] == "http.response.start":
                own = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(h for h in HEADERS if h[0] not in own)]
                if asked.get("lang", [""])[0] in LANGUAGES:
                    line = f"velado_lang={chosen}; Path=/; SameSite=Strict"
                    message["headers"].append((b"set-cookie", line.encode()))
            await send(message)

        with speaking(chosen):
            answer = self._refused(scope, given, cookies, asked)
            if answer is not None:
                await answer(scope, receive, reply)
                return
            try:
                await self._app(scope, receive, reply)
            except Exception as error:  # The one place where nothing may pass by.
                failed = unexpected(error, wants_json(given))
                if not begun:
                    await failed(scope, receive, reply)

    def _refused(
        self,
        scope: Scope,
        given: Mapping[str, str],
        cookies: Mapping[str, str],
        asked: Mapping[str, list[str]],
    ) -> Response | None:
        if given.get("host", "") not in self._session.hosts:
            return problem(_foreign(), 421)
        if sum(len(name) + len(value) for name, value in given.items()) > _MOST_HEADER_BYTES:
            return problem(_foreign(), 431)
        if scope["path"].startswith("/static/") or scope["path"] == "/favicon.ico":
            return None
        ticket = asked.get("ticket", [""])[0]
        if scope["path"] == "/" and ticket and self._session.enter(ticket):
            answer = RedirectResponse("/" + (f"?lang={quote(language())}" if "lang" in asked else ""), 303)
            answer.set_cookie(self._session.name, self._session.cookie, httponly=True, samesite="strict")
            return answer
        known = cookies.get(self._session.name, "")
        if not hmac.compare_digest(known.encode(), self._session.cookie.encode()):
            return problem(_stranger(), 401)
        # Another program's page on this machine is the same site, for sites know no ports.
        if given.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return problem(_foreign(), 403)
        if scope["method"] in ("GET", "HEAD"):
            return None
        origin = given.get("origin")
        if origin is not None and origin not in [f"http://{host}" for host in self._session.hosts]:
            return problem(_foreign(), 403)
        return None


@dataclass(frozen=True)
class Form:
    """What a page's form said: each field's last value, and all values of fields that stand several times."""

    fields: Mapping[str, list[str]]

    def one(self, name: str, otherwise: str = "") -> str:
        """The value of a field."""
        return self.fields.get(name, [otherwise])[-1]

    def all(self, name: str) -> list[str]:
        """Every value of a field."""
        return self.fields.get(name, [])


async def form(request: Request) -> Form:
    """The form of a request that carries the page's own token; else a refusal."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MOST_FORM_BYTES:
            raise InputError(
                "The form is too large.",
                "The desk's own pages send little.",
                "Send less; a table is dropped as a file.",
            )
    try:
        fields = parse_qs(
            bytes(body).decode(),
            keep_blank_values=True,
            max_num_fields=MOST_FIELDS,
            strict_parsing=bool(body),
        )
    except ValueError:
        raise _not_ours() from None
    if not fields.get("state", [""])[-1]:
        fields["state"] = [UNSAID]
    found = Form(fields)
    check_token(request, found.one("csrf"))
    return found


def check_token(request: Request, given: str) -> None:
    """Nothing, if *given* is the token that the desk's own pages hold."""
    session: Session = request.app.state.session
    if not hmac.compare_digest(given.encode(), session.csrf.encode()):
        raise _not_ours()


def wants_json(given: Mapping[str, str]) -> bool:
    """Whether a script asks, rather than a person."""
    return "application/json" in given.get("accept", "")


def unexpected(error: Exception, json: bool) -> Response:
    """A fixed sentence; the log has the error's class and place, for its message may hold a cell."""
    frames = traceback.extract_tb(error.__traceback__)
    places = " < ".join(f"{PurePath(f.filename).name}:{f.lineno} {f.name}" for f in reversed(frames))
    LOG.error("unexpected: %s at %s", type(error).__name__, places)
    return problem(
        VeladoError(
            "The desk met an error that it did not expect.",
            "Its details are not shown because they may hold values of the table.",
            "Try again; if it stays, tell whoever maintains velado what you did. The project is as it was.",
        ),
        500,
        json,
    )


def problem(error: VeladoError, status: int, json: bool = False) -> Response:
    """An error as a page of three sentences, or as JSON for a script."""
    what, why, fix = (told(said) for said in error_at_the_desk(error))
    told_parts = {"what": what, "why": why, "fix": fix}
    if json:
        return JSONResponse(told_parts, status)
    page = templates(PACKAGE).get_template("problem.html")
    return HTMLResponse(page.render(tongue=language(), **told_parts), status)


def _cookies(header: str) -> dict[str, str]:
    try:
        return {name: morsel.value for name, morsel in SimpleCookie(header).items()}
    except CookieError:
        return {}


def _foreign() -> InputError:
    return InputError(
        "This request does not come from the desk's own page.",
        "Other pages in your browser must not be able to read or change the project.",
        say("Open the address that `velado desk` printed."),
    )


def _stranger() -> InputError:
    return InputError(
        "This browser has not been let in.",
        "The address that `velado desk` printed works once, in one browser.",
        "Stop the desk and start it again, then open the new address; nothing is lost.",
    )


def _not_ours() -> InputError:
    return InputError(
        "The form does not carry this desk's token, so nothing was done.",
        "It was made before the desk was started again, or by another page.",
        "Load the page again and repeat what you did.",
    )
