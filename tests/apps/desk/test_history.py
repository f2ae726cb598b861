"""History sets two runs side by side and tells where their recipes differ."""

import json
from pathlib import Path

from velado.apps.desk.screens.history_screen import differences

from .desks import Desk

RESULT = {"suppressed": 3, "risk": {"after": {"highest": 0.2}}, "doors": [], "columns": [], "verdicts": []}


def run_of(desk: Desk, at: int, method: str, loss: float) -> str:
    """A finished run of the recipe as it stands."""
    name = f"2026010{at}T000000-0000000{at}"
    folder = desk.project.runs / name
    folder.mkdir()
    recipe = desk.project.recipe()
    assert recipe is not None
    asked = {"kind": "release", "recipe_text": desk.project.recipe_file.read_text()}
    (folder / "job.json").write_text(json.dumps(asked))
    (folder / "result.json").write_text(json.dumps({**RESULT, "method": method, "k": recipe.k, "loss": loss}))
    return name


def test_two_runs_stand_side_by_side_with_what_differs_in_their_recipes(tmp_path: Path) -> None:
    desk = Desk(tmp_path).ready()
    assert "Nothing was run yet." in desk.get("/history").words
    desk.post("/promise", k="5")
    one = run_of(desk, 1, "mondrian", 0.25)
    desk.post("/promise", k="7", suppression="2")
    other = run_of(desk, 2, "mdav", 0.125)
    page = desk.get("/history")
    assert one in page.words and other in page.words
    assert "25.0%" in page.words and "12.5%" in page.words and "Where the recipes differ" not in page.words
    beside = desk.get(f"/history?run={one}&run={other}")
    told = beside.words.split("Where the recipes differ")[1]
    assert f"Setting {one} {other} k 5 7" in told and "suppression" in told and "schema" not in told
    assert "Nowhere." in desk.get(f"/history?run={one}&run={one}").words
    for odd in ("../../recipe", "20250101T000000-00000009", "%00", "x" * 5000):
        lonely = desk.get(f"/history?run={one}&run={odd}")
        assert lonely.status == 200 and "Where the recipes differ" not in lonely.words
    assert "Em que as receitas diferem" in desk.get(f"/history?run={one}&run={other}&lang=pt").words


def test_differences_reach_into_columns_and_lists() -> None:
    left = {"k": 5, "schema": {"columns": {"age": {"round": 5}}}, "doors": [{"kind": "pair"}]}
    right = {"k": 5, "schema": {"columns": {"age": {"round": 10}}}, "doors": []}
    assert differences(left, right) == [
        ("doors", "–", "[]"),
        ("doors[1].kind", "pair", "–"),
        ("schema.columns.age.round", "5", "10"),
    ]
    assert differences(left, left) == []
