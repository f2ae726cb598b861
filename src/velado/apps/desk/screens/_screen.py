"""What every screen needs: the page's frame with the list of screens, and how a job is begun and told of."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse

from velado.apps.desk import jobs
from velado.apps.desk.door import PACKAGE
from velado.apps.desk.jobs import Job
from velado.apps.desk.project import Project
from velado.apps.desk.stream_logs import logs
from velado.apps.desk.walk import Walk
from velado.apps.web.page import templates
from velado.errors import InputError
from velado.text import Language, Sentence, language, say, told

if TYPE_CHECKING:
    from velado.apps.desk.desk_app import DeskSettings

STEPS: tuple[tuple[str, Sentence], ...] = (
    ("open", say("Open")),
    ("people", say("Who is a person?")),
    ("roles", say("Roles")),
    ("hierarchies", say("Hierarchies")),
    ("promise", say("Promise")),
    ("compare", say("Compare")),
    ("look", say("Look")),
    ("sign", say("Sign and hand over")),
    ("history", say("History")),
    ("streams", say("Streams")),
)
_OTHERS: Mapping[Language, tuple[Language, str]] = {"en": ("pt", "Português"), "pt": ("en", "English")}
_STATES: Mapping[str, Sentence] = {
    "running": say("at work"),
    "done": say("done"),
    "failed": say("refused"),
    "cancelled": say("cancelled"),
    "killed": say("ended before its time"),
}


def settings_of(request: Request) -> DeskSettings:
    """How this desk is run."""
    found: DeskSettings = request.app.state.settings
    return found


def project_of(request: Request) -> Project:
    """The project."""
    return settings_of(request).project


def page(request: Request, step: str, walk: Walk, **values: Any) -> HTMLResponse:
    """The page of a screen, in the language spoken."""
    open_ones = {
        "open": not walk.reading_settled or walk.file_changed,
        "people": not walk.person_settled,
        "roles": not walk.roles_settled,
    }
    code, other = _OTHERS[language()]
    text = (
        templates(PACKAGE)
        .get_template(f"{step}.html")
        .render(
            step=step,
            title=dict(STEPS)[step],
            steps=[
                (name, title, open_ones.get(name, False))
                for name, title in STEPS
                # Most projects are no stream's: the screen is listed where there is something to see.
                if name != "streams" or step == name or logs(project_of(request))
            ],
            tongue=language(),
            other_code=code,
            other=other,
            project=project_of(request).folder.name,
            csrf=request.app.state.session.csrf,
            state=walk.state,
            walk=walk,
            source=walk.answers.source,
            saved="saved" in request.query_params,
            job_told=job_told,
            short=short,
            own=templates(PACKAGE).get_template("parts.html").module,
            **values,
        )
    )
    return HTMLResponse(text)


def go(place: str) -> RedirectResponse:
    """The browser loads another page; back and reload repeat nothing."""
    return RedirectResponse(place, 303)


def start(request: Request, kind: str, walk: Walk, **asked: object) -> str:
    """A job is begun; what every job needs to know stands in it."""
    settings, source = settings_of(request), walk.answers.source
    assert source is not None
    project = settings.project
    known = {
        "kind": kind,
        "source": str(project.source_path(source)),
        "file": source.file,
        "digest": source.digest,
        "sheet": source.sheet,
        "key": None if settings.key is None else str(settings.key),
        "memory": settings.memory,
        "language": language(),
    }
    return jobs.start(project.runs, {**known, **asked})


def awaited(request: Request, name: str) -> Job:
    """A short job that the page waits for, when it is done; how it failed is raised."""
    runs = project_of(request).runs
    while (job := jobs.look(runs, name)).state == "running":
        time.sleep(0.05)
    if job.state != "done":
        said = job_told(job)["error"] or {}
        raise InputError(
            said.get("what") or say("The work on it ended before its time."),
            said.get("why") or say("Nothing was changed."),
            said.get("fix") or say("Try again."),
        )
    return job


def job_told(job: Job | None) -> dict[str, Any]:
    """A job as a page or its script shows it."""
    if job is None:
        return {"state": "none"}
    out: dict[str, Any] = {
        "name": job.name,
        "state": job.state,
        "said": told(_STATES[job.state]),
        "share": round(job.share, 3),
        "doing": told(job.doing),
        "error": None,
    }
    if job.error is not None:
        out["error"] = {key: job.error[key][language()] for key in ("what", "why", "fix")}
        out["error"]["kind"] = job.error.get("kind", "")
        out["error"]["choices"] = job.error.get("choices", [])
    return out


def short(text: object, most: int = 60) -> str:
    """A name or a cell for a page: not longer than *most* characters."""
    whole = str(text)
    return whole if len(whole) <= most else whole[: most - 1] + "…"
