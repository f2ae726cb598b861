"""Writes docs/reference/methods.md and docs/reference/python.md from the code, so that they cannot drift.

`python docs/make_reference.py` writes them; `tests/test_docs.py` fails when they are out of date.
"""

from __future__ import annotations

import inspect
from dataclasses import MISSING, Field, fields
from importlib import import_module
from pathlib import Path
from typing import Any

import velado
from velado.anonymize.guarantees import GUARANTEES
from velado.anonymize.methods import METHODS
from velado.anonymize.operations import OPERATIONS
from velado.anonymize.recoders import RECODERS

FOLDER = Path(__file__).parent / "reference"


def first_line(thing: Any) -> str:
    """The first sentence of a docstring, on one line."""
    text = inspect.getdoc(thing) or ""
    return " ".join(text.split("\n\n")[0].split())


def parameters(kind: Any) -> list[str]:
    """A table of a dataclass's fields: flag, type, default, limits, help."""
    if not fields(kind):
        return []
    lines = ["| parameter | default | limits | meaning |", "|---|---|---|---|"]
    for field in fields(kind):
        lines.append(
            f"| `{field.name}` | {_default(field)} | {_limits(field)} | {field.metadata.get('help', '')} |"
        )
    return [*lines, ""]


def _default(field: Field[Any]) -> str:
    if field.default is MISSING:
        return "required"
    return "automatic" if field.default is None else f"`{field.default}`"


def _limits(field: Field[Any]) -> str:
    meta = field.metadata
    if meta.get("choices"):
        return ", ".join(f"`{choice}`" for choice in meta["choices"])
    parts = [f"from {meta['min']}" if "min" in meta else "", f"to {meta['max']}" if "max" in meta else ""]
    return " ".join(part for part in parts if part)


def methods_page() -> str:
    """The page of methods, guarantees, recoders and operations."""
    lines = [
        "# Methods, guarantees, recoders, operations",
        "",
        "Made from the code by `docs/make_reference.py`. Each parameter of a method is a flag of `velado anonymize`"
        " (`--cut relaxed`), a key of the recipe and an argument in Python.",
        "",
        "## Methods",
        "",
        "| method | promise | cost | source |",
        "|---|---|---|---|",
    ]
    for method in METHODS:
        page = f"[{method.title}](../explanation/{method.name}.md)"
        lines.append(f"| `{method.name}`: {page} | {method.promise} | {method.cost} | {method.source} |")
    lines.append("")
    for method in METHODS:
        lines += [f"### `{method.name}`", "", first_line(method), "", *parameters(method)]
    lines += ["## Guarantees", ""]
    for guarantee in GUARANTEES:
        lines += [f"### {guarantee.name}", "", first_line(guarantee), "", *parameters(guarantee)]
    lines += ["## Recoders", "", "| recoder | what it publishes | states its cover |", "|---|---|---|"]
    for recoder in RECODERS:
        lines.append(
            f"| `{recoder.name}` | {first_line(recoder)} | {'yes' if recoder.states_cover else 'no: a substitution'} |"
        )
    lines += [
        "",
        "## Column operations",
        "",
        "Listed in a recipe as `[[operations]]` with `name` and `column`.",
        "",
    ]
    for operation in OPERATIONS:
        lines += [f"### `{operation.name}`", "", first_line(operation), "", *parameters(operation)]
    return "\n".join(lines).rstrip() + "\n"


def python_page() -> str:
    """The page of public names."""
    lines = [
        "# Python names",
        "",
        "Made from the code by `docs/make_reference.py`. `import velado`, then `velado.NAME`.",
        "",
        "| name | what it is |",
        "|---|---|",
    ]
    for name in velado.__all__:
        thing = public(name)
        signature = ""
        if inspect.isfunction(thing):
            names = ", ".join(inspect.signature(thing).parameters)
            signature = f"({names})"
        text = first_line(thing) if inspect.isclass(thing) or inspect.isfunction(thing) else CONSTANTS[name]
        lines.append(f"| `{name}{signature}` | {text.replace('|', chr(92) + '|')} |")
    return "\n".join(lines) + "\n"


def public(name: str) -> Any:
    """The thing behind a public name; for a room that is also a verb, the verb."""
    return getattr(import_module(velado._HOME[name]), name) if name in velado._HOME else getattr(velado, name)


CONSTANTS = {
    "GUARANTEES": "Every registered guarantee.",
    "METHODS": "Every registered method.",
    "OPERATIONS": "Every registered column operation.",
    "__version__": "The version of velado.",
}

PAGES = {"methods.md": methods_page, "python.md": python_page}

if __name__ == "__main__":
    for page, make in PAGES.items():
        (FOLDER / page).write_text(make(), encoding="utf-8")
