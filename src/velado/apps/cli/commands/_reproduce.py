"""`velado reproduce`: a table or figure of a paper again, what was published beside what comes out here."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.show import waiting
from velado.apps.cli.words import say
from velado.errors import OutputError, ParameterError


def reproduce(
    name: Annotated[str | None, typer.Argument(metavar="[EXPERIMENT]", show_default=False)] = None,
    listed: Annotated[bool, typer.Option("--list", help="List every experiment.")] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="DIR",
            help="Folder of the papers' data; default: VELADO_DATA.",
            show_default=False,
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer queries over fewer records, where it takes long.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write Markdown (or JSON, for .json) here instead.",
            show_default=False,
        ),
    ] = None,
    as_json: flags.AsJson = False,
    lang: flags.Lang = None,
    debug: flags.Debug = False,
    quiet: flags.Quiet = False,
) -> None:
    """Reproduce an experiment of a paper.

    What was published, what comes out here, and what it promises, side by side.
    """
    import json

    from velado.papers.paper_registry import reproduction_named, shown, to_dict, to_markdown

    tongue = flags.language(lang)
    if listed or name is None:
        _list(listed, as_json, tongue)
        return
    chosen = reproduction_named(name)
    folder = _folder(data) if chosen.needs or data is not None else Path()
    if output is not None and output.exists():
        raise OutputError(
            f"'{output.name}' exists already.",
            "It may hold another result.",
            "Choose another name, or remove it.",
        )
    with waiting(tongue, quiet or as_json) as progress:
        found = chosen.carry_out(folder, progress, quick)
    result = to_dict(chosen, found)
    if output is not None:
        text = (
            json.dumps(result, ensure_ascii=False, indent=2)
            if output.suffix == ".json"
            else to_markdown(chosen, found)
        )
        try:
            output.write_text(text, "utf-8")
        except OSError as error:
            raise OutputError(
                f"'{output.name}' cannot be written ({error.strerror or 'system error'}).",
                "The result would be lost.",
                "Check the folder and its permissions.",
            ) from None
    if as_json:
        show.as_json(result)
    elif output is None and not quiet:
        show.table(chosen.title, found.columns, [[shown(cell) for cell in row] for row in found.rows])
        show.line(found.note)
        show.line(f"Promise: {found.promise}. Source: {chosen.source}.")


def _list(asked: bool, as_json: bool, tongue: str) -> None:
    from velado.papers.paper_registry import reproductions

    if not asked:
        raise ParameterError(
            "No experiment was named.",
            "A reproduction is of one table or figure.",
            "See `velado reproduce --list`, then for example `velado reproduce correlated-summary-adult`.",
        )
    known = reproductions()
    if as_json:
        show.as_json(
            {
                "reproductions": [
                    {
                        "name": r.name,
                        "title": r.title,
                        "source": r.source,
                        "needs": r.needs,
                        "data_sets": _data_sets(r.needs),
                    }
                    for r in known
                ]
            }
        )
        return
    rows = [(r.name, r.title, ", ".join(_data_sets(r.needs))) for r in known]
    show.table("", [say(tongue, key) for key in ("data_name", "data_what", "reproduce_data")], rows)
    show.line(say(tongue, "reproduce_hint"))


def _data_sets(needs: tuple[str, ...]) -> list[str]:
    """The names of the data sets these files belong to; the file itself where it belongs to none."""
    from velado.papers.public_data import data_set_of

    homes = [(data_set_of(place), place) for place in needs]
    return list(dict.fromkeys(place if home is None else home.name for home, place in homes))


def _folder(data: Path | None) -> Path:
    named = data or (Path(os.environ["VELADO_DATA"]) if os.environ.get("VELADO_DATA") else None)
    if named is None:
        raise ParameterError(
            "No data folder was named.",
            "The papers' data is not part of velado.",
            "Pass --data DIR, or set VELADO_DATA.",
        )
    if not named.is_dir():
        raise ParameterError(
            f"The data folder '{named.name}' does not exist, or is a file.",
            "The papers' files are looked for below it.",
            "Check --data or VELADO_DATA, or make it with `velado data get NAME --data DIR`.",
        )
    return named
