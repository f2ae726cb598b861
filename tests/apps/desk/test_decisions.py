"""Nothing is run, compared or signed before people decided, and nobody decides about what they did not see."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from velado.apps.desk import jobs, previewing, signing
from velado.apps.desk.answers import Answers, DoorAnswer
from velado.apps.desk.project import now
from velado.apps.desk.walk import Walk
from velado.errors import InputError
from velado.study.presets import PRESETS
from velado.study.recipe import Recipe
from velado.text import told

from .desks import Desk, people_csv


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def begun(desk: Desk) -> int:
    return len(list(desk.project.runs.iterdir()))


STARTS = (
    "/promise",
    "/promise/preview",
    "/promise/preset",
    "/promise/whole",
    "/compare",
    "/compare/choose",
    "/look/again",
    "/look/doors",
)


def test_nothing_runs_before_people_and_roles_are_answered(desk: Desk) -> None:
    desk.opened(people_csv())
    for step in ("nothing", "read", "person"):
        if step == "read":
            desk.read()
        elif step == "person":
            desk.person()
        for path in (*STARTS, "/sign", "/sign/approve"):
            reply = desk.post(
                path, do="run", k="5", preset="researchers", method="mondrian", choice="mondrian@5"
            )
            assert reply.status == 409, (step, path)
        assert begun(desk) == 0
    assert desk.roles().status == 303
    assert Walk.of(desk.project).open_questions() == []


def test_roles_wait_for_the_person(desk: Desk) -> None:
    desk.opened(people_csv()).read()
    assert desk.get("/roles").headers["location"] == "/people"
    assert desk.post("/roles", **{"role-0": "identifier"}).status == 409


def test_each_row_a_person_is_not_accepted_unseen(desk: Desk) -> None:
    desk.opened(people_csv()).read()
    page = desk.get("/people")
    assert "patient_id" in page.words and "values, up to 2 rows each" in page.words
    assert "looked at" in desk.post("/people", answer="row").words
    assert not Walk.of(desk.project).person_settled
    assert desk.post("/people", answer="row", seen="yes").status == 303
    recipe = desk.project.recipe()
    assert recipe is not None and recipe.per == "row"


def test_the_dialysis_table_is_stopped_until_decided(desk: Desk) -> None:
    lines = ["patient_id,patient_name,address,cartao_sus,age,sex,session_date,hiv"]
    for i in range(400):
        who = i % 20
        lines.append(
            f"D{who:05d},{('Ana', 'Bia', 'Caio', 'Davi')[who % 4]} {('Silva', 'Gomes', 'Lima', 'Rocha', 'Dias')[who // 4]},"
            f"Rua Silva {who},7{who:014d},{30 + who},{'MF'[who % 2]},2024-01-{1 + i // 20:02d},{'pos' if who == 3 else 'neg'}"
        )
    desk.opened("\n".join(lines) + "\n").read()
    assert desk.get("/promise").headers["location"] == "/people"
    assert "patient_id" in desk.get("/people").words
    assert desk.post("/promise", do="run", k="5").status == 409
    desk.person("patient_id")
    recipe = desk.project.recipe()
    assert recipe is not None
    columns = recipe.schema.columns
    assert not any(
        columns[name].published for name in ("patient_name", "address", "cartao_sus", "patient_id")
    )
    assert desk.post("/promise", do="run", k="5").status == 409 and begun(desk) == 0


def test_a_form_that_shows_what_stands_no_longer_is_refused(desk: Desk) -> None:
    desk.ready()
    seen = desk.state()
    assert desk.post("/promise", k="7").status == 303
    for path in ("/promise", "/roles", "/people", "/open/right", "/compare/choose"):
        reply = desk.post(
            path,
            state=seen,
            k="9",
            answer="column",
            column="patient_id",
            choice="mondrian@9",
            **desk.role_fields(),
        )
        assert reply.status == 409 and "changed after this page was shown" in reply.words, path
    recipe = desk.project.recipe()
    assert recipe is not None and recipe.k == 7


def test_a_file_read_anew_opens_every_question_again(desk: Desk) -> None:
    desk.ready()
    number = desk.number("sex")
    desk.opened(people_csv().replace("sex", "gender"), "people.csv")
    walk = Walk.of(desk.project)
    assert not walk.person_settled and not walk.roles_settled
    desk.read().person()
    assert "gender" in desk.get("/roles").words and "sex" not in desk.role_fields().get(f"role-{number}", "")
    recipe = desk.project.recipe()
    assert recipe is not None and list(recipe.schema.columns)[2] == "gender"


def test_the_next_delivery_begins_with_what_was_settled_about_the_last_one(desk: Desk) -> None:
    desk.ready()
    city = desk.number("city")
    assert desk.roles(**{f"role-{city}": "sensitive"}).status == 303
    desk.project.change(lambda answers, recipe: (answers, replace(recipe, k=9)))  # type: ignore[type-var]
    kept = desk.project.recipe()
    desk.opened(people_csv(90), "next.csv")
    assert (
        desk.post("/promise", do="run", k="5").status == 409
    )  # the rows, the person, the roles: all open again
    assert desk.post("/open/right").headers["location"] == "/people"
    assert desk.project.recipe() == kept
    walk = Walk.of(desk.project)
    assert not walk.person_settled and not walk.roles_settled
    assert "its recipe was kept" in desk.get("/people").words
    desk.person()
    assert "its recipe was kept" in desk.get("/roles").words
    assert desk.role_fields()[f"role-{city}"] == "sensitive"
    assert desk.roles().status == 303
    assert "its recipe was kept" not in desk.get("/roles").words
    recipe = desk.project.recipe()
    assert recipe is not None and (recipe.k, recipe.schema.columns["city"].role) == (9, "sensitive")
    # The same file read otherwise begins with what is found in it then.
    desk.opened(people_csv(90), "next.csv", decimal=",").read().person()
    assert desk.role_fields()[f"role-{city}"] == "quasi" and "was kept" not in desk.get("/roles").words


def test_a_file_that_changed_on_the_disk_stops_runs(desk: Desk) -> None:
    desk.ready()
    (desk.folder / "people.csv").write_text(people_csv(61))
    assert "not the one that was read" in desk.get("/promise").words
    assert desk.post("/promise", do="run", k="5").status == 409


def test_a_recipe_edited_by_hand_opens_what_it_changed(desk: Desk) -> None:
    desk.ready()
    file = desk.project.recipe_file
    file.write_text(file.read_text().replace('role = "quasi"', 'role = "other"', 1))
    assert Walk.of(desk.project).person_settled and not Walk.of(desk.project).roles_settled
    assert desk.post("/promise", do="run", k="5").status == 409


def test_what_lay_in_the_folder_is_taken_when_it_is_first_opened(desk: Desk) -> None:
    (desk.folder / "schema.toml").write_text(
        "".join(
            f'[columns.{name}]\nrole = "{role}"\n'
            for name, role in [
                ("patient_id", "identifier"),
                ("age", "quasi"),
                ("sex", "quasi"),
                ("city", "other"),
                ("illness", "sensitive"),
            ]
        )
    )
    desk.opened(people_csv()).read()
    recipe = desk.project.recipe()
    assert recipe is not None and recipe.schema.columns["city"].role == "other"
    assert not Walk.of(desk.project).roles_settled


def test_the_live_counter_never_falls_when_more_is_published(desk: Desk) -> None:
    desk.opened(people_csv()).read().person()
    fields = desk.role_fields()
    names = ("age", "sex", "city", "illness")
    held = {f"hold-{desk.number(name)}": "yes" for name in names}

    def counted(**more: str) -> int:
        reply = desk.call(
            "POST",
            "/roles/count",
            "&".join(f"{k}={v}" for k, v in {"csrf": desk.session.csrf, **fields, **more}.items()).encode(),
        )
        return int(reply.json["all"]["alone"].replace(",", ""))

    before = counted(**held)
    assert before == 0
    for name in names:
        del held[f"hold-{desk.number(name)}"]
        after = counted(**held)
        assert after >= before
        before = after
    assert before > 0
    # What a published column is called does not hide it.
    assert counted(**{f"role-{desk.number('age')}": "other"}) == before
    assert counted(**{f"role-{desk.number('age')}": "identifier"}) < before


def test_look_alikes_are_one_decision(desk: Desk) -> None:
    names = [f"lab_{i:02d}" for i in range(12)]
    rows = "".join(
        f"P{i:03d},{20 + i % 30}," + ",".join(f"{(i * 7 + j) % 90}.{j % 10}" for j in range(12)) + "\n"
        for i in range(80)
    )
    desk.opened(f"patient_id,age,{','.join(names)}\n{rows}").read().person()
    page = desk.get("/roles")
    assert "12 columns alike" in page.words
    fields = desk.role_fields()
    lead = next(name for name in fields if re.fullmatch(r"role-g\d+", name))
    assert desk.post("/roles", **{**fields, lead: "sensitive"}).status == 303
    recipe = desk.project.recipe()
    assert recipe is not None
    assert all(recipe.schema.columns[name].role == "sensitive" for name in names)
    alone = f"role-{desk.number('lab_03')}"
    assert desk.post("/roles", **{**desk.role_fields(), lead: "other", alone: "quasi"}).status == 303
    recipe = desk.project.recipe()
    assert recipe is not None
    assert [recipe.schema.columns[name].role for name in names[2:5]] == ["other", "quasi", "other"]


def test_a_second_visit_to_roles_changes_nothing_by_itself(desk: Desk) -> None:
    names = [f"lab_{i:02d}" for i in range(6)]
    rows = "".join(
        f"P{i:03d},{20 + i % 30},{'FM'[i % 2]},"
        + ",".join(f"{(i * 7 + j) % 90}.{j % 10}" for j in range(6))
        + "\n"
        for i in range(80)
    )
    desk.opened(f"patient_id,age,ward,{','.join(names)}\n{rows}").read().person()
    assert desk.roles().status == 303

    def edit(answers: Answers, recipe: Recipe | None) -> tuple[Answers, Recipe | None]:
        assert recipe is not None
        columns = dict(recipe.schema.columns)
        columns["lab_00"] = replace(columns["lab_00"], publish=False)
        columns["ward"] = replace(columns["ward"], identifier="accept", reason="rooms, not people")
        document = {**recipe.to_dict(), "operations": [{"name": "round", "column": "lab_02", "to": 12.5}]}
        schema = recipe.schema.with_columns(columns.values())
        return answers, replace(Recipe.from_dict(document), schema=schema)

    desk.project.change(edit)
    before = desk.project.recipe()
    assert desk.roles().status == 303
    assert desk.project.recipe() == before
    # Whoever ticks it at one of the group holds that one back, and no other.
    ticked = f"hold-{desk.number('lab_03')}"
    assert desk.post("/roles", **desk.role_fields(), **{ticked: "yes"}).status == 303
    recipe = desk.project.recipe()
    assert recipe is not None
    assert [name for name in names if not recipe.schema.columns[name].published] == ["lab_00", "lab_03"]
    fields = {name: value for name, value in desk.role_fields().items() if name != ticked}
    assert desk.post("/roles", **{**fields, f"role-{desk.number('lab_03')}": "group"}).status == 303
    assert desk.project.recipe() == before
    # The one that was held back stands by itself, and goes with the group again when somebody says so.
    page = desk.get("/roles").text
    held = f"hold-{desk.number('lab_00')}"
    assert f'name="{held}" value="yes" checked' in page and "<details open>" in page
    fields = {name: value for name, value in desk.role_fields().items() if name != held}
    assert desk.post("/roles", **{**fields, f"role-{desk.number('lab_00')}": "group"}).status == 303
    recipe = desk.project.recipe()
    assert recipe is not None and recipe.schema.columns["lab_00"].published and len(recipe.operations) == 1


def test_a_name_is_not_published_as_it_is_without_a_reason(desk: Desk) -> None:
    mails = "".join(f"P{i:03d},{20 + i % 30},a{i}@x.br\n" for i in range(60))
    desk.opened(f"patient_id,age,contact\n{mails}").read().person()
    at = desk.number("contact")
    fields = {name: value for name, value in desk.role_fields().items() if name != f"hold-{at}"}
    before = desk.state()
    refused = desk.post("/roles", **{**fields, f"role-{at}": "other"})
    assert refused.status == 409 and "why 'contact' names nobody" in refused.words
    assert desk.state() == before
    accepted = {**fields, f"role-{at}": "other", f"reason-{at}": "one mailbox of the ward for each bed"}
    assert desk.post("/roles", **accepted).status == 303
    recipe = desk.project.recipe()
    assert recipe is not None and recipe.schema.columns["contact"].identifier == "accept"


def test_a_figure_written_by_hand_is_within_reach_of_the_sliders(desk: Desk) -> None:
    desk.ready()
    desk.project.change(
        lambda answers, recipe: (
            answers,
            None if recipe is None else replace(recipe, k=80, suppression=0.0025),
        )
    )
    page = desk.get("/promise").text
    # A slider that ends at 50 would send 50 for it, and the promise would be weaker unasked.
    assert 'max="80" value="80"' in page and 'step="any" value="0.25"' in page


def finished_run(desk: Desk, doors: list[dict[str, object]]) -> str:
    """A run as the worker leaves it, with the side doors given."""
    walk = Walk.of(desk.project)
    name = "20260101T000000-00000001"
    folder = desk.project.runs / name
    (folder / "out" / "release").mkdir(parents=True)
    (folder / "out" / "release" / "table.csv").write_text("age\n*\n")
    assert walk.answers.source is not None
    asked = {"kind": "release", "recipe": walk.recipe_digest(), "digest": walk.answers.source.digest}
    (folder / "job.json").write_text(json.dumps(asked))
    from velado.data.staging import file_digest

    result = {
        "table": "table.csv",
        "sha256": file_digest(folder / "out" / "release" / "table.csv"),
        "doors": doors,
        "columns": [],
        "verdicts": [],
        "k": 5,
    }
    (folder / "result.json").write_text(json.dumps(result))
    desk.project.change(lambda answers, recipe: (replace(answers, run=name), recipe))
    return str(result["sha256"])


SAID = {"name": "Ana", "recipient": "all", "purpose": "study", "legal_basis": "research", "law": "lgpd"}


def test_undecided_side_doors_cannot_be_signed(desk: Desk) -> None:
    desk.ready()
    digest = finished_run(desk, [{"name": "d1", "columns": ["city"]}])
    reply = desk.post("/sign", run="20260101T000000-00000001", sha256=digest, **SAID)
    assert reply.status == 409 and "undecided" in reply.words
    assert not desk.project.releases.exists()
    assert "undecided" in desk.get("/sign").words


def test_a_side_door_is_not_accepted_without_a_reason(desk: Desk) -> None:
    desk.ready()
    finished_run(desk, [{"name": "d1", "columns": ["city"]}])
    reply = desk.post(
        "/look/doors", run="20260101T000000-00000001", **{"door-d1": "accept", "reason-d1": " "}
    )
    assert reply.status == 409 and "without a reason" in reply.words
    assert desk.post("/look/doors", run="20250101T000000-00000009", **{"door-d1": "hold"}).status == 409
    assert begun(desk) == 1 and desk.project.answers().doors == {}


def test_another_release_than_the_one_looked_at_cannot_be_signed(desk: Desk) -> None:
    desk.ready()
    digest = finished_run(desk, [])
    shown = desk.state()
    run = "20260101T000000-00000001"
    for fields in ({"run": "20250101T000000-00000009", "sha256": digest}, {"run": run, "sha256": "0" * 64}):
        assert "changed after" in desk.post("/sign", **fields, **SAID).words
    desk.project.change(lambda a, r: (replace(a, doors={"d9": DoorAnswer(decision="hold")}), r))
    assert "changed after" in desk.post("/sign", state=shown, run=run, sha256=digest, **SAID).words

    def other_k(answers: Answers, recipe: Recipe | None) -> tuple[Answers, Recipe | None]:
        assert recipe is not None
        return answers, replace(recipe, k=9)

    desk.project.change(other_k)
    reply = desk.post("/sign", run=run, sha256=digest, **SAID)
    assert reply.status == 409 and "changed after this run" in reply.words
    assert not desk.project.releases.exists()


def test_a_table_changed_after_its_run_is_not_handed_over(desk: Desk) -> None:
    desk.ready()
    digest = finished_run(desk, [])
    run = "20260101T000000-00000001"
    (desk.project.runs / run / "out" / "release" / "table.csv").write_text("age\n31\n")
    reply = desk.post("/sign", run=run, sha256=digest, **SAID)
    assert reply.status == 409 and "not the one that was signed" in reply.words
    assert not desk.project.releases.exists()


@pytest.mark.parametrize("lacks", ["name", "recipient", "purpose", "legal_basis"])
def test_a_signature_says_who_for_whom_why_and_on_which_ground(desk: Desk, lacks: str) -> None:
    desk.ready()
    digest = finished_run(desk, [])
    reply = desk.post("/sign", run="20260101T000000-00000001", sha256=digest, **{**SAID, lacks: " "})
    assert reply.status == 409 and "lacks" in reply.words


@pytest.mark.parametrize("second", ["", "yes"])
def test_a_law_nobody_knows_is_refused_before_anything_waits(desk: Desk, second: str) -> None:
    desk.ready()
    digest = finished_run(desk, [])
    run = "20260101T000000-00000001"
    reply = desk.post("/sign", run=run, sha256=digest, second=second, **{**SAID, "law": "pipeda"})
    assert reply.status >= 400 and "pipeda" in reply.words
    assert signing.waiting(desk.project) is None and not desk.project.releases.exists()


def test_nobody_is_a_recipient_before_somebody_said_so(desk: Desk) -> None:
    desk.ready()
    finished_run(desk, [])
    shown = desk.get("/sign").text
    for field in ("recipient", "purpose"):
        assert f'id="{field}" name="{field}" value="" required' in shown
    for preset in PRESETS:
        desk.project.change(lambda answers, recipe, name=preset.name: (replace(answers, preset=name), recipe))
        shown = desk.get("/sign").text
        assert (
            f'value="{told(preset.recipient, "en")}"' in shown
            and f'value="{told(preset.purpose, "en")}"' in shown
        )


def test_the_person_may_be_said_with_the_reading_and_is_not_assumed(desk: Desk) -> None:
    desk.opened(people_csv())
    assert (
        "'patient_id' may tell: 60 different values, 1.33 rows for each on average, at most 2"
        in desk.get("/open").words
    )
    before = desk.state()
    assert desk.post("/open/right", column="nobody").status == 409
    assert desk.state() == before and not Walk.of(desk.project).reading_settled
    assert desk.post("/open/right", column="patient_id").headers["location"] == "/roles"
    walk = Walk.of(desk.project)
    assert walk.person_settled and not walk.roles_settled
    assert walk.recipe is not None and walk.recipe.schema.person is not None
    assert walk.recipe.schema.person.name == "patient_id" and walk.recipe.per is None


def test_the_second_person_is_another_one(desk: Desk) -> None:
    desk.ready()
    digest = finished_run(desk, [])
    run = "20260101T000000-00000001"
    assert desk.post("/sign", run=run, sha256=digest, second="yes", **SAID).status == 303
    assert not desk.project.releases.exists() and signing.waiting(desk.project) is not None
    for name in ("", "ana", "  ANA "):
        reply = desk.post("/sign/approve", run=run, sha256=digest, name=name, do="approve")
        assert reply.status == 409 and "second person" in reply.words
    assert desk.post("/sign/approve", run=run, sha256="0" * 64, name="Bia", do="approve").status == 409
    assert desk.post("/sign/approve", run=run, sha256=digest, do="withdraw").status == 303
    assert signing.waiting(desk.project) is None


def test_answers_that_cannot_be_read_are_not_guessed(desk: Desk) -> None:
    desk.ready()
    for content in (b"", b"{}", b'{"version": 2}', b"\xff"):
        (desk.project.desk / "answers.json").write_bytes(content)
        with pytest.raises(InputError, match="answers"):
            desk.project.answers()


def test_a_job_whose_process_is_gone_is_told_as_killed(desk: Desk) -> None:
    folder = desk.project.runs / "20260101T000000-00000002"
    folder.mkdir()
    (folder / "job.json").write_text("{}")
    assert jobs.look(desk.project.runs, folder.name).state == "killed"
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        # The number of a live process that began at another time is somebody else's.
        (folder / "process.json").write_text(json.dumps({"pid": process.pid, "began": "1"}))
        assert jobs.look(desk.project.runs, folder.name).state == "killed"
        jobs.cancel(desk.project.runs, folder.name)
        assert process.poll() is None
    finally:
        process.communicate(b"\n")


DOORS = {
    # Types, and the registry of names; what decides (guarantees, gate, prepare, recoders, checks) is not among them.
    "velado.release.goal": {"Progress", "DEFAULT_K"},
    "velado.release.methods": {"METHODS"},
    "velado.release.operations._operation": {"Operation", "columns_of"},
    "velado.release.release": {"Release"},
    "velado.release.side_doors": {"DoorDecision", "SideDoor"},
    "velado.release.side_doors.decisions": {"DECISIONS", "Decision"},
    "velado.release.why_suppressed": {"why_suppressed"},
    "velado.measures.risk.reidentification": {"Reidentification"},
}


def test_no_decision_about_privacy_is_made_in_the_desk() -> None:
    place = Path(__file__).resolve().parents[3] / "src" / "velado" / "apps" / "desk"
    modules = sorted(place.rglob("*.py"))
    assert len(modules) > 15
    for module in modules:
        for node in ast.walk(ast.parse(module.read_text())):
            if (
                isinstance(node, ast.ImportFrom)
                and node.module
                and node.module.startswith(("velado.release", "velado.measures", "velado.query"))
            ):
                assert {alias.name for alias in node.names} <= DOORS.get(node.module, set()), (
                    module.name,
                    node.module,
                )
            if isinstance(node, ast.Import):
                assert not any(alias.name.startswith("velado") for alias in node.names), module.name


def test_moments_of_answers_have_a_zone() -> None:
    assert now().endswith("+00:00")


def test_what_a_preset_promised_goes_with_it_and_what_a_person_chose_stays(tmp_path: Path) -> None:
    desk = Desk(tmp_path).ready()
    recipe = desk.project.recipe()
    assert recipe is not None
    asked = {"source": str(tmp_path / "people.csv"), "preset": "safe-harbor"}
    for k, before, left in ((11, "public-download", 5), (11, "", 11), (7, "public-download", 7)):
        text = replace(recipe, k=k).to_toml()
        plan = previewing.planned({**asked, "recipe_text": text, "before": before})
        assert tomllib.loads(plan["recipe_text"])["k"] == left
        assert f"hides among {left} here" in " ".join(plan["said"]["en"])
        assert any("held back (" in line for line in plan["said"]["en"])
    # What somebody decided about a column stays too, but for what the preset before did.
    document = {**recipe.to_dict(), "operations": [{"name": "suppress", "column": "illness", "rare": 3}]}
    decided = replace(Recipe.from_dict(document), schema=recipe.schema)
    for name in ("researchers", "safe-harbor", "public-download"):
        plan = previewing.planned({**asked, "preset": name, "recipe_text": decided.to_toml()})
        made = Recipe.from_dict(tomllib.loads(plan["recipe_text"]))
        assert decided.operations[0] in made.operations, name
