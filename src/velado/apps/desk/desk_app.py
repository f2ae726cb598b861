"""The application: the door every request passes, and the screens."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse, Response
from starlette.exceptions import HTTPException

from velado.apps.desk.door import PACKAGE, Door, Session, problem, wants_json
from velado.apps.desk.project import Project
from velado.apps.desk.screens import SCREENS
from velado.apps.web.page import MEDIA, static_bytes
from velado.errors import InputError, VeladoError

STATIC = (
    "desk.css",
    "desk.js",
    "drop.js",
    "roles.js",
    "promise.js",
    "tree.js",
    "bands.js",
    "compare.js",
    "streams.js",
)


@dataclass(frozen=True, kw_only=True)
class DeskSettings:
    """How a desk is run: the project, the owner's key, what a job may hold in memory, the largest upload, both in bytes."""

    project: Project
    key: Path | None = None
    memory: int = 0
    largest_upload: int = 8 << 30


def create_app(settings: DeskSettings, session: Session) -> FastAPI:
    """The application of one project."""
    settings.project.begin()
    app = FastAPI(
        title="velado desk", docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False
    )
    app.state.settings = settings
    app.state.session = session
    app.add_middleware(Door, session=session)

    @app.exception_handler(VeladoError)
    async def refused(request: Request, error: VeladoError) -> Response:
        return problem(error, 409 if isinstance(error, InputError) else 400, wants_json(request.headers))

    @app.exception_handler(RequestValidationError)
    async def no_number(request: Request, error: RequestValidationError) -> Response:
        del error  # it repeats what was sent
        return await not_served(request, HTTPException(404))

    @app.exception_handler(HTTPException)
    async def not_served(request: Request, error: HTTPException) -> Response:
        return problem(
            InputError(
                "There is nothing at this address.", "Nothing was done.", "Go back to the list of screens."
            ),
            error.status_code,
            wants_json(request.headers),
        )

    app.include_router(_pages)
    for part in SCREENS:
        app.include_router(part.screen)
    return app


_pages = APIRouter()


@_pages.get("/")
def _first(request: Request) -> Response:
    """The screen at which the walk stands."""
    from velado.apps.desk.walk import Walk

    walk = Walk.of(request.app.state.settings.project)
    place = "/open"
    if walk.reading_settled:
        place = "/people" if not walk.person_settled else "/roles" if not walk.roles_settled else "/promise"
        if place == "/promise" and walk.run() is not None:
            place = "/look"
    return RedirectResponse(place, 303)


@_pages.get("/static/{name}")
def _static(name: str) -> Response:
    """One of the few files the pages load."""
    if name not in STATIC:
        raise HTTPException(404)
    return Response(static_bytes(PACKAGE, name), media_type=MEDIA[Path(name).suffix])


@_pages.get("/favicon.ico")
def _icon() -> Response:
    """Nothing, without an error in the log of every browser."""
    return Response(status_code=204)
