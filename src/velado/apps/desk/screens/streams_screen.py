"""Streams: windows, crowds, loss and delay of the streams that run in the project's folder, while they run."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from velado.apps.desk.screens._screen import page, project_of
from velado.apps.desk.stream_logs import logs, told
from velado.apps.desk.walk import Walk

screen = APIRouter()


@screen.get("/streams")
def show(request: Request) -> Response:
    """The screen; its script asks for it again while somebody looks."""
    project = project_of(request)
    return page(request, "streams", Walk.of(project), streams=[told(one, project) for one in logs(project)])
