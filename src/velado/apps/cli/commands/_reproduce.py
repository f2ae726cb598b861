"""`velado reproduce`: a table or figure of a paper again, what was published beside what comes out here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.app import argument, command, option
from velado.errors import ParameterError
from velado.text import say

if TYPE_CHECKING:
    from velado.papers.paper_registry import Reproduced, Reproduction


@command("reproduce")
def reproduce(
    name: Annotated[
        str | None, argument("[EXPERIMENT]", help="The published table or figure to get again.")
    ] = None,
    *,
    listed: Annotated[bool, option("--list", help="List every experiment.")] = False,
    data: flags.DataFolder = None,
    quick: Annotated[
        bool,
        option("--quick", help="Fewer queries, rounds or values of k over all records, where it takes long."),
    ] = False,
    output: Annotated[
        Path | None,
        option(
            "--output -o PATH",
            help="Write table and figure into this folder (.csv, .md, .svg); or one file, by its ending: .md, .csv, .svg, .json.",
        ),
    ] = None,
) -> None:
    """Reproduce an experiment of a paper.

    What was published, what comes out here, and what it promises, side by side.
    """
    from velado.papers.paper_registry import reproduction_named, shown, to_dict

    if listed:
        _list()
        return
    if name is None:
        raise ParameterError(
            "No experiment was named.",
            "A reproduction is of one table or figure.",
            "See `velado reproduce --list`, then for example `velado reproduce correlated-summary-adult`.",
        )
    chosen = reproduction_named(name)
    if output is not None and output.suffix and output.suffix not in _ENDINGS and not output.is_dir():
        raise ParameterError(
            say("'{ending}' is no ending of a file that can be written here.", ending=output.suffix),
            "A folder of that name would be made, which is hardly meant.",
            "Write one file as .md, .csv, .svg or .json; or name a folder without an ending, or one that exists.",
        )
    folder = _folder(data) if chosen.needs or data is not None else Path()
    in_folder = output is not None and (output.suffix not in _ENDINGS or output.is_dir())
    if not in_folder:
        flags.refuse_file(output, say("It may hold another result."))
    elif output is not None:
        _refuse_taken(output, chosen.name)
    with show.waiting() as progress:
        found = chosen.carry_out(folder, progress, quick)
    result = to_dict(chosen, found)
    if output is None:
        table = show.table(chosen.title, found.columns, [[shown(cell) for cell in row] for row in found.rows])
        promise = say("Promise: {promise}. Source: {source}.", promise=found.promise, source=chosen.source)
        show.result(result, [table, found.note, promise])
        return
    from velado.data.staging import write_file

    made = {ending: text for ending in _ENDINGS if (text := _written(chosen, found, ending)) is not None}
    places = []
    if in_folder:
        output.mkdir(parents=True, exist_ok=True)
        for ending in _IN_FOLDER:
            if ending in made:
                places.append(write_file(output / f"{chosen.name}{ending}", made[ending].encode()))
    elif output.suffix in made:
        places.append(write_file(output, made[output.suffix].encode()))
    else:
        raise ParameterError(
            say("'{name}' is a table that is not drawn.", name=chosen.name),
            "It holds words, or numbers without an order to draw them in.",
            "Write it as .md, .csv or .json.",
        )
    show.result(result, [say("Written to {path}.", path=place) for place in places])


_ENDINGS = (".md", ".csv", ".svg", ".json")
_IN_FOLDER = (".csv", ".md", ".svg")


def _written(chosen: Reproduction, found: Reproduced, ending: str) -> str | None:
    """The result as a file of this ending, in the language spoken; None where it cannot be one."""
    from velado.papers.paper_registry import to_csv, to_dict, to_markdown, to_svg

    match ending:
        case ".md":
            return to_markdown(chosen, found)
        case ".csv":
            return to_csv(found)
        case ".svg":
            return to_svg(chosen, found)
        case _:
            return json.dumps(to_dict(chosen, found), ensure_ascii=False, indent=2)


def _refuse_taken(folder: Path, name: str) -> None:
    """No file of this name is in the folder yet."""
    for ending in _IN_FOLDER:
        flags.refuse_file(folder / f"{name}{ending}", say("It may hold another result."))


def _list() -> None:
    from velado.papers.paper_registry import reproductions

    known = [(one, _data_sets(one.needs)) for one in reproductions()]
    document = [
        {"name": one.name, "title": one.title, "source": one.source, "needs": one.needs, "data_sets": sets}
        for one, sets in known
    ]
    rows = [[one.name, one.title, ", ".join(sets)] for one, sets in known]
    hint = say("`velado data get NAME` fetches data; `velado data list` says what is there.")
    table = show.table("", [say("name"), say("what"), say("data")], rows)
    show.result({"reproductions": document}, [table, hint])


def _data_sets(needs: Sequence[str]) -> list[str]:
    """The names of the data sets these files belong to; the file itself where it belongs to none."""
    from velado.papers.public_data import data_set_of

    homes = [(data_set_of(place), place) for place in needs]
    return list(dict.fromkeys(place if home is None else home.name for home, place in homes))


def _folder(data: Path | None) -> Path:
    folder = flags.data_folder(data)
    if not folder.is_dir():
        raise ParameterError(
            say("The data folder '{folder}' does not exist.", folder=folder.name),
            "The papers' files are looked for below it.",
            "Check --data or VELADO_DATA, or make it with `velado data get NAME --data DIR`.",
        )
    return folder
