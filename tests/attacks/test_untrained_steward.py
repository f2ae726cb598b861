"""A steward who accepts every default cannot publish a name, and k rows of one person are not k people."""

import random
from pathlib import Path

import polars as pl
import pytest

import velado
from velado.data.io import read_table
from velado.data.schema import Column, Schema
from velado.errors import GuaranteeNotMet, IdentifierOpen, PersonUndecided, SchemaError
from velado.release.anonymize import anonymize
from velado.release.guarantees import KAnonymity
from velado.release.joined import anonymize_joined
from velado.release.methods import Mondrian
from velado.release.verify import verify

NAMES = ["Ana Lima", "Bruno Souza", "Carla Dias", "Davi Rocha", "Elisa Nunes", "Fabio Melo"]


def visits(people: int = 40, each: int = 12, seed: int = 1) -> pl.DataFrame:
    """Every person has *each* rows, so that their name is far from unique."""
    draw = random.Random(seed)
    rows = []
    for person in range(people):
        name = f"{NAMES[person % 6]} {chr(65 + person % 26)}{person}son"
        card = "".join(draw.choice("0123456789") for _ in range(16))
        plate = f"{chr(65 + person % 26)}QX{draw.randrange(1000, 9999)}"
        age, sex = draw.randrange(20, 90), draw.choice("FM")
        rows += [
            {
                "member_no": f"M-{person:05d}",
                "holder_name": name,
                "card_number": card,
                "home_address": f"Rua {NAMES[person % 6].split()[1]}, {person * 7}",
                "car_plate": plate,
                "last_ip": f"10.{person}.{person * 3 % 250}.7",
                "age": str(age),
                "sex": sex,
                "diagnosis": draw.choice(["flu", "hiv", "cold", "gout"]),
            }
            for _ in range(each)
        ]
    draw.shuffle(rows)
    return pl.DataFrame(rows)


SECRET = ("member_no", "holder_name", "card_number", "home_address", "car_plate", "last_ip")


def schema_with(frame: pl.DataFrame, **given: Column) -> Schema:
    known = {
        "age": Column("age", "quasi", "numeric"),
        "sex": Column("sex", "quasi"),
        "diagnosis": Column("diagnosis", "sensitive"),
    }
    return Schema({name: given.get(name) or known.get(name) or Column(name) for name in frame.columns})


def test_defaults_alone_publish_no_identifier() -> None:
    frame = visits()
    release = velado.anonymize(frame, k=3)
    assert not set(SECRET) & set(release.frame.columns)
    assert {"age", "sex", "diagnosis"} <= set(release.frame.columns)
    person = release.table.schema.person
    assert person is not None and release.verdicts[0].unit == "people"


@pytest.mark.parametrize("column", SECRET)
def test_a_column_that_identifies_is_refused_whatever_its_role(column: str) -> None:
    frame = visits().select(column, "age", "sex", "diagnosis")
    for role in ("other", "sensitive", "quasi"):
        schema = schema_with(frame, **{column: Column(column, role)})  # type: ignore[arg-type]
        with pytest.raises(IdentifierOpen) as caught:
            anonymize(frame, schema, Mondrian(), per="row", k=3)
        assert column in caught.value.what
        assert not any(str(cell) in str(caught.value) for cell in frame.get_column(column).unique())


def test_a_signature_with_a_reason_lets_a_column_out_and_is_told() -> None:
    frame = visits().select("car_plate", "age", "sex", "diagnosis")
    signed = Column("car_plate", identifier="accept", reason="plates of the hospital's own cars")
    release = anonymize(frame, schema_with(frame, car_plate=signed), Mondrian(), per="row", k=3)
    assert [(one.column, one.reason) for one in release.signed] == [
        ("car_plate", "plates of the hospital's own cars")
    ]
    assert release.facts()["promise"]["signed_columns"][0]["reason"] == "plates of the hospital's own cars"
    with pytest.raises(SchemaError, match="without a reason"):
        Column("car_plate", identifier="accept")


def test_verify_refuses_a_file_with_an_identifier_nobody_declared_as_one() -> None:
    frame = visits().select("holder_name", "age", "sex", "diagnosis")
    whole = frame.with_columns(age=pl.lit("[20..90]"), sex=pl.lit("*"))
    found = verify(whole, schema_with(whole), [KAnonymity(3)])
    assert [one.column for one in found.identifying] == ["holder_name"] and not found.holds
    assert isinstance(found.broken, IdentifierOpen)


def test_rows_that_repeat_people_are_refused_until_somebody_says_what_a_person_is() -> None:
    frame = visits().select("member_no", "age", "sex", "diagnosis")
    hidden = schema_with(frame, member_no=Column("member_no", "identifier", "text"))
    with pytest.raises(PersonUndecided, match="member_no"):
        anonymize(frame, hidden, Mondrian(), k=3)
    assert anonymize(frame, hidden, Mondrian(), per="row", k=3).verdicts[0].unit == "rows"
    settled = schema_with(frame, member_no=Column("member_no", "identifier", "text", person=True))
    assert anonymize(frame, settled, Mondrian(), k=3).verdicts[0].unit == "people"


def test_dropping_the_column_that_tells_people_apart_does_not_hide_that_rows_repeat_them() -> None:
    frame = visits().select("member_no", "age", "sex", "diagnosis")
    schema = schema_with(frame.drop("member_no"))
    with pytest.raises(PersonUndecided, match="member_no"):
        anonymize(frame, schema, Mondrian(), undeclared="drop", k=3)


def test_a_number_of_visits_is_no_person_where_another_column_repeats() -> None:
    frame = visits().select("member_no", "age", "sex", "diagnosis").with_row_index("visit_id")
    schema = schema_with(
        frame,
        visit_id=Column("visit_id", "identifier", "text", person=True),
        member_no=Column("member_no", "identifier", "text"),
    )
    with pytest.raises(PersonUndecided, match="visit_id"):
        anonymize(frame, schema, Mondrian(), k=3)


def test_a_published_pseudonym_links_rows_and_breaks_k_people() -> None:
    # Every pair of ages is one group of two people, and every person's set of ages is unique.
    frame = pl.DataFrame(
        {
            "who": ["p1", "p1", "p2", "p2", "p3", "p3"],
            "age": [1, 60, 2, 90, 61, 91],
            "ill": ["a", "b", "a", "b", "a", "b"],
        }
    )
    shown = Column("who", person=True, identifier="accept", reason="a pseudonym")
    schema = Schema(
        {"who": shown, "age": Column("age", "quasi", "numeric"), "ill": Column("ill", "sensitive")}
    )
    with pytest.raises(GuaranteeNotMet, match="links the rows"):
        anonymize(frame, schema, Mondrian(), k=2)
    published = frame.with_columns(
        age=pl.Series(["[1..2]", "[60..61]", "[1..2]", "[90..91]", "[60..61]", "[90..91]"])
    )
    found = verify(published, schema, [KAnonymity(2)])
    assert found.checked.holds and found.linked is not None and not found.holds
    whole = frame.with_columns(age=pl.lit("[1..91]"))
    assert verify(whole, schema, [KAnonymity(2)]).holds


def test_joined_tables_are_judged_too() -> None:
    frame = visits().select("member_no", "holder_name", "age", "sex", "diagnosis")
    person = Column("member_no", "identifier", "text", person=True)
    named = read_table(frame, schema_with(frame, member_no=person))
    plain = read_table(frame.drop("holder_name"), schema_with(frame.drop("holder_name"), member_no=person))
    with pytest.raises(IdentifierOpen, match="holder_name"):
        anonymize_joined({"a": named, "b": plain}, Mondrian(), k=3)


def test_measuring_a_file_names_the_identifier_in_it() -> None:
    frame = visits().select("holder_name", "age", "sex", "diagnosis")
    table = read_table(frame, schema_with(frame))
    scores = velado.measure_files(table, frame)
    assert any("holder_name" in note for note in scores.notes)


def test_without_a_schema_the_command_writes_a_proposal_and_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from velado.apps.cli import run as main

    monkeypatch.chdir(tmp_path)
    visits().write_csv("visits.csv")
    assert main(["anonymize", "visits.csv", "-k", "3", "-o", "out"]) == 3
    assert not Path("out").exists()
    assert "visits.schema.toml" in capsys.readouterr().err
    assert main(["anonymize", "visits.csv", "--schema", "visits.schema.toml", "-k", "3", "-o", "out"]) == 0
    published = pl.read_csv("out/release/table.csv")
    assert not set(SECRET) & set(published.columns)
    assert main(["verify", "out/release/table.csv", "--schema", "visits.schema.toml", "-k", "3"]) == 0
    # A second run does not write over what the steward has read and changed.
    assert main(["anonymize", "visits.csv", "-k", "3", "-o", "again"]) == 3
    assert main(["anonymize", "visits.csv", "-k", "3", "-o", "again", "--accept-inferred"]) == 0


def test_a_column_that_follows_people_is_a_pseudonym_and_is_refused() -> None:
    # Nobody would call the number of a bed an identifier; it is one value for all rows of a person, and theirs alone.
    frame = visits().select("member_no", "age", "sex", "diagnosis")
    beds = {name: f"{n % 7}-{n * 13 % 101}" for n, name in enumerate(frame["member_no"].unique().sort())}
    frame = frame.with_columns(place=pl.col("member_no").replace_strict(beds))
    person = Column("member_no", "identifier", "text", person=True)
    with pytest.raises(IdentifierOpen, match="place"):
        anonymize(frame, schema_with(frame, member_no=person), Mondrian(), k=3)
    assert "place" not in velado.anonymize(frame, k=3).frame.columns
    # A value that many people share, or that changes from row to row, links nobody.
    wards = frame.with_columns(
        place=pl.col("place").str.head(1), weight=pl.int_range(pl.len()).cast(pl.String) + ".5"
    )
    assert "place" in anonymize(wards, schema_with(wards, member_no=person), Mondrian(), k=3).frame.columns


def test_people_are_told_apart_as_every_room_counts_them() -> None:
    frame = visits(20, 2).select("member_no", "age", "sex", "diagnosis")
    spelled = frame.with_columns(
        member_no=pl.when(pl.int_range(pl.len()) % 2 == 0)
        .then(pl.col("member_no").str.to_lowercase())
        .otherwise(pl.col("member_no") + " ")
    )
    hidden = schema_with(spelled, member_no=Column("member_no", "identifier", "text"))
    with pytest.raises(PersonUndecided, match="20 different values"):
        anonymize(spelled, hidden, Mondrian(), k=3)


def test_two_columns_that_together_follow_people_are_refused() -> None:
    draw = random.Random(7)
    rows = []
    for person in range(120):
        height, arm = draw.randrange(150, 190), draw.randrange(20, 40)
        fixed = {"member_no": f"M-{person:05d}", "age": draw.randrange(18, 90), "sex": draw.choice("FM")}
        rows += [
            {**fixed, "height_cm": height, "arm_cm": arm, "diagnosis": draw.choice(["flu", "hiv"])}
            for _ in range(6)
        ]
    frame = pl.DataFrame(rows)
    person_column = Column("member_no", "identifier", "text", person=True)
    with pytest.raises(IdentifierOpen, match="height_cm"):
        anonymize(frame, schema_with(frame, member_no=person_column), Mondrian(), k=5)
    coarse = schema_with(frame, member_no=person_column, height_cm=Column("height_cm", "quasi", "numeric"))
    assert anonymize(frame, coarse, Mondrian(), k=5).verdicts[0].holds
    published = velado.anonymize(frame, k=5).frame.columns
    assert not {"height_cm", "arm_cm"} <= set(published)


def test_identifiers_that_operations_make_are_judged_too() -> None:
    from velado.release.operations import Mask

    frame = visits().select("holder_name", "age", "sex", "diagnosis")
    with pytest.raises(IdentifierOpen):
        anonymize(
            frame, schema_with(frame), Mondrian(), per="row", operations=[Mask("holder_name", keep=12)], k=3
        )


def test_a_number_of_a_person_is_no_quasi_identifier_however_it_is_declared() -> None:
    frame = (
        visits()
        .select("card_number", "age", "sex", "diagnosis")
        .with_columns(pl.col("card_number").str.tail(9))
    )
    schema = schema_with(frame, card_number=Column("card_number", "quasi", "numeric"))
    with pytest.raises(IdentifierOpen, match="card_number"):
        anonymize(frame, schema, Mondrian(), per="row", k=3)


def test_sensitive_promises_hold_for_linked_rows_too() -> None:
    # Four people, two rows each; read together, those who look alike have one diagnosis.
    frame = pl.DataFrame(
        {
            "who": [f"p{n // 2}" for n in range(8)],
            "age": [20, 60, 20, 60, 20, 70, 20, 70],
            "ill": ["a", "a", "a", "a", "b", "b", "b", "b"],
        }
    )
    shown = Column("who", person=True, identifier="accept", reason="a pseudonym", side_door="accept")
    schema = Schema(
        {"who": shown, "age": Column("age", "quasi", "numeric"), "ill": Column("ill", "sensitive")}
    )
    published = frame.with_columns(age=pl.Series(["20", "[60..70]"] * 4))
    assert verify(published, schema, [KAnonymity(2), velado.LDiversity(2)]).linked is None
    apart = frame.with_columns(age=pl.Series(["20", "60", "20", "60", "20", "70", "20", "70"]))
    found = verify(apart, schema, [KAnonymity(2), velado.LDiversity(2)])
    assert found.linked is not None and found.linked.guarantee == "l-diversity"
