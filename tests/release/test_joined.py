"""Published tables that share people keep the promise when they are joined; counted here in plain Python."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from velado.data.keys import Key
from velado.data.table import Table
from velado.data.table_bytes import csv_bytes
from velado.errors import (
    GuaranteeNotMet,
    IdentifierOpen,
    ParameterError,
    SchemaError,
    SideDoorOpen,
    SuppressionLimitExceeded,
    TableError,
)
from velado.release import _joined_people as joined_people
from velado.release import joined as joined_publish
from velado.release.anonymize import anonymize
from velado.release.guarantees import KAnonymity, LDiversity
from velado.release.joined import anonymize_joined
from velado.release.methods import DAS, GFKMC, FixedInterval, KMember, Mondrian, TopDownGreedy
from velado.release.pseudonyms import pseudonyms_of

from .. import tables as made
from ..covering import one_in

KEY = Key.of(bytes(range(7, 47)))
CITIES = {"South": ["Curitiba", "Londrina"], "Southeast": ["Rio", "Santos", "Lavras"]}
REGION = {city: region for region, cities in CITIES.items() for city in cities}
PERSON = {"role": "identifier", "kind": "text", "person": True}
DISEASE = {"role": "sensitive", "side_door": "accept"}
PATIENTS = {
    "patient": PERSON,
    "age": {"role": "quasi", "kind": "numeric"},
    "city": {"role": "quasi", "taxonomy": {"builder": "tree", "nodes": CITIES}},
    "disease": DISEASE,
}
VISITS = {"who": PERSON, "weight": {"role": "quasi", "kind": "numeric"}, "drug": DISEASE}


def table(columns, rows, **settings) -> Table:
    cells = {name: [row[at] for row in rows] for at, name in enumerate(columns)}
    return made.table(columns, cells, **settings)


def two(people=60, seed=0, in_both=None) -> dict[str, Table]:
    """Patients with one row each, and visits with none to four rows each."""
    random = np.random.default_rng(seed)
    cities = list(REGION)
    patients = [
        (f"p{i}", str(random.integers(18, 80)), cities[random.integers(5)], f"d{random.integers(4)}")
        for i in range(people)
    ]
    visits = [
        (f"p{i}", str(random.integers(50, 99)), f"m{random.integers(4)}")
        for i in range(people if in_both is None else in_both)
        for _ in range(random.integers(1, 4))
    ]
    return {"patients": table(PATIENTS, patients), "visits": table(VISITS, visits)}


def read_back(release) -> dict[str, list[dict[str, str]]]:
    """The published CSV files, read by the standard library."""
    return {
        name: list(csv.DictReader(io.StringIO(csv_bytes(frame).decode())))
        for name, frame in release.frames.items()
    }


QUASI = {"patients": ("age", "city"), "visits": ("weight",)}


def joined_tuples(files) -> dict[str, tuple]:
    """What whoever joins the files by pseudonym sees of each person: in which tables, and all visible values."""
    seen = defaultdict(lambda: {name: set() for name in files})
    for name, rows in files.items():
        for row in rows:
            seen[row["pseudonym"]][name].add(tuple(row[column] for column in QUASI[name]))
    return {
        who: tuple((name, frozenset(values)) for name, values in sorted(tables.items()))
        for who, tables in seen.items()
    }


def covers(text: str, value: str) -> bool:
    if text in (value, "*"):
        return True
    if text.startswith("["):
        low, high = text.strip("[]").split("..")
        return value != "" and float(low) <= float(value) <= float(high)
    return REGION.get(value) == text


@st.composite
def pairs(draw):
    people = draw(st.integers(4, 24))
    ages, blank = st.integers(18, 30).map(str), st.just("")
    patients, visits = [], []
    for i in range(people):
        where = draw(st.sampled_from(["both", "both", "both", "patients", "visits"]))
        if where != "visits":
            age = draw(st.one_of(ages, ages, ages, blank))
            patients.append(
                (f"p{i}", age, draw(st.sampled_from(sorted(REGION))), draw(st.sampled_from("abc")))
            )
        if where != "patients":
            for _ in range(draw(st.integers(1, 3))):
                visits.append((f"p{i}", draw(st.integers(50, 60).map(str)), draw(st.sampled_from("xyz"))))
    if not any(row[1] for row in patients):
        patients.append(("extra", "20", "Rio", "a"))
    if not visits:
        visits.append(("p0", "50", "x"))
    order = draw(st.randoms(use_true_random=False))
    order.shuffle(visits)
    return {"patients": table(PATIENTS, patients), "visits": table(VISITS, visits)}


@pytest.mark.parametrize(
    "method",
    one_in(2, [Mondrian(), TopDownGreedy(), KMember(), GFKMC(), FixedInterval(), DAS()], lambda m: m.name),
)
@settings(max_examples=12)
@given(tables=pairs(), k=st.integers(2, 5), suppression=st.sampled_from([0.0, 0.3, 1.0]))
def test_every_joined_group_has_k_people_and_every_cell_is_true(method, tables, k, suppression):
    people = {
        who
        for name, column in (("patients", "patient"), ("visits", "who"))
        for who in tables[name].frame[column]
    }
    try:
        release = anonymize_joined(tables, method, (KAnonymity(k),), suppression=suppression, key=KEY)
    except (IdentifierOpen, SideDoorOpen):
        return  # among a handful of people chance alone makes a column follow one of them
    except GuaranteeNotMet:
        # Some combination of tables has fewer than k people, more than may be left out.
        a, b = set(tables["patients"].frame["patient"]), set(tables["visits"].frame["who"])
        rare = sum(len(group) for group in (a & b, a - b, b - a) if len(group) < k)
        kept_tables = [t for t in (a, b) if any(len(g & t) >= k for g in (a & b, a - b, b - a))]
        assert rare > suppression * len(people) - 1e-9 or len(kept_tables) < 2
        return
    files = read_back(release)
    crowds = Counter(joined_tuples(files).values())
    assert min(crowds.values()) >= k
    for name, rows in files.items():
        alone = defaultdict(set)
        for row in rows:
            alone[tuple(row[column] for column in QUASI[name])].add(row["pseudonym"])
        assert min(len(crowd) for crowd in alone.values()) >= k
    assert release.suppressed_people == len(people) - sum(crowds.values())
    assert release.suppressed_people <= suppression * len(people) + 1e-9
    everybody = sorted(people)
    back = dict(zip(pseudonyms_of([person.upper() for person in everybody], KEY), everybody, strict=True))
    for name, person in (("patients", "patient"), ("visits", "who")):
        originals = defaultdict(list)
        for row in tables[name].frame.iter_rows(named=True):
            originals[row[person]].append(row)
        for row in files[name]:
            assert person not in row
            for original in originals[back[row["pseudonym"]]]:
                assert all(covers(row[c], original[c]) for c in QUASI[name])
        # Nobody loses a row of their own, and what is not a quasi-identifier leaves as it came.
        other = {"patients": "disease", "visits": "drug"}[name]
        kept = {back[row["pseudonym"]] for row in files[name]}
        assert Counter((back[row["pseudonym"]], row[other]) for row in files[name]) == Counter(
            (who, row[other]) for who in kept for row in originals[who]
        )


def test_tables_published_one_by_one_would_have_broken_the_promise():
    tables = two(80)
    alone = {}
    for name, one in tables.items():
        person = one.schema.person.name
        made = anonymize(one, one.schema, Mondrian(), k=5)
        alone[name] = made.frame.with_columns(
            pl.Series("pseudonym", one.frame[person].to_list()).filter(pl.Series(made.kept))
        ).to_dicts()
    assert min(Counter(joined_tuples(alone).values()).values()) < 5
    release = anonymize_joined(tables, Mondrian(), key=KEY, k=5)
    assert min(Counter(joined_tuples(read_back(release)).values()).values()) >= 5


def test_people_of_different_tables_are_never_in_one_group():
    tables = two(80, in_both=50)
    release = anonymize_joined(tables, Mondrian(), key=KEY, k=5)
    found = release.notes["combinations_of_tables"]
    assert {name: entry["people"] for name, entry in found.items()} == {
        "patients": 30,
        "patients + visits": 50,
    }
    assert min(Counter(joined_tuples(read_back(release)).values()).values()) >= 5


def test_a_combination_of_tables_that_few_people_share_is_refused_or_left_out():
    tables = two(60, in_both=58)
    with pytest.raises(GuaranteeNotMet, match="Of 60 people 2 are") as caught:
        anonymize_joined(tables, Mondrian(), k=5)
    assert "--suppression 0.034" in str(caught.value)
    with pytest.raises(SuppressionLimitExceeded):
        anonymize_joined(tables, Mondrian(), suppression=0.03, k=5)
    release = anonymize_joined(tables, Mondrian(), suppression=0.034, key=KEY, k=5)
    assert release.suppressed_people == 2 and release.frames["patients"].height == 58
    assert min(Counter(joined_tuples(read_back(release)).values()).values()) >= 5


def test_sensitive_values_are_diverse_in_every_joined_group_of_every_table():
    tables = two(80)
    release = anonymize_joined(tables, Mondrian(), (LDiversity(3),), key=KEY, k=4)
    files = read_back(release)
    group_of = joined_tuples(files)
    for name, column in (("patients", "disease"), ("visits", "drug")):
        values = defaultdict(set)
        for row in files[name]:
            values[group_of[row["pseudonym"]]].add(row[column])
        assert min(len(found) for found in values.values()) >= 3
    plain = read_back(anonymize_joined(tables, Mondrian(), key=KEY, k=4))
    values = defaultdict(set)
    for row in plain["patients"]:
        values[joined_tuples(plain)[row["pseudonym"]]].add(row["disease"])
    assert min(len(found) for found in values.values()) < 3, "without the promise the test would show nothing"
    only = anonymize_joined(tables, Mondrian(), (LDiversity(3, "drug"),), k=4)
    assert [len(only.tables[name].within) for name in ("patients", "visits")] == [1, 2]
    with pytest.raises(ParameterError, match="sensitive column"):
        anonymize_joined(tables, Mondrian(), (LDiversity(3, "nothing"),), k=4)
    with pytest.raises(GuaranteeNotMet):
        anonymize_joined(tables, Mondrian(), (LDiversity(9),), k=4)


def test_without_a_key_no_pseudonym_leaves_and_the_order_of_rows_tells_nothing():
    tables = two(40)
    release = anonymize_joined(tables, Mondrian(), k=5)
    assert release.frames["patients"].columns == ["age", "city", "disease"]
    assert release.frames["visits"].columns == ["weight", "drug"]
    assert release.key_fingerprint is None and release.smallest_by_row_counts is None
    for frame in release.frames.values():
        assert frame.equals(frame.sort(frame.columns))
    turned = {name: one.with_frame(one.frame.reverse()) for name, one in tables.items()}
    again = anonymize_joined(turned, Mondrian(), k=5)
    assert again.verdicts[0].holds


def test_the_same_seed_gives_the_same_release():
    tables = two(40)
    first, second = (anonymize_joined(tables, GFKMC(), seed=3, key=KEY, k=4) for _ in range(2))
    assert all(first.frames[name].equals(second.frames[name]) for name in tables)
    assert first.facts() == second.facts()


def test_row_counts_are_measured_where_a_pseudonym_shows_them():
    tables = two(40)
    release = anonymize_joined(tables, Mondrian(), key=KEY, k=8)
    files = read_back(release)
    group, visits = joined_tuples(files), Counter(row["pseudonym"] for row in files["visits"])
    smallest = min(Counter((group[who], visits[who]) for who in group).values())
    assert release.smallest_by_row_counts == smallest < 8
    assert any("how many rows" in text for text in release.warnings)


def test_what_is_said_of_a_release_holds_no_cell_and_no_key():
    tables = two(40)
    release = anonymize_joined(tables, Mondrian(), key=KEY, k=5)
    said = json.dumps(release.facts(), ensure_ascii=False) + repr(release)
    for cell in ("Curitiba", "South", "p17", "[", "d0", "m1"):
        assert f'"{cell}' not in said.replace("[", "").replace('"patients', "").replace('"people', "")
    assert not any(name in said for name in release.frames["patients"]["pseudonym"])
    assert KEY.secret.hex() not in said and release.facts()["how"]["key_fingerprint"] == KEY.fingerprint


def test_losses_count_every_row_and_left_out_rows_fully():
    tables = two(60, in_both=58)
    release = anonymize_joined(tables, Mondrian(), suppression=0.1, key=KEY, k=5)
    ages = tables["patients"].frame["age"].cast(pl.Float64)
    width = ages.max() - ages.min()
    lost = 2.0
    for row in read_back(release)["patients"]:
        low, _, high = row["age"].strip("[]").partition("..")
        lost += (float(high or low) - float(low)) / width
    assert release.tables["patients"].losses["age"] == pytest.approx(lost / 60)
    assert 0 < release.loss < 1


def test_a_copy_of_a_quasi_identifier_in_another_table_is_refused():
    tables = two(60)
    age_of = dict(zip(tables["patients"].frame["patient"], tables["patients"].frame["age"], strict=True))
    rows = [(who, weight, drug, age_of[who]) for who, weight, drug in tables["visits"].frame.iter_rows()]
    signed_for = {"role": "other", "kind": "text", "identifier": "accept", "reason": "an age"}
    open_door = table({**VISITS, "age_then": signed_for}, rows)
    with pytest.raises(SideDoorOpen, match=r"'visits.age_then'.*'patients.age'"):
        anonymize_joined({**tables, "visits": open_door}, Mondrian(), k=5)
    signed = table({**VISITS, "age_then": {**signed_for, "side_door": "accept"}}, rows)
    release = anonymize_joined({**tables, "visits": signed}, Mondrian(), k=5)
    assert any(door.column == "visits.age_then" and door.accepted for door in release.side_doors)


def test_people_with_a_blank_that_is_suppressed_leave_every_table():
    tables = two(60)
    frame = tables["patients"].frame.with_columns(
        pl.when(pl.col("patient") == "p3").then(pl.lit("")).otherwise(pl.col("age")).alias("age")
    )
    schema = replace(tables["patients"].schema, missing="suppress")
    tables["patients"] = Table.of(frame, schema)
    with pytest.raises(GuaranteeNotMet, match="1 have a blank"):
        anonymize_joined(tables, Mondrian(), k=5)
    release = anonymize_joined(tables, Mondrian(), suppression=0.02, key=KEY, k=5)
    assert release.suppressed_people == 1 and release.people == 60
    ages = tables["patients"].frame["age"].replace("", None).cast(pl.Float64)
    lost = 1.0  # the person who left has lost everything
    for row in read_back(release)["patients"]:
        low, _, high = row["age"].strip("[]").partition("..")
        lost += (float(high or low) - float(low)) / (ages.max() - ages.min())
    assert release.tables["patients"].losses["age"] == pytest.approx(lost / 60)
    gone = pseudonyms_of(["P3"], KEY)[0]
    assert all(gone not in frame["pseudonym"].to_list() for frame in release.frames.values())


def test_a_table_without_quasi_identifiers_still_counts_as_being_in_it():
    tables = two(60)
    lab = table({"id": PERSON, "result": DISEASE}, [(f"p{i}", f"r{i % 3}") for i in range(20)])
    release = anonymize_joined({**tables, "lab": lab}, Mondrian(), key=KEY, k=5)
    tested = set(release.frames["lab"]["pseudonym"])
    crowds = Counter((values, who in tested) for who, values in joined_tuples_of_two(release).items())
    assert min(crowds.values()) >= 5 and len(tested) == 20


def joined_tuples_of_two(release):
    return joined_tuples({name: rows for name, rows in read_back(release).items() if name in QUASI})


def test_what_cannot_be_joined_is_said():
    tables = two(30)
    nobody = table({"x": {"role": "quasi"}, "y": {"role": "other"}}, [("a", "b"), ("c", "d")])
    named = table({"who": {**PERSON, "role": "other"}, "x": {"role": "quasi"}}, [("p1", "b"), ("p2", "d")])
    blank = table(VISITS, [("p1", "50", "x"), ("", "60", "y")])
    clash = table({**VISITS, "pseudonym": {"role": "other"}}, [("p1", "50", "x", "a")])
    bare = table({"who": PERSON}, [("p1",), ("p2",)])
    patients = tables["patients"]
    for others, method, error, settings_ in (
        ({}, Mondrian(), ParameterError, {}),
        ({"visits": nobody}, Mondrian(), SchemaError, {}),
        ({"visits": named}, Mondrian(), SchemaError, {}),
        ({"visits": blank}, Mondrian(), TableError, {}),
        ({"visits": clash}, Mondrian(), SchemaError, {"key": KEY}),
        ({"visits": tables["visits"]}, DAS(), ParameterError, {}),
        ({"visits": tables["visits"]}, Mondrian(), GuaranteeNotMet, {"k": 31}),
    ):
        with pytest.raises(error):
            anonymize_joined({"patients": patients, **others}, method, **settings_)
    with pytest.raises(SchemaError, match="quasi"):
        anonymize_joined({"a": bare, "b": bare}, Mondrian())


def test_groups_that_break_the_promise_cannot_leave():
    """The check is the last word: with groups made of single people nothing is published."""
    tables = two(30)
    members, people, _ = joined_people.gather(tables)
    alone = np.arange(people, dtype=np.int32)
    drafts = {member.name: joined_publish.publish(member, alone, None) for member in members}
    goal = anonymize_joined(tables, Mondrian(), k=5).goal
    with pytest.raises(GuaranteeNotMet, match="the joined tables"):
        joined_publish.check_joined(members, drafts, people, goal)
