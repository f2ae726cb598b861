"""Brings src/velado/text/locale/pt_BR.po up to date with the sentences of the package, or checks that it is.

`python docs/make_catalogue.py` drops what the package no longer says and sorts the rest; `--missing` prints
what waits for a translation as a PO file, and `--take FILE` puts such a file, filled in, into the catalogue.
`--check` fails on sentences that are missing, stale, fuzzy, or whose translation names other parts. The
catalogue holds no empty entries. Needs Babel, which the package itself does not.

Sentences are the literal templates of `say` and `say_n` (in Python and in page templates), the literal
sentences of errors and of `refused`, and the help of settings and commands: `Setting("…")`, `help=`,
`description=`, `"help":`, and the docstrings of commands and of a service's routes.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import io
import string
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po, write_po
from jinja2.ext import babel_extract

from velado.text.languages import PLACES, read

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "velado"
PLACE = PACKAGE / PLACES["pt"].relative_to(PLACES["pt"].parents[2])
HEADER = (
    'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=utf-8\\n"\n"Language: pt_BR\\n"\n'
    '"Plural-Forms: nplurals=2; plural=(n > 1);\\n"\n\n'
)

# A sentence is its template, or the two templates of a count.
Key = str | tuple[str, str]

_THREE = ("what", "why", "fix")
_HELP = frozenset({"help", "description", "short_help", "epilog"})


def sentences(package: Path = PACKAGE) -> set[Key]:
    """Every sentence that the package can say."""
    trees = [ast.parse(path.read_text("utf-8")) for path in sorted(package.rglob("*.py"))]
    errors = error_names(trees)
    found = {key for tree in trees for key in in_module(tree, errors)}
    for page in sorted(package.rglob("*.html")):
        found |= set(in_page(page.read_bytes()))
    return {key for key in found if any(letter.isalpha() for letter in "".join(key))}


def error_names(trees: Sequence[ast.Module]) -> set[str]:
    """The names of the classes that descend from VeladoError, wherever they are written."""
    bases = {
        node.name: {_tail(base) for base in node.bases}
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    names = {"VeladoError"}
    while more := {name for name, above in bases.items() if above & names} - names:
        names |= more
    return names


def in_module(tree: ast.Module, errors: set[str]) -> Iterator[Key]:
    """The sentences of one module; `say` counts under the name that the module gives velado.text's."""
    ours: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("velado.text"):
            ours |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ClassDef) and node.name == "Sentence":
            ours |= {name: name for name in ("say", "say_n")}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = _tail(node.func)
            if ours.get(name) == "say":
                yield from _texts(node.args[:1])
            elif ours.get(name) == "say_n":
                one, many = (list(_texts([part])) for part in node.args[:2])
                yield from zip(one, many, strict=True)
            elif name in errors or name == "refused":
                yield from _texts(
                    [*node.args[:3], *(word.value for word in node.keywords if word.arg in _THREE)]
                )
            elif name == "Setting":
                said = [word.value for word in node.keywords if word.arg in ("help", "takes", "why")]
                yield from _texts([*node.args[:1], *said])
            else:
                yield from _texts([word.value for word in node.keywords if word.arg in _HELP])
        elif isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            yield from _texts(
                [text for key, text in pairs if isinstance(key, ast.Constant) and key.value == "help"]
            )
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and any(
            _tail(mark) == "command" or _is_route(mark) for mark in node.decorator_list
        ):
            # Typer and the page /docs show the docstring as inspect cleans it.
            yield from [inspect.cleandoc(ast.get_docstring(node, clean=False) or "")]


def in_page(source: bytes) -> Iterator[Key]:
    """The sentences that a page template says."""
    for _, name, texts, _ in babel_extract(io.BytesIO(source), ("say", "say_n"), [], {"silent": "false"}):
        said = texts if isinstance(texts, tuple) else (texts,)
        if name == "say" and isinstance(said[0], str):
            yield said[0]
        elif name == "say_n" and isinstance(said[0], str) and isinstance(said[1], str):
            yield said[0], said[1]


def _texts(nodes: Sequence[ast.expr]) -> Iterator[str]:
    """The literal texts among expressions, and in both branches of conditional ones."""
    for node in nodes:
        if isinstance(node, ast.IfExp):
            yield from _texts([node.body, node.orelse])
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _is_route(mark: ast.expr) -> bool:
    """Whether a decorator makes a function a route that the page /docs tells of."""
    return isinstance(mark, ast.Call) and ast.unparse(mark.func) in ("router.get", "router.post")


def _tail(node: ast.expr) -> str:
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


@dataclass(frozen=True)
class Faults:
    """What is wrong with a catalogue; each a list of English sentences."""

    missing: list[str]
    stale: list[str]
    fuzzy: list[str]
    mismatched: list[str]
    unread: list[str]


def faults(text: str, wanted: set[Key]) -> Faults:
    """What is wrong with the *text* of a catalogue that should hold the sentences *wanted*."""
    held = read_po(io.BytesIO(text.encode("utf-8")), locale="pt_BR")
    entries = {entry.id: entry for entry in held if entry.id}
    ours = read(text)
    missing, mismatched, unread = [], [], []
    for key in wanted:
        entry = entries.get(key)
        told = entry.string if entry else ""
        forms = told if isinstance(told, tuple) else (told,)
        if not all(forms):
            missing.append(_first(key))
            continue
        if any(parts(form) != _parts_of(key) for form in forms):
            mismatched.append(_first(key))
        # The package reads the file with a reader of its own: it must find what Babel finds.
        if (ours.single.get(key) if isinstance(key, str) else ours.plural.get(key[0])) != told:
            unread.append(_first(key))
    stale = [_first(key) for key in entries if key not in wanted]
    fuzzy = [_first(key) for key, entry in entries.items() if entry.fuzzy]
    return Faults(*(sorted(list_) for list_ in (missing, stale, fuzzy, mismatched, unread)))


def parts(template: str) -> set[str]:
    """The names of a template's parts, each with its format; a text with other braces is no template."""
    try:
        pieces = list(string.Formatter().parse(template))
    except ValueError:
        return set()
    return {f"{name}!{how}:{spec}" for _, name, spec, how in pieces if (name or "").isidentifier()}


def _parts_of(key: Key) -> set[str]:
    return parts(key) if isinstance(key, str) else parts(key[0]) | parts(key[1])


def _first(key: Key) -> str:
    return key if isinstance(key, str) else key[0]


def translations(text: str) -> dict[Key, Key]:
    """The entries of a PO file that have a translation and are not fuzzy."""
    held = read_po(io.BytesIO(text.encode("utf-8")), locale="pt_BR")
    return {
        entry.id: entry.string
        for entry in held
        if entry.id
        and not entry.fuzzy
        and all((entry.string,) if isinstance(entry.id, str) else entry.string)
    }


def as_file(entries: Mapping[Key, Key]) -> str:
    """A PO file of *entries*, sorted, a line for each text and no dates: two people's changes seldom meet."""
    made = Catalog(locale="pt_BR")
    for key, told in entries.items():
        made.add(key, told)
    for entry in made:
        # Which messages are templates follows from their parts; Babel's guess differs between its versions.
        entry.flags.clear()
    out = io.BytesIO()
    write_po(out, made, width=0, no_location=True, omit_header=True, sort_output=True)
    return HEADER + out.getvalue().decode("utf-8").strip() + "\n"


def main(arguments: Sequence[str]) -> int:
    """Update, check, or list what is missing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="change nothing; fail where the catalogue is wrong"
    )
    parser.add_argument(
        "--missing", action="store_true", help="change nothing; print what waits for a translation"
    )
    parser.add_argument(
        "--take", type=Path, metavar="FILE", help="a PO file whose translations are taken over"
    )
    asked = parser.parse_args(arguments)
    wanted = sentences()
    text = PLACE.read_text("utf-8")
    if asked.missing:
        known = translations(text)
        waiting: dict[Key, Key] = {
            key: "" if isinstance(key, str) else ("", "") for key in wanted - known.keys()
        }
        sys.stdout.write(as_file(waiting))
        return 0
    if not asked.check:
        entries = translations(text) | (translations(asked.take.read_text("utf-8")) if asked.take else {})
        text = as_file({key: told for key, told in entries.items() if key in wanted})
        PLACE.write_text(text, "utf-8")
    wrong = faults(text, wanted)
    for kind, texts in vars(wrong).items():
        sys.stdout.write(f"{kind}: {len(texts)}\n")
        if asked.check:
            sys.stdout.writelines(f"  {one!r}\n" for one in texts[:10])
    return int(asked.check and any(vars(wrong).values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
