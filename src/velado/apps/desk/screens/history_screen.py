"""History: runs side by side, and where their recipes differ."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from velado.apps.desk import jobs, signing
from velado.apps.desk.jobs import Job
from velado.apps.desk.screens._screen import go, job_told, page, project_of
from velado.apps.desk.walk import Walk

screen = APIRouter()
_MOST = 200


@screen.get("/history")
def show(request: Request) -> Response:
    """The screen."""
    project = project_of(request)
    walk = Walk.of(project)
    runs = [job for job in jobs.listed(project.runs) if job.asked.get("kind") == "release"][:_MOST]
    asked = request.query_params.getlist("run")[:2]
    chosen = [job for name in asked for job in runs if job.name == name]
    return page(
        request,
        "history",
        walk,
        runs=[_told(job, walk) for job in runs],
        chosen=[_told(job, walk) for job in chosen],
        differences=differences(*(_recipe(job) for job in chosen)) if len(chosen) == 2 else None,
        released=signing.released(project),
    )


@screen.get("/history/look")
def look(request: Request) -> Response:
    """Two runs are chosen by a form; the page shows them."""
    names = "&".join(f"run={name}" for name in request.query_params.getlist("run")[:2] if name.isascii())
    return go(f"/history?{names}")


def _told(job: Job, walk: Walk) -> dict[str, Any]:
    result = job.result() if job.state == "done" else {}
    told = job_told(job)
    return {**told, "result": result, "current": walk.is_current(job), "file": job.asked.get("file", "")}


def _recipe(job: Job) -> dict[str, Any]:
    return tomllib.loads(str(job.asked.get("recipe_text", "")))


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Where two recipes differ: the key, and what each says there.

    >>> differences({"k": 5, "schema": {"a": 1}}, {"k": 7, "schema": {"a": 1, "b": 2}})
    [('k', '5', '7'), ('schema.b', '–', '2')]
    """
    left, right = dict(_leaves(one)), dict(_leaves(other))
    keys = sorted({*left, *right})
    return [(key, left.get(key, "–"), right.get(key, "–")) for key in keys if left.get(key) != right.get(key)]


def _leaves(part: Any, above: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(part, Mapping):
        for key, value in part.items():
            yield from _leaves(value, f"{above}.{key}" if above else str(key))
    elif isinstance(part, list) and any(isinstance(one, Mapping) for one in part):
        for at, value in enumerate(part):
            yield from _leaves(value, f"{above}[{at + 1}]")
    else:
        text = str(part)
        yield above, text if len(text) <= 400 else text[:400] + "…"
