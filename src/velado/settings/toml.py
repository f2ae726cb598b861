"""Settings as TOML, in and out; a registered part stands there as its name and its settings."""

import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path, PurePath
from typing import Any, TypeVar

from velado.errors import ParameterError, SchemaError
from velado.settings.declare import specs
from velado.settings.reading import owner_of, read
from velado.settings.refusal import Where, no_file
from velado.text import Sentence, say

# The parser's own words are English, and not for stewards: what it says first, and what that means to whoever wrote the file; the first that fits is told.
_MEANT = (
    ("Invalid value", say("a value is missing, or is a text without quotes")),
    ("Expected '='", say("a key has no '=' after it")),
    ("Unclosed array", say("a list is not closed with ']'")),
    ("Unclosed inline table", say("a table is not closed with '}'")),
    ("Unterminated string", say("a text has no closing quote")),
    ("Illegal character", say("a text has no closing quote, or a character that must be escaped")),
    ("Unescaped", say("a backslash in a text; write it twice, or put the text in single quotes")),
    ("Cannot declare", say("a table stands there twice")),
    ("Cannot overwrite", say("a key stands there twice")),
    ("Duplicate inline table key", say("a key stands there twice")),
    ("Expected newline", say("something follows a value on its line")),
)
_PLACE = re.compile(r"\(at line (\d+), column (\d+)\)")


def toml_trouble(message: str) -> Sentence:
    """The message of a TOML parser as a sentence of ours, with the line and the column where it gives them.

    >>> toml_trouble("Invalid value (at line 3, column 5)")
    'a value is missing, or is a text without quotes (line 3, column 5)'
    >>> toml_trouble("Something new (at end of document)")
    'it cannot be read (at the end)'
    """
    what = next((ours for said, ours in _MEANT if message.startswith(said)), say("it cannot be read"))
    found = _PLACE.search(message)
    if found is None:
        return say("{what} (at the end)", what=what)
    return say("{what} (line {line}, column {column})", what=what, line=int(found[1]), column=int(found[2]))


T = TypeVar("T")


def read_toml(source: Path | str, kind: type[T], document: str = say("the file")) -> T:
    """*kind* from a TOML file (a Path) or its text (a str); *document* is what errors call it.

    >>> from typing import Annotated
    >>> from velado.settings import Setting, settings
    >>> @settings
    ... class Crowd:
    ...     k: Annotated[int, Setting("rows in each group", ge=2)] = 5
    >>> read_toml("k = 7", Crowd)
    Crowd(k=7)
    """
    return read(kind, parse_toml(source, document), Where("file", document))


def parse_toml(source: Path | str, document: str = say("the file")) -> Mapping[str, object]:
    """The tables of a TOML file (a Path) or text (a str), or one clear error.

    >>> parse_toml("k = ", "the recipe")
    Traceback (most recent call last):
    velado.errors.SchemaError: The TOML of the recipe is not valid: a value is missing, or is a text without quotes (at the end). Nothing was read. Correct that place.
    """
    import tomllib

    called, file = document, ""
    try:
        if isinstance(source, Path):
            file = source.name
            called = f"'{file}'"
            # Some editors put a byte order mark first, which TOML does not know.
            source = source.read_text(encoding="utf-8-sig")
        return tomllib.loads(source)
    except FileNotFoundError:
        raise SchemaError(*no_file(file)) from None
    except UnicodeDecodeError:
        problem = say("The file '{file}' is not UTF-8 text.", file=file), "Save it as UTF-8."
    except OSError:
        problem = (
            say("The file '{file}' cannot be read.", file=file),
            "Check that it is a file and its permissions.",
        )
    except tomllib.TOMLDecodeError as error:
        problem = (
            say(
                "The TOML of {document} is not valid: {reason}.",
                document=called,
                reason=toml_trouble(str(error)),
            ),
            "Correct that place.",
        )
    except (ValueError, RecursionError):  # a number of thousands of digits, a thousand brackets
        problem = say("A number or a nesting in {document} is too long.", document=called), "Shorten it."
    raise SchemaError(problem[0], "Nothing was read.", problem[1])


def to_toml(made: Any, *, defaults: bool = True, multiline: bool = False) -> str:
    """The text of a TOML file that `read_toml` makes the same settings of, keys in the order of the fields.

    >>> from velado.settings import settings
    >>> @settings
    ... class Run:
    ...     seed: int = 0
    ...     columns: tuple[str, ...] = ()
    >>> print(to_toml(Run(3)), end="")
    seed = 3
    columns = []
    """
    import tomli_w

    return tomli_w.dumps(table_of(made, defaults=defaults), multiline_strings=multiline)


def table_of(made: Any, *, defaults: bool = True) -> dict[str, object]:
    """Settings as the plain table a file holds; without *defaults* only what differs from them.

    TOML has no word for "none", so a setting may be none only where that is its default.

    >>> from velado.settings import settings
    >>> @settings
    ... class Run:
    ...     seed: int = 0
    ...     per: str | None = None
    >>> table_of(Run(3)), table_of(Run(), defaults=False)
    ({'seed': 3}, {})
    """
    out: dict[str, object] = {}
    for name, spec in specs(type(made)).items():
        value = getattr(made, name)
        usual = not spec.required and value == spec.usual()
        if value is None and not usual:
            raise ParameterError(
                say("{field} is none.", field=Where("python", owner_of(type(made))).of(spec)),
                "A file cannot say that, so the run could not be repeated.",
                "Give it a value.",
            )
        if value is not None and (defaults or not usual):
            entry = partial(entry_of, named_by=spec.setting.named_by)
            of_settings = entry if spec.setting.parts is not None else table_of
            out[spec.key] = _plain(value, partial(of_settings, defaults=defaults))
    return out


def entry_of(part: Any, *, defaults: bool = True, named_by: str = "name") -> dict[str, object]:
    """A registered part as it stands in a file: its name and every setting that is not "none".

    >>> from typing import ClassVar
    >>> from velado.settings import settings
    >>> @settings
    ... class Cuts:
    ...     name: ClassVar[str] = "cuts"
    ...     depth: int = 3
    >>> entry_of(Cuts(2))
    {'name': 'cuts', 'depth': 2}
    """
    return {named_by: part.name, **table_of(part, defaults=defaults)}


def describe(value: Any) -> Any:
    """Settings in plain values, "none" among them: what a manifest or a digest says of a part.

    >>> from typing import ClassVar
    >>> from velado.settings import settings
    >>> @settings
    ... class Cuts:
    ...     name: ClassVar[str] = "cuts"
    ...     depth: int | None = None
    >>> describe(Cuts())
    {'name': 'cuts', 'depth': None}
    """
    if is_dataclass(value) and not isinstance(value, type):
        name = getattr(type(value), "name", None)
        called = {"name": name} if isinstance(name, str) else {}
        return called | {one.name: describe(getattr(value, one.name)) for one in fields(value)}
    return _plain(value, describe)


def _plain(value: Any, of_settings: Callable[[Any], dict[str, object]]) -> Any:
    """Lists, tables, paths and fractions as a file has them; what settings become is for the caller to say."""
    if is_dataclass(value) and not isinstance(value, type):
        return of_settings(value)
    if isinstance(value, Mapping):
        return {key: _plain(one, of_settings) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one, of_settings) for one in value]
    return str(value) if isinstance(value, PurePath | Fraction) else value
