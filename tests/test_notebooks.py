"""The notebooks run from the first cell to the last, and are stored without anything that a run showed."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
NOTEBOOKS = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.ipynb"))}

SHOWN_AT_THE_END = {
    "first-release-with-pandas": """
assert (roles["cpf"], roles["idade"]) == ("identifier", "quasi")
assert "cpf" not in published and published["dias_internado"].dtype == "int64"
assert (ends["idade_low"] <= ends["idade_high"]).all() and isinstance(published.index, pd.RangeIndex)
assert all(verdict.holds for verdict in release.verdicts) and 0 < loss.mean() < 1
""",
    "choose-k-in-a-pipeline": """
assert by_k["k"].to_list() == [2, 5, 10, 25] and by_k["AUC"].between(0.5, 1).all()
assert learned.promise_.training == "guaranteed" and new.rows == 100
""",
    "ask-and-measure-risk": """
assert (risk.loc["smallest group"] >= risk.columns.to_numpy()).all()
assert (risk.loc["rows alone, before"] > 1000).all() and (risk.loc["rows alone, after"] == 0).all()
assert risk.loc["rows linked to the right person"].is_monotonic_decreasing
assert abs(age.value - table.frame["idade"].cast(int).mean()) < 5
""",
}
"""What is true after the last cell of each notebook."""


def code_of(notebook) -> list[str]:
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def shown(cell: str) -> str:
    """A cell whose last line, if it is an expression, is shown as a notebook shows it."""
    tree = ast.parse(cell)
    last = tree.body[-1]
    if isinstance(last, ast.Expr):
        tree.body[-1] = ast.Expr(ast.Call(ast.Name("show", ast.Load()), [last.value], []))
    return ast.unparse(ast.fix_missing_locations(tree))


SHOW = """
def show(value):
    for way in ("_repr_html_", "__repr__"):
        if callable(getattr(value, way, None)):
            print(getattr(value, way)())
"""


def test_every_notebook_is_tried():
    assert set(NOTEBOOKS) == set(SHOWN_AT_THE_END)


@pytest.mark.slow  # each is a process of its own that trains or measures
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_as_it_is_written(name, tmp_path):
    cells = [SHOW, *map(shown, code_of(NOTEBOOKS[name])), SHOWN_AT_THE_END[name], "print('ran to the end')"]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(cells)],
        cwd=tmp_path,
        env={**os.environ, "VELADO_STATE": str(tmp_path / "state")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.endswith("ran to the end\n")
    assert not re.search(r"\d{3}\.\d{3}\.\d{3}-\d{2}", done.stdout)  # nobody's number of the sample is shown


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_stored_without_output_and_in_the_form_that_readers_know(name):
    notebook = NOTEBOOKS[name]
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids) and all(re.fullmatch(r"[a-zA-Z0-9-_]{1,64}", one) for one in ids)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None
        else:
            assert cell["cell_type"] == "markdown" and not {"outputs", "execution_count"} & set(cell)
    assert notebook["cells"][0]["source"][0].startswith("# ")


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_every_link_of_a_notebook_leads_somewhere(name):
    for cell in NOTEBOOKS[name]["cells"]:
        for target in re.findall(
            r"\]\(([^)#]+)\)", "".join(cell["source"]) * (cell["cell_type"] == "markdown")
        ):
            assert (FOLDER / target).exists(), f"{target} is not there"
