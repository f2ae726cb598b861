"""The application: routes, the gate before them, and the service behind them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from velado import __version__
from velado.apps.web import api, failures, pages
from velado.apps.web.gate import Gate
from velado.apps.web.service import Service
from velado.apps.web.settings import Settings

ABOUT = "Aggregate questions about tables of people, answered with differential privacy from a budget."


async def _share(service: Service) -> None:
    while service.settings.shared is not None:
        service.share()
        await asyncio.sleep(1)


def create_app(settings: Settings) -> FastAPI:
    """The application of these settings. Data sets and ledgers are open when it returns, so that a mistake stops the start."""
    service = Service(settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        sharing = asyncio.create_task(_share(service))
        yield
        sharing.cancel()
        service.close()

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
        Gate, limits=settings.limits, metrics=service.metrics, secure_transport=settings.secure_transport
    )

    def refuse(problem: failures.Problem) -> JSONResponse:
        service.metrics.refusal(problem.code)
        return JSONResponse(problem.body(), problem.status, problem.headers())

    @app.exception_handler(RequestValidationError)
    async def not_valid(request: Request, error: RequestValidationError) -> JSONResponse:
        broken = any(part["type"] == "json_invalid" for part in error.errors())
        return refuse(failures.not_understood(400 if broken else 422))

    @app.exception_handler(HTTPException)
    async def not_served(request: Request, error: HTTPException) -> JSONResponse:
        return refuse(failures.http_problem(error.status_code))

    app.include_router(api.router)
    app.include_router(pages.router)
    return app
