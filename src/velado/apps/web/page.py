"""The parts of every page and reply: security headers, templates that tell sentences, files of a package, the language."""

from __future__ import annotations

import os
from functools import cache
from importlib.resources import files
from urllib.parse import parse_qs

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from starlette.types import Scope

from velado.text import Language, Sentence, choose, say, say_n, told, written

MEDIA = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
"""What the files are that pages load, by how their names end."""


def headers(form_action: str, referrer: str = "no-referrer") -> tuple[tuple[bytes, bytes], ...]:
    """What every reply carries: nothing from elsewhere is loaded, framed, sniffed or kept; forms go to *form_action*.

    >>> dict(headers("'none'"))[b"x-frame-options"]
    b'DENY'
    """
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        f"form-action {form_action}; base-uri 'none'; frame-ancestors 'none'"
    )
    return (
        (b"content-security-policy", policy.encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"x-frame-options", b"DENY"),
        (b"referrer-policy", referrer.encode()),
        (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"cross-origin-resource-policy", b"same-origin"),
        (b"cache-control", b"no-store"),
    )


def tongue(scope: Scope) -> Language:
    """The language of ?lang=, else of Accept-Language, else of VELADO_LANG, which the owner of the program set.

    >>> tongue({"query_string": b"lang=pt", "headers": []})
    'pt'
    """
    asked = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("lang", [""])[0]
    accepted = dict(scope["headers"]).get(b"accept-language", b"").decode("latin-1")
    return choose(asked[:2].lower(), os.environ, accepted)


@cache
def templates(package: str) -> Environment:
    """The page templates of a *package*; `say` in them tells a sentence in the language spoken.

    >>> templates("velado.apps.service").get_template("docs.html").name
    'docs.html'
    """
    environment = Environment(
        loader=PackageLoader(package, "templates"),
        autoescape=select_autoescape(("html",)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: told(value) if isinstance(value, Sentence) else value,
    )
    environment.globals |= {"say": say, "say_n": say_n}
    environment.filters["told"] = told
    environment.filters["written"] = written
    return environment


@cache
def static_bytes(package: str, name: str) -> bytes:
    """One of the files that the pages of a *package* load.

    >>> b"color-scheme" in static_bytes("velado.apps.service", "page.css")
    True
    """
    return files(package).joinpath("static", name).read_bytes()
