"""Settings as flags, as a web form and as rows of a reference page, all read off the fields."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, replace
from fractions import Fraction
from pathlib import PurePath
from typing import Any, Literal, TypeVar, get_args

from velado.settings.declare import Hint, Spec, is_settings, members_of, origin_of, peeled, specs
from velado.settings.reading import checked, made, owner_of, validator
from velado.settings.refusal import HUGE, Where, choices_of, takes, unknown_key
from velado.text import say

T = TypeVar("T")
Texts = Mapping[str, object]
"""What was typed, by flag or key: a text, several, or a value that the command line has made of it already."""

_WHOLE = re.compile(r"[+-]?[0-9](_?[0-9])*", re.ASCII)
_YES, _NO = ("yes", "true", "on"), ("no", "false", "off")


@dataclass(frozen=True)
class Flag:
    """One setting on the command line. *kind* is int, float, str or bool; *many* says that it may be repeated.

    >>> from velado.settings import settings
    >>> @settings
    ... class Run:
    ...     max_rows: int = 10
    >>> flags(Run)[0].flag, flags(Run)[0].default, flags(Run)[0].many
    ('--max-rows', 10, False)
    """

    field: str
    flag: str
    kind: type
    default: Any
    required: bool
    help: str
    takes: str
    section: str
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    optional: bool = False
    many: bool = False


@dataclass(frozen=True)
class Row:
    """One setting on a reference page, every cell in words.

    >>> Row("k", "int", "5", "a whole number, at least 2", "rows in each group", "anonymization").limits
    'a whole number, at least 2'
    """

    name: str
    type: str
    default: str
    limits: str
    help: str
    section: str


def flags(kind: type[Any]) -> tuple[Flag, ...]:
    """A flag for each setting that a command line can carry; tables within give theirs, under their section.

    >>> from typing import Annotated
    >>> from velado.settings import Setting, settings
    >>> @settings
    ... class Crowd:
    ...     k: Annotated[int, Setting("rows in each group", ge=2)] = 5
    >>> [(one.flag, one.kind, one.default, one.takes) for one in flags(Crowd)]
    [('--k', <class 'int'>, 5, 'a whole number, at least 2')]
    """
    out: list[Flag] = []
    for spec in specs(kind).values():
        members, optional = members_of(peeled(spec.hint)[0])
        base = peeled(members[0])[0]
        if is_settings(base):
            continue  # a table is flags of its own: flags(base)
        many = origin_of(base) is tuple
        plain = _plain_kind(get_args(base)[0] if many else spec.hint)
        if plain is None or spec.setting.parts is not None:
            continue
        said = spec.setting
        out.append(
            Flag(
                field=spec.name,
                flag=spec.flag,
                kind=plain,
                default=None if spec.required else spec.usual(),
                required=spec.required,
                help=said.help,
                takes=takes(spec.hint),
                section=spec.section,
                least=said.ge if said.ge is not None else said.gt,
                most=said.le if said.le is not None else said.lt,
                choices=choices_of(get_args(base)[0] if many else spec.hint),
                optional=optional,
                many=many,
            )
        )
    return tuple(out)


def _plain_kind(hint: Hint) -> type | None:
    """int, float, str or bool behind a hint; None where no text on a command line stands for it."""
    kinds: list[type] = []
    for member in members_of(peeled(hint)[0])[0]:
        base = peeled(member)[0]
        path = isinstance(base, type) and issubclass(base, PurePath)
        if path or base is Fraction or origin_of(base) is Literal:
            base = str
        if base not in (int, float, str, bool):
            return None
        kinds.append(base)
    if str in kinds:
        return str
    return float if float in kinds else kinds[0]


def from_flags(kind: type[T], texts: Texts, where: Where | None = None) -> T:
    """*kind* from what was typed after its flags; keys are flags ("--max-rows") or fields ("max_rows").

    >>> from typing import Annotated
    >>> from velado.settings import Setting, settings
    >>> @settings
    ... class Crowd:
    ...     k: Annotated[int, Setting("rows in each group", ge=2)] = 5
    >>> from_flags(Crowd, {"--k": "7"})
    Crowd(k=7)
    >>> from_flags(Crowd, {"--k": "1"})
    Traceback (most recent call last):
    velado.errors.ParameterError: --k cannot be 1. It takes a whole number, at least 2. Give 2 or more.
    """
    return _from_texts(kind, texts, where or Where("flag"))


def checked_flag(flag: str, text: object, hint: Hint) -> Any:
    """What was typed after *flag*, as the setting that *hint* declares takes it.

    >>> from typing import Annotated
    >>> from velado.settings import Setting
    >>> checked_flag("-k", "1", Annotated[int, Setting(ge=2)])
    Traceback (most recent call last):
    velado.errors.ParameterError: -k cannot be 1. It takes a whole number, at least 2. Give 2 or more.
    """
    return checked(parsed(text, hint), _lone(flag, hint), Where("flag"))


def checked_argument(name: str, value: object, hint: Hint) -> Any:
    """What a function in Python was given as *name*, as the setting that *hint* declares takes it.

    >>> from typing import Annotated
    >>> from velado.settings import Setting
    >>> checked_argument("jobs", 0, Annotated[int, Setting(ge=1)])
    Traceback (most recent call last):
    velado.errors.ParameterError: jobs= cannot be 0. It takes a whole number, at least 1. Give 1 or more.
    """
    return checked(value, _lone(name, hint), Where("python"))


def _lone(name: str, hint: Hint) -> Spec:
    """A setting that stands in no class."""
    return Spec(name, hint, replace(peeled(hint)[1], key=name), MISSING, MISSING, False, "")


def from_form(kind: type[T], texts: Texts) -> T:
    """*kind* from the fields of a web form or of an address's query; an empty one was not given.

    >>> from velado.settings import settings
    >>> @settings
    ... class Crowd:
    ...     k: int = 5
    >>> from_form(Crowd, {"k": ""})
    Crowd(k=5)
    """
    given = {key: text for key, text in texts.items() if text != ""}
    return _from_texts(kind, given, Where("form", owner_of(kind)))


def _from_texts(kind: type[T], texts: Texts, where: Where) -> T:
    known = specs(kind)
    by_name = {word: one for one in known.values() for word in (one.name, one.key, one.flag)}
    values: dict[str, object] = {}
    for key, text in texts.items():
        spec = by_name.get(key) or by_name.get(f"--{key}")
        if spec is None:
            raise unknown_key(key, [one.key for one in known.values()], where)
        values[spec.name] = parsed(text, spec.hint)
    return made(kind, values, where)


def parsed(text: object, hint: Hint) -> Any:
    """The value a text stands for where *hint* is wanted; what stands for none stays a text, which the check refuses.

    >>> parsed("7", int), parsed("7", str), parsed("a, b", tuple[str, ...]), parsed("none", int | None)
    (7, '7', ['a', 'b'], None)
    """
    members, optional = members_of(peeled(hint)[0])
    base = peeled(members[0])[0] if len(members) == 1 else None
    if origin_of(base) is tuple:
        several = text.split(",") if isinstance(text, str) else text
        if isinstance(several, Sequence):
            return [
                parsed(one.strip() if isinstance(one, str) else one, get_args(base)[0]) for one in several
            ]
    if not isinstance(text, str):
        return text
    if optional and text.strip().lower() == "none":
        return None
    if _plain_kind(hint) is str:
        return text
    if base is bool and text.strip().lower() in (*_YES, *_NO):
        return text.strip().lower() in _YES
    return _guessed(text.strip())


def _guessed(text: str) -> object:
    """A number or truth value if the text is one, as TOML would read it."""
    if _WHOLE.fullmatch(text):
        digits = text.replace("_", "")
        return int(digits) if len(digits) <= 300 else HUGE * (-1 if text[0] == "-" else 1)
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return float(text) if text.isascii() else text  # Python also takes the digits of other scripts
    except ValueError:
        return text


def form(kind: type[Any]) -> dict[str, object]:
    """The JSON schema of a settings class, its tables within it: what the service's OpenAPI document holds of a request.

    >>> from typing import Annotated
    >>> from velado.settings import Setting, settings
    >>> @settings
    ... class Crowd:
    ...     k: Annotated[int, Setting("rows in each group", ge=2)] = 5
    >>> form(Crowd)["properties"]["k"]
    {'minimum': 2, 'type': 'integer', 'description': 'rows in each group', 'default': 5}
    """
    from velado.settings.toml import describe

    properties: dict[str, object] = {}
    for spec in specs(kind).values():
        base = peeled(members_of(peeled(spec.hint)[0])[0][0])[0]
        schema = form(base) if is_settings(base) and spec.setting.parts is None else _schema(spec)
        if spec.setting.help:
            schema["description"] = str(spec.setting.help)
        if not spec.required:
            schema["default"] = describe(spec.usual())
        properties[spec.key] = schema
    required = [one.key for one in specs(kind).values() if one.required]
    return {
        "title": owner_of(kind),
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _schema(spec: Spec) -> dict[str, object]:
    if spec.setting.parts is not None:
        return {"enum": [str(one.name) for one in spec.setting.parts()]}
    schema: dict[str, object] = validator(spec).json_schema()
    return schema | ({"enum": list(spec.setting.words)} if spec.setting.choices else {})


def reference(kind: type[Any]) -> tuple[Row, ...]:
    """The rows of a reference page, one for each setting.

    >>> from typing import Annotated
    >>> from velado.settings import Setting, settings
    >>> @settings
    ... class Crowd:
    ...     k: Annotated[int, Setting("rows in each group", ge=2)] = 5
    >>> reference(Crowd)[0]
    Row(name='k', type='int', default='5', limits='a whole number, at least 2', help='rows in each group', section='')
    """
    rows: list[Row] = []
    for spec in specs(kind).values():
        base = peeled(members_of(peeled(spec.hint)[0])[0][0])[0]
        if is_settings(base) and spec.setting.parts is None:
            rows += [replace(one, section=one.section or spec.key) for one in reference(base)]
            continue
        plain = _plain_kind(spec.hint)
        rows.append(
            Row(
                name=spec.key,
                type=plain.__name__ if plain is not None else getattr(base, "__name__", str(base)),
                default=say("required") if spec.required else _default(spec.usual()),
                limits=takes(spec.hint),
                help=spec.setting.help,
                section=spec.section,
            )
        )
    return tuple(rows)


def _default(value: Any) -> str:
    """A default as TOML writes it."""
    import json

    from velado.settings.toml import describe

    return say("none") if value is None else json.dumps(describe(value), ensure_ascii=False)
