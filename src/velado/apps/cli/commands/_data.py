"""`velado data`: the papers' data sets, listed and fetched from their public sources."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.app import argument, command, group, option
from velado.text import say

if TYPE_CHECKING:
    from velado.report.blocks import Table

app = group("data", help="List or fetch the public data sets of the papers.")

_STATES = {
    str(state): state
    for state in (say("missing"), say("there"), say("there, not checked"), say("there, but another file"))
}


@command("list", app)
def listed(data: flags.DataFolder = None) -> None:
    """List every data set, where its files belong, and whether they are there."""
    from velado.papers.downloads import status
    from velado.papers.public_data import DATA_SETS

    folder = flags.data_folder(data) if data or os.environ.get("VELADO_DATA") else None
    states = {
        one.name: {file.place: status(file, folder) if folder else "missing" for file in one.files}
        for one in DATA_SETS
    }
    for one in DATA_SETS:
        if not one.files and folder is not None and (folder / one.place).is_file():
            states[one.name] = {one.place: "there, not checked"}
    found = [
        {
            "name": one.name,
            "title": one.title,
            "page": one.page,
            "by_hand": one.by_hand or None,
            "files": states[one.name],
        }
        for one in DATA_SETS
    ]
    show.result({"data_sets": found}, _list(states))


def _list(states: Mapping[str, Mapping[str, str]]) -> Iterator[Table]:
    from velado.papers.downloads import STATES
    from velado.papers.public_data import DATA_SETS

    def state(name: str) -> str:
        # The worst of its files speaks for a data set.
        worst = next((one for one in STATES if one in states[name].values()), None)
        return _STATES[worst] if worst else say("by hand")

    yield show.table(
        "",
        [say("name"), say("what"), say("place below the data folder"), say("state"), say("page")],
        [[one.name, one.title, _place(one.places), state(one.name), one.page] for one in DATA_SETS],
    )


def _place(places: tuple[str, ...]) -> str:
    if len(places) < 2:
        return "".join(places)
    return f"{Path(places[0]).parent.as_posix()}/ ({len(places)})"


@command("get", app)
def get(
    name: Annotated[str, argument("DATASET", help="A name of `velado data list`.")],
    *,
    data: flags.DataFolder = None,
    force: flags.Force = False,
    unchecked: Annotated[
        bool, option("--unchecked", help="Keep a file whose checksum is not the known one.")
    ] = False,
) -> None:
    """Fetch a data set from its public source.

    Its checksum is checked; a download that was cut goes on where it stopped.
    """
    from velado.papers.downloads import fetch
    from velado.papers.public_data import data_set_named

    chosen = data_set_named(name)
    folder = flags.data_folder(data)
    with show.waiting() as progress:
        files = fetch(chosen, folder, progress, force=force, unchecked=unchecked)
    told = [
        say("{place}: there already", place=file.place)
        if file.already
        else say("{place}: fetched, SHA-256 {digest}", place=file.place, digest=file.sha256)
        for file in files
    ]
    if any(not file.known and not file.already for file in files):
        told.append(say("Its checksum was not known; later downloads will be compared with this one."))
    keys = ("place", "sha256", "already", "known")
    document = {"name": chosen.name, "files": [{key: getattr(file, key) for key in keys} for file in files]}
    show.result(document, told)
