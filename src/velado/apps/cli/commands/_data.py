"""`velado data`: the papers' data sets, listed and fetched from their public sources."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.show import waiting
from velado.apps.cli.words import say
from velado.errors import ParameterError

app = typer.Typer(
    name="data",
    help="List or fetch the public data sets of the papers.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

Folder = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="Folder of the papers' data; default: VELADO_DATA.",
        show_default=False,
    ),
]

_HEAD = ("data_name", "data_what", "data_place", "data_state", "data_page")
_STATES = {
    "missing": "data_missing",
    "there": "data_there",
    "there, not checked": "data_unchecked",
    "there, but another file": "data_another",
}


@app.command("list", cls=flags.Command)
def listed(
    data: Folder = None,
    as_json: flags.AsJson = False,
    lang: flags.Lang = None,
    debug: flags.Debug = False,
    quiet: flags.Quiet = False,
) -> None:
    """List every data set, where its files belong, and whether they are there."""
    from velado.papers.downloads import STATES, status
    from velado.papers.public_data import DATA_SETS

    tongue = flags.language(lang)
    folder = _folder(data, needed=False)
    states = {
        one.name: {file.place: status(file, folder) if folder else "missing" for file in one.files}
        for one in DATA_SETS
    }
    for one in DATA_SETS:
        if not one.files and folder is not None and (folder / one.place).is_file():
            states[one.name] = {one.place: "there, not checked"}
    if as_json:
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
        show.as_json({"data_sets": found})
    elif not quiet:
        rows = []
        for one in DATA_SETS:
            # The worst of its files speaks for a data set.
            worst = next((state for state in STATES if state in states[one.name].values()), None)
            state = say(tongue, _STATES[worst] if worst else "data_by_hand")
            rows.append((one.name, one.title, _place(one.places), state, one.page))
        show.table("", [say(tongue, key) for key in _HEAD], rows)


def _place(places: tuple[str, ...]) -> str:
    if len(places) < 2:
        return "".join(places)
    return f"{Path(places[0]).parent.as_posix()}/ ({len(places)})"


@app.command("get", cls=flags.Command)
def get(
    name: Annotated[
        str, typer.Argument(metavar="DATASET", help="A name of `velado data list`.", show_default=False)
    ],
    data: Folder = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there already.")] = False,
    unchecked: Annotated[
        bool, typer.Option("--unchecked", help="Keep a file whose checksum is not the known one.")
    ] = False,
    as_json: flags.AsJson = False,
    lang: flags.Lang = None,
    debug: flags.Debug = False,
    quiet: flags.Quiet = False,
) -> None:
    """Fetch a data set from its public source.

    Its checksum is checked; a download that was cut goes on where it stopped.
    """
    from velado.papers.downloads import fetch
    from velado.papers.public_data import data_set_named

    tongue = flags.language(lang)
    chosen = data_set_named(name)
    folder = _folder(data, needed=True)
    assert folder is not None
    with waiting(tongue, quiet or as_json) as progress:
        files = fetch(chosen, folder, progress, force=force, unchecked=unchecked)
    if as_json:
        show.as_json(
            {
                "name": chosen.name,
                "files": [
                    {"place": f.place, "sha256": f.sha256, "already": f.already, "known": f.known}
                    for f in files
                ],
            }
        )
    elif not quiet:
        for file in files:
            key = "data_already" if file.already else "data_fetched"
            show.line(say(tongue, key, place=file.place, digest=file.sha256))
        if any(not file.known and not file.already for file in files):
            show.line(say(tongue, "data_recorded"))


def _folder(data: Path | None, needed: bool) -> Path | None:
    named = data or (Path(os.environ["VELADO_DATA"]) if os.environ.get("VELADO_DATA") else None)
    if named is None and needed:
        raise ParameterError(
            "No data folder was named.",
            "The download needs a place.",
            "Pass --data DIR, or set VELADO_DATA.",
        )
    if named is not None and named.exists() and not named.is_dir():
        raise ParameterError(
            "The data folder is a file.", "Data sets are kept in a folder.", "Check --data or VELADO_DATA."
        )
    return named
