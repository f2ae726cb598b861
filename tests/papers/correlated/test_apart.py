"""Nothing safe can reach the source's modes, and they reach nothing that makes promises."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[3] / "src" / "velado"
ROOM = "velado.papers.correlated"
# Who may read the room: itself, the other rooms of the sources, and the command line.
READERS = ("papers/", "apps/cli/commands/")
# What the room may read of the query package: questions as values, nothing that pays or promises.
READ = ("velado.query.values",)


def imports(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide where they lead"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(ROOM):
            found.append(node.value)  # importlib.import_module("...")
    return found


def test_only_the_named_readers_import_the_room() -> None:
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith(READERS) and "correlated" in path.read_text("utf-8"):
            assert not [i for i in imports(path) if i.startswith(ROOM)], name


def test_the_room_imports_nothing_that_pays_or_promises() -> None:
    modules = [one for one in (PACKAGE / "papers" / "correlated").glob("*.py") if "tables" not in one.name]
    assert len(modules) > 4
    for path in modules:
        for name in imports(path):
            if name.startswith("velado.query"):
                assert name.startswith(READ), f"{path.name} imports {name}"
            assert not name.startswith(("opendp", "velado.apps", "velado.study"))
