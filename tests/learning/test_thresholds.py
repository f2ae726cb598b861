"""What exact sums would tell of single people or single clients is not let out: small cells, few rows, differences of two jobs."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from velado.errors import InputError, ProtocolError
from velado.learning.crypto.fixed_point import Bounded
from velado.learning.net.identity import Ed25519PrivateKey, Identity
from velado.learning.net.job_register import column_marks, column_sketches, row_sketch
from velado.learning.protocols.parts import EarlierJob, near_columns, refuse_difference
from velado.learning.protocols.protocol_registry import PROTOCOLS
from velado.learning.protocols.role import make_role
from velado.learning.regression.census import census_of, points_of
from velado.learning.regression.job import Job, Party
from velado.learning.regression.simulate import deliver, simulate
from velado.randomness import Tape, seeded

CLIENTS = 5


def a_job(protocol: str = "secure-sum", clients: int = CLIENTS, **more: Any) -> Job:
    parties = [Party("e", "evaluator"), *(Party(f"c{i}", "client") for i in range(clients))]
    if protocol != "secure-sum":
        parties.append(Party("p", "provider"))
    features = (Bounded("age", (Fraction(0), Fraction(120))), Bounded("rare", (Fraction(0), Fraction(1))))
    target = Bounded("marker", (Fraction(0), Fraction(50)))
    settings: dict[str, Any] = {"bits": 16, "key_bits": 2048, "most_rows": 1000, **more}
    return Job("t", PROTOCOLS[protocol], features, target, tuple(parties), **settings)


def tables_of(members: int, rows: int = 40, complement: bool = False) -> dict[str, dict[str, Any]]:
    """Tables in which so many people of all, the first client's first, have the rare thing (or lack it)."""
    draw = seeded(3, "thresholds")
    tables = {}
    left = members
    for place in range(CLIENTS):
        age = draw.integers(20, 90, rows)
        rare = np.zeros(rows, dtype=int)
        own = min(left, 4)
        rare[:own] = 1
        left -= own
        marker = np.round(10 + age / 10 + draw.uniform(0, 1, rows), 1)
        tables[f"c{place}"] = {"age": age, "rare": 1 - rare if complement else rare, "marker": marker}
    return tables


def roles_of(job: Job, tables: Any, seed: bytes = b"s" * 32) -> dict[str, Any]:
    return {
        party.name: make_role(job, party.name, Tape(seed, party.name).bytes(32), tables.get(party.name))
        for party in job.parties
    }


@pytest.mark.parametrize("complement", [False, True])
@pytest.mark.parametrize("members", [1, 9])
def test_a_column_with_one_member_is_not_summed(members: int, complement: bool) -> None:
    """X'y over a column that marks one person is that person's value; the evaluator must never get there."""
    job = a_job()
    roles = roles_of(job, tables_of(members, complement=complement))
    transcript = deliver(roles)
    assert "In rare fewer than 10 rows differ" in roles["e"].failure
    assert all(role.outcome is None for role in roles.values())
    # The counts alone were summed: nobody sent anything for a second round.
    assert {m.kind for m in transcript.messages} == {"hello", "roster", "shares", "delivered", "masked", "unmask", "opened", "abort"}  # fmt: skip
    assert sum(m.kind == "masked" for m in transcript.messages) == CLIENTS


def test_ten_members_are_enough_and_the_least_cell_is_the_job_s() -> None:
    fit, _ = simulate(a_job(), tables_of(10))
    assert len(fit.coefficients) == 3
    with pytest.raises(ProtocolError, match="fewer than 11 rows"):
        simulate(a_job(least_cell=11), tables_of(10))


def test_the_key_holder_gives_nothing_out_either() -> None:
    with pytest.raises(ProtocolError, match="In rare fewer than 10"):
        simulate(a_job("delegated"), tables_of(1))


def test_where_nobody_counts_every_client_keeps_its_share() -> None:
    with pytest.raises(InputError, match="In rare fewer than 10"):
        roles_of(a_job("masked"), tables_of(10))
    tables = {name: {**table, "rare": np.arange(40) % 2} for name, table in tables_of(0).items()}
    assert roles_of(a_job("masked"), tables)


def test_a_target_that_one_person_moves_is_not_summed() -> None:
    tables = tables_of(20)
    for table in tables.values():
        table["marker"] = np.zeros(40)
    tables["c2"]["marker"][7] = 15.6
    with pytest.raises(ProtocolError, match="In marker fewer than 10"):
        simulate(a_job(), tables)


def test_fewer_than_three_rows_for_an_unknown_are_not_summed() -> None:
    job = replace(a_job(minimum_rows=1), target=Bounded("marker", (Fraction(0), Fraction(50))))
    few = {name: {key: values[:1] for key, values in table.items()} for name, table in tables_of(0).items()}
    with pytest.raises(ProtocolError, match="fewer than 9 rows for 3 unknowns"):
        simulate(job, few)


def test_a_census_is_what_counting_gives() -> None:
    job = a_job()
    table = tables_of(3)["c0"]
    counts = iter(census_of(table, job))
    assert next(counts) == 40
    marked = [(one.name, float(point)) for one in (*job.features, job.target) for point in points_of(one)]
    for place, (name, point) in enumerate(marked):
        for other, against in marked[place:]:
            pairs = zip(table[name], table[other], strict=True)
            assert next(counts) == sum(one != point and two != against for one, two in pairs)
    for one, two in (("age", "rare"), ("age", "marker"), ("rare", "marker")):
        assert next(counts) == sum(a != b for a, b in zip(table[one], table[two], strict=True))
    assert next(counts, None) is None


def marks(job: Job, tables: Any) -> dict[str, dict[str, str]]:
    return {name: {key: str(hash(tuple(v))) for key, v in table.items()} for name, table in tables.items()}


def test_a_second_job_with_one_client_fewer_is_refused_by_those_in_both() -> None:
    """The difference of the two exact results is one hospital's sums."""
    tables = tables_of(20)
    first = a_job()
    roles = roles_of(first, tables)
    assert not deliver(roles).failures
    digests = marks(first, tables)
    entries = {
        name: EarlierJob(job=first.digest(), roster=roles[name].released, columns=digests[name])
        for name in tables
    }
    assert entries["c0"].roster == tuple(tables)

    def again(job: Job, drop: tuple[str, ...] = (), rows: Any = None) -> dict[str, Any]:
        given = tables if rows is None else rows
        parties = roles_of(job, given, b"t" * 32)
        for name in tables:
            if name in parties:
                parties[name].earlier = (entries[name],)
                parties[name].own_columns = marks(job, given)[name]
        quiet = deliver(parties, lambda m: [] if m.sender in drop and m.kind == "masked" else [m])
        waiting = list(parties["e"].without(drop))
        while waiting:
            message = waiting.pop(0)
            waiting.extend(parties[message.receiver].receive(message))
        assert quiet is not None
        return parties

    four = replace(a_job(clients=4), name="second")
    assert "1 client more or fewer" in again(four)["e"].failure
    # The same five are named, and one stays silent: those who would open the sums refuse all the same.
    named = replace(first, name="second")
    assert "1 client more or fewer" in again(named, drop=("c4",))["e"].failure
    assert again(named)["e"].outcome is not None
    # Other columns of the same rows still share the sums of age.
    narrow = replace(four, features=four.features[:1])
    assert "1 client more or fewer" in again(narrow)["e"].failure
    # Noise, or other rows, tell nothing exact of the fifth.
    noisy = replace(four, epsilon=Fraction(50))
    assert again(noisy)["e"].outcome is not None
    others = {
        name: {"age": t["age"] + 1, "rare": np.roll(t["rare"], 1), "marker": t["marker"] + 1}
        for name, t in tables.items()
    }
    assert again(four, rows=others)["e"].outcome is not None


def keyed(table: Any, name: str) -> dict[str, str]:
    own = Identity(name, Path("nowhere"), b"", Ed25519PrivateKey.generate(), name.encode().ljust(32), b"")
    return column_marks({key: table[key] for key in table}, own)


@pytest.mark.parametrize(
    "dress", ["reordered", "renamed", "a column more", "written otherwise", "one client more"]
)
def test_the_difference_of_two_jobs_is_refused_however_the_second_is_dressed(dress: str) -> None:
    """The evaluator subtracts two exact results whose clients differ by one: the difference is that one's sums."""
    tables = tables_of(20)
    first = a_job(clients=4) if dress == "one client more" else a_job()
    roles = roles_of(first, tables)
    assert not deliver(roles).failures
    second = replace(a_job(clients=5 if dress == "one client more" else 4), name="second")
    order = seeded(8, "order").permutation(40)
    given: dict[str, dict[str, Any]] = {name: dict(table) for name, table in tables.items()}
    if dress == "reordered":
        given = {name: {key: v[order] for key, v in t.items()} for name, t in given.items()}
    if dress == "renamed":
        names = {"age": "years", "rare": "seldom", "marker": "level"}
        given = {name: {names[key]: v for key, v in t.items()} for name, t in given.items()}
        features = tuple(replace(one, name=names[one.name]) for one in second.features)
        second = replace(second, features=features, target=replace(second.target, name="level"))
    if dress == "a column more":
        second = replace(second, features=(*second.features, Bounded("more", (Fraction(-9), Fraction(9)))))
        for place, table in enumerate(given.values()):
            table["more"] = seeded(place, "more").normal(0, 1, 40)
    if dress == "written otherwise":
        given = {name: {**t, "age": np.array([f"{v}.00" for v in t["age"]])} for name, t in given.items()}
    parties = roles_of(second, given, b"t" * 32)
    for name in given:
        if name in parties and name in roles:
            entry = EarlierJob(
                job=first.digest(), roster=roles[name].released, columns=keyed(tables[name], name)
            )
            parties[name].earlier = (entry,)
            parties[name].own_columns = keyed(given[name], name)
    transcript = deliver(parties)
    assert "1 client more or fewer" in parties["e"].failure
    assert all(role.outcome is None for role in parties.values())
    assert not [message for message in transcript.messages if message.kind == "result"]


def sketched(table: Any, name: str) -> str:
    own = Identity(name, Path("nowhere"), b"", Ed25519PrivateKey.generate(), name.encode().ljust(32), b"")
    return row_sketch(table, own)


@pytest.mark.parametrize(
    ("protocol", "gone"), [("secure-sum", 1), ("secure-sum", 9), ("delegated", 1), ("masked", 1)]
)
def test_a_second_job_with_few_rows_fewer_is_refused(protocol: str, gone: int) -> None:
    """The same hospitals and columns, and one patient less at one of them: the difference is that patient."""
    tables = {name: {**table, "rare": np.arange(40) % 2} for name, table in tables_of(0).items()}
    first = a_job(protocol)
    before = {
        name: EarlierJob(
            job=first.digest(), roster=tuple(tables), columns=keyed(table, name), rows=sketched(table, name)
        )
        for name, table in tables.items()
    }

    def again(job: Job, rows: int, at: str = "c1") -> dict[str, Any]:
        given = {
            name: {key: v[rows:] if name == at else v for key, v in table.items()}
            for name, table in tables.items()
        }
        parties = roles_of(job, given, b"t" * 32)
        for name, table in given.items():
            parties[name].earlier = (before[name],)
            parties[name].own_columns, parties[name].own_rows = keyed(table, name), sketched(table, name)
        return parties

    second = replace(first, name="second")
    parties = again(second, gone)
    transcript = deliver(parties)
    assert "some but fewer than 10 of its rows have changed" in parties["e"].failure
    assert all(role.outcome is None for role in parties.values())
    assert not [
        message for message in transcript.messages if message.kind in ("result", "opened", "next")
    ] or (protocol == "secure-sum")
    if gone == 1 and protocol == "secure-sum":
        for job, rows in (
            (second, 0),
            (second, 12),
            (replace(second, least_cell=1), 1),
            (replace(second, rho=Fraction(9)), 1),
        ):
            parties = again(job, rows)
            deliver(parties)
            assert parties["e"].failure is None, parties["e"].failure


def test_a_category_or_a_product_with_one_member_is_not_summed() -> None:
    """One person of a category, and one person in whom two columns meet: both are columns like any other."""
    category = Bounded(
        "ward=icu", (Fraction(0), Fraction(1)), column="ward", value="icu", among=("home", "icu")
    )
    meeting = Bounded("rare:ward=icu", (Fraction(0), Fraction(1)), factors=("rare", "ward=icu"))
    job = a_job()
    tables = tables_of(20)
    for table in tables.values():
        table["ward"] = np.where(np.arange(40) >= 20, "icu", "home")
    both = replace(job, features=(*job.features, category, meeting))
    tables["c0"]["ward"][0] = "icu"
    with pytest.raises(ProtocolError, match="In rare:ward=icu fewer than 10"):
        simulate(both, tables)
    for table in tables.values():
        table["ward"] = np.full(40, "home")
    tables["c0"]["ward"][0] = "icu"
    with pytest.raises(ProtocolError, match="In ward=icu fewer than 10"):
        simulate(replace(job, features=(*job.features, category)), tables)


WARDS = ("a", "b", "c", "d")


def wards_of(*counts: int) -> tuple[Job, dict[str, dict[str, Any]]]:
    """A category whose first value is the reference, so many people in each."""
    made = tuple(
        Bounded(f"ward={one}", (Fraction(0), Fraction(1)), column="ward", value=one, among=WARDS)
        for one in WARDS[1:]
    )
    job = replace(a_job(), features=made)
    everybody = np.repeat(np.array(WARDS), counts)
    marker = np.round(10 + np.arange(everybody.size) % 17, 1)
    return job, {
        f"c{k}": {"ward": everybody[k::CLIENTS], "marker": marker[k::CLIENTS]} for k in range(CLIENTS)
    }


def crossed_rows(both: int, rows: int = 600) -> dict[str, np.ndarray]:
    """Sixty people have `diab`, thirty `drug`, *both* of them both; `units` is 0 for all who have no drug."""
    at = np.arange(rows)
    diab, drug = at < 60, (at >= 60 - both) & (at < 90 - both)
    age = 20 + at * 7 % 70
    return {
        "age": age,
        "diab": diab.astype(int),
        "drug": drug.astype(int),
        "units": drug * (1 + at % 9),
        "died": (at % 3 == 0).astype(int),
        "days": np.round(1 + age / 9 + at % 13 / 10, 1),
        "w": 1 + at % 5,
    }


def crossed_job(names: str, target: str, interactions: str = "", **more: Any) -> Job:
    high = {"age": 120, "units": 20, "days": 60, "w": 6}
    found = {
        one: Bounded(one, (Fraction(0), Fraction(high.get(one, 1)))) for one in [*names.split(), target, "w"]
    }
    product = ()
    if interactions:
        product = (
            Bounded(interactions, (Fraction(0), Fraction(120)), factors=tuple(interactions.split(":"))),
        )
    features = (*(found[one] for one in names.split()), *product)
    weight = found["w"] if more.pop("weighted", False) else None
    family = more.pop("family", "linear")
    return replace(a_job(**more), features=features, target=found[target], weight=weight, family=family)


def dealt(rows: dict[str, np.ndarray]) -> dict[str, dict[str, Any]]:
    return {f"c{k}": {name: values[k::CLIENTS] for name, values in rows.items()} for k in range(CLIENTS)}


@pytest.mark.parametrize("both", [1, 9])
@pytest.mark.parametrize(
    ("names", "target", "more"),
    [
        ("age diab drug", "days", {"interactions": "age:drug"}),  # X'X holds the age of who has both
        ("diab units", "days", {}),  # and here the units
        ("age diab drug", "died", {"family": "logistic"}),  # the curvature a chance, in every round
        ("age diab drug", "days", {"weighted": True}),  # and here a weight
    ],
)
def test_a_sum_over_two_columns_that_few_people_make_up_is_not_made(
    both: int, names: str, target: str, more: Any
) -> None:
    job = crossed_job(names, target, **more)
    with pytest.raises(ProtocolError, match=r"Fewer than 10 rows make up the sum over .*diab"):
        simulate(job, dealt(crossed_rows(both)))
    assert simulate(job, dealt(crossed_rows(12)))[0].coefficients
    assert simulate(job, dealt(crossed_rows(0)))[0].coefficients


def test_a_number_of_people_in_two_columns_at_once_is_no_value_of_theirs() -> None:
    assert simulate(crossed_job("age diab drug", "days"), dealt(crossed_rows(1)))[0].coefficients


@pytest.mark.parametrize("low", [0, 1])
def test_columns_of_two_values_are_known_by_what_they_hold_and_not_by_their_bounds(low: int) -> None:
    """Coded 1 and 2, or 0 and 1 within wider bounds, two columns that differ in one person show that person all the same."""
    rows = crossed_rows(12)
    sex = low + np.arange(600) % 2
    rows |= {"sex": sex, "gender": np.where(np.arange(600) == 7, 2 * low + 1 - sex, sex)}
    job = crossed_job("age", "days")
    both = tuple(Bounded(one, (Fraction(low), Fraction(2))) for one in ("sex", "gender"))
    with pytest.raises(ProtocolError, match="In sex, gender fewer than 10"):
        simulate(replace(job, features=(*job.features, *both)), dealt(rows))


def test_two_columns_of_numbers_that_differ_in_one_person_are_not_summed() -> None:
    rows = crossed_rows(12)
    bmi = np.round(18 + np.arange(600) * 11 % 190 / 10, 1)
    rows |= {"bmi": bmi, "later": np.where(np.arange(600) == 7, bmi + 3.4, bmi)}
    job = crossed_job("age", "days")
    both = (Bounded("bmi", (Fraction(10), Fraction(60))), Bounded("later", (Fraction(10), Fraction(61))))
    with pytest.raises(ProtocolError, match="In bmi, later fewer than 10"):
        simulate(replace(job, features=(*job.features, *both)), dealt(rows))


def test_a_weight_that_leaves_one_person_out_is_not_taken() -> None:
    rows = crossed_rows(12)
    rows["w"] = (np.arange(600) != 7).astype(int)
    with pytest.raises(ProtocolError, match="In w fewer than 10"):
        simulate(crossed_job("age", "days", weighted=True), dealt(rows))


def test_a_reference_with_one_member_is_not_summed_though_it_has_no_column() -> None:
    """The intercept of such a fit is that person's value."""
    job, tables = wards_of(1, 70, 70, 59)
    with pytest.raises(ProtocolError, match="Fewer than 10 rows have ward=a: the reference"):
        simulate(job, tables)
    assert len(simulate(*wards_of(10, 70, 70, 50))[0].coefficients) == 4


@pytest.mark.parametrize(("apart", "both"), [(1, 60), (9, 60)])
def test_two_columns_that_differ_in_few_people_are_not_summed(apart: int, both: int) -> None:
    features = tuple(Bounded(name, (Fraction(0), Fraction(1))) for name in ("now", "ever"))
    job = replace(a_job(), features=features)

    def tables(more: int) -> dict[str, dict[str, Any]]:
        now = np.arange(200) < both
        ever = np.arange(200) < both + more
        marker = np.round(10 + np.arange(200) % 13, 1)
        rows = {"now": now.astype(int), "ever": ever.astype(int), "marker": marker}
        return {f"c{k}": {name: values[k::CLIENTS] for name, values in rows.items()} for k in range(CLIENTS)}

    with pytest.raises(ProtocolError, match="In now, ever fewer than 10"):
        simulate(job, tables(apart))
    assert len(simulate(job, tables(10))[0].coefficients) == 3


@pytest.mark.parametrize("light", ["0", "0.001"])
def test_rows_whose_weight_is_next_to_nothing_do_not_count(light: str) -> None:
    """A weight that one person alone has makes every weighted sum that person's row."""
    job = a_job(weight=Bounded("w", (Fraction(0), Fraction(1))))
    tables = tables_of(20)
    for table in tables.values():
        table["w"] = np.full(40, light, dtype=object)
    tables["c0"]["w"][3] = "1"
    roles = roles_of(job, tables)
    transcript = deliver(roles)
    assert all(role.outcome is None for role in roles.values())
    assert sum(m.kind == "masked" for m in transcript.messages) == CLIENTS  # the counts, and nothing else


def test_jobs_that_show_one_client_together_are_refused_though_any_two_may_be() -> None:
    columns = {"age": "77"}
    before = [
        EarlierJob(job=str(k), roster=tuple(one), columns=columns) for k, one in enumerate(("ABCD", "AEFG"))
    ]
    together = EarlierJob(job="2", roster=tuple("ABCDEFG"), columns=columns)
    refuse_difference(before[:1], before[1], 3, "A")
    refuse_difference(before[:1], together, 3, "A")
    with pytest.raises(InputError, match="together show the sums of fewer than 3 clients"):
        refuse_difference(before, together, 3, "A")
    refuse_difference(before, replace(together, exact=False), 3, "A")
    refuse_difference(before, replace(together, columns={"age": "88"}), 3, "A")


def column_sketched(table: Any, name: str) -> dict[str, str]:
    own = Identity(name, Path("nowhere"), b"", Ed25519PrivateKey.generate(), name.encode().ljust(32), b"")
    return column_sketches(table, own)


@pytest.mark.parametrize(
    "dress", ["one patient", "nine", "other codes", "appended", "fifteen", "noise", "the same"]
)
def test_a_column_that_is_nearly_one_of_an_earlier_job_is_refused(dress: str) -> None:
    """Job 1 with the illness, job 2 with the illness corrected for one patient: the difference is that patient's row."""
    tables = {name: {**table, "rare": np.arange(40) % 2} for name, table in tables_of(0).items()}
    first = a_job()
    before = {
        name: EarlierJob(
            job=first.digest(),
            roster=tuple(tables),
            columns=keyed(table, name),
            sketches=column_sketched(table, name),
        )
        for name, table in tables.items()
    }
    second = replace(
        first,
        name="second",
        features=(Bounded("stay", (Fraction(-9), Fraction(9))), Bounded("rare2", (Fraction(0), Fraction(3)))),
        epsilon=Fraction(50) if dress == "noise" else None,
    )
    given = {}
    for place, (name, table) in enumerate(tables.items()):
        rare = table["rare"].copy()
        if name == "c1" and dress != "the same":
            rare[: {"nine": 9, "fifteen": 15}.get(dress, 1)] ^= 1
        if dress == "other codes":
            rare = 2 - rare
        given[name] = {
            "stay": seeded(place, "stay").normal(0, 1, 40),
            "rare2": rare,
            "marker": table["marker"],
        }
        if dress == "appended" and name == "c1":
            given[name] = {key: np.append(values, values[:3]) for key, values in given[name].items()}
            given[name]["rare2"] = seeded(1, "another").integers(0, 2, 43)
    parties = roles_of(second, given, b"t" * 32)
    for name, table in given.items():
        parties[name].earlier = (before[name],)
        parties[name].own_columns = keyed(table, name)
        parties[name].own_sketches = column_sketched(table, name)
    transcript = deliver(parties)
    if dress in ("fifteen", "noise", "the same"):
        assert not transcript.failures
        return
    nearly = "'marker' differs from" if dress == "appended" else "'rare2' differs from"
    assert f"c1 refuses: {nearly}" in parties["e"].failure
    assert not [
        message
        for message in transcript.messages
        if message.kind in ("opened", "result") and message.sender == "c1"
    ]


def test_rare_things_that_nobody_has_together_are_no_near_columns() -> None:
    """They differ in few rows of a client, and in no fewer than have either: what the difference shows, either shows."""
    draw = np.arange(60)
    table = {
        "one": (draw < 4).astype(int),
        "other": ((draw > 50) & (draw < 55)).astype(int),
        "none": draw * 0,
    }
    found = column_sketched(table, "c0")
    names = list(found)
    assert not any(near_columns(found[one], found[other], 10) for one in names for other in names)
    more = column_sketched({"more": (draw < 6).astype(int)}, "c0")["more"]
    assert near_columns(found["one"], more, 10) and not near_columns(found["one"], more, 2)
