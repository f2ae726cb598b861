"""Settings from Python, from tables and from their parts: every door ends in the one validator made here."""

import operator
import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, replace
from fractions import Fraction
from functools import cache
from numbers import Integral, Real
from pathlib import Path, PurePath
from types import GenericAlias
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, Union, get_args

from velado.errors import ParameterError
from velado.settings.declare import (
    Hint,
    PartKind,
    Setting,
    Spec,
    is_settings,
    members_of,
    origin_of,
    peeled,
    specs,
)
from velado.settings.refusal import (
    LARGEST,
    WRONG,
    Where,
    missing_key,
    nearest,
    not_a_table,
    shown,
    unknown_key,
    wrong_value,
)
from velado.text import Sentence, say

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")
Registry = Iterable[type[Any]]

MOST_CHARACTERS, MOST_EXPONENT = 120, 40
_FRACTION = re.compile(r"[+-]?([0-9]+/[0-9]+|([0-9]+\.?[0-9]*|\.[0-9]+)(e([+-]?[0-9]+))?)", re.I)


def read(kind: type[T], table: object, where: Where | str) -> T:
    """*kind* from a table of a file, by its keys; *where* is how errors name the file, or the place in it.

    >>> from velado.settings import Setting, settings
    >>> @settings
    ... class Crowd:
    ...     k: Annotated[int, Setting("rows in each group", ge=2)] = 5
    >>> read(Crowd, {"k": 7}, "[anonymization]")
    Crowd(k=7)
    >>> read(Crowd, {"kk": 7}, "[anonymization]")
    Traceback (most recent call last):
    velado.errors.SchemaError: Unknown key 'kk' in [anonymization]. A misspelt key would be passed over. Did you mean 'k'?
    """
    place = Where("file", where) if isinstance(where, str) else where
    if not isinstance(table, Mapping):
        raise not_a_table(table, place)
    by_key = {one.key: one.name for one in specs(kind).values()}
    unknown = next((key for key in table if key not in by_key), None)
    if unknown is not None:
        raise unknown_key(str(unknown), by_key, place)
    return made(kind, {by_key[key]: value for key, value in table.items()}, place)


def read_value(hint: Hint, value: object, name: str, where: Where) -> Any:
    """*value* as *hint* takes it, for what is no field of a class: one argument, one flag.

    >>> Share = Annotated[float, Setting(ge=0, le=1)]
    >>> read_value(Share, 2, "share", Where("flag"))
    Traceback (most recent call last):
    velado.errors.ParameterError: --share cannot be 2. It takes a number from 0 to 1. Give 1 or less.
    """
    return checked(value, _lone(hint, name), where)


def _lone(hint: Hint, name: str) -> Spec:
    """A setting that stands in no class."""
    return Spec(name, hint, replace(peeled(hint)[1], key=name), MISSING, MISSING, False, "")


def fraction_of(value: float | str) -> Fraction:
    """The fraction that a number's decimal text names; ValueError where it names none of ordinary size.

    A billion digits would be computed before they are judged, so a text has at most 120 characters and an exponent
    within 40.

    >>> fraction_of(0.1), fraction_of("1/3")
    (Fraction(1, 10), Fraction(1, 3))
    """
    text = str(value).strip()
    found = _FRACTION.fullmatch(text) if len(text) <= MOST_CHARACTERS else None
    if found is None or abs(int(found[4] or 0)) > MOST_EXPONENT:
        raise ValueError("no number of ordinary size")
    return Fraction(text)


def made(kind: type[T], values: Mapping[str, object], where: Where) -> T:
    """*kind* with *values* by field name, checked under the names of *where*.

    >>> from velado.settings import Setting, settings
    >>> @settings
    ... class Crowd:
    ...     k: Annotated[int, Setting("rows in each group", ge=2)] = 5
    >>> made(Crowd, {"k": 3}, Where("flag"))
    Crowd(k=3)
    """
    new = object.__new__(kind)
    _set(new, values, where)
    return new


def fill(new: Any, given: tuple[Any, ...], named_values: Mapping[str, object]) -> None:
    """The `__init__` of every settings class: arguments in the order of the fields, and by name.

    >>> from velado.settings import Setting, settings
    >>> @settings
    ... class Crowd:
    ...     k: Annotated[int, Setting("rows in each group", ge=2)] = 5
    >>> crowd = object.__new__(Crowd)
    >>> fill(crowd, (3,), {})
    >>> crowd
    Crowd(k=3)
    """
    known = specs(type(new))
    where = Where("python", owner_of(type(new)))
    order = [one.name for one in known.values() if one.positional]
    if len(given) > len(order):
        raise TypeError(f"{type(new).__name__} takes {len(order)} arguments by position, not {len(given)}")
    values = dict(zip(order, given, strict=False))
    for name, value in named_values.items():
        if name in values:
            raise TypeError(f"{type(new).__name__} got two values for '{name}'")
        if name not in known:
            raise unknown_key(name, known, where)
        values[name] = value
    _set(new, values, where)


def owner_of(kind: type[Any]) -> str:
    """What errors call a settings class: its registered name, its section, or the class.

    >>> from velado.settings import settings
    >>> @settings(section="limits")
    ... class Limits:
    ...     burst: int = 30
    >>> owner_of(Limits), owner_of(int)
    ('[limits]', 'int')
    """
    name = getattr(kind, "name", None)
    section = getattr(kind, "__section__", "")
    return name if isinstance(name, str) else f"[{section}]" if section else kind.__name__


def _set(new: Any, values: Mapping[str, object], where: Where) -> None:
    known = specs(type(new))
    for name, spec in known.items():
        if spec.required and name not in values:
            raise missing_key(spec, where)
    # In the order of the fields: the first wrong one is told, whatever the order they were written in.
    vars(new).update(
        {
            name: checked(values[name], spec, where) if name in values else spec.usual()
            for name, spec in known.items()
        }
    )
    after = getattr(new, "__post_init__", None)
    if after is not None:
        after()


def checked(value: Any, spec: Spec, where: Where) -> Any:
    """*value* as the setting holds it, or the error that tells why it cannot.

    >>> from velado.settings import settings
    >>> @settings
    ... class Crowd:
    ...     k: int = 5
    >>> checked(7, specs(Crowd)["k"], Where("flag"))
    7
    """
    from pydantic_core import ValidationError

    if spec.simple is not None:
        plain = _plain(value, spec.simple, spec, where)
    else:
        plain = _structured(value, spec.hint, spec, where)
    try:
        return validator(spec).validate_python(plain)
    except ValidationError as problem:
        # Several errors are the members of a union: `takes` names them all, so the first is enough.
        first = problem.errors(include_url=False, include_context=False)[0]
        entry = bool(first["loc"]) and isinstance(plain, tuple | dict)
        wrong = WRONG.get(first["type"], "type")
    raise wrong_value(spec, first["input"], wrong, where, entry=entry)


@cache
def validator(spec: Spec) -> "TypeAdapter[Any]":
    """pydantic's validator of one setting, made when first needed, and with it pydantic imported.

    It coerces nothing but whole numbers to numbers: what `_structured` has not brought into form is wrong.

    >>> from velado.settings import Setting, settings
    >>> @settings
    ... class Crowd:
    ...     k: Annotated[int, Setting("rows in each group", ge=2)] = 5
    >>> validator(specs(Crowd)["k"]).validate_python(3)
    3
    """
    from pydantic import ConfigDict, TypeAdapter

    config = ConfigDict(strict=True, allow_inf_nan=False, arbitrary_types_allowed=True)
    return TypeAdapter(leaf(spec.hint, spec.setting), config=config)


def leaf(hint: Hint, setting: Setting) -> Hint:
    """The type that pydantic checks: limits moved inside `X | None`, tables and parts taken as they are.

    >>> leaf(Annotated[int | None, Setting(ge=2)], Setting(ge=2)) == Annotated[int, Setting(ge=2)] | None
    True
    """
    base, *notes = get_args(hint) if origin_of(hint) is Annotated else (hint,)
    members, optional = members_of(base)
    inner = tuple(_leaf_member(one, setting) for one in members)
    whole: Hint = inner[0] if len(inner) == 1 else Union[inner]  # noqa: UP007  (members are known at run time only)
    if whole is Any:
        return whole
    whole = Annotated[(whole, *notes)] if notes else whole
    return Union[whole, None] if optional else whole  # noqa: UP007


def _leaf_member(hint: Hint, setting: Setting) -> Hint:
    base = peeled(hint)[0]
    origin, inner = origin_of(base), get_args(base)
    if is_settings(base):
        return Any
    if origin is tuple:
        entries = tuple(one if one is Ellipsis else leaf(one, setting) for one in inner)
        return GenericAlias(tuple, entries)
    if origin is Mapping and len(inner) == 2:
        return GenericAlias(dict, (inner[0], leaf(inner[1], setting)))
    return Any if setting.parts is not None else hint


def _structured(value: Any, hint: Hint, spec: Spec, where: Where, path: str = "") -> Any:
    """*value* with its tables, parts and lists made into what the hint says; plain values as pydantic takes them."""
    members, optional = members_of(peeled(hint)[0])
    if value is None and optional:
        return None
    base = peeled(members[0])[0] if len(members) == 1 else None
    origin, inner = origin_of(base), get_args(base)
    key = path or spec.key
    if spec.setting.parts is None and is_settings(base):
        return value if isinstance(value, base) else _section(base, value, spec, where, key)
    if origin is tuple and inner:
        return _list(value, inner, spec, where, key)
    if origin in (dict, Mapping) and isinstance(value, Mapping):
        return {name: _structured(one, inner[1], spec, where, f"{key}.{name}") for name, one in value.items()}
    if spec.setting.parts is not None:
        return _part(value, spec, where, key)
    return _plain(value, base, spec, where, entry=bool(path))


def _section(base: type[Any], value: Any, spec: Spec, where: Where, key: str) -> Any:
    if not isinstance(value, Mapping):
        raise wrong_value(spec, value, "type", where)
    return read(base, value, _within(where, key))


def _within(where: Where, key: str) -> Where:
    """The place of a table inside; one written by hand in Python is named like one of a file."""
    name, _, number = key.partition("#")
    return where.inside(name, int(number) if number else None)


def _list(value: Any, inner: tuple[Hint, ...], spec: Spec, where: Where, key: str) -> Any:
    if spec.setting.parts is not None and (
        isinstance(value, str | Mapping) or _is_part(value, spec.setting.kind)
    ):
        value = [value]  # one alone needs no brackets
    elif spec.setting.parts is None and inner[-1] is Ellipsis and isinstance(value, str | Real):
        value = [value]
    if not isinstance(value, list | tuple):
        return value  # pydantic says what it should be
    every = [inner[0]] * len(value) if inner[-1] is Ellipsis else inner
    if len(every) != len(value):
        raise wrong_value(spec, value, "type", where)
    return tuple(
        _structured(one, kind, spec, where, f"{key.partition('#')[0]}#{number}")
        for number, (one, kind) in enumerate(zip(value, every, strict=True), 1)
    )


def _part(value: Any, spec: Spec, where: Where, key: str) -> Any:
    registry = spec.setting.parts
    assert registry is not None
    if isinstance(value, str | Mapping):
        said = spec.setting
        return part_of(
            registry(),
            value,
            _within(where, key),
            said.kind,
            named_by=said.named_by,
            otherwise=said.otherwise,
        )
    if not _is_part(value, spec.setting.kind):
        raise wrong_value(spec, value, "type", where, entry="#" in key)
    # A class stands for what its name stands for: one with every default.
    return read(value, {}, _within(where, key)) if isinstance(value, type) else value


def _is_part(value: Any, kind: PartKind) -> bool:
    """Whether it is one, or the class of one. One made elsewhere need not be registered: name and verb make it one."""
    verb = {"method": "anonymize", "guarantee": "check", "operation": "apply"}.get(kind, "__class__")
    named_so = isinstance(getattr(value, "name", None), str) and callable(getattr(value, verb, None))
    return named_so and (is_settings(value) or not isinstance(value, type))


def _plain(value: Any, base: Hint, spec: Spec, where: Where, *, entry: bool = False) -> Any:
    """numpy's numbers as Python's, texts as paths or fractions; a number no file can hold is refused here."""
    if isinstance(value, bool) or (type(value) is str and base is str):
        return value
    if type(value) is int or isinstance(value, Integral):
        value = operator.index(value)
        if abs(value) > LARGEST:
            raise wrong_value(spec, value, "large", where, entry=entry)
    elif isinstance(value, Real) and not isinstance(value, float | Fraction):
        value = float(value)
    elif isinstance(value, list):
        return tuple(value)
    if base is Fraction and isinstance(value, int | float | str):
        try:
            return fraction_of(value)
        except (ValueError, ZeroDivisionError):
            return value
    if isinstance(base, type) and issubclass(base, PurePath) and isinstance(value, str):
        return Path(value)
    return value


def part_of(
    registry: Registry,
    entry: object,
    where: Where | str,
    kind: PartKind = "part",
    *,
    named_by: str = "name",
    otherwise: str = "",
) -> Any:
    """The registered part of an entry: its name, or a table with the name (under *named_by*) and settings.

    Without a name it is the one called *otherwise*, if that is given. A setting that another part has is refused with its name.

    >>> from typing import ClassVar
    >>> from velado.settings import Setting, settings
    >>> @settings
    ... class Cuts:
    ...     name: ClassVar[str] = "cuts"
    ...     depth: Annotated[int, Setting("cuts at most", ge=1)] = 3
    >>> part_of([Cuts], {"name": "cuts", "depth": 2}, "[method]")
    Cuts(depth=2)
    >>> part_of([Cuts], "cut", "[method]", "method")
    Traceback (most recent call last):
    velado.errors.ParameterError: There is no method 'cut'. It is one of cuts. Did you mean 'cuts'?
    """
    place = Where("file", where) if isinstance(where, str) else where
    table = {named_by: entry} if isinstance(entry, str) else entry
    forgotten = isinstance(table, Mapping) and named_by not in table and bool(otherwise)
    if isinstance(table, Mapping) and forgotten:
        table = {named_by: otherwise, **table}
    if not isinstance(table, Mapping) or not isinstance(table.get(named_by), str):
        raise place.refused(
            say("{place} has no name.", place=place.here),
            say("Which one is meant cannot be known."),
            say('Write "NAME", or { name = "NAME", ... }.')
            if named_by == "name"
            else say('Write {key} = "NAME".', key=named_by),
        )
    registry = tuple(registry)
    chosen = named(registry, table[named_by], kind)
    given = {key: value for key, value in table.items() if key != named_by}
    _refuse_others(registry, chosen, given, place, "" if not forgotten else named_by)
    return read(chosen, given, place)


def _refuse_others(
    registry: Registry, chosen: type[Any], given: Mapping[str, object], where: Where, forgotten: str
) -> None:
    """An error for a setting that is not of the chosen part but of another one; *forgotten* is the key that should name the part."""
    for key in given:
        if not is_settings(chosen) or key in {one.key for one in specs(chosen).values()}:
            continue
        owners = [
            one.name for one in registry if is_settings(one) and key in {it.key for it in specs(one).values()}
        ]
        if not owners:
            continue
        field, names = where.of(key), ", ".join(owners)
        if forgotten:
            raise where.refused(
                say(
                    "{field} is a setting of {names}, and no '{key}' is named.",
                    field=field,
                    names=names,
                    key=forgotten,
                ),
                say("Without one it is {name}, which has no such setting.", name=shown(chosen.name)),
                say('Add for example {key} = "{name}".', key=forgotten, name=owners[0]),
            )
        raise where.refused(
            say(
                "{field} is no setting of {name}, but of {names}.",
                field=field,
                name=shown(chosen.name),
                names=names,
            ),
            "It would be passed over.",
            say("Leave it out, or choose the one it is of."),
        )


def named(registry: Iterable[type[T]], name: str, kind: PartKind = "part") -> type[T]:
    """The registered class of that name, or an error that suggests the nearest.

    >>> named([], "mondrain", "method")
    Traceback (most recent call last):
    velado.errors.ParameterError: There is no method 'mondrain'. None is registered. Register one first.
    """
    known = {str(getattr(one, "name", one.__name__)): one for one in registry}
    if name in known:
        return known[name]
    what = _no_such(kind, shown(name))
    if not known:
        raise ParameterError(what, "None is registered.", "Register one first.")
    raise ParameterError(
        what,
        say("It is one of {names}.", names=", ".join(known)),
        nearest(name, known) or say("Choose one of them."),
    )


def _no_such(kind: PartKind, name: str) -> Sentence:
    """A whole sentence for each kind, since a word put into one would stay English in the others."""
    return {
        "method": say("There is no method {name}.", name=name),
        "guarantee": say("There is no guarantee {name}.", name=name),
        "operation": say("There is no operation {name}.", name=name),
        "recoder": say("There is no recoder {name}.", name=name),
        "model": say("There is no model {name}.", name=name),
        "protocol": say("There is no protocol {name}.", name=name),
        "approach": say("There is no approach {name}.", name=name),
        "preset": say("There is no preset {name}.", name=name),
        "source": say("There is no kind of source {name}.", name=name),
        "sink": say("There is no kind of sink {name}.", name=name),
        "part": say("There is no part {name}.", name=name),
    }[kind]
