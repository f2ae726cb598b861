"""Rooms import downward only, the world is touched only at the edges, randomness is made in one file.

The rules are read from the syntax tree of every module of the package, so that an import inside a function
or behind `TYPE_CHECKING` counts too. Each rule is shown to catch a small source that breaks it.
"""

import ast
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path, PurePosixPath

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "velado"

# Higher numbers may import lower ones; rooms that share a number may not import one another.
LAYERS = {
    "errors": 0,
    "randomness": 1,
    "compiled": 1,
    "text": 2,
    "settings": 3,
    "data": 4,
    "engines": 5,
    "release": 6,
    "query": 6,
    "measures": 7,
    "learning": 8,
    "report": 9,
    "study": 10,
    "papers": 11,
    "apps": 12,
    "sklearn": 12,
}
TOP = LAYERS["apps"]

# The only places that may touch files or a network; everything else is a function of its arguments.
EDGES = (
    "text/languages.py",  # the Portuguese catalogue, a file of the package
    "settings/toml.py",  # every settings file is read there
    "data/io.py",
    "data/release_folder.py",  # the manifest of a release that is read back
    "data/formats/**",  # Parquet, Arrow, archives; foreign formats in a program of their own
    "data/identifiers/_lexicon.py",  # the words that come with the package
    "data/hierarchies/_bundled.py",  # the lists of hierarchies that come with the package
    "data/keys.py",  # the owner's key, in a folder that only this user can read
    "data/seals.py",  # how far a chain had come, kept apart from it
    "data/history_file.py",  # what earlier releases showed, the owner's alone
    "data/staging.py",  # output folders, private until they are whole
    "data/table_bytes.py",  # tables as bytes of files
    "papers/downloads.py",  # `velado data get`: public data sets, from the network into the data folder
    # Results of a study, cell by cell, so that an interrupted one goes on where it was left.
    "data/cells.py",
    "data/samples/**",
    "learning/net/**",
    "learning/flower/**",
    "engines/**",
    "query/engines/**",
    "query/store/**",
    "release/stream/connectors/**",  # brokers, files, the journal and the state of a stream
    "apps/**",
    "testing/examples.py",  # a release for examples, in a folder that is gone again
    "__main__.py",
)
WORLDLY_MODULES = frozenset(
    {"os", "shutil", "tempfile", "glob", "subprocess", "sqlite3"}
    | {"socket", "ssl", "urllib", "http", "requests", "httpx"}
)
WORLDLY_METHODS = frozenset(
    [
        "open",
        "read_text",
        "read_bytes",
        "write_text",
        "write_bytes",
        "mkdir",
        "rmdir",
        "unlink",
        "touch",
        "iterdir",
    ]
    + [f"{verb}_{kind}" for verb in ("read", "scan", "write", "sink") for kind in ("csv", "parquet", "ipc")]
    + ["loadtxt", "genfromtxt", "savetxt", "fromfile", "tofile", "savez", "memmap"]
)

RANDOM_ROOM = "randomness.py"
GENERATOR_MAKERS = (RANDOM_ROOM, "data/samples/**")
RANDOM_MODULES = frozenset({"random", "secrets"})


def lies_in(module: str, places: tuple[str, ...]) -> bool:
    """Whether a module path is one of the places; `folder/**` means everything below the folder."""
    for place in places:
        if place.endswith("/**"):
            inside = module.startswith(place.removesuffix("**"))
        else:
            # A star stays within one folder, so `data/io_*.py` does not let in `data/io_x/y.py`.
            inside = module.count("/") == place.count("/") and fnmatchcase(module, place)
        if inside:
            return True
    return False


def room_of(module: str) -> str:
    """The first folder of a module's path, or the module's own name where it stands at the top."""
    first = module.split("/")[0].removesuffix(".py")
    return "apps" if first == "__main__" else first


def imported_names(module: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every dotted name a module imports, relative ones resolved, with its line."""
    package = ["velado", *PurePosixPath(module).parent.parts]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                yield node.lineno, f"{origin}.{alias.name}"
        elif isinstance(node, ast.Call) and dotted(node.func) in {"importlib.import_module", "import_module"}:
            for argument in node.args[:1]:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield node.lineno, argument.value


parsed = cache(ast.parse)  # three rules read every module


def dotted(node: ast.AST) -> str:
    """`a.b.c` for a chain of attributes on a name, else an empty string."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    return ""


def layer_violations(module: str, source: str) -> list[str]:
    """Imports of a room that is not below the importing one."""
    here = room_of(module)
    if here == "__init__":
        return []
    if here != "testing" and here not in LAYERS:
        return [f"{module}: '{here}' is not a room of the design"]
    found = []
    for line, name in imported_names(module, parsed(source)):
        if name.split(".")[0] != "velado":
            continue
        there = [*name.split("."), ""][1]
        if there == here:
            continue
        if there not in LAYERS:
            # `velado` itself gathers every room's names: only what stands above them all may read it.
            allowed = there != "testing" and here in {"apps", "testing"}
        elif here == "testing":
            allowed = LAYERS[there] < TOP
        else:
            allowed = LAYERS[there] < LAYERS[here]
        if not allowed:
            found.append(f"{module}:{line}: '{here}' may not import '{name}'")
    return found


def edge_violations(module: str, source: str) -> list[str]:
    """Uses of files or the network outside the edges."""
    if lies_in(module, EDGES):
        return []
    tree = parsed(source)
    found = [
        f"{module}:{line}: imports '{name}'"
        for line, name in imported_names(module, tree)
        if name.split(".")[0] in WORLDLY_MODULES
    ]
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id == "open":
            found.append(f"{module}:{node.lineno}: calls open()")
        elif isinstance(node.func, ast.Attribute) and node.func.attr in WORLDLY_METHODS:
            found.append(f"{module}:{node.lineno}: calls .{node.func.attr}()")
    return found


def randomness_violations(module: str, source: str) -> list[str]:
    """Random sources made or drawn from outside the one file that makes them."""
    if module == RANDOM_ROOM:
        return []
    allowed = {"Generator", "default_rng"} if lies_in(module, GENERATOR_MAKERS) else {"Generator"}
    tree = parsed(source)
    found = []
    aliases = {"numpy"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            aliases |= {alias.asname for alias in node.names if alias.name == "numpy" and alias.asname}
    for line, name in imported_names(module, tree):
        parts = name.split(".")
        from_numpy = parts[:2] == ["numpy", "random"] and (parts[2:] or [""])[0] not in allowed
        if from_numpy or parts[0] in RANDOM_MODULES:
            found.append(f"{module}:{line}: imports '{name}'")
    for node in ast.walk(tree):
        parts = dotted(node).split(".") if isinstance(node, ast.Attribute) else []
        if len(parts) == 3 and parts[0] in aliases and parts[1] == "random" and parts[2] not in allowed:
            found.append(f"{module}:{node.lineno}: uses numpy.random.{parts[2]}")
    return found


RULES = (layer_violations, edge_violations, randomness_violations)
MODULES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


def test_the_package_has_modules_to_check() -> None:
    assert "errors.py" in MODULES


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__.removesuffix("_violations"))
def test_every_module_keeps_the_rule(rule) -> None:
    found = [line for module in MODULES for line in rule(module, (PACKAGE / module).read_text("utf-8"))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("data/table.py", "from velado.release.release import release"),
        ("data/table.py", "import velado.apps.cli"),
        ("data/table.py", "from ..measures import risk"),
        ("data/table.py", "def f():\n    from velado.study import run"),
        ("data/table.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from velado import apps"),
        ("data/table.py", "import importlib\nimportlib.import_module('velado.query.session')"),
        ("data/samples/make.py", "from ...release import verify"),
        ("release/release.py", "from velado.query import budget"),
        ("query/session.py", "from velado.learning import crypto"),
        ("engines/duckdb.py", "from velado.release import goal"),
        ("release/release.py", "from velado import Table"),
        ("release/release.py", "import velado"),
        ("errors.py", "from velado.randomness import seeded"),
        ("testing/contracts.py", "from velado.apps import cli"),
        ("apps/cli.py", "from velado.testing import contracts"),
        ("helpers.py", "x = 1"),
    ],
)
def test_an_upward_or_sideways_import_is_caught(module: str, source: str) -> None:
    assert layer_violations(module, source)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("__init__.py", "from velado.apps.cli import main"),
        ("apps/cli.py", "from velado.study.run import run\nfrom velado import __version__"),
        ("study/run.py", "from velado.measures import risk\nfrom velado import errors"),
        (
            "release/methods/mondrian.py",
            "from ...data.encode import encode\nfrom ..recoders import interval",
        ),
        ("testing/contracts.py", "from velado.study import run\nimport numpy as np"),
    ],
)
def test_a_downward_import_is_allowed(module: str, source: str) -> None:
    assert layer_violations(module, source) == []


@pytest.mark.parametrize("name", sorted(WORLDLY_MODULES))
def test_a_worldly_module_is_caught_outside_the_edges(name: str) -> None:
    assert edge_violations("data/schema.py", f"import {name}")
    assert edge_violations("measures/risk/uniqueness.py", f"def f():\n    from {name} import something")


@pytest.mark.parametrize(
    "source",
    [
        "open('a.csv')",
        "from pathlib import Path\nPath('a.csv').read_text()",
        "from pathlib import Path\nPath('a.csv').write_bytes(b'')",
        "from pathlib import Path\nwith Path('a.csv').open() as file:\n    pass",
        "import polars as pl\npl.scan_csv('a.csv')",
    ],
)
@pytest.mark.parametrize(
    "module",
    [
        "data/schema.py",
        "study/run.py",
        "query/session.py",
        "data/iodine.py",
        "measures/data/io.py",
        "data/io_x/y.py",
    ],
)
def test_reading_or_writing_a_file_is_caught_outside_the_edges(module: str, source: str) -> None:
    assert edge_violations(module, source)


@pytest.mark.parametrize(
    "module",
    [
        "data/io.py",
        "data/samples/make.py",
        "learning/net/https.py",
        "learning/flower/client.py",
        "engines/spark.py",
        "query/engines/postgres_engine.py",
        "query/store/sqlite_store.py",
        "apps/cli/main.py",
    ],
)
def test_the_edges_may_touch_the_world(module: str) -> None:
    assert edge_violations(module, "import os\nimport socket\nopen('a.csv')") == []


@pytest.mark.parametrize(
    "source",
    [
        "import numpy as np\nnp.random.shuffle(x)",
        "import numpy as np\nnp.random.default_rng(0)",
        "import numpy\nnumpy.random.seed(0)",
        "import numpy as xp\ndef f(source=xp.random.rand):\n    pass",
        "from numpy.random import default_rng",
        "from numpy import random",
        "import numpy.random",
        "import random",
        "from secrets import token_bytes",
    ],
)
def test_randomness_made_elsewhere_is_caught(source: str) -> None:
    assert randomness_violations("release/methods/mondrian.py", source)


def test_randomness_is_made_in_its_file_and_annotated_anywhere() -> None:
    made = "import numpy as np\nrng = np.random.default_rng(0)"
    annotated = "import numpy as np\ndef f(rng: np.random.Generator) -> None: ..."
    assert randomness_violations("randomness.py", made) == []
    assert randomness_violations("data/samples/make.py", made) == []
    assert randomness_violations("measures/risk/uniqueness.py", annotated) == []
    assert randomness_violations("data/samples/make.py", "import numpy as np\nnp.random.seed(0)")
