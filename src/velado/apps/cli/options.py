"""Flags that several commands share, each declared once, and groups of them; the flags of guarantees and methods."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click
import typer

from velado.apps.cli.app import Command, OfSetting, OneOf, argument, one_of, option
from velado.errors import MissingExtra, OutputError, ParameterError
from velado.release import DEFAULT_METHOD
from velado.settings import Flag, Where, checked_flag, flags, from_flags, given_twice, named, nearest, specs
from velado.text import say

if TYPE_CHECKING:
    from velado.data.schema import Schema
    from velado.data.table import Table
    from velado.release.guarantees._guarantee import Guarantee

REPORTS = ("html", "md", "json")
RUN = "velado.release.run_settings.RunSettings"
"""Where the flags that `anonymize`, `verify`, `compare` and `joined` share are declared."""

_TABLE = argument(
    "FILE", help="The table: CSV, Parquet, Arrow, a spreadsheet, SPSS, Stata or SAS; .gz and .zip too."
)
File = Annotated[Path, _TABLE]
Source = Annotated[str, _TABLE]
"""The same where a folder, a pattern of files or a server's address will do too."""
MaybeFile = Annotated[Path | None, typer.Argument(metavar="FILE", show_default=False)]
SchemaFile = Annotated[Path, option("--schema -s FILE", help="Schema file (TOML).")]
MaybeSchema = Annotated[Path | None, option("--schema -s FILE", help="Schema file (TOML).")]
Undeclared = Annotated[
    Literal["refuse", "drop", "keep"],
    option(
        "--undeclared",
        click_type=OfSetting(f"{RUN}.undeclared", "refuse|drop|keep"),
        help="What becomes of columns the schema does not name.",
    ),
]
Per = Annotated[
    Literal["row", "person"] | None,
    option(
        "--per",
        click_type=OfSetting(f"{RUN}.per", "row|person"),
        help="What k counts; by default people where the schema names a person column, else rows.",
    ),
]
Formulas = Annotated[
    Literal["keep", "escape", "refuse"],
    option(
        "--formulas",
        click_type=OneOf("keep", "escape", "refuse"),
        help="Cells a spreadsheet would run: keep (and warn), escape with an apostrophe, or refuse.",
    ),
]
MethodName = Annotated[str, option("--method -m NAME", help="See `velado methods`.")]
Suppression = Annotated[
    float,
    option(
        "--suppression",
        click_type=OfSetting(f"{RUN}.suppression", "NUMBER"),
        help="Share of rows, or of people, that may be dropped, from 0 to 1.",
    ),
]
Seed = Annotated[
    int,
    option("--seed", click_type=OfSetting(f"{RUN}.seed", "INTEGER"), help="Seed of every random choice."),
]
CROWD = OfSetting(f"{RUN}.k", "INTEGER")
DIVERSITY = OfSetting("velado.release.guarantees.l_diversity.LDiversity.l", "INTEGER")
CLOSENESS = OfSetting("velado.release.guarantees.t_closeness.TCloseness.t", "NUMBER")
Force = Annotated[bool, option("--force", help="Replace what exists already.")]
NewFolder = Annotated[Path, option("--output -o DIR", help="Folder of the results; it must not exist.")]
DataFolder = Annotated[
    Path | None, option("--data DIR", help="Folder of the papers' data; default: VELADO_DATA.")
]
Epsilon = Annotated[str | None, option("--epsilon -e E", help="An epsilon: the most that may be spent.")]
Rho = Annotated[str | None, option("--rho R", help="The same in zCDP's rho, instead of --epsilon.")]
Delta = Annotated[
    str | None, option("--delta D", help="The delta at which rho is told as an epsilon, e.g. 1e-9.")
]
Encoding = Annotated[
    str | None, option("--encoding NAME", help="Encoding of the CSV file, e.g. latin-1; else found.")
]
Population = Annotated[
    Path | None,
    option(
        "--population FILE",
        help="Table of everyone the people were drawn from, for k-map and delta-presence.",
    ),
]
OwnerKey = Annotated[
    Path | None,
    option(
        "--key FILE",
        help=(
            "The owner's key, under which row order and random operations are drawn; "
            "default: yours, made at first use."
        ),
    ),
]
KeepOrder = Annotated[
    bool,
    option("--keep-order", help="Publish rows in the order of the input, which may give values away."),
]
SealFile = Annotated[
    Path | None,
    option(
        "--seal FILE", help="The ledger's seal; default: in VELADO_STATE, else in the user's state folder."
    ),
]


@dataclass(frozen=True, kw_only=True)
class ReadingFlags:
    """How a file is read.

    >>> ReadingFlags().source(Path("people.csv")).name
    'people.csv'
    """

    encoding: Encoding = None
    sheet: Annotated[
        str | None, option("--sheet NAME", help="The sheet of a spreadsheet that has several.")
    ] = None

    def table(
        self,
        file: Path,
        schema: Schema | None = None,
        undeclared: Literal["refuse", "drop", "keep"] = "refuse",
        known: Sequence[str] = (),
    ) -> Table:
        """The table of a file; *known* are names its header may hold although they look like values."""
        from velado.data.io import read_table

        return read_table(file, schema, undeclared, self.encoding, known, self.sheet)

    def source(self, file: Path) -> Path | Table:
        """What a run that reads files itself is given: the file, or the table of the sheet that was named."""
        if self.sheet is not None:
            return self.table(file)
        if self.encoding is not None:
            from velado.data.io import refuse_encoding

            refuse_encoding(file, self.encoding)
        return file


@dataclass(frozen=True, kw_only=True)
class FolderFlags:
    """Where a release is written, and under whose key.

    >>> FolderFlags().output.name, FolderFlags().force
    ('out', False)
    """

    output: Annotated[
        Path,
        option("--output -o DIR", help="Folder for the release and its private part; it must not exist."),
    ] = Path("out")
    key: OwnerKey = None
    force: Annotated[bool, option("--force", help="Replace an existing release.")] = False

    def refuse(self, *reads: Path | None) -> None:
        """A folder that may not be written is refused before the work; one that holds a file of *reads* too."""
        refuse_existing(self.output, self.force, *reads, self.key)


def refuse_existing(folder: Path, force: bool | None = None, *reads: Path | None) -> None:
    """Nothing, if *folder* may be written; the libraries that say so are loaded only where there is a doubt.

    >>> refuse_existing(Path("no such folder"))
    """
    if os.path.lexists(folder):
        from velado.data.staging import refuse_folder

        refuse_folder(folder, force, [path for path in reads if path is not None])


def refuse_file(
    path: Path | None, why: str = "It would be overwritten.", do: str = "Choose another name."
) -> None:
    """A file that exists is refused before the work, not after it.

    >>> refuse_file(Path("no such file")), refuse_file(None)
    (None, None)
    """
    if path is not None and path.exists():
        raise OutputError(say("'{path}' exists already.", path=path.name), why, do)


def refuse_same_file(*paths: Path | None) -> None:
    """Nothing, if no two of the files that are read or written are one, whatever they are called.

    >>> refuse_same_file(Path("people.csv"), Path("out.csv"), None)
    """
    named = [path for path in paths if path is not None]
    for one, other in combinations(named, 2):
        if one.resolve() == other.resolve() or (one.exists() and other.exists() and one.samefile(other)):
            raise ParameterError(
                say("'{one}' and '{other}' are the same file.", one=one.name, other=other.name),
                "One would overwrite the other.",
                "Give each its own name.",
            )


def data_folder(named: Path | None) -> Path:
    """The folder of the papers' data: as named, else as the environment says; it need not exist.

    >>> data_folder(Path("data")).name
    'data'
    """
    folder = named or (Path(os.environ["VELADO_DATA"]) if os.environ.get("VELADO_DATA") else None)
    if folder is None:
        raise ParameterError(
            "No data folder was named.",
            "The papers' data is not part of velado.",
            "Pass --data DIR, or set VELADO_DATA.",
        )
    if folder.exists() and not folder.is_dir():
        raise ParameterError(
            "The data folder is a file.", "Data sets are kept in a folder.", "Check --data or VELADO_DATA."
        )
    return folder


def names_in(text: str | None) -> list[str]:
    """The words of a comma-separated list.

    >>> names_in("age, sex,")
    ['age', 'sex']
    """
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def several_of(value: str, words: Sequence[str], flag: str) -> tuple[Any, ...]:
    """The comma-separated words of *value*, each among *words*, each once; `none` alone is no word.

    >>> several_of("html,md", REPORTS, "--report"), several_of("none", REPORTS, "--report")
    (('html', 'md'), ())
    """
    asked = names_in(value)
    if not asked:
        one_of(value, words, flag)  # nothing is no word; who wants none says so
    return () if asked == ["none"] else tuple(dict.fromkeys(one_of(word, words, flag) for word in asked))


def rounding_steps(value: str | None) -> dict[str, float]:
    """The step of each column that `--round-intervals` names.

    >>> rounding_steps("age=5,weight=0.5")
    {'age': 5.0, 'weight': 0.5}
    """
    from velado.data.schema import Step

    steps: dict[str, float] = {}
    for part in value.split(",") if value is not None else ():
        name, _, number = (word.strip() for word in part.rpartition("="))
        if not name or name in steps:
            raise ParameterError(
                "--round-intervals does not read as column=step, each column once.",
                "It names the columns whose interval ends become multiples of a step.",
                "Write for example --round-intervals age=5,weight=0.5.",
            )
        steps[name] = checked_flag("--round-intervals", number, Step)
    return steps


def needs_crypto() -> None:
    """Nothing, if the libraries of encrypted regression are installed; else the error that names the extra.

    >>> needs_crypto()
    """
    from importlib.util import find_spec

    if any(find_spec(name) is None for name in ("gmpy2", "flint", "cryptography")):
        raise MissingExtra(
            "gmpy2, python-flint or cryptography is not installed.",
            "Encrypted regression computes with them.",
            "Install velado[encrypted].",
        )


# Guarantees on the command line: `--guarantee "t-closeness: t=0.2, distance=ordered"`, and short forms.


@dataclass(frozen=True, kw_only=True)
class PromiseFlags:
    """What a release must keep beyond k.

    >>> [type(one).__name__ for one in PromiseFlags(l_diversity=2, guarantee=["k-map: k=5"]).guarantees()]
    ['LDiversity', 'KMap']
    """

    l_diversity: Annotated[
        int | None,
        option(
            "--l-diversity",
            click_type=DIVERSITY,
            help="Distinct values of every sensitive column in each group.",
        ),
    ] = None
    t_closeness: Annotated[
        float | None,
        option(
            "--t-closeness",
            click_type=CLOSENESS,
            help="Largest distance of a group's sensitive values from the whole table's.",
        ),
    ] = None
    guarantee: Annotated[
        list[str] | None,
        option(
            "--guarantee -g TEXT",
            help='Any guarantee, e.g. "entropy-l-diversity: l=2" or "k-map: k=5"; may be given several times.',
        ),
    ] = None
    population: Population = None

    def guarantees(self, people: bool = False) -> tuple[Guarantee, ...]:
        """The guarantees asked for, beyond the k of the goal; *people* is what a further k counts."""
        from velado.release.guarantees import LDiversity, TCloseness

        short: list[Guarantee] = []
        if self.l_diversity is not None:
            short.append(LDiversity(self.l_diversity))
        if self.t_closeness is not None:
            short.append(TCloseness(self.t_closeness))
        return (*short, *(guarantee_from(text, people) for text in self.guarantee or ()))


def by_person(per: str | None, schema: Schema) -> bool:
    """Whether k counts people: as asked, or else as soon as the schema names a person column.

    >>> from velado.data.schema import Column, Schema
    >>> schema = Schema({"who": Column("who", "identifier", "text", person=True)})
    >>> by_person(None, schema), by_person("row", schema)
    (True, False)
    """
    return per == "person" or (per is None and schema.person is not None)


def guarantee_from(text: str, people: bool = False) -> Any:
    """`NAME` or `NAME: key=value, key=value` as a guarantee; unknown names and keys suggest the nearest.

    >>> guarantee_from("t-closeness: t=0.3, distance=ordered")
    TCloseness(t=0.3, distance='ordered', column=None)
    """
    from velado.release.guarantees import GUARANTEES

    name, _, rest = text.partition(":")
    kind = named(GUARANTEES, name.strip(), "guarantee")
    given = _pairs_in(
        rest, "--guarantee", f'--guarantee "{kind.name}: key=value"', f"--guarantee {kind.name}"
    )
    made = from_flags(kind, given, Where("flag", f"--guarantee {kind.name}"))
    return made.counted_by("person") if people and "unit" not in given else made


def _pairs_in(text: str, flag: str, example: str, here: str) -> dict[str, str]:
    """The settings of `key=value, key=value`, each once; *here* is the place that a repeated one is named at."""
    given: dict[str, str] = {}
    for part in names_in(text):
        key, equals, value = part.partition("=")
        if not equals:
            raise ParameterError(
                say("'{part}' in {flag} is no setting.", part=part, flag=flag),
                "Settings are written key=value.",
                say("Write for example {example}.", example=example),
            )
        if key.strip() in given:
            raise given_twice(Where("flag", here).of(key.strip()))
        given[key.strip()] = value.strip()
    return given


# Column operations on the command line: `--generalize age:10`, `--perturb "age: scale=2, noise=uniform"`.


def operation_from(name: str, text: str, schema: Schema) -> Any:
    """What was typed after the flag of an operation: its column, and after a colon one value or key=value.

    A column whose name holds a colon is found all the same; *schema* tells what a value alone stands for.

    >>> from velado.data.schema import Column, Schema
    >>> schema = Schema({"age": Column("age", "quasi", "numeric"), "town": Column("town", "quasi")})
    >>> operation_from("generalize", "age:10", schema), operation_from("generalize", "town:1", schema)
    (Generalize(column='age', level=None, width=10.0), Generalize(column='town', level=1, width=None))
    >>> operation_from("perturb", "age: scale=2, noise=uniform", schema)
    Perturb(column='age', scale=2.0, noise='uniform')
    """
    from velado.release.operations import OPERATIONS

    kind = named(OPERATIONS, name, "operation")
    flag, wanted = f"--{kind.name}", "column" in specs(kind)
    column, rest = "", text.strip()
    if wanted:
        column, rest = _column_and_rest(rest, schema)
    known = schema.columns.get(column)
    main = kind.main[0 if known is not None and known.kind == "numeric" and known.taxonomy is None else 1]
    if rest and "=" not in rest and main:
        given = {main: rest}
    else:
        example = f"{flag} {(column or 'COLUMN') + ':' if wanted else ''}{main or 'key'}=..."
        given = _pairs_in(rest, flag, example, flag)
    return from_flags(kind, {**({"column": column} if wanted else {}), **given}, Where("flag", flag))


def _column_and_rest(text: str, schema: Schema) -> tuple[str, str]:
    if text in schema.columns:
        return text, ""
    # The longest name that fits: "a:b:10" is 10 for the column "a:b" where there is one.
    places = [at for at, letter in enumerate(text) if letter == ":"]
    for at in reversed(places):
        if text[:at].strip() in schema.columns:
            return text[:at].strip(), text[at + 1 :].strip()
    name, _, rest = text.partition(":")
    return name.strip(), rest.strip()


# A method's flags, read off its settings: `--cut relaxed` sets the field `cut` of Mondrian. Flags that the command
# itself does not know are looked up in the chosen method before the command line is parsed.

META = "velado.method_flags"


def split_flags(
    args: Sequence[str], options: Mapping[str, bool], method_named: Callable[[str], type[Any]]
) -> tuple[list[str], dict[str, object]]:
    """The arguments the command knows, and the chosen method's values from those it does not.

    *options* maps each flag of the command to whether a value follows it; *method_named* finds a method's class
    and is called only if there is a foreign flag, because the methods' libraries are slow to import.

    >>> from velado.release.methods import Mondrian
    >>> split_flags(["people.csv", "--cut", "relaxed", "-k", "5"], {"-k": True}, lambda name: Mondrian)
    (['people.csv', '-k', '5'], {'cut': 'relaxed'})
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
        if flag.field in texts:
            raise given_twice(flag.flag)
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
        nearest(name, [one for one in (*words, *options) if _alike(name, one)])
        or say("See `velado methods {method}` and `velado anonymize --help`.", method=method.name),
    )


def _alike(one: str, other: str) -> bool:
    # The dashes, which every flag has, make no two flags alike: --cut is no --quiet.
    from difflib import SequenceMatcher

    one, other = one.lstrip("-"), other.lstrip("-")
    return other.startswith(one) or SequenceMatcher(None, one, other).ratio() >= 0.65


class CommandWithMethodFlags(Command):
    """A command that also accepts the flags of the method it is told to run.

    >>> made = CommandWithMethodFlags("try", callback=lambda **_: print(click.get_current_context().meta[META]))
    >>> made.main(["--work", "9"], standalone_mode=False)
    {'work': 9}
    """

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


SHOW_VALUES = "velado.show_values"
"""Under this the file of --show-values is kept, for whoever reports the error."""


def show_values_option() -> click.Option:
    """The flag --show-values, of commands that read a table with taxonomies.

    >>> show_values_option().opts
    ['--show-values']
    """
    return click.Option(
        ["--show-values"],
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        expose_value=False,
        callback=_keep_place,
        help="Write values that a taxonomy does not cover to this private file.",
    )


def _keep_place(ctx: click.Context, parameter: click.Parameter, value: Path | None) -> None:
    kept = ctx.find_root().obj
    if value is not None and isinstance(kept, dict):
        refuse_file(value, say("The values would replace what is there."))
        kept[SHOW_VALUES] = value
