"""`velado methods`: what can be run, what it promises, what it costs, and its parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from velado.apps.cli import show
from velado.apps.cli.app import argument, command
from velado.settings import Flag, flags
from velado.text import join, say

if TYPE_CHECKING:
    from velado.report.blocks import Table


@command("methods")
def methods(
    name: Annotated[str | None, argument("[NAME]", help="Show this method's parameters.")] = None,
) -> None:
    """List the methods, or the parameters of one."""
    from velado.release.methods import METHODS, method_named

    if name is None:
        show.result({"methods": [describe(method) for method in METHODS]}, _list(METHODS))
    else:
        method = method_named(name)
        show.result(describe(method), _one(method))


def describe(method: type[Any]) -> dict[str, object]:
    """A method as plain values: what it is, what it promises and costs, and its parameters."""
    return {
        "name": method.name,
        "title": method.title,
        "promise": method.promise,
        "cost": method.cost,
        "source": method.source,
        "parameters": [_parameter(flag) for flag in flags(method)],
    }


def _parameter(flag: Flag) -> dict[str, object]:
    return {
        "flag": flag.flag,
        "field": flag.field,
        "type": flag.kind.__name__,
        "default": flag.default,
        "min": flag.least,
        "max": flag.most,
        "choices": list(flag.choices),
        "optional": flag.optional,
        "help": flag.help,
    }


def default_shown(default: object) -> str:
    """A default as help shows it.

    >>> default_shown(True), default_shown(None), default_shown(5)
    ('yes', 'none', '5')
    """
    if isinstance(default, bool):
        return say("yes") if default else say("no")
    return say("none") if default is None else str(default)


def _list(known: tuple[type[Any], ...]) -> Iterator[str | Table]:
    from velado.report.phrases import phrase

    yield show.table(
        say("Methods"),
        [say("name"), say("promise"), say("cost"), say("source")],
        [[one.name, phrase(one.promise), one.cost, one.source] for one in known],
    )
    yield say("Parameters of one method: velado methods NAME")


def _one(method: type[Any]) -> Iterator[str | Table]:
    from velado.report.phrases import phrase

    yield join((method.name, method.title), ": ")
    yield say("promise: {promise}", promise=phrase(method.promise))
    if method.promise == "measured":
        yield say(
            "With -k or another promise asked for, the release is checked against it: then guaranteed, or refused."
        )
    yield say("cost: {cost}", cost=method.cost)
    yield say("source: {source}", source=method.source)
    yield show.table(
        "",
        [say("flag"), say("takes"), say("default"), say("meaning")],
        [[one.flag, one.takes, default_shown(one.default), say(one.help)] for one in flags(method)],
    )
