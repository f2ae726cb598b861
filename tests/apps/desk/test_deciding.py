"""A side door is decided when the run no longer finds it or the recipe carries a reason; a wait for a second person holds."""

import json
import re
import tomllib
from dataclasses import asdict, replace
from pathlib import Path
from shutil import rmtree
from typing import Any

import polars as pl
import pytest

import velado
from velado.apps.desk import deciding, jobs, signing
from velado.apps.desk.answers import DoorAnswer
from velado.apps.desk.project import roles_digest, settled
from velado.apps.desk.run_shown import AFTER, BEFORE, inventory
from velado.apps.desk.walk import Walk
from velado.data.schema import Schema
from velado.errors import InputError
from velado.release.operations.round_numbers import RoundNumbers
from velado.release.side_doors import SideDoor, decided_doors
from velado.release.side_doors.decisions import DECISIONS
from velado.study.recipe import Recipe
from velado.text import Language, speaking

from .desks import Desk, people_csv
from .test_decisions import SAID, finished_run

RUN = "20260101T000000-00000001"
SENTENCE = {"en": "It tells.", "pt": "Ela revela."}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A table with a column of costs and one of rooms, neither a quasi-identifier."""
    lines = people_csv().splitlines()
    rows = [f"{line},{100 + 7 * at},{'abc'[at % 3]}" for at, line in enumerate(lines[1:])]
    found = Desk(tmp_path).opened("\n".join([f"{lines[0]},cost,ward", *rows]) + "\n").read().person()
    other = {f"role-{found.number(name)}": "other" for name in ("cost", "ward")}
    assert found.roles(**other).status == 303
    return found


def recipe_of(desk: Desk) -> Recipe:
    recipe = desk.project.recipe()
    assert recipe is not None
    return recipe


def side_door(*columns: str, guess: float = 0.9, accepted: bool = False) -> SideDoor:
    """A door of one column, of two together, or of the whole table."""
    if not columns:
        return SideDoor("", "", "unseen", 0.0, 0.0, round(10 * guess), accepted)
    together = columns if len(columns) > 1 else ()
    return SideDoor(" + ".join(columns), "age", "functional", guess, 0.1, 9, accepted, together)


def decide(desk: Desk, *columns: str, guess: float = 0.9, **given: str) -> DoorAnswer:
    """What the form of a door writes: the recipe and the answer."""
    told = door(*columns, guess=guess)
    name = str(told["name"])
    given = {"decision": "hold", "reason": "", "step": "", "column": "", **given}

    def edit(answers: Any, recipe: Any) -> Any:
        answer = deciding.answer_of(
            recipe, columns, given["column"], given["decision"], reason=given["reason"], step=given["step"]
        )
        made = deciding.with_door(recipe, told, answer)
        said = settled(roles_digest(made.schema, answers.source.digest))
        return replace(answers, doors={**answers.doors, name: answer}, roles=said), made

    desk.project.change(edit)
    return desk.project.answers().doors[name]


def door(*columns: str, guess: float = 0.9, accepted: bool = False) -> dict[str, object]:
    """A door as a run keeps it."""
    found = side_door(*columns, guess=guess, accepted=accepted)
    name = deciding.door_name(found)
    told = {"name": name, "columns": list(columns), "accepted": accepted, "sentence": SENTENCE}
    return {**told, "door": asdict(found)}


def looked_at(desk: Desk, *doors: dict[str, object], **more: object) -> str:
    """A finished run whose page can be shown."""
    digest = finished_run(desk, list(doors))
    folder = desk.project.runs / RUN
    risk = {"highest": 0.2, "mean": 0.1}
    result = json.loads((folder / "result.json").read_bytes())
    result |= {"loss": 0.5, "risk": {"before": risk, "after": risk}, "suppressed": 1, "rows": 2, "groups": 1}
    result |= {
        "warnings": [],
        "cheaper": [],
        "why": {},
        "columns": [{"name": name, "fate": "altered", "loss": None} for name in ("age", "sex")],
        **more,
    }
    (folder / "result.json").write_text(json.dumps(result))
    rows: dict[str, list[Any]] = {"row": [1, 2], "group": [0, -1]}
    for name in ("age", "sex"):
        rows |= {f"{BEFORE}{name}": [f"{name}-1", f"{name}-2"], f"{AFTER}{name}": [f"{name}-*", None]}
    pl.DataFrame(rows).write_parquet(folder / "rows.parquet")
    return digest


@pytest.mark.parametrize("decision", [one.name for one in DECISIONS.values() if not one.keeps_open])
def test_a_door_that_still_stands_open_is_undecided_whatever_was_done(desk: Desk, decision: str) -> None:
    decide(desk, "cost", decision=decision, step="100")
    digest = looked_at(desk, door("cost"))
    walk = Walk.of(desk.project)
    job = walk.run()
    assert job is not None and walk.undecided(job) == [door("cost")["name"]]
    reply = desk.post("/sign", run=RUN, sha256=digest, **SAID)
    assert reply.status == 409 and "undecided" in reply.words
    page = desk.get("/look")
    assert "still stands open" in page.words and "Decided by" not in page.words
    assert 'id="to-sign"' not in page.text and not desk.project.releases.exists()


def test_a_door_is_decided_when_the_recipe_carries_a_reason(desk: Desk) -> None:
    decide(desk, "cost", decision="accept", reason="list prices")
    looked_at(desk, door("cost", accepted=True))
    assert 'id="to-sign"' in desk.get("/look").text
    assert "Side door 'cost': published all the same" in desk.get("/sign").words
    recipe = recipe_of(desk)
    told = door("cost", accepted=True)
    assert deciding.decided(told, recipe)
    assert not deciding.decided(door("cost"), recipe)  # the run was made without it
    undone = deciding.with_decision(recipe, DoorAnswer(decision="hold", column="cost"))
    assert not deciding.decided(told, undone)
    again = deciding.with_door(recipe, told, DoorAnswer(decision="hold", column="cost"))
    assert again.doors == ()


def test_the_page_offers_every_decision_that_fits(desk: Desk) -> None:
    looked_at(desk, door("cost"), door("ward"), door())
    page = desk.get("/look").text
    offered = {one.name: page.count(f'value="{one.name}"') for one in DECISIONS.values()}
    kinds = (["numeric"], ["categorical"], [])
    assert offered == {one.name: sum(one.fits(kind) for kind in kinds) for one in DECISIONS.values()}


def test_a_decision_holds_for_the_figures_it_was_taken_on(desk: Desk) -> None:
    decide(desk, "cost", decision="accept", reason="list prices", guess=0.4)
    (taken,) = recipe_of(desk).doors
    assert (
        (taken.columns, taken.guess, taken.reason) == (("cost",), 0.4, "list prices")
        and taken.by
        and taken.at
    )
    recipe = Recipe.from_dict(tomllib.loads(desk.project.recipe_file.read_text()))
    assert recipe.doors == (taken,)
    for guess, holds in ((0.3, True), (0.4, True), (0.41, False)):
        assert deciding.decided(door("cost", guess=guess, accepted=True), recipe) is holds
    graver = replace(side_door("cost", guess=0.3, accepted=True), kind="copy")
    assert not deciding.decided({**door("cost", accepted=True), "door": asdict(graver)}, recipe)
    digest = looked_at(desk, door("cost", guess=0.5, accepted=True))
    assert "when it was right in 40.0%" in desk.get("/look").words
    reply = desk.post("/sign", run=RUN, sha256=digest, **SAID)
    assert reply.status == 409 and "undecided" in reply.words


def test_a_door_of_no_column_is_accepted_in_the_recipe(desk: Desk) -> None:
    assert not deciding.decided(door(accepted=True), recipe_of(desk))
    decide(desk, decision="accept", reason="rows are shuffled later")
    recipe = recipe_of(desk)
    assert recipe.doors[0].columns == () and deciding.decided(door(accepted=True), recipe)
    assert decided_doors([side_door()], recipe.doors)[0].accepted
    assert not decided_doors([side_door(guess=1.0)], recipe.doors)[0].accepted
    with pytest.raises(InputError, match="without a reason"):
        decide(desk, decision="accept")


def test_a_run_whose_figures_were_not_kept_is_made_again(desk: Desk) -> None:
    old = {key: value for key, value in door("cost", accepted=True).items() if key != "door"}
    assert not deciding.decided(old, recipe_of(desk))
    with pytest.raises(InputError, match="figures"):
        deciding.with_door(recipe_of(desk), old, DoorAnswer(decision="accept", reason="x", column="cost"))


def test_of_a_pair_the_column_that_can_be_signed_off_is(desk: Desk) -> None:
    answer = decide(desk, "age", "ward", column="age", decision="accept", reason="wards are public")
    assert answer.column == "ward"
    columns = recipe_of(desk).schema.columns
    assert (columns["ward"].side_door, columns["age"].side_door) == ("accept", "refuse")


@pytest.mark.parametrize(("decision", "step"), [("hold", ""), ("round", "100"), ("generalize", "50")])
def test_a_decision_undone_elsewhere_is_not_told_as_if_it_held(desk: Desk, decision: str, step: str) -> None:
    decide(desk, "cost", decision=decision, step=step)
    answers = desk.project.answers().doors
    assert set(deciding.standing(answers, recipe_of(desk))) == {door("cost")["name"]}
    if decision == "hold":
        fields = {key: one for key, one in desk.role_fields().items() if key != f"hold-{desk.number('cost')}"}
        assert desk.post("/roles", **fields).status == 303
    else:
        file = desk.project.recipe_file
        text = file.read_text()
        assert f" = {step}.0" in text
        file.write_text(text.replace(f" = {step}.0", " = 0.001"))
    assert deciding.standing(answers, recipe_of(desk)) == {}
    digest = looked_at(desk)
    page = desk.get("/sign")
    assert page.status == 200 and "Side door" not in page.words
    assert desk.post("/sign", run=RUN, sha256=digest, second="yes", **SAID).status == 303
    waits = signing.waiting(desk.project)
    assert waits is not None and waits.doors == {}


def test_decisions_stand_in_portuguese_with_their_column(desk: Desk) -> None:
    decide(desk, "cost", decision="generalize", step="50")
    looked_at(desk)
    words = desk.get("/sign?lang=pt").words
    assert "'cost'" in words and "generalize" not in words
    desk.opened(people_csv(61), "more.csv")
    badge = desk.get("/open?lang=pt").text
    assert '<span class="open">pendente</span>' in badge and "abertura" not in badge


def test_an_older_page_does_not_do_away_with_the_second_person(desk: Desk) -> None:
    digest = finished_run(desk, [])
    shown = desk.state()
    assert desk.post("/sign", run=RUN, sha256=digest, second="yes", **SAID).status == 303
    reply = desk.post("/sign", state=shown, run=RUN, sha256=digest, **{**SAID, "name": "Eve"})
    assert reply.status == 409 and "changed after this page" in reply.words
    reply = desk.post("/sign", run=RUN, sha256=digest, **{**SAID, "name": "Eve"})
    assert reply.status == 409 and "waits for a second person" in reply.words
    page = desk.get("/sign")
    assert 'id="approve"' in page.text and 'id="sign"' not in page.text
    assert "from this account" in page.words
    waits = signing.waiting(desk.project)
    assert waits is not None and waits.name == "Ana" and not desk.project.releases.exists()
    reply = desk.post("/sign/approve", state=shown, run=RUN, sha256=digest, name="Bia", do="approve")
    assert reply.status == 409 and "changed after this page" in reply.words


def test_a_signature_of_another_run_is_withdrawn_before_a_new_one(desk: Desk) -> None:
    digest = finished_run(desk, [])
    assert desk.post("/sign", run=RUN, sha256=digest, second="yes", **SAID).status == 303
    assert desk.post("/promise", k="7").status == 303  # the run is no longer of the recipe as it stands
    page = desk.get("/sign")
    assert "another run" in page.words and 'id="approve"' not in page.text
    assert desk.post("/sign/approve", run=RUN, sha256=digest, name="Bia", do="approve").status == 409
    assert desk.post("/sign/approve", run=RUN, sha256=digest, do="withdraw").status == 303
    assert signing.waiting(desk.project) is None


def test_a_name_written_otherwise_is_no_second_person() -> None:
    for other in (
        "ana  LIMA",
        "Ana\u200b Lima",
        "A\u00adna Lima",
        "Ana Lima.",
        "Ａｎａ Lima",
        "Ána Li\u0301ma",
    ):
        assert signing.same_name("Ana Lima", other), ascii(other)
    assert not signing.same_name("Ana Lima", "Ana Lins") and not signing.same_name("李娜", "王芳")


def test_a_name_nobody_can_read_signs_nothing(desk: Desk) -> None:
    digest = finished_run(desk, [])
    assert "lacks" in desk.post("/sign", run=RUN, sha256=digest, **{**SAID, "name": "\u200b."}).words
    assert desk.post("/sign", run=RUN, sha256=digest, second="yes", **SAID).status == 303
    assert desk.post("/sign/approve", run=RUN, sha256=digest, name="\u200b.", do="approve").status == 409


def test_one_account_is_told(desk: Desk) -> None:
    place = desk.project.releases / "2026-01-01-1"
    place.mkdir(parents=True)
    told = {"run": RUN, "sha256": "0", "recipe": "0", "account": "root", "approved_by": "Bia"}
    both = {**told, "at": "2026-01-01", "release": place.name, **SAID}
    (place / "signature.json").write_text(json.dumps({**both, "approved_account": "root"}))
    assert "one account (root)" in desk.get("/sign").words
    (place / "signature.json").write_text(json.dumps({**both, "approved_account": "bia"}))
    assert "one account" not in desk.get("/sign").words


def test_what_cannot_be_done_to_a_column_is_refused_before_it_is_written(desk: Desk) -> None:
    before = desk.project.recipe_file.read_bytes()
    reply = desk.post("/look/column", column="ward", decision="round", step="1")
    assert reply.status == 409 and "does not hold numbers" in reply.words
    for step in ("0", "1,5", "nan", "inf", "x", ""):
        assert desk.post("/look/column", column="ward", decision="generalize", step=step).status in (400, 409)
    assert desk.project.recipe_file.read_bytes() == before and not list(desk.project.runs.iterdir())


def test_a_door_that_a_decision_closed_can_be_changed_and_taken_back(desk: Desk) -> None:
    name = deciding.door_name(side_door("cost"))
    decide(desk, "cost", decision="round", step="100")
    looked_at(desk, door("cost"))
    assert 'id="closed"' not in desk.get("/look").text  # the run still finds it: it is undecided above
    rmtree(desk.project.runs / RUN)
    looked_at(desk)
    page = desk.get("/look")
    assert "'cost': numbers rounded: 100 (by" in page.words and f'name="door" value="{name}"' in page.text
    assert desk.post("/look/closed", door=name, do="change", step="12,5").status == 303
    (done,) = recipe_of(desk).to_dict()["operations"]
    assert done["to"] == 12.5 and desk.project.answers().doors[name].step == "12.5"
    before = desk.state()
    assert desk.post("/look/closed", door=name, do="change", step="x").status in (400, 409)
    assert desk.post("/look/closed", door="none", do="back").status == 409
    assert desk.state() == before
    assert desk.post("/look/closed", door=name, do="back").status == 303
    assert recipe_of(desk).operations == () and name not in desk.project.answers().doors
    for run in desk.project.runs.iterdir():
        jobs.cancel(desk.project.runs, run.name)


@pytest.mark.parametrize(
    ("tongue", "written", "meant"), [("pt", "1.000", "1000"), ("en", "1,000", "1000"), ("pt", "2,5", "2.5")]
)
def test_a_step_is_read_as_the_language_writes_it(tongue: Language, written: str, meant: str) -> None:
    with speaking(tongue):
        assert deciding.plain_step(written) == meant


def test_a_step_is_offered_by_the_columns_own_numbers_and_one_that_levels_it_is_refused(desk: Desk) -> None:
    spread = {"cost": {"low": 8.0, "high": 45.0, "whole": False}}
    looked_at(desk, {**door("cost"), "spread": spread})
    name = deciding.door_name(side_door("cost"))
    page = desk.get("/look")
    assert f'name="step-{name}" size="8" inputmode="decimal" value="5"' in page.text
    assert "lie from 8 to 45; by this step about 8 different ones remain" in page.words
    before = desk.state()
    sent = {f"door-{name}": "round", f"step-{name}": "100"}
    refused = desk.post("/look/doors", run=RUN, **sent)
    assert refused.status == 409 and "next to nothing remains of 'cost'" in refused.words
    assert desk.state() == before and recipe_of(desk).operations == ()


def test_doors_of_look_alikes_are_decided_together_but_for_those_decided_by_themselves(
    tmp_path: Path,
) -> None:
    names = [f"lab_{i:02d}" for i in range(4)]
    rows = "".join(
        f"P{i:03d},{20 + i % 30}," + ",".join(f"{(i * 7 + j) % 90}.{j % 10}" for j in range(4)) + "\n"
        for i in range(80)
    )
    desk = Desk(tmp_path).opened(f"patient_id,age,{','.join(names)}\n{rows}").read().person()
    assert desk.roles().status == 303
    looked_at(desk, *(door(name) for name in names))
    page = desk.get("/look").text
    (lead,) = set(re.findall(r'name="(door-alike-[0-9a-f]+)"', page))
    of = lead.removeprefix("door-")
    each = {name: deciding.door_name(side_door(name)) for name in names}
    assert page.count(f'value="{of}"') == 4
    sent = {f"alike-of-{one}": of for one in each.values()} | {f"step-{one}": "10" for one in each.values()}
    sent |= {lead: "round", f"door-{each['lab_02']}": "hold"}
    assert desk.post("/look/doors", run=RUN, **sent).status == 303
    recipe = recipe_of(desk)
    assert [one.column for one in recipe.operations] == ["lab_00", "lab_01", "lab_03"]
    assert not recipe.schema.columns["lab_02"].published
    for run in desk.project.runs.iterdir():
        if run.name != RUN:
            jobs.cancel(desk.project.runs, run.name)


def test_a_run_that_was_signed_says_so_before_it_is_signed_again(desk: Desk) -> None:
    digest = finished_run(desk, [])
    place = desk.project.releases / "2026-01-01-1"
    place.mkdir(parents=True)
    told = {"run": RUN, "sha256": digest, "recipe": "0", "at": "2026-01-01", "release": place.name, **SAID}
    (place / "signature.json").write_text(json.dumps(told))
    assert "This run was signed as releases/2026-01-01-1: by Ana" in desk.get("/sign").words


def test_a_refused_run_offers_to_take_back_what_is_done_to_a_column(desk: Desk) -> None:
    decide(desk, "cost", decision="round", step="100")
    finished_run(desk, [])
    folder = desk.project.runs / RUN
    (folder / "result.json").unlink()
    words = {"en": "No.", "pt": "Não."}
    error = {"what": words, "why": words, "fix": words, "kind": "ParameterError"}
    (folder / "error.json").write_text(json.dumps(error))
    page = desk.get("/look")
    assert 'value="take back"' in page.text and 'name="column" value="cost"' in page.text
    made = deciding.with_decision(recipe_of(desk), DoorAnswer(decision="take back", column="cost"))
    assert made.operations == ()


def test_the_inventory_says_what_the_evidence_pack_says() -> None:
    frame = pl.DataFrame(
        {
            "cpf": [f"{i:03d}" for i in range(12)],
            "age": [20 + i for i in range(12)],
            "cost": [101 + 37 * (i % 5) for i in range(12)],
            "ward": ["a", "b", "c"] * 4,
            "note": ["x", "y"] * 6,
        }
    )
    columns = {
        "cpf": {"role": "identifier", "kind": "text"},
        "age": {"role": "quasi", "kind": "numeric"},
        "cost": {"role": "other", "kind": "numeric"},
        "ward": {"role": "other", "kind": "categorical"},
        "note": {"role": "other", "kind": "categorical", "publish": False},
    }
    schema = Schema.from_dict({"columns": columns})
    release = velado.anonymize(frame, schema, k=3, operations=[RoundNumbers("cost", to=100)])
    fates = {one["name"]: one["fate"] for one in inventory(release)}
    assert fates == {
        "cpf": "held back",
        "age": "generalized",
        "cost": "altered",
        "ward": "published",
        "note": "held back",
    }


def test_what_is_cheaper_is_shown_with_its_risk_and_runs_nothing(desk: Desk) -> None:
    cheaper = {"changed": "k", "k": 2, "suppression": 0.05, "loss": 0.1, "suppressed": 0}
    looked_at(desk, cheaper=[cheaper])
    page = desk.get("/look")
    assert (
        'href="/promise?k=2&amp;suppression=0.05&amp;loss=0.1"' in page.text and 'name="k"' not in page.text
    )
    assert "up to 50.0%, now 20.0%" in page.words
    before = desk.project.recipe_file.read_bytes()
    offered = desk.get("/promise?k=2&suppression=0.05")
    assert "These figures are a proposal." in offered.words and 'max="50" value="2"' in offered.text
    told = desk.get("/promise?k=2&suppression=0.05&loss=0.1").words
    assert "A short run of progressive with them lost 10.0%" in told
    assert "proposal" not in desk.get("/promise").words
    for odd in ("k=1&suppression=0", "k=2&suppression=nan", "k=x&suppression=0", "k=2"):
        assert "proposal" not in desk.get(f"/promise?{odd}").words
    desk.post("/look/again", state="", k="2", suppression="0.05")
    assert desk.project.recipe_file.read_bytes() == before


def test_before_and_after_stand_side_by_side(desk: Desk) -> None:
    looked_at(desk)
    words = desk.get("/look").words
    assert "age-1 age-* sex-1 sex-*" in words and "age-2 sex-2 left out" in words


def test_the_choice_of_the_person_stands_beside_its_name(desk: Desk) -> None:
    text = desk.get("/people").text
    cells = text.split("<tbody>")[1].split("</tr>")[0]
    assert cells.index("<button") < cells.index("</td>")


@pytest.mark.parametrize("place", ["from=99999999999999999999", "group=99999999999999999999", "from=-1"])
def test_a_page_of_rows_beyond_all_rows_is_shown(desk: Desk, place: str) -> None:
    looked_at(desk)
    assert desk.get(f"/look?{place}").status == 200


def test_an_address_without_a_number_is_refused_in_words(desk: Desk) -> None:
    reply = desk.get("/hierarchies/abc?lang=pt")
    assert reply.status == 404 and "Não há nada neste endereço" in reply.words


@pytest.mark.parametrize("path", ["/promise", "/roles", "/people", "/open/right", "/look/again"])
def test_a_form_that_does_not_say_what_it_showed_is_refused(desk: Desk, path: str) -> None:
    fields = {"k": "9", "answer": "column", "column": "patient_id", **desk.role_fields()}
    before = desk.state()
    reply = desk.post(path, state="", **fields)
    assert reply.status == 409 and "changed after this page was shown" in reply.words
    assert desk.state() == before
