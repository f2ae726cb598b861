"""Writes docs/reference/methods.md, python.md, study.md, stream.md and protocols.md from the code, so that they cannot drift.

`python docs/make_reference.py` writes them; `tests/test_docs.py` fails when they are out of date.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from dataclasses import MISSING, Field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import velado
import velado.sklearn
from velado.learning.flower.federation import Federation
from velado.measures.models.model_registry import MODELS
from velado.papers.regression.paper_masked import WITH_PAPER
from velado.release.guarantees import GUARANTEES
from velado.release.methods import METHODS
from velado.release.operations import OPERATIONS
from velado.release.recoders import RECODERS
from velado.release.stream.connectors.kinds import SINKS, SOURCES
from velado.release.stream.stream_settings import StreamSettings
from velado.settings import Row, reference
from velado.study.evaluate.protocols import PROTOCOLS
from velado.study.evaluate.study_settings import (
    FEDERATION,
    AnonymizationAxes,
    FederatedAxes,
    StudyAnalyses,
    StudyData,
    StudyMetrics,
    StudyModels,
)

FOLDER = Path(__file__).parent / "reference"


def first_line(thing: Any) -> str:
    """The first sentence of a docstring, on one line."""
    text = inspect.getdoc(thing) or ""
    return " ".join(text.split("\n\n")[0].split())


def parameters(kind: Any) -> list[str]:
    """A table of the settings of a class: name, default, limits, help."""
    rows = [f"| `{row.name}` | {row.default} | {row.limits} | {row.help} |" for row in reference(kind)]
    return ["| parameter | default | takes | meaning |", "|---|---|---|---|", *rows, ""] if rows else []


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
        "Listed in a recipe as `[[operations]]` with `name` and `column`, or flags of `velado transform`.",
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
    lines += [_python_row(name, public(name)) for name in velado.__all__]
    lines += [
        "",
        "`velado.sklearn` (extra `ml`) is imported by its own name: `from velado.sklearn import Anonymizer`"
        " ([how](../how-to/anonymize-in-a-pipeline.md)).",
        "",
        "| name | what it is |",
        "|---|---|",
        *(_python_row(name, getattr(velado.sklearn, name)) for name in velado.sklearn.__all__),
        "",
        "A release in other people's frames ([how](../how-to/data-frames-and-parquet.md)):",
        "",
        "| method | what it gives |",
        "|---|---|",
        *(_python_row(f"Release.{name}", getattr(velado.Release, name)) for name in FRAMES_OF_A_RELEASE),
    ]
    return "\n".join(lines) + "\n"


FRAMES_OF_A_RELEASE = ("to_native", "to_pandas", "to_polars", "to_arrow")


def _python_row(name: str, thing: Any) -> str:
    signature = ""
    if inspect.isfunction(thing):
        names = ", ".join(one for one in inspect.signature(thing).parameters if one != "self")
        signature = f"({names})"
    text = first_line(thing) if inspect.isclass(thing) or inspect.isfunction(thing) else CONSTANTS[name]
    return f"| `{name}{signature}` | {text.replace('|', chr(92) + '|')} |"


def public(name: str) -> Any:
    """The thing behind a public name; for a room that is also a verb, the verb."""
    return getattr(import_module(velado._HOME[name]), name) if name in velado._HOME else getattr(velado, name)


def study_page() -> str:
    """The page of study files: every key of every section, the models, the protocols."""
    lines = [
        "# The study file",
        "",
        "Made from the code by `docs/make_reference.py`. A study is one TOML file; `velado evaluate` runs it"
        " ([tutorial](../tutorial/choose-k.md)). A key or name that is misspelt is answered with the nearest right one.",
        "",
    ]
    titles = {
        StudyData: "what models learn from",
        AnonymizationAxes: "the grid of releases",
        StudyModels: "who learns, and how texts become numbers",
        StudyMetrics: "what is measured",
        StudyAnalyses: "how it is tested, and what may be recommended",
    }
    for section, title in titles.items():
        rows = reference(section)
        lines += [f"## `[{rows[0].section}]`: {title}", "", *settings_table(rows)]
    lines += [
        "## `[federated]`: trained across clients",
        "",
        "Optional, with the extra `velado[federated]`. Rows are dealt out to clients, who anonymize their own and train"
        " together; what is left out is taken from the other sections.",
        "",
    ]
    axes = [
        replace(row, default="from [anonymization]") if row.default == "[]" else row
        for row in reference(FederatedAxes)
        if row.section == "federated"
    ]
    rest = [
        replace(row, default="that of [analyses]") if row.name == "test_share" else row
        for row in reference(Federation)
        if row.name in FEDERATION
    ]
    lines += settings_table([*axes, *rest])
    lines += ["## Models", ""]
    for model in MODELS:
        lines += [f"### `{model.name}`", "", first_line(model), "", *settings_table(reference(model))]
    lines += ["## Protocols", "", "| name | what it does |", "|---|---|"]
    lines += [f"| `{one.name}` | {one.source} |" for one in PROTOCOLS]
    return "\n".join(lines).rstrip() + "\n"


def stream_page() -> str:
    """The page of stream files: every key of every section."""
    lines = [
        "# The stream file",
        "",
        "Made from the code by `docs/make_reference.py`. A stream is one TOML file; `velado stream` runs it"
        " ([how](../how-to/stream-from-devices.md)). `kind` in `[source]` and `[sink]` says which of the tables below holds; a"
        " setting of another kind is refused. A broker of `[sink]` has an address, a user, a password file and a CA of its own; where no"
        " address is given and `[source]` is of that kind, they are those of `[source]`.",
        "",
    ]
    rows = [row for row in reference(StreamSettings) if row.name not in ("source", "sink")]
    for section in dict.fromkeys(row.section for row in rows):
        title = f"## `[{section}]`" if section else "## At the top"
        lines += [title, "", *settings_table([row for row in rows if row.section == section])]
    for section, kinds, usual in (("source", SOURCES, "stdin"), ("sink", SINKS, "folder")):
        for kind in kinds:
            usually = " (where no `kind` is named)" if kind.name == usual else ""
            lines += [f'## `[{section}]` with `kind = "{kind.name}"`{usually}', "", first_line(kind), ""]
            lines += settings_table(reference(kind))
    return "\n".join(lines).rstrip() + "\n"


def settings_table(rows: Sequence[Row]) -> list[str]:
    """Settings as a table: key, default, what it takes, meaning."""
    if not rows:
        return []
    lines = ["| key | default | takes | meaning |", "|---|---|---|---|"]
    for row in rows:
        words = re.sub(
            r"(?<=of )([\w-]+, )+[\w-]+", lambda found: found[0].replace(", ", "`, `").join("``"), row.limits
        )
        lines.append(f"| `{row.name}` | {row.default} | {words} | {row.help} |")
    return [*lines, ""]


CONSTANTS = {
    "GUARANTEES": "Every registered guarantee.",
    "METHODS": "Every registered method.",
    "OPERATIONS": "Every registered column operation.",
    "__version__": "The version of velado.",
}


def protocols_page() -> str:
    """Which message may follow which, for every protocol of a regression: the table that roles check, and drawn."""
    lines = [
        "# Protocols",
        "",
        "Who may say what to whom, and when. Every role holds this table and refuses a message that no line allows",
        "in the state it shares with its sender; a job may end with `abort` from anyone, in any state. Between two clients each",
        "direction is a talk of its own. What each protocol hides from whom is told in",
        "[Regression over rows nobody hands out](../explanation/encrypted-regression.md).",
        "",
    ]
    for protocol in WITH_PAPER.values():
        lines += [f"## `{protocol.name}`", ""]
        lines += ["| in state | says | message | to | fields | then |", "|---|---|---|---|---|---|"]
        for step in protocol.steps:
            said = ", ".join(f"`{name}`" for name in step.fields)
            lines.append(
                f"| {step.state} | {step.sender} | `{step.kind}` | {step.receiver} | {said} | {step.next} |"
            )
        for ends in dict.fromkeys(tuple(sorted((step.sender, step.receiver))) for step in protocol.steps):
            lines += [
                "",
                f"Between {ends[0]} and {ends[1]}:",
                "",
                "```mermaid",
                "stateDiagram-v2",
                "    [*] --> start",
            ]
            for step in protocol.steps:
                if tuple(sorted((step.sender, step.receiver))) == ends:
                    lines.append(f"    {step.state} --> {step.next}: {step.sender} says {step.kind}")
            lines.append("```")
        lines.append("")
    return "\n".join(lines)


PAGES = {
    "methods.md": methods_page,
    "python.md": python_page,
    "study.md": study_page,
    "stream.md": stream_page,
    "protocols.md": protocols_page,
}

if __name__ == "__main__":
    for page, make in PAGES.items():
        (FOLDER / page).write_text(make(), encoding="utf-8")
