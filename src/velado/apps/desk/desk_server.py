"""The desk is run: a socket on the loopback address, a one-time address, an orderly end."""

from __future__ import annotations

import os
import socket
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from velado.apps.desk.project import Project
from velado.errors import InputError, MissingExtra, ParameterError
from velado.settings import Setting, settings
from velado.text import Language, say

GIGABYTE = 1 << 30


@settings
class Seat:
    """Where the desk listens, and what a job may hold in memory, in gigabytes; 0: three quarters of the machine's.

    >>> Seat().port
    0
    """

    port: Annotated[int, Setting("the port; 0 takes any free one", ge=0, le=65_535)] = 0
    memory: Annotated[
        float, Setting("gigabytes a job may hold in memory; 0: three quarters of the machine's", ge=0)
    ] = 0.0


def run(
    folder: Path,
    seat: Seat,
    key: Path | None,
    browser: bool,
    ready: Callable[[str], None],
    asked: Language | None = None,
) -> None:
    """Serve the project in *folder* until told to stop; *ready* is called with the one-time address.

    The pages speak the browser's language, or the one that was *asked* for; the link on each page changes it.
    """
    try:
        import fastapi  # noqa: F401
        import uvicorn
    except ImportError:
        raise MissingExtra(
            "The desk needs FastAPI and Uvicorn, of which one is not installed.",
            "They are optional, so that velado itself stays small.",
            "Install them with: pip install 'velado[web,evidence]'.",
        ) from None
    from velado.apps.desk.desk_app import DeskSettings, create_app
    from velado.apps.desk.door import Session

    if folder.exists() and not folder.is_dir():
        raise InputError(
            say("'{name}' is no folder.", name=folder.name),
            "A project is a folder.",
            "Name the folder that holds the table, or a new one.",
        )
    if key is not None and not key.exists():
        raise InputError(
            "The key's file is not there.", "Releases are drawn under it.", "Check the path of --key."
        )
    taken = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind(("127.0.0.1", seat.port))
    except OSError:
        raise ParameterError(
            say("Port {port} is taken.", port=seat.port),
            "Another program listens there.",
            "Give another --port, or none: then any free one is taken.",
        ) from None
    session = Session(port=taken.getsockname()[1])
    most = int(seat.memory * GIGABYTE) or _machine() * 3 // 4
    project = Project(folder.resolve())
    app = create_app(DeskSettings(project=project, key=key, memory=most), session)
    address = f"http://127.0.0.1:{session.port}/?ticket={session.ticket}"
    if asked is not None:
        address += f"&lang={asked}"

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            ready(address)
            if browser:
                webbrowser.open(address)

    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=3,
        lifespan="off",
    )
    Server(config).run(sockets=[taken])


def _machine() -> int:
    """The machine's memory in bytes; 0 where it does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0
