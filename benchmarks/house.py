"""Is every idea in one place? Lines, modules, names with two meanings, doubles, untyped documents, missing examples.

The counts are read from the syntax tree of `src/velado`. What a run enters is counted in a process of its own, under
`sys.setprofile`: modules and functions of velado of which a line was run after the imports, public functions for the
bar (names without an underscore), all of them in the note. `make house` prints the bars; with VELADO_LIST=1 also what
is behind each count.
"""

from __future__ import annotations

import ast
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from benchmarks.timing import Row, print_rows

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "velado"
SAME_LINES = 6
POSITIONAL = 8
TARGET = "desfecho"

# What is run and traced; each prints what it entered as JSON. The hospital table comes with the package.
ENTERED = """
import json, sys
from pathlib import Path
entered, root = set(), {root!r}
def seen(frame, event, arg):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(root) and code.co_filename.endswith(".py"):
        # Bodies of classes and modules run when they are imported; only functions have fast locals.
        if code.co_flags & 1 and not code.co_name.startswith("<"):
            entered.add((code.co_filename[len(root) + 1 :], code.co_qualname))
sample, out = Path(root) / "data" / "samples", Path({out!r})
{body}
print(json.dumps(sorted(entered)))
"""
ANONYMIZE = """
from velado.apps.cli import run
sys.setprofile(seen)
failed = run(["anonymize", str(sample / "hospital.csv"), "-s", str(sample / "hospital.schema.toml"), "-m", "mondrian",
              "-o", str(out / "release"), "--quiet"])
sys.setprofile(None)
if failed:  # a run that ends early enters little
    sys.exit(failed)
"""
CELL = """
import shutil
shutil.copytree(sample, out / "study")
(out / "study" / "study.toml").write_text('''
[data]
table = "hospital.csv"
schema = "hospital.schema.toml"
target = "{target}"
[anonymization]
methods = ["mondrian"]
k = [5]
seeds = [0]
[models]
use = ["decision-tree"]
''', "utf-8")
from velado.study.evaluate.load import load
from velado.study.evaluate._study_grid import plan
from velado.study.evaluate._work import carry_out
material = load(out / "study" / "study.toml")
job = next(one for one in plan(material) if one.label == "mondrian")
sys.setprofile(seen)
list(carry_out(job, material))
sys.setprofile(None)
"""


@dataclass(frozen=True)
class Module:
    """One module of the package: its dotted name, text and tree."""

    path: Path
    name: str
    text: str

    @property
    def is_package(self) -> bool:
        """Whether it is an `__init__`."""
        return self.path.name == "__init__.py"

    @property
    def folder(self) -> str:
        """The dotted name of the room it lies in."""
        return self.name if self.is_package else self.name.rpartition(".")[0]

    @property
    def is_private(self) -> bool:
        """Whether it, or a room it lies in, begins with an underscore."""
        return any(part.startswith("_") for part in self.name.split("."))

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax."""
        return ast.parse(self.text)

    def public(self) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
        """The classes and functions that a reader may use."""
        for node in self.tree.body:
            kinds = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
            if isinstance(node, kinds) and not node.name.startswith("_"):
                yield node


def modules(package: Path = PACKAGE) -> dict[str, Module]:
    """Every module by its dotted name."""
    out = {}
    for path in sorted(package.rglob("*.py")):
        parts = [package.name, *path.relative_to(package).with_suffix("").parts]
        name = ".".join(parts).removesuffix(".__init__")
        out[name] = Module(path, name, path.read_text("utf-8"))
    return out


def two_meanings(house: dict[str, Module]) -> tuple[list[str], list[str]]:
    """Names of modules, and of public classes, that stand for several things."""
    bases, classes = defaultdict(set), defaultdict(set)
    for module in house.values():
        if not module.is_package:
            bases[module.name.rpartition(".")[2]].add(module.name)
        for node in module.public():
            if isinstance(node, ast.ClassDef):
                classes[node.name].add(module.name)
    return [
        sorted(f"{name}: {', '.join(sorted(where))}" for name, where in found.items() if len(where) > 1)
        for found in ({name: where for name, where in bases.items() if name[0] != "_"}, classes)
    ]  # type: ignore[return-value]  # two lists


def of_one_sibling(house: dict[str, Module]) -> list[str]:
    """Modules that nobody imports but one module of the same room: page-break fragments, or members of a registry."""
    importers = defaultdict(set)
    for module in house.values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for one in node.names:
                    whole = f"{node.module}.{one.name}"
                    importers[whole if whole in house else node.module].add(module.name)
            elif isinstance(node, ast.Import):
                for one in node.names:
                    importers[one.name].add(module.name)
    out = []
    for module in house.values():
        found = [house[name] for name in importers[module.name] - {module.name}]
        if module.is_package or len(found) != 1 or found[0].is_package:
            continue  # the list of a package's members is a registry
        if found[0].folder == module.folder:
            out.append(f"{module.name} <- {found[0].name}")
    return out


def long_calls(house: dict[str, Module]) -> list[str]:
    """Calls with eight or more arguments that only their place tells apart; kernels are called that way."""
    return [
        f"{module.name}:{node.lineno}"
        for module in house.values()
        if "kernel" not in module.name
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
        and sum(not isinstance(one, ast.Starred) for one in node.args) >= POSITIONAL
    ]


def untyped(house: dict[str, Module]) -> list[str]:
    """Documents whose keys no type knows."""
    counts = {
        m.name: m.text.count("dict[str, Any]") + m.text.count("Mapping[str, Any]") for m in house.values()
    }
    return [name for name, count in counts.items() for _ in range(count)]


def without_example(house: dict[str, Module]) -> list[str]:
    """Public classes and functions whose docstring shows no example."""
    return [
        f"{module.name}.{node.name}"
        for module in house.values()
        if not module.is_private
        for node in module.public()
        if ">>>" not in ast.unparse(node)
    ]


def doubles(house: dict[str, Module]) -> list[str]:
    """Pairs of places that share six or more lines of code; imports, comments and docstrings do not count."""
    places: dict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    lines: dict[str, list[tuple[int, str]]] = {}
    for module in house.values():
        skipped = _not_code(module.tree)
        lines[module.name] = [
            (at, line.strip())
            for at, line in enumerate(module.text.splitlines(), 1)
            if line.strip() and not line.strip().startswith("#") and at not in skipped
        ]
        own = lines[module.name]
        for start in range(len(own) - SAME_LINES + 1):
            window = tuple(text for _, text in own[start : start + SAME_LINES])
            # Closing brackets alone are no code that could be shared.
            if sum(len(text) > 3 for text in window) >= SAME_LINES - 1:
                places[window].append((module.name, start))
    pairs: dict[tuple[str, str, int], int] = {}
    for found in places.values():
        one, here = found[0]
        for other, there in found[1:]:  # what stands at five places is written four times too often
            if one != other or there - here >= SAME_LINES:
                # Windows that follow one another at the same distance are one pair of places.
                pairs.setdefault((one, other, there - here), lines[one][here][0])
    return [f"{one}:{line} = {other}" for (one, other, _), line in pairs.items()]


def _not_code(tree: ast.Module) -> set[int]:
    """The lines of imports and docstrings."""
    out: set[int] = set()
    for node in ast.walk(tree):
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, ast.Import | ast.ImportFrom) or text:
            out.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return out


def entered(body: str) -> list[tuple[str, str]]:
    """(module, function) of everything that a run enters."""
    with tempfile.TemporaryDirectory() as folder:
        script = ENTERED.format(root=str(PACKAGE), out=folder, body=body.replace("{target}", TARGET))
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(PACKAGE.parent), "XDG_STATE_HOME": folder},
            check=False,
        )
    if done.returncode:
        print(done.stderr[-2000:], file=sys.stderr)
        return []
    return [(module, function) for module, function in json.loads(done.stdout.splitlines()[-1])]


def help_seconds() -> float:
    """The least CPU time of five `velado --help`: on a quiet machine it is the time one waits."""
    command = [sys.executable, "-c", "from velado.apps.cli import run; run(['--help'])"]
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    taken = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, capture_output=True, env=environment, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(taken)


def main() -> None:
    """Print every bar."""
    house = modules()
    own = [module for module in house.values() if not module.name.startswith("velado.papers")]
    same_modules, same_classes = two_meanings(house)
    counted = {
        ("modules", "", 330): list(house),
        ("calls with 8 or more positional arguments", "kernels aside", 0): long_calls(house),
        ("dict[str, Any] and Mapping[str, Any]", "", 90): untyped(house),
        ("modules whose only importer is a sibling", "", 25): of_one_sibling(house),
        ("module names with two meanings", "", 6): same_modules,
        ("class names with two meanings", "", 6): same_classes,
        ("doubles of 6 or more lines", "pairs", 5): doubles(house),
        ("public names without an example", "", 0): without_example(house),
    }
    rows = [Row("lines, without papers", sum(m.text.count("\n") for m in own), "", 48_500)]
    rows += [Row(what, len(found), "", bar, note=note) for (what, note, bar), found in counted.items()]
    for what, body, bars in (
        ("anonymize hospital.csv", ANONYMIZE, (60, 280)),
        ("one study cell", CELL, (70, 400)),
    ):
        found = entered(body)
        if not found:
            rows.append(Row(f"entered by {what}", float("inf"), "", bars[0], note="it failed: see above"))
            continue
        public = [name for _, name in found if not name.rpartition(".")[2].startswith("_")]
        rows.append(Row(f"modules entered by {what}", len({module for module, _ in found}), "", bars[0]))
        rows.append(
            Row(f"functions entered by {what}", len(public), "", bars[1], note=f"public; {len(found)} in all")
        )
    rows.append(Row("velado --help", help_seconds(), "CPU s", 0.25))
    if os.environ.get("VELADO_LIST"):
        for (what, _, _), found in counted.items():
            if what != "modules":
                print(f"{what}:", *found, sep="\n  ")
    print_rows("One house", rows)


if __name__ == "__main__":
    main()
