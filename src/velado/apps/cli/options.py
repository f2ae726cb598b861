"""Flags that several commands share, and the check of flags that take one of a few words."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import click
import typer
from typer.core import TyperCommand

from velado.errors import ParameterError

LANGUAGES = ("en", "pt")
PER = ("row", "person")
UNDECLARED = ("refuse", "drop", "keep")
FORMATS = ("csv", "parquet")
FORMULAS = ("keep", "escape", "refuse")
REPORTS = ("html", "md", "json")

ARGUMENTS = {
    "FILE": "The table: CSV, Parquet, Arrow, a spreadsheet, SPSS, Stata or SAS; .gz and .zip too.",
    "ORIGINAL": "The table as it was.",
    "RELEASE": "The published file, or the folder of the release.",
    "FIT": "The fit.json of a regression.",
    "RECIPE": "The recipe.toml of a release.",
    "[SQL]": "The question: one SELECT in the accepted subset of SQL.",
    "[NAME]": "Show this method's parameters.",
    "[EXPERIMENT]": "The published table or figure to get again.",
    "DATASET": "A name of `velado data list`.",
    "LEDGER": "The ledger: a file, or postgresql://host/base?ledger=NAME.",
    "ANALYST": "Who asks, as the ledger writes it down.",
    "AMOUNT": "An epsilon or rho, as a decimal or a fraction.",
    "STUDY": "The study file (TOML).",
    "FEDERATION": "The recipe of the federation (TOML).",
    "SERVICE": "The service file (TOML).",
    "ID|ANALYST": "The token's id, or the analyst all of whose tokens are meant.",
}
"""What each argument is, by the name it has in the usage line."""

File = Annotated[Path, typer.Argument(metavar="FILE", show_default=False)]
SchemaFile = Annotated[
    Path | None,
    typer.Option("--schema", "-s", metavar="FILE", help="Schema file (TOML).", show_default=False),
]
Output = Annotated[
    Path,
    typer.Option("--output", "-o", metavar="DIR", help="Folder of the release; it must not exist."),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        metavar="NAME",
        help="Encoding of the CSV file, e.g. latin-1; else found.",
        show_default=False,
    ),
]
Undeclared = Annotated[
    str,
    typer.Option(
        "--undeclared", metavar="refuse|drop|keep", help="What becomes of columns the schema does not name."
    ),
]
Per = Annotated[
    str | None,
    typer.Option(
        "--per",
        metavar="row|person",
        help="What k counts; by default people where the schema names a person column, else rows.",
        show_default=False,
    ),
]
Format = Annotated[
    str, typer.Option("--format", metavar="csv|parquet", help="File format of the published table.")
]
Formulas = Annotated[
    str,
    typer.Option(
        "--formulas",
        metavar="keep|escape|refuse",
        help="Cells a spreadsheet would run: keep (and warn), escape with an apostrophe, or refuse.",
    ),
]
Reports = Annotated[
    str, typer.Option("--report", metavar="LIST", help="Report formats, comma-separated: html, md, json.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing release.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Lang = Annotated[
    str | None,
    typer.Option(
        "--lang",
        metavar="en|pt",
        help="Language of what is printed and of the report; default: VELADO_LANG, else en.",
        show_default=False,
    ),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors and JSON.")]


class Command(TyperCommand):
    """A command whose help lists each argument once."""

    def format_arguments(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Nothing: typer 0.23 lists the arguments beside the options, and click 8.5 would list them again."""


def one_of(value: str, choices: Sequence[str], flag: str) -> str:
    """*value* if it is among *choices*, else an error that names them and suggests the nearest."""
    if value in choices:
        return value
    near = difflib.get_close_matches(value, choices, n=1)
    raise ParameterError(
        f"{flag} does not take '{value}'.",
        f"It is one of {', '.join(choices)}.",
        f"Did you mean '{near[0]}'?" if near else f"Choose one, for example {flag} {choices[0]}.",
    )


def several_of(value: str, choices: Sequence[str], flag: str) -> tuple[str, ...]:
    """The comma-separated words of *value*, each among *choices*, each once."""
    words = [word.strip() for word in value.split(",") if word.strip()]
    return tuple(dict.fromkeys(one_of(word, choices, flag) for word in words))


def language(lang: str | None) -> str:
    """The language asked for by flag, else by the environment, else English."""
    if lang is not None:
        return one_of(lang, LANGUAGES, "--lang")
    named = os.environ.get("VELADO_LANG", "")[:2].lower()
    return named if named in LANGUAGES else "en"
