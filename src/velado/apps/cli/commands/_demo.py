"""`velado demo`: the sample hospital table, anonymized, in ten lines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from velado.apps.cli import options as flags
from velado.apps.cli import summary
from velado.apps.cli.commands._anonymize import refuse_existing
from velado.apps.cli.show import waiting

FOLDER = Path("demo-release")
K = 5


def demo(
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="DIR", help="Folder of the release; default: demo-release, made anew."
        ),
    ] = None,
    force: flags.Force = False,
    as_json: flags.AsJson = False,
    lang: flags.Lang = None,
    debug: flags.Debug = False,
    quiet: flags.Quiet = False,
) -> None:
    """Anonymize the bundled sample table.

    An invented hospital, k = 5; ten lines say what was promised and what it cost.
    """
    tongue = flags.language(lang)
    folder = output or FOLDER
    # The demonstration's own folder is replaced: it holds nothing that another run would not make again.
    again = force or output is None
    refuse_existing(folder, again)
    with waiting(tongue, quiet or as_json) as progress:
        from velado.data.samples import hospital_csv, hospital_schema
        from velado.study.run import publish

        published = publish(
            hospital_csv(),
            hospital_schema(),
            k=K,
            out=folder,
            force=again,
            language=tongue,
            progress=progress,
        )
    summary.published(published, tongue, as_json, quiet)
