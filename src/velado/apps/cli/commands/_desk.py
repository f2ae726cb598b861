"""`velado desk`: from a file to a signed release in a browser."""

from __future__ import annotations

from contextvars import copy_context
from pathlib import Path
from typing import Annotated

import click

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.app import LANGUAGE_ASKED, OfSetting, argument, command, option
from velado.text import say

_SEAT = "velado.apps.desk.desk_server.Seat"


@command("desk")
def desk(
    folder: Annotated[
        Path, argument("FOLDER", help="The project: a folder with the table; made if it is not there.")
    ] = Path("."),
    *,
    port: Annotated[
        int,
        option("--port N", click_type=OfSetting(f"{_SEAT}.port", "N"), help="Port; 0 takes any free one."),
    ] = 0,
    memory: Annotated[
        float,
        option(
            "--memory GB",
            click_type=OfSetting(f"{_SEAT}.memory", "GB"),
            help="Gigabytes a run may hold in memory; 0: three quarters of the machine's.",
        ),
    ] = 0.0,
    key: flags.OwnerKey = None,
    no_browser: Annotated[bool, option("--no-browser", help="Only print the address.")] = False,
) -> None:
    """From a file to a signed release, in a browser.

    Opens a page on this machine alone. The project is a folder with the files that the other commands use: schema.toml, taxonomies, recipe.toml, releases.
    """
    from velado.apps.desk import desk_server

    ours = copy_context()

    def ready(address: str) -> None:
        ours.copy().run(
            show.result,
            {"address": address},
            [
                say(
                    "The desk is open at {address} (this address works once). Ctrl+C ends it.",
                    address=address,
                )
            ],
        )

    asked = click.get_current_context().meta.get(LANGUAGE_ASKED)
    desk_server.run(folder, desk_server.Seat(port, memory), key, not no_browser, ready, asked)
