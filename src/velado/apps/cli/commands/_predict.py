"""`velado predict`: the scores that a fitted model gives to rows in the clear."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.app import argument, command, option
from velado.apps.cli.commands._regress import UNSAFE
from velado.errors import SchemaError
from velado.text import say


@command("predict")
def predict(
    fit: Annotated[Path, argument("FIT", help="The fit.json of a regression.")],
    file: flags.File,
    *,
    output: Annotated[
        Path, option("--output -o FILE", help="CSV file for the scores; it must not exist.")
    ] = Path("scores.csv"),
    schema: Annotated[Path | None, option("--schema -s FILE", help="Schema: how the file is read.")] = None,
    reading: flags.ReadingFlags,
) -> None:
    """Give every row of a table the value that a model of `velado regress` predicts."""
    import numpy as np
    import polars as pl

    from velado.apps.cli.regression_rows import number_columns, read_rows
    from velado.data.io import read_schema
    from velado.data.staging import write_file
    from velado.data.table_bytes import csv_bytes
    from velado.learning.regression.design_matrix import made_columns
    from velado.learning.regression.fit import Fit

    try:
        document = json.loads(fit.read_bytes())
    except (OSError, ValueError, RecursionError):
        raise SchemaError(
            say("'{fit}' cannot be read as a model.", fit=fit.name),
            "A model is the fit.json that a regression wrote.",
            "Give that file.",
        ) from None
    model = Fit.from_dict(document if isinstance(document, dict) else {})
    flags.refuse_file(output)
    features = model.features
    table = read_rows(file, reading, None if schema is None else read_schema(schema))
    plain = [one.name for one in features if not one.value and not one.factors]
    numbers = number_columns(table, plain) if plain else {}
    texts = {one.column: one for one in features if one.value}
    absent = [name for name in texts if name not in table.frame.columns]
    if absent:
        raise SchemaError(
            say("The rows lack {absent}.", absent=", ".join(absent)),
            "The model was fitted with these features.",
            "Give every feature of the model.",
        )
    columns: dict[str, Any] = {name: column.cast(pl.Float64).to_numpy() for name, column in numbers.items()}
    columns |= {name: table.frame[name].cast(pl.String).fill_null("").to_numpy() for name in texts}
    made = made_columns(columns, features)
    scores = model.predict({name: np.asarray(values, dtype=np.float64) for name, values in made.items()})
    write_file(output, csv_bytes(pl.DataFrame({f"predicted {model.target}": scores})))
    done = say(
        "{rows:,} predictions of '{target}' in {path}", rows=len(scores), target=model.target, path=output
    )
    warnings = [show.warning(UNSAFE)] if model.promise.unsafe else []
    show.result(
        {"rows": len(scores), "file": str(output), "promise": model.promise.to_dict()}, [*warnings, done]
    )
