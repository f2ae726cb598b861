"""Flags that several commands share, and the check of flags that take one of a few words."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import click
import typer
from typer.core import TyperCommand

from velado.errors import ParameterError
from velado.settings import Flag, Where, flags, from_flags, named, nearest
from velado.text import LANGUAGES, Language, choose, say

PER = ("row", "person")
UNDECLARED = ("refuse", "drop", "keep")
FORMATS = ("csv", "parquet")
FORMULAS = ("keep", "escape", "refuse")
REPORTS = ("html", "md", "json")

ARGUMENTS = {
    "FILE": "The table: CSV, Parquet, Arrow, a spreadsheet, SPSS, Stata or SAS; .gz and .zip too.",
    "ORIGINAL": "The table as it was.",
    "RELEASE": "The published file, or the folder that `anonymize` made.",
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
    typer.Option(
        "--output",
        "-o",
        metavar="DIR",
        help="Folder for the release and its private part; it must not exist.",
    ),
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
RoundIntervals = Annotated[
    str | None,
    typer.Option(
        "--round-intervals",
        metavar="COLUMN=STEP,...",
        help="Publish interval ends of these columns as multiples of a step, e.g. age=5,weight=10.",
        show_default=False,
    ),
]
Reports = Annotated[
    str, typer.Option("--report", metavar="LIST", help="Report formats, comma-separated: html, md, json.")
]
KeyFlag = Annotated[
    Path | None,
    typer.Option(
        "--key",
        metavar="FILE",
        help="The owner's key, under which row order and random operations are drawn; default: yours, made at first use.",
        show_default=False,
    ),
]
KeepOrder = Annotated[
    bool,
    typer.Option("--keep-order", help="Publish rows in the order of the input, which may give values away."),
]
AcceptInferred = Annotated[
    bool,
    typer.Option("--accept-inferred", help="Without --schema: publish with the inferred roles, unseen."),
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
    """The comma-separated words of *value*, each among *choices*, each once; `none` alone is no word."""
    words = [word.strip() for word in value.split(",") if word.strip()]
    if words == ["none"]:
        return ()
    return tuple(dict.fromkeys(one_of(word, choices, flag) for word in words))


def rounding_steps(value: str | None) -> dict[str, float]:
    """The step of each column that `--round-intervals` names."""
    steps: dict[str, float] = {}
    for part in (value or "").split(",") if value is not None else ():
        name, equals, number = part.rpartition("=")
        try:
            step = float(number)
        except ValueError:
            step = float("nan")
        if not equals or not name.strip() or not step > 0 or name.strip() in steps:
            raise ParameterError(
                "--round-intervals does not read as column=step, each column once.",
                "It names the columns whose interval ends become multiples of a step above 0.",
                "Write for example --round-intervals age=5,weight=0.5.",
            )
        steps[name.strip()] = step
    return steps


def language(lang: str | None) -> Language:
    """The language asked for by flag, else by the environment, else English."""
    if lang is not None:
        one_of(lang, LANGUAGES, "--lang")
    return choose(lang, os.environ)


# Guarantees on the command line: `--guarantee "t-closeness: t=0.2, distance=ordered"`, and short forms.

LDiversityFlag = Annotated[
    int | None,
    typer.Option(
        "--l-diversity", help="Distinct values of every sensitive column in each group.", show_default=False
    ),
]
TClosenessFlag = Annotated[
    float | None,
    typer.Option(
        "--t-closeness",
        help="Largest distance of a group's sensitive values from the whole table's.",
        show_default=False,
    ),
]
GuaranteeFlag = Annotated[
    list[str] | None,
    typer.Option(
        "--guarantee",
        "-g",
        metavar="TEXT",
        help='Any guarantee, e.g. "entropy-l-diversity: l=2" or "k-map: k=5"; may be given several times.',
        show_default=False,
    ),
]
PopulationFlag = Annotated[
    Path | None,
    typer.Option(
        "--population",
        metavar="FILE",
        help="Table of everyone the people were drawn from, for k-map and delta-presence.",
        show_default=False,
    ),
]


def by_person(per: str | None, schema: Any) -> bool:
    """Whether k counts people: as asked, or else as soon as the schema names a person column."""
    return per == "person" or (per is None and schema.person is not None)


def asked_for(
    l_diversity: int | None, t_closeness: float | None, texts: list[str] | None, people: bool = False
) -> list[Any]:
    """The guarantees that the flags ask for, beyond k; *people* is what a further k counts."""
    from velado.release.guarantees import LDiversity, TCloseness

    asked: list[Any] = []
    if l_diversity is not None:
        asked.append(LDiversity(l_diversity))
    if t_closeness is not None:
        asked.append(TCloseness(t_closeness))
    return asked + [guarantee_from(text, people) for text in texts or ()]


def guarantee_from(text: str, people: bool = False) -> Any:
    """`NAME` or `NAME: key=value, key=value` as a guarantee; unknown names and keys suggest the nearest.

    >>> guarantee_from("t-closeness: t=0.3, distance=ordered")
    TCloseness(t=0.3, distance='ordered', column=None)
    """
    from velado.release.guarantees import GUARANTEES

    name, _, rest = text.partition(":")
    kind = named(GUARANTEES, name.strip(), "guarantee")
    given: dict[str, str] = {}
    for part in filter(None, (piece.strip() for piece in rest.split(","))):
        key, equals, value = part.partition("=")
        if not equals:
            raise ParameterError(
                say("'{part}' in --guarantee is no setting.", part=part),
                "Settings are written key=value.",
                say('Write for example --guarantee "{name}: key=value".', name=kind.name),
            )
        given[key.strip()] = value.strip()
    made = from_flags(kind, given, Where("flag", f"--guarantee {kind.name}"))
    return made.counted_by("person") if people and "unit" not in given else made


# A method's flags, read off its settings: `--cut relaxed` sets the field `cut` of Mondrian. Flags that the command
# itself does not know are looked up in the chosen method before the command line is parsed.

DEFAULT_METHOD = "progressive"
META = "velado.method_flags"


def split_flags(
    args: Sequence[str], options: Mapping[str, bool], method_named: Callable[[str], type[Any]]
) -> tuple[list[str], dict[str, object]]:
    """The arguments the command knows, and the chosen method's values from those it does not.

    *options* maps each flag of the command to whether a value follows it; *method_named* finds a method's class
    and is called only if there is a foreign flag, because the methods' libraries are slow to import.
    """
    kept: list[str] = []
    foreign: list[tuple[str, str | None, int]] = []
    chosen = DEFAULT_METHOD
    rest = list(args)
    at = 0
    while at < len(rest):
        word = rest[at]
        name, equals, value = word.partition("=")
        at += 1
        if word == "--":
            kept += rest[at - 1 :]
            break
        if name in options:
            kept.append(word)
            if options[name] and not equals and at < len(rest):
                value = rest[at]
                kept.append(value)
                at += 1
            if name in ("--method", "-m"):
                chosen = value
        elif word.startswith("--") and len(word) > 2:
            follows = rest[at] if at < len(rest) else None
            foreign.append((name, value if equals else None, len(kept)))
            # Whether the next word belongs to the flag depends on the field's type, which is not known yet.
            if not equals and follows is not None and not _is_flag(follows, options):
                foreign[-1] = (name, "\0" + follows, len(kept))
                at += 1
        else:
            kept.append(word)
    if not foreign:
        return kept, {}
    method = method_named(chosen)
    texts: dict[str, object] = {}
    # From the last to the first, so that words put back do not move the places still to come.
    for name, given, place in reversed(foreign):
        flag, negated = _flag(name, method, options)
        guessed = given is not None and given.startswith("\0")
        text = given.removeprefix("\0") if given is not None else None
        if flag.kind is bool and (guessed or text is None):
            if guessed and text is not None:
                kept.insert(place, text)
            texts[flag.field] = not negated
        elif text is None:
            raise ParameterError(
                say("{flag} has no value.", flag=flag.flag),
                say("It takes {what}.", what=flag.takes),
                say("Write {flag} VALUE.", flag=flag.flag),
            )
        else:
            texts[flag.field] = text
    made = from_flags(method, texts)
    return kept, {field: getattr(made, field) for field in texts}


def _is_flag(word: str, options: Mapping[str, bool]) -> bool:
    return word.startswith("--") or word.partition("=")[0] in options


def _flag(name: str, method: type[Any], options: Mapping[str, bool]) -> tuple[Flag, bool]:
    known = flags(method)
    for flag in known:
        if name == flag.flag:
            return flag, False
        if flag.kind is bool and name == flag.flag.replace("--", "--no-", 1):
            return flag, True
    words = [flag.flag for flag in known]
    raise ParameterError(
        say("Method '{method}' has no flag {flag}.", method=method.name, flag=name),
        say("Its flags are: {flags}.", flags=", ".join(words) or say("none")),
        nearest(name, [*words, *options])
        or say("See `velado methods {method}` and `velado anonymize --help`.", method=method.name),
    )


class CommandWithMethodFlags(Command):
    """A command that also accepts the flags of the method it is told to run."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the method's flags out, keep them for the body, and parse what is left as usual."""
        if not set(args) & set(self.get_help_option_names(ctx)):
            args, ctx.meta[META] = split_flags(args, self._options(), _method_named)
        return super().parse_args(ctx, args)

    def _options(self) -> dict[str, bool]:
        return {
            name: not option.is_flag
            for option in self.params
            if isinstance(option, click.Option)
            for name in (*option.opts, *option.secondary_opts)
        }


def _method_named(name: str) -> type[Any]:
    from velado.release.methods import method_named

    return method_named(name)
