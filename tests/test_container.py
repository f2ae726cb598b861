"""The container file makes nobody root, fetches nothing at run time, and copies what is there. It is read, not built."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
Step = tuple[str, str]


def steps(text: str) -> list[Step]:
    """Every instruction with what follows it; comments are gone, continued lines are joined."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines))
    found = [line.strip().partition(" ") for line in joined.splitlines() if line.strip()]
    return [(name.upper(), " ".join(rest.split())) for name, _, rest in found]


def last_stage(found: list[Step]) -> list[Step]:
    starts = [at for at, (name, _) in enumerate(found) if name == "FROM"]
    return found[starts[-1] :]


def wrong(text: str, root: Path = ROOT) -> list[str]:
    """What a container file does that ours must not."""
    found = steps(text)
    final = last_stage(found)
    out = [f"{name} {rest}" for name, rest in found if "://" in rest or name == "ADD"]
    users = [rest for name, rest in final if name == "USER"]
    if not users or users[-1].partition(":")[0] in ("root", "0"):
        out.append("its last user is root")
    entry = max((at for at, (name, _) in enumerate(final) if name == "ENTRYPOINT"), default=-1)
    if entry < max((at for at, (name, _) in enumerate(final) if name == "USER"), default=0):
        out.append("it starts before its user is set")
    out += [f"{rest} is fetched late" for name, rest in final if name == "RUN" and FETCHES.search(rest)]
    for name, rest in found:
        words = [word for word in rest.split() if not word.startswith("--")]
        if name == "FROM" and "/" in words[0]:
            out.append(f"{words[0]} names a registry")
        if name == "COPY" and "--from=" not in rest:
            out += [f"{word} is not there" for word in words[:-1] if not (root / word).exists()]
    return out


FETCHES = re.compile(r"\b(pip|apt-get|apt|curl|wget|git|npm)\b")


def ours() -> str:
    return (ROOT / "Containerfile").read_text("utf-8")


def test_the_container_file_does_nothing_it_must_not():
    assert wrong(ours()) == []


def test_it_starts_velado_and_takes_a_command():
    final = dict(last_stage(steps(ours())))
    assert (final["ENTRYPOINT"], final["CMD"]) == ('["velado"]', '["--help"]')


def test_it_installs_pinned_versions_and_extras_that_exist():
    (installs,) = [rest for name, rest in steps(ours()) if name == "RUN" and "pip install" in rest]
    assert "-c constraints.txt" in installs
    (extras,) = re.findall(r'"\.\[([a-z,]+)\]"', installs)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(extras.split(",")) <= set(project["optional-dependencies"])


def test_its_python_is_one_that_velado_runs_on():
    bases = {rest.split()[0] for name, rest in steps(ours()) if name == "FROM"}
    assert bases == {"python:3.11-slim"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("USER 10001:10001", "USER root"),
        ("USER 10001:10001", "USER 0:0"),
        ("USER 10001:10001\n", ""),
        ("FROM python:3.11-slim\n", "FROM registry.example/python:3.11-slim\n"),
        ("COPY src ./src", "COPY sources ./src"),
        ("COPY src ./src", "ADD src ./src"),
        ("RUN velado demo", "RUN pip install more && velado demo"),
        ('"."', '"https://example.org/velado.whl"'),
    ],
)
def test_a_file_that_does_so_is_recognised(before, after):
    text = ours() + 'LABEL home="."\n'
    assert wrong(text) == []
    assert before in text and wrong(text.replace(before, after))
