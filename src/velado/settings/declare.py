"""Setting and `@settings`: a frozen dataclass whose fields say type, default, limits, choices and help, once.

Nothing here imports pydantic: declaring fifty classes costs nothing, and the first one that is made pays for it.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, MISSING, dataclass, fields, is_dataclass
from functools import cached_property
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    TypeAlias,
    TypeGuard,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

T = TypeVar("T")
Hint: TypeAlias = Any
"""What stands after the colon of a field: a type, a union, a Literal, an Annotated."""

origin_of: Callable[[Hint], Any] = get_origin
"""What a type is made from: tuple for tuple[int, ...], Literal, Union, Annotated; None for a plain one."""

Choices = tuple[str, ...] | Callable[[], Iterable[str]]
PartKind = Literal[
    "method",
    "guarantee",
    "operation",
    "recoder",
    "model",
    "protocol",
    "approach",
    "preset",
    "source",
    "sink",
    "part",
]


@dataclass(frozen=True)
class Setting:
    """What a field says of itself, beside its type: `l: Annotated[int, Setting("distinct values", ge=2)] = 2`.

    *ge*, *gt*, *le*, *lt* are its limits, *items* the fewest entries of a list or characters of a text. *choices* are
    known words where a Literal cannot list them. *test* is any other rule, put in words by *takes*. *why* is the
    sentence that a wrong value is answered with beside the limits, *example* what may be written instead.
    *key* is the name in files where it differs from the field's. *parts* gives the registered classes (methods,
    guarantees) one of which the field holds, *kind* is the word for one of them,
    *named_by* the key that names it in a table, *otherwise* the one that is meant where a table names none.
    The value of a *secret* is never shown. Several of them on one field add up, later ones win.

    >>> Share = Annotated[float, Setting(ge=0, le=1)]
    >>> [limit for limit in Setting("rows in each group", ge=2)]
    [Ge(ge=2)]
    """

    help: str = ""
    _: KW_ONLY
    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    items: int = 0
    choices: Choices = ()
    test: Callable[[Any], bool] | None = None
    takes: str = ""
    why: str = ""
    example: str = ""
    key: str = ""
    parts: Callable[[], Iterable[type[Any]]] | None = None
    kind: PartKind = "part"
    named_by: str = "name"
    otherwise: str = ""
    secret: bool = False

    # This name makes pydantic read the limits off us, wherever in a type we stand: Annotated[tuple[Share, ...], ...].
    __is_annotated_types_grouped_metadata__: ClassVar[Literal[True]] = True

    def __iter__(self) -> Iterator[object]:
        """The limits in the words pydantic knows."""
        import annotated_types as known

        for name, limit in (("ge", known.Ge), ("gt", known.Gt), ("le", known.Le), ("lt", known.Lt)):
            if getattr(self, name) is not None:
                yield limit(getattr(self, name))
        if self.items:
            yield known.MinLen(self.items)
        if self.choices:
            yield known.Predicate(lambda value: value in self.words)
        if self.test is not None:
            yield known.Predicate(self.test)

    @property
    def words(self) -> tuple[str, ...]:
        """The choices, asked for now: a registry may be filled after the class was declared."""
        return tuple(self.choices() if callable(self.choices) else self.choices)

    def over(self, other: Setting) -> Setting:
        """This one, completed by *other* where it says nothing."""
        said = {
            one.name: getattr(self, one.name)
            for one in fields(self)
            if getattr(self, one.name) != one.default
        }
        return Setting(**{**vars(other), **said})


NOTHING_SAID = Setting()


@dataclass(frozen=True, eq=False)
class Spec:
    """One field of a settings class, as every door needs it: *hint* keeps its Annotated, *default* may be MISSING.

    >>> from velado.settings import settings
    >>> @settings
    ... class Limits:
    ...     max_rows: Annotated[int, Setting("rows at most")] = 10
    >>> spec = specs(Limits)["max_rows"]
    >>> spec.flag, spec.simple, spec.required, spec.usual()
    ('--max-rows', <class 'int'>, False, 10)
    """

    name: str
    hint: Hint
    setting: Setting
    default: Any
    factory: Any
    positional: bool
    section: str

    @property
    def key(self) -> str:
        """The name in files and forms."""
        return self.setting.key or self.name

    @property
    def flag(self) -> str:
        """The name on the command line."""
        return self.key if self.key.startswith("-") else "--" + self.key.replace("_", "-")

    @cached_property
    def simple(self) -> type | None:
        """The type where it is a plain one, as most are: such a value needs no look at its structure."""
        members, _ = members_of(peeled(self.hint)[0])
        base = peeled(members[0])[0]
        if origin_of(base) is Literal and all(isinstance(word, str) for word in get_args(base)):
            base = str
        plain = len(members) == 1 and base in (int, float, str, bool) and self.setting.parts is None
        return base if plain else None

    @property
    def required(self) -> bool:
        """Whether it must be given."""
        return self.default is MISSING and self.factory is MISSING

    def usual(self) -> Any:
        """The default."""
        return self.default if self.factory is MISSING else self.factory()


def specs(kind: type[Any]) -> Mapping[str, Spec]:
    """The fields of a settings class by name.

    >>> from velado.settings import settings
    >>> @settings
    ... class Rounds:
    ...     most: Annotated[int, Setting("rounds at most", ge=1)] = 10
    >>> specs(Rounds)["most"].flag, specs(Rounds)["most"].setting.ge
    ('--most', 1)
    """
    found: Mapping[str, Spec] | None = vars(kind).get("__specs__")
    if found is not None:
        return found
    hints = get_type_hints(kind, include_extras=True)
    section = str(getattr(kind, "__section__", ""))
    found = {
        one.name: Spec(
            one.name,
            hints[one.name],
            peeled(hints[one.name])[1],
            one.default,
            one.default_factory,
            not one.kw_only,
            section,
        )
        for one in fields(kind)
        if one.init
    }
    setattr(kind, "__specs__", found)  # noqa: B010  (kept with the class, so that each Spec is one object)
    return found


def peeled(hint: Hint) -> tuple[Hint, Setting]:
    """The type without its Annotated, and what they say; for `X | None` what X says too.

    >>> peeled(Annotated[int | None, Setting("rows", ge=2)])[0]
    int | None
    """
    said, base = NOTHING_SAID, hint
    if origin_of(hint) is Annotated:
        base, *notes = get_args(hint)
        for note in notes:
            if isinstance(note, Setting):
                said = note.over(said)
    members, _ = members_of(base)
    if len(members) == 1 and members[0] is not base:
        said = said.over(peeled(members[0])[1])
    return base, said


def members_of(base: Hint) -> tuple[tuple[Hint, ...], bool]:
    """The members of a union but None, and whether None is one of them.

    >>> members_of(int | float | None)
    ((<class 'int'>, <class 'float'>), True)
    """
    if origin_of(base) not in (Union, types.UnionType):
        return (base,), False
    every = get_args(base)
    return tuple(one for one in every if one is not type(None)), type(None) in every


def is_settings(kind: Any) -> TypeGuard[type[Any]]:
    """Whether *kind* is a class made by `@settings`.

    >>> is_settings(Spec), is_settings(3)
    (False, False)
    """
    return isinstance(kind, type) and is_dataclass(kind) and hasattr(kind, "__section__")


@dataclass_transform(frozen_default=True)
def settings(kind: type[T] | None = None, /, *, section: str = "", kw_only: bool = False) -> Any:
    """A frozen dataclass that holds nothing outside its limits: making one checks it, from Python as from a file.

    *section* is the TOML table it usually stands in. What several fields must satisfy together stands in
    `__post_init__`, which is called when each of them is right alone.

    >>> @settings
    ... class Crowd:
    ...     k: Annotated[int, Setting("rows in each group", ge=2)] = 5
    >>> Crowd(7), Crowd()
    (Crowd(k=7), Crowd(k=5))
    >>> Crowd(k=1)
    Traceback (most recent call last):
    velado.errors.ParameterError: 'k' of Crowd cannot be 1. It takes a whole number, at least 2. Give 2 or more.
    """

    def decorate(plain: type[T]) -> type[T]:
        made = dataclass(frozen=True, kw_only=kw_only)(plain)
        signature = inspect.signature(made.__init__)

        def __init__(self: Any, *given: Any, **named: Any) -> None:
            from velado.settings.reading import fill

            fill(self, given, named)

        __init__.__qualname__ = f"{made.__qualname__}.__init__"
        __init__.__signature__ = signature  # type: ignore[attr-defined]
        setattr(made, "__init__", __init__)  # noqa: B010  (mypy forbids the plain assignment to a method)
        setattr(made, "__section__", section)  # noqa: B010
        return made

    return decorate if kind is None else decorate(kind)
