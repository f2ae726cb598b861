"""The desk's run of a recipe and the command line's give the same bytes: random recipes, one owner's key.

Twelve recipes; VELADO_RECIPES=100 tries a hundred.
"""

import json
import os
import random
from pathlib import Path

import pytest

from velado.apps.cli.main import run as command_line
from velado.apps.desk import worker
from velado.data.keys import Key

from .desks import Desk, people_csv

KEY = bytes(range(48, 88))


def random_promise(draw: random.Random) -> dict[str, str]:
    return {
        "k": str(draw.choice([2, 3, 4, 5, 8])),
        "suppression": draw.choice(["0", "2", "5.5", "20"]),
        "l": str(draw.choice([1, 1, 2])),
        "method": draw.choice(["mondrian", "mdav", "full-domain", "k-member", "top-down-greedy"]),
    }


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.slow
def test_random_recipes_give_the_command_lines_bytes(tmp_path: Path) -> None:
    count = int(os.environ.get("VELADO_RECIPES", "12"))
    key = tmp_path / "owner.key"
    key.write_bytes(Key(KEY).secret)
    key.chmod(0o600)
    folder = tmp_path / "project"
    folder.mkdir()
    desk = Desk(folder, key=key)
    draw = random.Random(4)
    published = 0
    for at in range(count):
        desk.ready(people_csv(60 + at % 5))
        roles = desk.role_fields()
        for name in ("sex", "city"):
            roles[f"role-{desk.number(name)}"] = draw.choice(["quasi", "quasi", "other"])
        if draw.random() < 0.3:
            roles[f"hold-{desk.number('city')}"] = "yes"
        assert desk.post("/roles", **roles).status == 303
        if draw.random() < 0.5:
            edges = " ".join(str(one) for one in sorted(draw.sample(range(22, 66), 3)))
            assert desk.post(f"/hierarchies/{desk.number('age')}/bands", edges=edges).status == 303
        assert desk.post("/promise", **random_promise(draw)).status == 303
        # What the desk hands to its worker, done in this process; the command line reads the project's own recipe.
        place = desk.project.runs / f"20260101T0000{at:02d}-00000000"
        place.mkdir()
        asked = {
            "kind": "release",
            "source": str(folder / "people.csv"),
            "recipe_text": desk.project.recipe_file.read_text(),
            "key": str(key),
            "language": "en",
        }
        (place / "job.json").write_text(json.dumps(asked))
        code = worker.main([str(place)])
        out = tmp_path / f"out-{at}"
        arguments = [
            "apply",
            str(desk.project.recipe_file),
            str(folder / "people.csv"),
            "-o",
            str(out),
            "--key",
            str(key),
        ]
        assert command_line([*arguments, "--quiet"]) == code
        if code == 0:
            published += 1
            assert bytes_of(place / "out" / "release") == bytes_of(out / "release")
            assert bytes_of(place / "out" / "private") == bytes_of(out / "private")
    assert published >= count // 2
