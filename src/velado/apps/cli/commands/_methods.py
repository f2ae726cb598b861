"""`velado methods`: what can be run, what it promises, what it costs, and its parameters."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from velado.apps.cli import show
from velado.apps.cli.options import AsJson, Debug, Lang, language
from velado.apps.cli.words import say
from velado.settings import Flag, flags


def methods(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", show_default=False)] = None,
    as_json: AsJson = False,
    lang: Lang = None,
    debug: Debug = False,
) -> None:
    """List the methods, or the parameters of one."""
    from velado.release.methods import METHODS, method_named

    tongue = language(lang)
    if name is None:
        listed = [describe(method) for method in METHODS]
        if as_json:
            show.as_json({"methods": listed})
            return
        show.table(
            say(tongue, "methods_title"),
            [say(tongue, key) for key in ("name", "promise", "cost", "source")],
            [[m["name"], say(tongue, m["promise"]), m["cost"], m["source"]] for m in listed],
        )
        show.line(say(tongue, "methods_hint"))
        return
    method = describe(method_named(name))
    if as_json:
        show.as_json(method)
        return
    show.line(f"{method['name']}: {method['title']}")
    for key in ("promise", "cost", "source"):
        value = say(tongue, method[key]) if key == "promise" else method[key]
        show.line(f"{say(tongue, key)}: {value}")
    show.table(
        "",
        [say(tongue, key) for key in ("flag", "takes", "default", "meaning")],
        [[flag.flag, flag.takes, shown(flag.default), flag.help] for flag in flags(method_named(name))],
    )


def describe(method: type[Any]) -> dict[str, Any]:
    """A method as plain values: what it is, what it promises and costs, and its parameters."""
    return {
        "name": method.name,
        "title": method.title,
        "promise": method.promise,
        "cost": method.cost,
        "source": method.source,
        "parameters": [_parameter(flag) for flag in flags(method)],
    }


def _parameter(flag: Flag) -> dict[str, Any]:
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


def shown(default: Any) -> str:
    """A default as help shows it."""
    if isinstance(default, bool):
        return "yes" if default else "no"
    return "none" if default is None else str(default)
