"""The pages for people: one to ask, one that tells the API. Everything they load comes from this service."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from velado.apps.web.failures import http_problem
from velado.apps.web.words import WORDS, language

router = APIRouter(include_in_schema=False)

STATIC = {"page.js": "text/javascript", "chart.js": "text/javascript", "page.css": "text/css"}


@cache
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("velado.apps.web", "templates"),
        autoescape=select_autoescape(("html",)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@router.get("/")
async def page(request: Request, lang: str | None = None) -> HTMLResponse:
    """The page to ask from. It holds no data: its script fetches with the token that is typed in."""
    return _page("page.html", request, lang, title=request.app.state.service.settings.title)


@router.get("/docs")
async def docs(request: Request, lang: str | None = None) -> HTMLResponse:
    """The API as a page, written from the same document as /openapi.json."""
    return _page("docs.html", request, lang, operations=operations(request.app.openapi()))


@router.get("/static/{name}")
async def static(name: str) -> Response:
    """One of the few files the pages load."""
    if name not in STATIC:
        raise http_problem(404)
    return Response(_static(name), media_type=STATIC[name])


@router.get("/favicon.ico")
async def icon() -> Response:
    """Nothing, without an error in the log of every browser."""
    return Response(status_code=204)


@cache
def _static(name: str) -> bytes:
    return files("velado.apps.web").joinpath("static", name).read_bytes()


def _page(template: str, request: Request, lang: str | None, **values: Any) -> HTMLResponse:
    words = WORDS[language(lang, request.headers.get("accept-language"))]
    return HTMLResponse(_templates().get_template(template).render(w=words, **values))


def operations(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The operations of an OpenAPI document, flat: method, path, texts, parameters, body's keys and replies."""
    schemas = document.get("components", {}).get("schemas", {})
    out = []
    for path, methods in document["paths"].items():
        for method, entry in methods.items():
            content = entry.get("requestBody", {}).get("content", {}).get("application/json", {})
            schema = schemas.get(content.get("schema", {}).get("$ref", "").rsplit("/", 1)[-1], {})
            needed = schema.get("required", [])
            out.append(
                {
                    "method": method.upper(),
                    "path": path,
                    "summary": entry.get("summary", ""),
                    "text": entry.get("description", ""),
                    "parameters": [
                        (p["name"], _kind(p["schema"]), p.get("required", False))
                        for p in entry.get("parameters", ())
                    ],
                    "body": [
                        (name, _kind(part), name in needed)
                        for name, part in schema.get("properties", {}).items()
                    ],
                    "replies": [
                        (status, reply["description"]) for status, reply in entry["responses"].items()
                    ],
                }
            )
    return out


def _kind(schema: dict[str, Any]) -> str:
    return schema.get("type") or " | ".join(part.get("type", "?") for part in schema.get("anyOf", ()))
