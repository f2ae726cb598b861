"""`velado predict`: the scores that a fitted model gives to rows, in the clear or encrypted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.app import OneOf, argument, command, option
from velado.apps.cli.commands._party import PassphraseFile, passphrase_of
from velado.apps.cli.commands._regress import UNSAFE
from velado.errors import ParameterError, SchemaError
from velado.text import say, say_n

if TYPE_CHECKING:
    from velado.learning.crypto.fixed_point import Bounded
    from velado.learning.regression.fit import Fit

Step = Literal["offer", "ask", "answer", "read"]
_OUTPUTS = {"offer": "offer.json", "ask": "question", "answer": "answer.bin", "read": "scores.csv"}


@command("predict")
def predict(
    fit: Annotated[Path, argument("FIT", help="The fit.json of a regression, or the offer of its owner.")],
    file: flags.MaybeFile = None,
    *,
    output: Annotated[
        Path | None,
        option(
            "--output -o FILE",
            help="Where the result goes (default: scores.csv; offer.json, question, answer.bin); it must not exist.",
        ),
    ] = None,
    schema: Annotated[Path | None, option("--schema -s FILE", help="Schema: how the file is read.")] = None,
    encrypted: Annotated[
        Step | None,
        option(
            "--encrypted",
            click_type=OneOf("offer", "ask", "answer", "read"),
            help="Score rows that stay with their owner by a model that stays with its own: one step of four.",
        ),
    ] = None,
    question: Annotated[
        Path | None, option("--question DIR", help="With `read`: the folder that `ask` made.")
    ] = None,
    register: Annotated[
        Path | None,
        option(
            "--register FILE", help="With answer: where scored rows are counted (default: beside the model)."
        ),
    ] = None,
    limit: Annotated[
        int | None,
        option("--limit ROWS", help="With answer: most rows that may be scored with this model in all."),
    ] = None,
    passphrase_file: PassphraseFile = None,
    reading: flags.ReadingFlags,
) -> None:
    """Give every row of a table the value that a model of `velado regress` predicts."""
    target = output or Path(_OUTPUTS.get(encrypted or "", "scores.csv"))
    flags.refuse_file(target)
    if encrypted != "offer" and file is None:
        raise ParameterError(
            "A file is missing.", "There is nothing to work on.", "Give it after the model or the offer."
        )
    if encrypted is None:
        _in_the_clear(fit, _given(file), target, schema, reading)
        return
    flags.needs_crypto()
    if encrypted == "offer":
        _offer(fit, target)
    elif encrypted == "ask":
        _ask(fit, _given(file), target, schema, reading, passphrase_file)
    elif encrypted == "answer":
        _answer(fit, _given(file), target, register, limit)
    else:
        _read(fit, _given(file), target, question, passphrase_file)


def _given(file: Path | None) -> Path:
    assert file is not None  # checked before
    return file


def _model(path: Path) -> Fit:
    from velado.learning.regression.fit import Fit

    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        raise SchemaError(
            say("'{fit}' cannot be read as a model.", fit=path.name),
            "A model is the fit.json that a regression wrote.",
            "Give that file.",
        ) from None
    return Fit.from_dict(document if isinstance(document, dict) else {})


def _columns(
    file: Path, schema: Path | None, reading: flags.ReadingFlags, features: Sequence[Bounded]
) -> dict[str, Any]:
    """The features of every row, made from the columns of a table."""
    import polars as pl

    from velado.apps.cli.regression_rows import read_rows
    from velado.data.io import read_schema
    from velado.learning.regression.design_matrix import made_columns
    from velado.learning.regression.table_columns import number_columns

    declared = None if schema is None else read_schema(schema)
    table = read_rows(file, reading, declared)
    plain = [one.name for one in features if not one.value and not one.factors]
    decimal = None if declared is None else declared.decimal
    numbers = number_columns(table, plain, decimal) if plain else {}
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
    return dict(made_columns(columns, features))


def _in_the_clear(
    fit: Path, file: Path, output: Path, schema: Path | None, reading: flags.ReadingFlags
) -> None:
    import numpy as np

    model = _model(fit)
    made = _columns(file, schema, reading, model.features)
    scores = model.predict({name: np.asarray(values, dtype=np.float64) for name, values in made.items()})
    _write_scores(output, model.target, scores)
    warnings = [show.warning(UNSAFE)] if model.promise.unsafe else []
    beyond = np.zeros(len(scores), dtype=bool)
    for one in model.features:
        values = np.asarray(made[one.name], dtype=np.float64)
        beyond |= (values < float(one.low)) | (values > float(one.high))
    if "job" in model.how and beyond.any():
        warnings.append(
            show.warning(
                say_n(
                    "{n:,} row of {rows:,} lies outside the bounds that the model was fitted within: row {first:,}. What it says there is a guess.",
                    "{n:,} rows of {rows:,} lie outside the bounds that the model was fitted within, the first is row {first:,}. What it says there is a guess.",
                    int(beyond.sum()),
                    rows=beyond.size,
                    first=int(beyond.argmax()) + 1,
                )
            )
        )
    show.result(
        {"rows": len(scores), "file": str(output), "promise": model.promise.to_dict()},
        [*warnings, _scored(len(scores), model.target, output)],
    )


def _write_scores(output: Path, target: str, scores: Any) -> None:
    import polars as pl

    from velado.data.staging import write_file
    from velado.data.table_bytes import csv_bytes

    write_file(output, csv_bytes(pl.DataFrame({f"predicted {target}": scores})))


def _scored(rows: int, target: str, path: Path) -> str:
    return say("{rows:,} predictions of '{target}' in {path}", rows=rows, target=target, path=path)


def _offer(fit: Path, output: Path) -> None:
    from velado.learning.net.scoring import write_offer
    from velado.learning.regression.inference import ScoringTerms

    model = _model(fit)
    terms = ScoringTerms.of(model)
    write_offer(output, terms)
    show.result(
        {"file": str(output), "terms": terms.digest().hex(), "features": len(terms.features)},
        [
            say(
                "Offer in {path}: the features and their bounds, no coefficient. Give it to whoever may ask.",
                path=output,
            ),
            show.warning(
                say(
                    "Whoever gets {count} scores of rows of its choice can work out the model: count and limit them.",
                    count=len(model.names),
                )
            ),
        ],
    )


def _ask(
    offer: Path,
    file: Path,
    output: Path,
    schema: Path | None,
    reading: flags.ReadingFlags,
    passphrase_file: Path | None,
) -> None:
    from velado.learning.crypto.paillier_keys import keygen
    from velado.learning.net.scoring import keep_question, read_offer
    from velado.learning.regression.inference import ask
    from velado.randomness import Tape

    terms = read_offer(offer)
    columns = _columns(file, schema, reading, terms.features)
    passphrase = passphrase_of(passphrase_file, confirm=True)
    private = keygen(terms.key_bits, Tape(Tape.fresh_seed(), "asker"))
    asked = ask(terms, private, columns)
    path = keep_question(output, private, asked, passphrase)
    rows = len(next(iter(columns.values())))
    show.result(
        {"rows": rows, "question": str(path), "folder": str(output), "bytes": len(asked)},
        [
            say(
                "{rows:,} rows are encrypted in {path}: send this file to the model's owner.",
                rows=rows,
                path=path,
            ),
            show.Note(say("The key in {folder} opens the answer; it stays here.", folder=output)),
        ],
    )


def _answer(fit: Path, file: Path, output: Path, register: Path | None, limit: int | None) -> None:
    from velado.data.staging import write_file
    from velado.learning.net.scoring import answered_rows, read_bytes
    from velado.learning.regression.inference import ScoringTerms, answer, asked_rows

    model = _model(fit)
    terms = ScoringTerms.of(model)
    asked = read_bytes(file)
    rows = asked_rows(terms, asked)
    told = answer(terms, model, asked)
    name = hashlib.sha256(json.dumps(model.to_dict()["coefficients"], sort_keys=True).encode()).hexdigest()
    total = answered_rows(register or fit.with_name("scores.register"), name, asked, rows, limit)
    write_file(output, told)
    known = [
        show.warning(
            say(
                "{total} rows were scored with this model, which has {unknowns} unknowns: count those who asked as knowing it.",
                total=total,
                unknowns=len(model.names),
            )
        )
    ]
    show.result(
        {"rows": rows, "scored": total, "unknowns": len(model.names), "file": str(output)},
        [
            *(known if total >= len(model.names) else []),
            say("{rows:,} encrypted scores in {path}: send this file back.", rows=rows, path=output),
        ],
    )


def _read(offer: Path, file: Path, output: Path, question: Path | None, passphrase_file: Path | None) -> None:
    from velado.learning.net.scoring import open_question, read_bytes, read_offer
    from velado.learning.regression.fit import mean_of
    from velado.learning.regression.inference import read

    if question is None:
        raise ParameterError(
            "--question is missing.",
            "An answer opens with the key of its question alone.",
            "Give the folder that `--encrypted ask` made.",
        )
    terms = read_offer(offer)
    private, asked = open_question(question, passphrase_of(passphrase_file))
    scores = mean_of(terms.family, read(terms, private, asked, read_bytes(file)))
    _write_scores(output, terms.target, scores)
    show.result({"rows": len(scores), "file": str(output)}, [_scored(len(scores), terms.target, output)])
