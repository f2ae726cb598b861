"""`velado predict`: the scores that a fitted model gives to rows in the clear."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.words import say
from velado.errors import OutputError, SchemaError
from velado.text import say as say_sentence


def predict(
    fit: Annotated[Path, typer.Argument(metavar="FIT", show_default=False)],
    file: flags.File,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="CSV file for the scores; it must not exist."),
    ] = Path("scores.csv"),
    encoding: flags.Encoding = None,
    as_json: flags.AsJson = False,
    lang: flags.Lang = None,
    debug: flags.Debug = False,
    quiet: flags.Quiet = False,
) -> None:
    """Give every row of a table the value that a model of `velado regress` predicts."""
    tongue = flags.language(lang)
    import polars as pl

    from velado.apps.cli.regression_rows import number_columns
    from velado.data.staging import csv_bytes
    from velado.learning.regression.fit import Fit
    from velado.learning.regression.job import INTERCEPT

    try:
        document = json.loads(fit.read_bytes())
    except (OSError, ValueError, RecursionError):
        raise SchemaError(
            say_sentence("'{fit}' cannot be read as a model.", fit=fit.name),
            "A model is the fit.json that a regression wrote.",
            "Give that file.",
        ) from None
    model = Fit.from_dict(document if isinstance(document, dict) else {})
    if output.exists():
        raise OutputError(
            say_sentence("'{output}' exists already.", output=output.name),
            "It would be overwritten.",
            "Choose another name.",
        )
    names = [name for name in model.names if name != INTERCEPT]
    columns = number_columns(file, names, encoding)
    scores = model.predict({name: column.cast(pl.Float64).to_numpy() for name, column in columns.items()})
    data = csv_bytes(pl.DataFrame({f"predicted {model.target}": scores}))
    try:
        output.write_bytes(data)
    except OSError as error:
        raise OutputError(
            say_sentence(
                "'{output}' cannot be written ({strerror}).",
                output=output.name,
                strerror=error.strerror or "system error",
            ),
            "The scores are not kept.",
            "Check the path, the permissions and the space left.",
        ) from None
    if as_json:
        show.as_json({"rows": len(scores), "file": str(output), "promise": model.promise.to_dict()})
    elif not quiet:
        if model.promise.unsafe:
            show.note(f"{say(tongue, 'warning')}: {say(tongue, 'regress_unsafe')}")
        show.line(say(tongue, "predict_written", rows=len(scores), target=model.target, path=output))
