"""What every request passes before any route: its size and time, the headers of its reply, and the last catch.

Written as plain ASGI, because it must hold for bodies that name no length and for errors that no route foresees.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from velado.apps.web import failures
from velado.apps.web.metrics import Metrics
from velado.apps.web.settings import Limits

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

HEADER_BYTES = 16_384
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


class Gate:
    """Passes on a request whose body is whole and small enough; whatever goes wrong inside leaves as a Problem."""

    def __init__(self, app: App, limits: Limits, metrics: Metrics, secure_transport: bool) -> None:
        self._app = app
        self._limits = limits
        self._metrics = metrics
        self._headers = [*HEADERS, STRICT_TRANSPORT] if secure_transport else list(HEADERS)

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """One request, from its first byte to its reply."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
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
            # The server limits headers that are still arriving; those that came in one piece are measured here.
            if sum(len(name) + len(value) for name, value in scope["headers"]) > HEADER_BYTES:
                raise failures.too_large_headers(HEADER_BYTES)
            body = await self._body(scope, receive)
            await self._app(scope, _replay(body, receive), reply)
        except Exception as error:  # The one place where nothing may pass by.
            if status:
                failures.unexpected(error)
                raise ConnectionAbortedError from None
            problem = failures.problem_of(error)
            self._metrics.refusal(problem.code)
            await respond(problem, reply)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.request(route, status or 499, time.monotonic() - started)

    async def _body(self, scope: MutableMapping[str, Any], receive: Receive) -> bytes:
        """The whole body, which is at most the limit, within the time a client has."""
        most = self._limits.max_body_bytes
        named = dict(scope["headers"]).get(b"content-length", b"0")
        if not named.isdigit() or int(named[:20]) > most:
            raise failures.too_large(most)
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise failures.too_slow_client()
                    part = message.get("body", b"")
                    size += len(part)
                    if size > most:
                        raise failures.too_large(most)
                    parts.append(part)
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            raise failures.too_slow_client() from None


async def respond(problem: failures.Problem, send: Send) -> None:
    """The Problem as a reply; the connection ends where the client may still be sending."""
    body = json.dumps(problem.body()).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(name.lower().encode(), value.encode()) for name, value in problem.headers().items()]
    if problem.status in (408, 413, 431):
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


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
