"""Sign and hand over: the inventory, who answers for it, a second person's approval, the release's folder."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, HTMLResponse, Response
from starlette.exceptions import HTTPException

from velado.apps.desk import evidencing, handed_over, previewing, signing
from velado.apps.desk.deciding import standing, told_decision
from velado.apps.desk.door import Form, form
from velado.apps.desk.project import changed_meanwhile, now, user
from velado.apps.desk.screens._screen import go, page, project_of, settings_of
from velado.apps.desk.screens.look_screen import finished
from velado.apps.desk.walk import Walk
from velado.errors import InputError
from velado.study.evidence import check_law
from velado.text import Sentence, say

screen = APIRouter()
FATES: dict[str, Sentence] = {
    "published": say("published as it is"),
    "generalized": say("published coarser"),
    "held back": say("held back"),
    "altered": say("altered, then published"),
    "dropped": say("held back"),
}
BASES: tuple[Sentence, ...] = (
    say("consent"),
    say("legal obligation"),
    say("public interest or public policy"),
    say("research"),
    say("legitimate interest"),
    say("anonymized data, outside data protection law"),
)


@screen.get("/sign")
def show(request: Request) -> Response:
    """The screen."""
    project = project_of(request)
    walk = Walk.of(project)
    waits = signing.waiting(project)
    try:
        job, open_now = finished(walk), None
    except InputError as error:
        job, open_now = None, error
    key = settings_of(request).key
    recipient, purpose = previewing.told_by(walk.answers.preset)
    return page(
        request,
        "sign",
        walk,
        job=job,
        open_now=open_now,
        result=None if job is None else job.result(),
        fates=FATES,
        bases=BASES,
        laws=evidencing.laws(),
        recipient=recipient,
        purpose=purpose,
        waits=waits,
        released=signing.released(project),
        key=key,
        folder=project.releases.resolve(),
        offered=handed_over.OFFERED,
        readers=handed_over.READERS,
        has_run=walk.run() is not None,
        settled=walk.roles_settled,
        before=[] if job is None else [one for one in signing.released(project) if one.run == job.name],
        done="done" in request.query_params,
        today=now()[:10],
        account=user(),
        doors=standing(walk.answers.doors, walk.recipe),
        told_decision=told_decision,
    )


@screen.get("/releases/{name}/{what}")
def handed(request: Request, name: str, what: str) -> Response:
    """One of the few files of a release, to save or to read."""
    project = project_of(request)
    offered = next((one for one in handed_over.OFFERED if one.name == what), None)
    if offered is None:
        raise HTTPException(404)
    signature = handed_over.signature_of(project, name)
    if offered.page:
        return HTMLResponse(handed_over.page_of(project, signature, what), headers=handed_over.ALONE)
    place = handed_over.file_of(project, signature, what)
    return FileResponse(place, media_type="application/octet-stream", filename=f"{name}-{place.name}")


@screen.post("/sign")
async def sign(request: Request) -> Response:
    """Somebody signs the run that the form showed; without a second person it is handed over at once."""
    given = await form(request)
    project = project_of(request)
    with project.lock:
        walk = Walk.of(project)
        job = finished(walk)
        shown = (given.one("run"), given.one("sha256"), given.one("state"))
        if shown != (job.name, job.result()["sha256"], walk.state):
            raise changed_meanwhile()
        said = signing.checked(_said(given))
        check_law(said["law"])
        if signing.waiting(project) is not None:
            raise InputError(
                "A signature waits for a second person.",
                "Another signature would do away with what was asked for.",
                "Let the second person approve it, or withdraw it first.",
            )
        doors = {name: asdict(one) for name, one in standing(walk.answers.doors, walk.recipe).items()}
        signature = signing.signed(job, walk.recipe_digest(), said, given.one("second") == "yes", doors)
        if signature.second:
            signing.keep_waiting(project, signature)
        else:
            signing.hand_over(project, job, signature, evidencing.writer(settings_of(request).key))
    return go("/sign?done")


@screen.post("/sign/approve")
async def approve(request: Request) -> Response:
    """A second person approves what the first one signed; then it is handed over."""
    given = await form(request)
    project = project_of(request)
    with project.lock:
        walk = Walk.of(project)
        waits = signing.waiting(project)
        shown = (given.one("run"), given.one("sha256"), given.one("state"))
        if waits is None or shown != (waits.run, waits.sha256, walk.state):
            raise changed_meanwhile()
        if given.one("do") == "withdraw":
            signing.withdraw(project)
            return go("/sign")
        job = finished(walk)
        if (waits.run, waits.sha256, waits.recipe) != (
            job.name,
            job.result()["sha256"],
            walk.recipe_digest(),
        ):
            raise changed_meanwhile()
        name = given.one("name").strip()[: signing.LONGEST]
        if signing.same_name(name, "") or signing.same_name(name, waits.name):
            raise InputError(
                "The approval is not by a second person.",
                "Four eyes see what two do not.",
                "Let somebody else look at the release and write their own name.",
            )
        signature = replace(waits, approved_by=name, approved_at=now(), approved_account=user())
        signing.hand_over(project, job, signature, evidencing.writer(settings_of(request).key))
        signing.withdraw(project)
    return go("/sign?done")


def _said(given: Form) -> dict[str, Any]:
    names = ("name", "recipient", "purpose", "legal_basis", "law", "remarks")
    return {name: given.one(name) for name in names}
