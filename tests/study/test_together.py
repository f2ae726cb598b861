"""Held together over all releases of a history: nobody below k, no value above the bound, or nothing leaves."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from velado.apps.cli import run
from velado.data.history_file import HistoryEntry, create_history, history_held
from velado.data.keys import Key
from velado.data.schema import Schema
from velado.data.staging import StagedFolder
from velado.errors import GuaranteeNotMet, HistoryError, ParameterError, SuppressionLimitExceeded
from velado.release.history.record import Record, entry_of, told_by
from velado.release.history.together import Together
from velado.study.held_people import forget
from velado.study.run import Published, apply_recipe, publish

KEY = Key(bytes(range(40)))
SCHEMA = Schema.from_dict(
    {
        "columns": {
            "id": {"role": "identifier", "person": True},
            "age": {"role": "quasi", "kind": "numeric"},
            "place": {"role": "quasi", "kind": "numeric"},
            "illness": {"role": "sensitive", "kind": "categorical"},
        }
    }
)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "state"))


@pytest.fixture
def history(tmp_path: Path) -> Path:
    path = tmp_path / "visits.history"
    create_history(path, KEY)
    return path


def everybody(seed: int = 0, people: int = 120) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "id": [f"person {p}" for p in range(people)],
            "age": random.integers(18, 90, people),
            "place": random.integers(0, 40, people),
            "illness": random.choice(["flu", "asthma", "gout", "hiv"], people),
        }
    )


def deliveries(seed: int, count: int, churn: int = 6) -> list[pl.DataFrame]:
    random, frame = np.random.default_rng(seed), everybody(seed)
    here, out = np.arange(80), []
    for _ in range(count):
        out.append(frame[here])
        stay = random.permutation(here)[churn:]
        others = np.setdiff1d(np.arange(frame.height), here)
        here = np.concatenate([stay, random.permutation(others)[:churn]])
    return out


def send(frame: pl.DataFrame, out: Path, history: Path, together: Any, **given: Any) -> Published:
    given = {"k": 3, "suppression": 0.5, "bound": "off", "schema": SCHEMA, **given}
    return publish(frame, method="mondrian", out=out, key=KEY, history=history, together=together, **given)


def written(done: Published) -> pl.DataFrame:
    """What left, with whose row each is: the owner's row numbers tell."""
    table = pl.read_csv(done.public / "table.csv", infer_schema=False)
    names = done.release.original.frame["id"][done.release.rows]
    return table.with_columns(names.alias("who"))


def test_people_held_together_never_have_fewer_than_k_candidates(tmp_path: Path, history: Path) -> None:
    shown: list[dict[str, tuple[str, str]]] = []
    for t, frame in enumerate(deliveries(3, 4)):
        done = send(frame, tmp_path / f"{t}", history, "people")
        shown.append({row["who"]: (row["age"], row["place"]) for row in written(done).iter_rows(named=True)})
        for who in {name for one in shown for name in one}:
            mine = [t for t, one in enumerate(shown) if who in one]
            alike = [u for u in shown[mine[0]] if all(shown[t].get(u) == shown[t][who] for t in mine)]
            assert len(alike) >= 3
        promise = json.loads((done.public / "manifest.json").read_text())["promise"]["over_time"]
        assert promise["type"] == "guaranteed" and promise["reader"] == "in" and promise["needed"] == 3
        assert "Guaranteed." in (done.private / "report.html").read_text()


def test_released_each_alone_the_same_deliveries_do_fall_below_k(tmp_path: Path, history: Path) -> None:
    last = None
    for t, frame in enumerate(deliveries(3, 4)):
        last = send(frame, tmp_path / f"{t}", history, None)
    assert last is not None and last.release.over_time is None
    with history_held(history, KEY) as file:
        from velado.release.history.record import told_by

        assert told_by(Record.of(file.entries), 3).inside.below > 0


def test_a_written_row_that_leaves_its_class_stops_the_release(
    tmp_path: Path, history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    true = StagedFolder.pour

    def altered(self: StagedFolder, name: str, pieces: Iterable[bytes]) -> str:
        lines = b"".join(pieces).split(b"\n")
        lines[1] = b"50,7," + lines[1].rsplit(b",", 1)[1]
        return true(self, name, [b"\n".join(lines)])

    monkeypatch.setattr(StagedFolder, "pour", altered)
    with pytest.raises(GuaranteeNotMet, match="candidates"):
        send(everybody(), tmp_path / "a", history, "people")
    assert not (tmp_path / "a").exists()


def test_too_many_given_up_is_an_error_that_says_how_many(tmp_path: Path, history: Path) -> None:
    frame = everybody()
    send(frame[:60], tmp_path / "a", history, "people")
    with pytest.raises(SuppressionLimitExceeded, match="given up"):
        send(frame[30:62], tmp_path / "b", history, "people", suppression=0.0)
    assert not (tmp_path / "b").exists()


def test_much_coming_and_going_is_warned_of(tmp_path: Path, history: Path) -> None:
    first, second = deliveries(1, 2, churn=10)
    send(first, tmp_path / "a", history, "people")
    said = send(second, tmp_path / "b", history, "people").release.warnings
    assert any("classes for life lose much detail" in line for line in said)


def test_several_rows_of_a_person_are_refused_where_people_are_held(tmp_path: Path, history: Path) -> None:
    twice = pl.concat([everybody(), everybody()[:1]])
    with pytest.raises(ParameterError, match="several rows"):
        send(twice, tmp_path / "a", history, "people")


def test_counts_of_groups_stand_in_the_place_of_values(tmp_path: Path, history: Path) -> None:
    frame, life = everybody(3), dict[str, dict[str, int]]()
    labels = dict[str, str | None]()
    for t, delivery in enumerate(deliveries(3, 4, churn=25)):
        done = send(delivery, tmp_path / f"{t}", history, Together(what="values", group=10))
        table = written(done)
        assert "illness" not in table.columns
        counts = pl.read_csv(done.public / "values.csv")
        told: dict[str, dict[str, int]] = {}
        for group, value, count in counts.iter_rows():
            told.setdefault(group, {})[value] = count
        assert {one for one in table["illness_group"] if one} == set(told)
        for group, histogram in told.items():
            assert 2 * max(histogram.values()) <= sum(histogram.values()) >= 10
            assert life.setdefault(group, histogram) == histogram  # the same in every release
        for who, label in table.select("who", "illness_group").iter_rows():
            assert labels.setdefault(who, label) == label  # a group is for life
        promise = json.loads((done.public / "manifest.json").read_text())["promise"]["over_time"]
        assert promise["type"] == "guaranteed" and promise["together"] == "values"
        assert any("rows name groups in the place of values" in line for line in done.release.warnings)
    true = dict(frame.select("id", "illness").iter_rows())
    members: dict[str, Counter[str]] = {}
    for who, label in labels.items():
        if label:
            members.setdefault(label, Counter())[true[who]] += 1
    assert members == {name: Counter(found) for name, found in life.items()}


@pytest.mark.parametrize("ages", ["many", "two"])
def test_groups_of_values_do_not_depend_on_values(ages: str, tmp_path: Path) -> None:
    """With two ages, each in one place, there is nothing more to cut by but the values, which are numbers, for whoever sees them."""
    frame, schema, tables = everybody(5), SCHEMA, []
    if ages == "two":
        old = pl.col("age") // 54
        frame = frame.with_columns(old, old.alias("place"), pl.col("illness").str.len_chars())
        columns = {name: column.to_dict() for name, column in SCHEMA.columns.items()}
        columns["illness"] = {"role": "sensitive", "kind": "numeric"}
        schema = Schema.from_dict({"columns": columns})
    for number, values in enumerate((frame["illness"], frame["illness"].reverse())):
        path = tmp_path / f"h{number}"
        create_history(path, KEY)
        done = send(
            frame.with_columns(values.alias("illness")),
            tmp_path / f"{number}",
            path,
            Together(what="values", most="9/10"),
            schema=schema,
        )
        tables.append(written(done).sort("who"))
    assert tables[0].equals(tables[1])
    path = tmp_path / "alone"
    create_history(path, KEY)
    alone = written(send(frame, tmp_path / "a", path, None, schema=schema)).sort("who")
    shown = ["who", "age", "place"]
    assert alone.select(shown).equals(tables[0].select(shown))  # the same boxes, and so the same loss


def test_a_group_that_breaks_the_bound_gets_no_values_for_life(tmp_path: Path, history: Path) -> None:
    frame = everybody(5).with_columns(
        pl.when(pl.col("age") > 50).then(pl.lit("flu")).otherwise(pl.col("illness")).alias("illness")
    )
    first = written(send(frame[:80], tmp_path / "a", history, Together(what="values", group=10)))
    bare = set(first.filter(pl.col("illness_group").is_null())["who"])
    assert 0 < len(bare) < 80
    mended = frame.with_columns(everybody(9)["illness"])
    then = written(send(mended[:80], tmp_path / "b", history, Together(what="values", group=10)))
    assert set(then.filter(pl.col("illness_group").is_null())["who"]) == bare


def test_too_few_newcomers_get_no_values_and_are_not_tried_again(tmp_path: Path, history: Path) -> None:
    frame = everybody(5)
    ask = Together(what="values", group=10)
    send(frame[:60], tmp_path / "a", history, ask)
    send(frame[:64], tmp_path / "b", history, ask)
    last = written(send(frame[:76], tmp_path / "c", history, ask))
    bare = set(last.filter(pl.col("illness_group").is_null())["who"])
    assert {f"person {p}" for p in range(60, 64)} <= bare


@pytest.mark.parametrize("role", ["other", "sensitive"])
def test_raw_columns_beside_groups_of_values_are_refused(tmp_path: Path, history: Path, role: str) -> None:
    columns = {name: column.to_dict() for name, column in SCHEMA.columns.items()}
    schema = Schema.from_dict({"columns": {**columns, "note": {"role": role}}})
    frame = everybody().with_columns(pl.lit("x").alias("note"))
    with pytest.raises(ParameterError, match=r"as it is|one sensitive"):
        send(frame, tmp_path / "a", history, "values", schema=schema)


def test_an_older_copy_lowers_the_promise_to_measured_in_the_manifest(tmp_path: Path, history: Path) -> None:
    first, second, third = deliveries(2, 3, churn=2)
    for what in ("people", "values"):
        path = tmp_path / f"{what}.history"
        create_history(path, KEY)
        send(first, tmp_path / f"{what} a", path, what)
        copy = path.read_bytes()
        send(second, tmp_path / f"{what} b", path, what)
        path.write_bytes(copy)
        done = send(third, tmp_path / f"{what} c", path, what)
        promise = json.loads((done.public / "manifest.json").read_text())["promise"]["over_time"]
        assert promise["type"] == "measured" and "older copy" in promise["why_measured"]
        assert any("Nothing is promised over all releases" in line for line in done.release.warnings)


def test_merged_groups_have_counts_and_promise_nothing(tmp_path: Path, history: Path) -> None:
    frame = everybody(5).with_columns(
        pl.when(pl.col("age") > 50).then(pl.lit("flu")).otherwise(pl.col("illness")).alias("illness")
    )
    bare = []
    for merge in (False, True):
        path = tmp_path / f"{merge}.history"
        create_history(path, KEY)
        asked = Together(what="values", group=10, most="2/3", merge=merge)
        done = send(frame, tmp_path / f"{merge}", path, asked)
        bare.append(written(done)["illness_group"].null_count())
        promise = json.loads((done.public / "manifest.json").read_text())["promise"]["over_time"]
        assert promise["type"] == ("measured" if merge else "guaranteed")
        assert promise["holds"] and promise["achieved"] <= 2 / 3
        assert any("minimality" in line for line in done.release.warnings) == merge
        with pytest.raises(HistoryError, match="another --together"):
            send(frame[:90], tmp_path / "x", path, Together(what="values", group=10, merge=not merge))
    assert bare[1] == 0 < bare[0]


def test_nothing_is_merged_where_merging_cannot_help(tmp_path: Path) -> None:
    """flu is more than two fifths of everybody: with that at most one group of all would have no counts, and the groups that hold keep theirs."""
    frame = everybody(5).with_columns(
        pl.when(pl.col("age") > 50).then(pl.lit("flu")).otherwise(pl.col("illness")).alias("illness")
    )
    bare = []
    for merge in (False, True):
        create_history(tmp_path / f"{merge}.history", KEY)
        asked = Together(what="values", group=10, most="2/5", merge=merge)
        done = send(frame, tmp_path / f"{merge}", tmp_path / f"{merge}.history", asked)
        bare.append(written(done)["illness_group"].null_count())
    assert bare[0] == bare[1] < frame.height


EXACTLY = Together(what="people", readers="exactly", start=4)


def tracks(history: list[pl.DataFrame]) -> Counter[tuple[object, ...]]:
    """How many people show the same in all releases, absence included: the blocks of who knows everybody's presence."""
    shown = [{row["who"]: (row["age"], row["place"]) for row in one.iter_rows(named=True)} for one in history]
    return Counter(tuple(one.get(who) for one in shown) for who in {name for one in shown for name in one})


def test_rows_of_people_who_left_are_shown_on_until_k_can_go_together(tmp_path: Path, history: Path) -> None:
    history_of_tables, stale, went = list[pl.DataFrame](), 0, 0
    seen: set[str] = set()
    for t, frame in enumerate(deliveries(3, 5, churn=16)):
        done = send(frame, tmp_path / f"{t}", history, EXACTLY)
        history_of_tables.append(written(done))
        assert min(tracks(history_of_tables).values()) >= 3
        here, shown = set(frame["id"]), set(history_of_tables[-1]["who"])
        stale, went = stale + len(shown - here), went + len(seen - shown - here)
        seen |= shown
        promise = json.loads((done.public / "manifest.json").read_text())["promise"]["over_time"]
        assert promise["type"] == "guaranteed" and promise["reader"] == "exactly"
        assert promise["rows_of_people_who_left"] == len(shown - here)
        numbers = pl.read_csv(done.private / "rows.csv", infer_schema=False)["row"]
        known = numbers.filter(numbers != "").cast(pl.Int64)
        assert len(numbers) - len(known) == len(shown - here) and known.max() <= frame.height
        assert "are of people who left" in (done.public / "about.html").read_text()
        beside = list(tmp_path.glob("visits.history.rows-*"))
        assert len(beside) == 1 and beside[0].stat().st_mode & 0o077 == 0
    assert stale > 20 and went > 3


def test_a_column_that_changes_is_refused_where_rows_of_people_who_left_are_kept(
    tmp_path: Path, history: Path
) -> None:
    frame = everybody()
    send(frame[:100], tmp_path / "a", history, EXACTLY)
    changed = frame[1:100].with_columns(
        illness=pl.when(pl.col("id") == "person 7").then(pl.lit("none")).otherwise(pl.col("illness"))
    )
    with pytest.raises(ParameterError, match="'illness' changed for somebody"):
        send(changed, tmp_path / "b", history, EXACTLY)
    moved = frame[1:100].with_columns(
        place=pl.col("place") + 1
    )  # a quasi-identifier may: all of a class show the same
    send(moved, tmp_path / "c", history, EXACTLY)


def test_who_is_forgotten_is_not_in_the_rows_that_are_kept(tmp_path: Path, history: Path) -> None:
    frame = everybody()
    first = written(send(frame, tmp_path / "a", history, EXACTLY))
    box = first.filter(pl.col("who") == "person 5").select("age", "place")
    members = set(first.join(box, on=["age", "place"])["who"])
    with history_held(history, KEY) as file:
        forget(file, "person 5", KEY)
        left = pl.read_parquet(file.rows())
    assert set(left["id"]) == set(first["who"]) - members
    rest = frame.filter(pl.col("id") != "person 5")
    assert set(written(send(rest, tmp_path / "b", history, EXACTLY))["who"]) == set(first["who"]) - members
    # Erased and back: not in this history.
    assert set(written(send(frame, tmp_path / "c", history, EXACTLY))["who"]) == set(first["who"]) - members


def test_without_the_rows_of_people_who_left_nothing_leaves(tmp_path: Path, history: Path) -> None:
    frame = everybody()
    send(frame, tmp_path / "a", history, EXACTLY)
    (beside,) = tmp_path.glob("visits.history.rows-*")
    whole = beside.read_bytes()
    for content in (whole[:-1], None):
        beside.unlink()
        if content is not None:
            beside.write_bytes(content)
        with pytest.raises(HistoryError, match="rows beside the history"):
            send(frame[1:], tmp_path / "b", history, EXACTLY)
    assert not (tmp_path / "b").exists()


def test_what_cannot_be_shown_alike_in_every_release_is_refused_beside_kept_rows(
    tmp_path: Path, history: Path
) -> None:
    frame = everybody()
    with pytest.raises(ParameterError, match="nothing to promise"):
        Together(what="people", readers="exactly", leavers="drop")
    send(frame, tmp_path / "a", history, EXACTLY)
    with pytest.raises(HistoryError, match="another --together"):
        send(frame, tmp_path / "b", history, "people")
    with pytest.raises(ParameterError, match="earlier releases of the history promised 3"):
        send(frame, tmp_path / "b", history, EXACTLY, k=2)


def test_a_history_is_of_one_kind(tmp_path: Path, history: Path) -> None:
    send(everybody(), tmp_path / "a", history, "values")
    for number, other in enumerate((None, "people")):
        with pytest.raises(HistoryError, match="another --together"):
            send(everybody(), tmp_path / f"b{number}", history, other)


def test_a_recipe_holds_on_and_not_without_its_history(tmp_path: Path, history: Path) -> None:
    first, second = deliveries(2, 2, churn=2)
    send(first, tmp_path / "a", history, Together(what="people", start=8))
    recipe = tmp_path / "a" / "private" / "recipe.toml"
    with pytest.raises(ParameterError, match="no history"):
        apply_recipe(recipe, second, tmp_path / "b", key=KEY)
    done = apply_recipe(recipe, second, tmp_path / "b", key=KEY, history=history)
    assert done.release.over_time is not None and done.release.over_time.promise == "guaranteed"


def test_the_flags_of_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    everybody().write_csv(tmp_path / "t.csv")
    (tmp_path / "s.toml").write_text(
        "[columns]\n"
        'id = {role = "identifier", person = true}\nage = {role = "quasi", kind = "numeric"}\n'
        'place = {role = "quasi", kind = "numeric"}\nillness = {role = "sensitive"}\n'
    )
    path = str(tmp_path / "h")
    assert run(["history", "create", path]) == 0
    call = ["anonymize", str(tmp_path / "t.csv"), "--schema", str(tmp_path / "s.toml"), "-m", "mondrian"]
    over = [*call, "--history", path, "-o", str(tmp_path / "o")]
    assert run([*call, "-o", str(tmp_path / "o"), "--together", "values"]) != 0  # no history
    assert run([*over, "--start", "9"]) != 0
    assert run([*over, "--together", "values", "--most", "2"]) != 0
    capsys.readouterr()
    assert run([*over, "--together", "values", "--most", "2/3", "--group", "12"]) == 0
    said = " ".join("".join(capsys.readouterr()).split())
    assert "known with more than 2/3" in said and "Guaranteed" in said
    assert (tmp_path / "o" / "release" / "values.csv").exists()


def test_who_is_forgotten_takes_the_whole_class_out(tmp_path: Path, history: Path) -> None:
    frame = everybody()
    first = written(send(frame, tmp_path / "a", history, "people"))
    box = first.filter(pl.col("who") == "person 5").select("age", "place")
    members = set(first.join(box, on=["age", "place"])["who"])
    (tmp_path / "k").write_bytes(KEY.secret)
    call = ["history", "forget", str(history), "--key", str(tmp_path / "k")]
    assert run([*call, "nobody we know"]) != 0
    assert run([*call, "person 5"]) == 0
    rest = frame.filter(pl.col("id") != "person 5")
    for name in ("b", "c"):
        shown = set(written(send(rest, tmp_path / name, history, "people"))["who"])
        assert shown == set(first["who"]) - members


def respelled(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.col("id").str.to_uppercase() + " ")


@pytest.mark.parametrize("what", ["people", "values"])
def test_however_a_delivery_spells_people_they_stay_with_whom_they_were(
    what: Any, tmp_path: Path, history: Path
) -> None:
    frame, group = everybody(), "age" if what == "people" else "illness_group"
    shown = []
    for t, one in enumerate([frame, respelled(frame[:110])]):
        done = send(one, tmp_path / f"{t}", history, Together(what=what))
        whose = written(done).with_columns(pl.col("who").str.strip_chars().str.to_lowercase())
        shown.append(dict(zip(whose["who"], whose[group], strict=True)))
    with history_held(history, KEY) as file:
        assert len(Record.of(file.entries).people) == 120
    if what == "values":
        assert all(shown[0][who] == now for who, now in shown[1].items())


def test_two_spellings_of_one_person_are_several_rows(tmp_path: Path, history: Path) -> None:
    frame = everybody(people=40)
    with pytest.raises(ParameterError, match="several rows"):
        send(pl.concat([frame, respelled(frame)]), tmp_path / "one", history, Together(what="people"))


def test_whole_numbers_and_floats_are_the_same_people(tmp_path: Path, history: Path) -> None:
    frame = everybody().with_columns(id=pl.int_range(120))
    send(frame, tmp_path / "one", history, EXACTLY)
    send(frame[:118].with_columns(pl.col("id").cast(pl.Float64)), tmp_path / "two", history, EXACTLY)
    with history_held(history, KEY) as file:
        assert len(Record.of(file.entries).people) == 120
        forget(file, " 7.0", KEY)
        kept = file.rows()
    assert kept is not None


def test_a_release_of_strangers_says_so() -> None:
    entries, said = list[HistoryEntry](), list[bool]()
    for names in ("ab", "cd", "bd"):
        what, body = entry_of(Record.of(entries), pl.Series([*names]), np.zeros(2, np.int32), None, bytes(32))
        entries.append(HistoryEntry({**what, "table": names}, body, ""))
        told = told_by(Record.of(entries), k=2).sentences()
        said.append(any("known from an earlier one" in one for one in told))
    assert said == [False, True, False]


def test_rows_of_people_who_left_are_not_counted_as_read(tmp_path: Path, history: Path) -> None:
    frame = everybody()
    send(frame, tmp_path / "one", history, EXACTLY)
    done = send(frame[:115], tmp_path / "two", history, EXACTLY)
    page = (done.private / "report.html").read_text()
    assert "115 rows of 115 people" in page and "rows of 120 people" not in page


@pytest.mark.parametrize("most", ["1e-99999999", "1e-3", "0", "1", "2/1", "x", "1/0", "0." + "1" * 5000])
def test_a_bound_that_is_no_plain_fraction_is_refused_at_once(most: str) -> None:
    with pytest.raises(ParameterError, match="fraction"):
        Together(what="values", most=most)


def test_a_row_of_somebody_who_left_is_a_row_of_the_owners_numbers(tmp_path: Path, history: Path) -> None:
    """An empty line is none for most readers, and all numbers after it would stand beside the wrong row."""
    asked = Together(what="people", readers="exactly")
    frame = everybody(1)[:40]
    send(frame, tmp_path / "a", history, asked)
    done = send(frame[2:], tmp_path / "b", history, asked)
    with (done.private / "rows.csv").open() as file:
        numbers = [one["row"] for one in csv.DictReader(file)]
    assert len(numbers) == done.release.listed.height == 40 and numbers.count("") == 2
    assert sorted(int(one) for one in numbers if one) == list(range(1, 39))


def test_a_bound_that_earlier_groups_break_is_not_promised_of_all_releases(
    tmp_path: Path, history: Path
) -> None:
    """The second release is of other people, whose groups keep the tighter bound; what left before does not."""
    frame, wide = everybody(5), Together(what="values", group=10, most="2/3")
    two = frame[:60].with_columns(illness=pl.Series([f"{at % 2}" for at in range(60)]))
    assert send(two, tmp_path / "a", history, wide).release.over_time
    even = frame[60:].with_columns(illness=pl.Series([f"{at % 6}" for at in range(60)]))
    for most in ("2/5", "0.4"):
        with pytest.raises(ParameterError, match="groups of earlier releases"):
            send(even, tmp_path / "b", history, Together(what="values", group=60, most=most))
    done = send(even, tmp_path / "b", history, Together(what="values", group=60, most="2/3"))
    assert done.release.over_time is not None and done.release.over_time.promise == "guaranteed"
