"""`velado demo`: the sample hospital table, anonymized, in ten lines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.app import command, option
from velado.apps.cli.commands._anonymize import show_published
from velado.text import language

FOLDER = Path("demo-release")
K = 5


@command("demo")
def demo(
    output: Annotated[
        Path | None,
        option("--output -o DIR", help="Folder of the release; default: demo-release, made anew."),
    ] = None,
    force: flags.Force = False,
) -> None:
    """Anonymize the bundled sample table.

    An invented hospital, k = 5; ten lines say what was promised and what it cost.
    """
    folder = output or FOLDER
    # The demonstration's own folder is replaced: it holds nothing that another run would not make again.
    again = force or output is None
    flags.refuse_existing(folder, again)
    with show.waiting() as progress:
        from velado.data.samples import hospital_csv, hospital_schema
        from velado.study.run import publish

        published = publish(
            hospital_csv(),
            hospital_schema(),
            k=K,
            out=folder,
            force=again,
            language=language(),
            progress=progress,
        )
    show_published(published)
