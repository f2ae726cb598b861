"""The application that commands join: option groups, the flags every command has, and help in two languages.

A command is a function under `@command("name")`. A parameter whose type is a dataclass is an option group: its fields
are flags, and the function gets the object. `--json`, `--lang`, `--quiet` and `--debug` belong to every command and to
none: they set the manner and the language of the run.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_type_hints

import click
import typer
from click.shell_completion import CompletionItem
from typer.core import TyperCommand, TyperGroup

from velado.apps.cli import show
from velado.errors import ParameterError
from velado.text import LANGUAGES, Language, choose, say, speaking, told

_Word = TypeVar("_Word", bound=str)
LANGUAGE_ASKED = "velado.lang"
"""Where a context keeps the word after `--lang`, if one was given."""
ARGUMENTS: dict[str, str] = {}
"""What each argument is, by the name it has in the usage line."""

# click 8.5 made its class generic; older ones are not.
if TYPE_CHECKING:
    _ParamType = click.ParamType[str, str]
else:
    _ParamType = click.ParamType

# click and typer say their own words through gettext, as templates with named parts; ours is the catalogue asked.
_SAID_BY_CLICK = (
    say("Usage:"),
    say("Options"),
    say("Arguments"),
    say("Commands"),
    say("Show this message and exit."),
    say("default: {default}"),
    say("required"),
    say("Missing command."),
    say("Missing argument"),
    say("Missing option"),
    say("No such option {name!r}."),
    say("No such command {name!r}."),
    say("Did you mean {possibility}?"),
    say("Got unexpected extra argument ({args})"),
    say("Got unexpected extra arguments ({args})"),
    say("Option {name!r} does not take a value."),
    say("Option {name!r} requires an argument."),
    say("Invalid value for {param_hint}: {message}"),
    say("{value!r} is not a valid {number_type}."),
    say("{value} is not in the range {range}."),
)

# What a flag takes, in capitals, as usage lines write it; in a longer one each of these words is translated.
_TAKEN = (
    say("[OPTIONS]"),
    say("COMMAND [ARGS]..."),
    say("all cores"),
    say("ADDRESS"),
    say("AMOUNT"),
    say("ANALYST"),
    say("CLIENTS"),
    say("COLUMN"),
    say("COLUMNS"),
    say("DATASET"),
    say("DIR"),
    say("EXPERIMENT"),
    say("FEDERATION"),
    say("FILE"),
    say("HIGH"),
    say("HOST"),
    say("INTEGER"),
    say("KEY"),
    say("LEDGER"),
    say("LIST"),
    say("LOW"),
    say("NAME"),
    say("NUMBER"),
    say("PACK"),
    say("PATH"),
    say("PORT"),
    say("RECIPE"),
    say("RELEASE"),
    say("SCHEMA"),
    say("SERVICE"),
    say("STEP"),
    say("STUDY"),
    say("TEXT"),
    say("WAY"),
)
_KINDS = {
    "integer": "INTEGER",
    "integer range": "INTEGER",
    "float": "NUMBER",
    "float range": "NUMBER",
    "text": "TEXT",
}


def _through_our_catalogue() -> None:
    import typer.core

    for module in (
        click.core,
        click.decorators,
        click.exceptions,
        click.formatting,
        click.parser,
        click.types,
    ):
        vars(module).update(_=told, ngettext=lambda one, many, n: told(one if n == 1 else many))
    # Help is plain text: where Rich is installed all the same, typer would escape brackets for it.
    vars(typer.core).update(_=told, HAS_RICH=False)


_through_our_catalogue()


def _run_options() -> list[click.Parameter]:
    """The flags that every command has.

    >>> [option.opts[0] for option in _run_options()]
    ['--json', '--lang', '--debug', '--quiet']
    """

    def manner(name: str) -> Callable[[click.Context, click.Parameter, bool], None]:
        return lambda _ctx, _option, given: show.speak(**{name: True}) if given else None

    def flag(*names: str, **more: Any) -> click.Option:
        return click.Option(names, is_flag=True, expose_value=False, **more)

    return [
        flag("--json", callback=manner("as_json"), help="Print the result as JSON."),
        _language_option(),
        flag("--debug", help="Show the traceback of an error."),
        flag("--quiet", "-q", callback=manner("quiet"), help="Print nothing but errors and JSON."),
    ]


def _language_option() -> click.Option:
    """The flag for the language, which commands and groups of commands have.

    >>> _language_option().metavar
    'en|pt'
    """
    return click.Option(
        ["--lang"],
        metavar="en|pt",
        expose_value=False,
        callback=_speak_in,
        help="Language of what is printed and of the report; default: VELADO_LANG, else en.",
    )


def _speak_in(ctx: click.Context, _option: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.meta[LANGUAGE_ASKED] = one_of(value, LANGUAGES, "--lang")


def chosen_language(flag: str | None) -> Language:
    """The language asked for by flag, else by the environment, else English.

    >>> chosen_language("pt")
    'pt'
    """
    if flag is not None:
        one_of(flag, LANGUAGES, "--lang")
    return choose(flag, os.environ)


def one_of(value: str, words: Sequence[_Word], flag: str) -> _Word:
    """*value* if it is among *words*, else the error that every other setting with choices gives.

    >>> one_of("drop", ["drop", "keep"], "--undeclared")
    'drop'
    >>> one_of("kep", ["drop", "keep"], "--undeclared")
    Traceback (most recent call last):
    velado.errors.ParameterError: --undeclared cannot be 'kep'. It takes one of drop, keep. Did you mean 'keep'?
    """
    if value in words:
        return words[words.index(value)]  # the same text, known to be one of the words
    from velado.settings import nearest, takes

    raise ParameterError(
        say("{field} cannot be {value}.", field=flag, value=f"'{value}'"),
        say("It takes {what}.", what=takes(Literal[tuple(words)])),
        nearest(value, words) or say("Choose one of them."),
    )


class OneOf(_ParamType):
    """The type of a flag that takes one of a few words, and names them in its help.

    Where a registry holds the words, it is given as "module:name", and read when somebody asks.

    >>> OneOf("csv", "parquet").get_metavar(), OneOf("velado.report.evidence.laws:LAWS").words
    ('csv|parquet', ('lgpd', 'gdpr', 'hipaa'))
    """

    name = "word"

    def __init__(self, *words: str) -> None:
        self._given = words

    @property
    def words(self) -> tuple[str, ...]:
        """The words, as they were given or as the registry has them now."""
        module, registered, name = self._given[0].partition(":")
        if not registered:
            return self._given
        from importlib import import_module

        return tuple(getattr(import_module(module), name))

    def get_metavar(self, param: click.Parameter | None = None, ctx: click.Context | None = None) -> str:
        """The words, as usage lines list them."""
        return "|".join(self.words)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The word, or an error that names the flag."""
        return one_of(value, self.words, param.opts[0] if param else "")

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The words that begin like what was typed."""
        return [CompletionItem(word) for word in self.words if word.startswith(incomplete)]


class OfSetting(_ParamType):
    """The type of a flag that a settings class declares; the class is imported only when the flag is given.

    *place* is its module, class and field, or its module and, after a colon, the name of the type that declares it;
    *takes* is the word for it in usage lines.

    >>> seed = OfSetting("velado.release.run_settings.RunSettings.seed", "INTEGER")
    >>> seed.get_metavar(), seed.convert("7", None, None)
    ('INTEGER', 7)
    """

    name = "setting"

    def __init__(self, place: str, takes: str) -> None:
        self.place, self.takes = place, takes

    def get_metavar(self, param: click.Parameter | None = None, ctx: click.Context | None = None) -> str:
        """The word for what it takes, as usage lines have it."""
        return told(self.takes)

    def hint(self) -> Any:
        """The type and the limits, as they are declared."""
        from importlib import import_module

        from velado.settings import specs

        module, alone, name = self.place.partition(":")
        if alone:
            return getattr(import_module(module), name)
        module, kind, field = self.place.rsplit(".", 2)
        return specs(getattr(import_module(module), kind))[field].hint

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value, or the error that every other door gives; a default needs no reading."""
        if not isinstance(value, str) or (ctx is not None and ctx.resilient_parsing):
            return value  # a shell that completes words wants none of them judged
        from velado.settings import checked_flag

        return checked_flag(param.opts[0] if param else "", value, self.hint())


class OfRegistry(OfSetting):
    """The type of a flag that names an entry of a registry, which its command looks up; help lists what there is.

    >>> OfRegistry("velado.learning.regression.families:FAMILIES").get_metavar()
    'linear|logistic|poisson'
    """

    def __init__(self, place: str) -> None:
        super().__init__(place, "NAME")

    def get_metavar(self, param: click.Parameter | None = None, ctx: click.Context | None = None) -> str:
        """The names, as usage lines have them."""
        return "|".join(self.hint())

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The text as it is."""
        return value


class PlainNumber(OfSetting):
    """The type of a flag for a number whose limits its command checks: read as every setting is.

    >>> PlainNumber(click.IntRange(min=1)).get_metavar()
    'INTEGER'
    """

    def __init__(self, kind: Any) -> None:
        whole = isinstance(kind, click.types.IntParamType)
        super().__init__("", "INTEGER" if whole else "NUMBER")
        self.kind = int if whole else float
        self.limits = tuple(getattr(kind, name, None) for name in ("min", "max"))

    def hint(self) -> Any:
        """A number, within the limits of its option."""
        from typing import Annotated

        from velado.settings import Setting

        low, high = self.limits
        return Annotated[self.kind, Setting(ge=low, le=high)]


class Command(TyperCommand):
    """A command with the flags of every command, whose help lists each argument once.

    >>> [parameter.opts[0] for parameter in Command("hello").params]
    ['--json', '--lang', '--debug', '--quiet']
    """

    def __init__(self, *args: Any, params: list[click.Parameter] | None = None, **more: Any) -> None:
        super().__init__(*args, params=[*(params or ()), *_run_options()], **more)
        for one in self.params:
            if isinstance(one.type, click.types.IntParamType | click.types.FloatParamType):
                one.type = PlainNumber(one.type)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments, read; a flag for one value that has two is refused, since the last would win in silence."""
        seen: set[str] = set()
        for one in self.make_parser(ctx).parse_args(list(args))[2]:
            single = isinstance(one, click.Option) and not one.multiple and not one.is_flag
            if single and one.name in seen:
                from velado.settings import given_twice

                raise given_twice(one.opts[0])
            seen.add(str(one.name))
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """The command, run in the language that was asked for; a value refused inside is named by its flag."""
        with speaking(chosen_language(ctx.meta.get(LANGUAGE_ASKED))):
            try:
                return super().invoke(ctx)
            except ParameterError as refused:
                from velado.settings import at_flags

                flags = {word.lstrip("-"): one.opts[0] for one in self.get_params(ctx) for word in one.opts}
                named = at_flags(refused, flags)
                raise named.with_traceback(refused.__traceback__) from refused.__cause__

    def format_arguments(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Nothing: typer lists the arguments beside the options, and click 8.5 would list them again."""


class Group(TyperGroup):
    """A group of commands, whose help can be asked for in either language.

    >>> [parameter.opts[0] for parameter in Group(name="tokens").params]
    ['--lang']
    """

    def __init__(self, *args: Any, params: list[click.Parameter] | None = None, **more: Any) -> None:
        super().__init__(*args, params=[*(params or ()), _language_option()], **more)
        self.suggest_commands = False  # typer's suggestion is English; `error_display` makes ours


def typer_app(help: str, cls: type[Group] = Group, **more: Any) -> typer.Typer:
    """An empty application, or group of commands.

    >>> typer_app("Who may ask.").info.help
    'Who may ask.'
    """
    return typer.Typer(
        cls=cls,
        help=help,
        add_completion=False,
        # Plain help needs no Rich and starts in a fraction of the time.
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
        **more,
    )


app = typer_app(help="Publish tables about people without exposing them, and prove what was protected.")


def group(name: str, help: str, cls: type[Group] = Group, within: typer.Typer = app) -> typer.Typer:
    """A group of commands, `velado NAME ...`.

    >>> group("tokens", "Who may ask.", within=typer_app("A service.")).info.help
    'Who may ask.'
    """
    made = typer_app(help, cls, no_args_is_help=True)
    within.add_typer(made, name=name)
    return made


def command(
    name: str, within: typer.Typer = app, cls: type[Command] = Command
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The function below it is the command of that name.

    >>> service = typer_app("A service.")
    >>> @command("greet", service)
    ... def greet(name: str = "you") -> None:
    ...     print("Hello,", name)
    >>> [one.name for one in service.registered_commands]
    ['greet']
    """

    def join(function: Callable[..., None]) -> Callable[..., None]:
        within.command(name, cls=cls)(spread(function))
        return function

    return join


def spread(function: Callable[..., None]) -> Callable[..., None]:
    """A function whose parameters are those of *function*, with the fields of option groups in place of the groups.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Crowd:
    ...     k: int = 5
    >>> def show_it(name: str, crowd: Crowd) -> None:
    ...     print(name, crowd)
    >>> spread(show_it)(name="table", k=7)
    table Crowd(k=7)
    """
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, type[Any]] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(function).parameters.values():
        hint = hints[parameter.name]
        if not is_dataclass(hint):
            parameters.append(parameter.replace(annotation=hint, kind=parameter.KEYWORD_ONLY))
            continue
        assert isinstance(hint, type)
        groups[parameter.name] = hint
        kinds = get_type_hints(hint, include_extras=True)
        for one in fields(hint):
            default = inspect.Parameter.empty if one.default is MISSING else one.default
            parameters.append(
                inspect.Parameter(
                    one.name, parameter.KEYWORD_ONLY, default=default, annotation=kinds[one.name]
                )
            )

    def called(**values: Any) -> None:
        made = {
            name: kind(**{one.name: values.pop(one.name) for one in fields(kind)})
            for name, kind in groups.items()
        }
        function(**values, **made)

    called.__name__, called.__doc__ = function.__name__, function.__doc__
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {one.name: one.annotation for one in parameters}
    return called


def option(spec: str, *, help: str, **more: Any) -> Any:
    """A flag, its short form and what it takes, as usage lines write them.

    >>> option("--schema -s FILE", help="Schema file.").metavar
    'FILE'
    """
    words = spec.split()
    names = [word for word in words if word.startswith("-")]
    metavar = None if names == words else words[-1]
    return typer.Option(*names, metavar=metavar, help=help, **more)


def argument(metavar: str, *, help: str) -> Any:
    """An argument under its name in the usage line; one name has one sentence on the whole command line.

    >>> argument("EXAMPLE", help="The table.").metavar
    'EXAMPLE'
    >>> argument("EXAMPLE", help="Another table.")
    Traceback (most recent call last):
    ...
    ValueError: the argument EXAMPLE is explained twice
    >>> del ARGUMENTS["EXAMPLE"]  # it is no argument of the command line
    """
    if ARGUMENTS.setdefault(metavar, help) != help:
        raise ValueError(f"the argument {metavar} is explained twice")
    return typer.Argument(metavar=metavar, show_default=False)


def click_command() -> click.Group:
    """The whole command line as click knows it, its help in the language spoken.

    >>> click_command().name
    'velado'
    """
    made = typer.main.get_command(app)
    assert isinstance(made, click.Group)
    made.name = "velado"
    for part in [made, *_parts(made)]:
        part.help = told(part.help or "")
        part.options_metavar = told("[OPTIONS]")
        if isinstance(part, click.Group):
            part.subcommand_metavar = told("COMMAND [ARGS]...")
        for parameter in part.params:
            if isinstance(parameter, click.Option):
                parameter.help = told(parameter.help or "")
                if isinstance(parameter.show_default, str):
                    parameter.show_default = told(parameter.show_default)
                kind = _KINDS.get(parameter.type.name)
                if not parameter.is_flag and parameter.metavar is None and kind is not None:
                    parameter.metavar = kind
            else:
                # click 8.5 resets the help that typer has given to an argument.
                vars(parameter)["help"] = told(ARGUMENTS[str(parameter.metavar)])
            if parameter.metavar is not None:
                parameter.metavar = told_words(parameter.metavar)
    return made


def told_words(metavar: str) -> str:
    """What a flag takes, each of its words in capitals in the language spoken.

    >>> told_words("COLUMN:WIDTH")
    'COLUMN:WIDTH'
    """
    return re.sub("[A-Z]{2,}", lambda word: told(word[0]), metavar)


def _parts(group: click.Group) -> Iterator[click.Command]:
    """Every command, those of groups inside groups too."""
    for part in group.commands.values():
        yield part
        if isinstance(part, click.Group):
            yield from _parts(part)
