"""The repository works on any machine, and its files keep the project's housekeeping rules.

Forbidden words are put together from parts, so that this file does not hold what it looks for.
"""

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LONGEST_MODULE = 600

# A folder at the root of somebody's machine; `../x`, `a/x` and a word after a slash in prose are not that.
MACHINE_PATH = re.compile(
    r"(?<![\w.*/)}])/(?:" + "|".join(["wo" + "rk", "ro" + "ot", "ho" + "me", "t" + "mp"]) + r")(?:/|\b)"
)
USERS_PATH = re.compile("/Us" + r"ers/\w|[A-Z]:\\Us" + "ers")
SHARED_DATA = "sha" + "red/data"
KNOW_THE_DATA = {"Makefile", ".ci/run"}
REGISTRIES = [
    "py" + "pi.org",
    "python" + "hosted.org",
    "ana" + "conda.org",
    "conda" + ".io",
    "npm" + "js.",
    "un" + "pkg.com",
    "js" + "delivr",
    "cdn" + "js.",
]


def repository_files() -> list[Path]:
    """Tracked files and new ones that are not ignored; without git, what an unpacked archive holds."""
    if (ROOT / ".git").exists():
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            check=True,
            capture_output=True,
        ).stdout.decode("utf-8")
        paths = [ROOT / name for name in listed.split("\0") if name]
    else:
        kept = [".ci", "benchmarks", "docs", "src", "tests"]
        paths = [path for folder in kept for path in (ROOT / folder).rglob("*")] + list(ROOT.glob("*"))
        paths = [path for path in paths if "__pycache__" not in path.parts]
    return sorted({path for path in paths if path.is_file()})


def texts() -> dict[str, str]:
    """The text of every file of the repository that is text, by its path from the root."""
    found = {}
    for path in repository_files():
        content = path.read_bytes()
        if b"\0" not in content:
            found[path.relative_to(ROOT).as_posix()] = content.decode("utf-8")
    return found


def lines_where(holds) -> list[str]:
    return [
        f"{name}:{number}"
        for name, text in texts().items()
        for number, line in enumerate(text.splitlines(), start=1)
        if holds(name, line)
    ]


def names_a_machine_path(line: str) -> bool:
    # The first line of a script names its interpreter, which is a path on every machine.
    return not line.startswith("#!") and bool(MACHINE_PATH.search(line) or USERS_PATH.search(line))


def asserts_something(source: str) -> bool:
    """Whether a test file holds an assertion, a `pytest.raises` or a call of an `assert_...` function."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in {"raises", "warns"} or name.startswith("assert_"):
                return True
    return False


def test_no_file_names_a_path_of_one_machine() -> None:
    assert lines_where(lambda _, line: names_a_machine_path(line)) == []


def test_only_the_entry_points_know_where_reference_data_may_lie() -> None:
    assert lines_where(lambda name, line: SHARED_DATA in line and name not in KNOW_THE_DATA) == []


def test_no_file_names_a_package_registry() -> None:
    assert lines_where(lambda _, line: any(host in line.lower() for host in REGISTRIES)) == []


@pytest.mark.parametrize(
    "start", ["/wo" + "rk/main", "see '/ro" + "ot/x'", "(/t" + "mp)", "=/ho" + "me/ana/x"]
)
def test_a_machine_path_is_recognised(start: str) -> None:
    assert names_a_machine_path(start)


@pytest.mark.parametrize(
    "line", ["team/wo" + "rk", "../t" + "mp", "docs/ho" + "me.md", "a framework/rootless"]
)
def test_a_relative_path_is_no_machine_path(line: str) -> None:
    assert not names_a_machine_path(line)


def test_no_module_is_longer_than_the_limit() -> None:
    lengths = {name: len(text.splitlines()) for name, text in texts().items() if name.startswith("src/")}
    assert lengths
    too_long = {name: n for name, n in lengths.items() if name.endswith(".py") and n > LONGEST_MODULE}
    assert too_long == {}


def test_every_test_file_asserts_something() -> None:
    silent = [
        path.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if not asserts_something(path.read_text("utf-8"))
    ]
    assert silent == []


def test_a_test_file_that_asserts_nothing_is_recognised() -> None:
    assert not asserts_something("def test_nothing():\n    print('done')\n")
    assert asserts_something("def test_it():\n    with pytest.raises(ValueError):\n        f()\n")


@pytest.mark.parametrize(
    "name", ["LICENSE", "CHANGELOG.md", "README.md", "CONTRIBUTING.md", "docs/architecture.md"]
)
def test_a_reader_finds_the_expected_documents(name: str) -> None:
    assert (ROOT / name).is_file()
    assert (ROOT / name).read_text("utf-8").strip()


CONSTRAINTS = {"constraints.txt": "dev", "benchmarks/constraints.txt": "bench"}


@pytest.mark.parametrize("file", [*CONSTRAINTS, "benchmarks/constraints-spark-peer.txt"])
def test_constraints_are_exact_versions_and_name_no_address(file: str) -> None:
    lines = (ROOT / file).read_text("utf-8").splitlines()
    pins = [line for line in lines if line.strip() and not line.startswith("#")]
    assert pins
    assert [line for line in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!-]+", line)] == []
    assert [line for line in lines if "://" in line or "@" in line] == []


@pytest.mark.parametrize(("file", "extra"), CONSTRAINTS.items())
def test_every_dependency_of_an_environment_is_pinned(file: str, extra: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras[extra]]
    own = [item for item in wanted if item.startswith("velado[")]
    for name in [name for item in own for name in item[len("velado[") : -1].split(",")]:
        wanted += extras[name]
    wanted = [item for item in wanted if item not in own]
    lines = (ROOT / file).read_text("utf-8").splitlines()
    pinned = {line.split("==")[0].lower().replace("_", "-") for line in lines if "==" in line}
    names = {re.split(r"[<>=!~\[ ]", item)[0].lower().replace("_", "-") for item in wanted}
    assert names - pinned == set()


def test_every_extra_is_part_of_all() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = set(project["optional-dependencies"]) - {"all", "dev", "bench", "docs"}
    (gathered,) = project["optional-dependencies"]["all"]
    assert set(gathered.removeprefix("velado[").removesuffix("]").split(",")) == extras


def test_the_continuous_integration_entry_can_be_run() -> None:
    entry = ROOT / ".ci" / "run"
    assert entry.stat().st_mode & 0o100
    assert "set -euo pipefail" in entry.read_text("utf-8")
