"""One person or one diagnosis in several spellings passes for several: each way in which it did, refused or counted."""

import os
import random

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from velado.data.encode import encode, spelling_notes
from velado.data.inspect import exposure
from velado.data.normal import normal_texts, person_texts
from velado.data.schema import Column, Schema, TaxonomySpec
from velado.data.table import Table
from velado.errors import GuaranteeNotMet, VeladoError
from velado.measures.measured import measure, measure_files
from velado.query.engines import engine_for_table
from velado.query.needs import Rows
from velado.query.unit import Unit
from velado.release.anonymize import anonymize
from velado.release.guarantees import BetaLikeness, KAnonymity, LDiversity, TCloseness
from velado.release.joined import anonymize_joined
from velado.release.methods import FullDomain, KMember, Mondrian, Progressive
from velado.release.pseudonyms import Key, pseudonymize
from velado.release.verify import verify

from ..covering import one_in
from .independent import looks_alike, normal, recount

PAIRS = [
    ("P1", "P1 "),
    ("P1", "p1"),
    ("P1", "\u00a0P1"),
    ("P1", "P\u200b1"),
    ("P1", "Ｐ１"),
    ("left  arm", "left arm"),
    ("José", "Jose\u0301"),
    ("7", "07"),
    ("7", "7.0"),
    ("7", "+7"),
    ("7", " 7 "),
    ("0.5", ".50"),
    ("12345678901234567890", "0012345678901234567890"),
    ("HIV", "HIV "),
    ("HIV", "hiv"),
    ("HIV", "H\u00adIV"),
    ("Straße", "STRASSE"),
]
APART = [
    ("12345678901234567890", "12345678901234567891"),
    ("P1", "P 1"),
    ("1e3", "1000"),
    ("-7", "7"),
    ("José", "Jose"),
    ("7,0", "7"),
    ("1.2.3", "1.2.30"),
]


def schema(**more: Column) -> Schema:
    columns = {
        "patient": Column("patient", "identifier", "text", person=True),
        "age": Column("age", "quasi", "numeric"),
        "illness": Column("illness", "sensitive", side_door="accept"),
    }
    return Schema({**columns, **more}, constant="allow")


def people(texts: list[str], ages: list[str], ill: list[str] | None = None) -> pl.DataFrame:
    return pl.DataFrame(
        {"patient": texts, "age": ages, "illness": ill or [f"i{n}" for n in range(len(ages))]}
    )


@pytest.mark.parametrize("pair", PAIRS)
def test_two_spellings_are_one_text(pair: tuple[str, str]) -> None:
    assert normal_texts(pl.Series(pair)).n_unique() == 1
    assert normal(pair[0]) == normal(pair[1])


# That the doors ask for the one text is tried with some of the pairs; two pairs in three are slow.
@pytest.mark.parametrize("pair", one_in(3, PAIRS))
def test_two_spellings_of_a_person_do_not_pass_for_two_people(pair: tuple[str, str]) -> None:
    one, two = pair
    frame = people([one, two, "x", "y"], ["30", "30", "40", "40"])
    assert not verify(
        frame.select("patient", "age", "illness"), schema(), (KAnonymity(2, "person"),)
    ).checked.holds
    release = anonymize(frame, schema(), Mondrian(), k=2)
    assert release.frame["age"].n_unique() == 1  # {one, two} alone is one person, so all four are one group
    with pytest.raises(GuaranteeNotMet):
        anonymize(frame[:2], schema(), Mondrian(), k=2)
    table = Table.of(frame, schema())
    assert encode(table).people is not None and np.unique(encode(table).people).size == 3
    assert exposure(table, ["age"], "patient").people == 3
    assert normal(one) == normal(two)


@pytest.mark.parametrize("pair", one_in(3, PAIRS))
def test_two_spellings_of_a_diagnosis_do_not_pass_for_diversity(pair: tuple[str, str]) -> None:
    frame = people(["a", "b", "c", "d"], ["30", "30", "40", "40"], [*pair, *pair])
    for promise in (LDiversity(2), BetaLikeness(0.1)):
        checked = verify(frame.drop("patient"), _rows(), (promise,))
        assert isinstance(promise, BetaLikeness) or not checked.holds
    with pytest.raises(GuaranteeNotMet):
        anonymize(frame, schema(), Mondrian(), (LDiversity(2),), k=2)
    # Two values of one distribution everywhere would be t-close; spelled apart they look far from the whole.
    apart = people(["a", "b", "c", "d"], ["30", "30", "40", "40"], [pair[0], pair[0], pair[1], pair[1]])
    assert verify(apart.drop("patient"), _rows(), (TCloseness(0.1),)).checked.holds
    scores = measure(anonymize(apart, schema(), Mondrian(), k=2))
    assert scores.disclosure.attributes[0].baseline.share == 1.0  # there is one value to guess


def _rows() -> Schema:
    return Schema({name: column for name, column in schema().columns.items() if name != "patient"})


@pytest.mark.parametrize("pair", one_in(3, PAIRS))
def test_a_person_has_one_share_of_an_answer_and_one_pseudonym(pair: tuple[str, str]) -> None:
    table = Table.of(people([*pair, "x"], ["30", "30", "40"]), schema())
    engine = engine_for_table(table, Unit("patient", 1))
    assert int(engine.tally(None, (), (Rows(),))[0][0]) == 2
    engine.close()
    named, _ = pseudonymize(table, ["patient"], Key.of(bytes(range(7, 47))))
    assert named.frame["patient"].n_unique() == 2
    assert len({text for series in person_texts([table, table]) for text in series.to_list()}) == 2


@pytest.mark.parametrize("pair", one_in(3, PAIRS))
def test_joined_tables_know_a_person_by_any_spelling(pair: tuple[str, str]) -> None:
    first = Table.of(people([pair[0], "x", "y", "z"], ["30", "31", "40", "41"]), schema())
    second = Table.of(people([pair[1], "x", "y", "z"], ["30", "31", "40", "41"]), schema())
    release = anonymize_joined({"a": first, "b": second}, Mondrian(), k=2)
    assert release.people == 4


@pytest.mark.parametrize("pair", APART)
def test_what_differs_stays_apart(pair: tuple[str, str]) -> None:
    assert normal_texts(pl.Series(pair)).n_unique() == 2
    assert normal(pair[0]) != normal(pair[1])


def test_case_tells_apart_where_the_schema_says_so_and_a_comma_is_a_point_where_it_is_one() -> None:
    assert normal_texts(pl.Series(["a", "A"]), case="distinct").n_unique() == 2
    assert normal_texts(pl.Series(["7", "7,0", "07,00"]), decimal=",").n_unique() == 1
    assert normal_texts(pl.Series(["1.234", "1234", "1.234,0"]), decimal=",").n_unique() == 1
    assert normal_texts(pl.Series(["1000", "1e3", "1E+03"]), exponents=True).n_unique() == 1


@given(st.lists(st.text(max_size=8), min_size=1, max_size=20), st.sampled_from("., "))
def test_the_normal_form_is_its_own_and_merges_what_the_independent_one_merges(texts, mark) -> None:
    decimal = mark.strip() or "."
    series = pl.Series(texts)
    once = normal_texts(series, decimal=decimal)
    assert series.to_list() == texts  # what is handed in is not changed
    assert normal_texts(once).to_list() == once.to_list()
    for text, form in zip(texts, once.to_list(), strict=True):
        assert normal_texts(pl.Series([f" {text}\u200b\u00a0"]), decimal=decimal).item() == form


def test_spellings_of_a_category_are_one_group_published_as_one_text() -> None:
    spelled = [
        "São Paulo",
        "São Paulo ",
        "Sa\u0303o\u00a0Paulo",
        "são paulo",
        "São Paulo",
        "Recife",
        "recife",
        "Recife",
    ]
    frame = pl.DataFrame({"city": spelled, "illness": [f"i{n}" for n in range(8)]})
    said = Schema({"city": Column("city", "quasi"), "illness": Column("illness", "sensitive")})
    release = anonymize(frame, said, Mondrian(), k=3)
    assert set(release.frame["city"].to_list()) == {"São Paulo", "Recife"}
    assert release.loss == 0.0 and looks_alike(release.frame["city"].to_list()) == 0
    assert verify(release.frame, said, (KAnonymity(3),)).holds
    tree = TaxonomySpec("levels", paths=(("SÃO PAULO", "South"), ("Recife", "North")))
    by_hand = Schema({**said.columns, "city": Column("city", "quasi", taxonomy=tree)})
    assert set(anonymize(frame, by_hand, Mondrian(), k=3).frame["city"].to_list()) == {"SÃO PAULO", "Recife"}
    # A file that kept the spellings is read as what it says.
    assert measure_files(Table.of(frame, said), frame).ncp.overall == 0.0


def test_a_taxonomy_that_lists_two_spellings_keeps_them_apart() -> None:
    tree = TaxonomySpec("levels", paths=(("a", "x"), ("A", "y"), ("b", "y")))
    said = Schema({"c": Column("c", "quasi", taxonomy=tree)})
    release = anonymize(pl.DataFrame({"c": ["a", "a", "A", "A", "b", "B"]}), said, Mondrian(), k=2)
    assert sorted(release.frame["c"].to_list()) == ["A", "A", "a", "a", "b", "b"]
    assert spelling_notes(release.table) == (
        "'c': 1 value differs from another only in case, blanks or how a number is written; they are counted as one.",
    )


def test_spellings_are_named_by_their_number_and_never_shown() -> None:
    frame = people(["P1", "P1 ", "p1", "Q"], ["1", "01", "1.0", "2"], ["HIV", "HIV ", "flu", "flu"])
    notes = spelling_notes(Table.of(frame, schema()))
    assert [note.split(" differ")[0] for note in notes] == ["'patient': 2 values", "'illness': 1 value"]
    assert not any(cell in note for note in notes for cell in ("P1", "HIV", "flu"))
    assert spelling_notes(Table.of(people(["a", "b"], ["1", "01"]), schema())) == ()


@pytest.mark.parametrize("method", [Mondrian(), FullDomain(), KMember(), Progressive()])
def test_a_value_named_like_its_group_has_one_loss_everywhere(method) -> None:
    values = ["Europe", "France", "Spain", "Asia", "Japan", "China"]
    paths = tuple((v, "Europe" if at < 3 else "Asia") for at, v in enumerate(values))
    said = Schema({"c": Column("c", "quasi", taxonomy=TaxonomySpec("levels", paths=paths))})
    frame = pl.DataFrame({"c": [v for v in values for _ in range(4)] + ["France", "Peru"][:1]})
    release = anonymize(frame, said, method, k=3)
    made = release.loss
    assert made > 0  # whoever reads `Europe` does not know whether the value or the group is meant
    assert measure(release).ncp.overall == pytest.approx(made)
    found = measure_files(Table.of(frame, said), release.frame, rows=release.rows)
    assert found.ncp is not None and found.ncp.overall == pytest.approx(made)
    assert release.facts()["cost"]["ncp"] == made


# A table takes 150 ms. What goes wrong on one table in twenty is missed by 250 in fewer than three runs of a million.
# Before a release of velado itself, let it be 10,000.
ODD_TABLES = int(os.environ.get("VELADO_ODD_TABLES", "250"))

ODD = [
    lambda text, draw: text,
    lambda text, draw: text + " ",
    lambda text, draw: "\u00a0" + text,
    lambda text, draw: text.lower(),
    lambda text, draw: text[:1] + "\u200b" + text[1:],
    lambda text, draw: ("0" + text) if text.isdigit() else text.replace(" ", "  "),
    lambda text, draw: (text + ".0") if text.isdigit() else "\t" + text,
    lambda text, draw: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text),
]


def odd_table(draw: random.Random) -> tuple[pl.DataFrame, Schema]:
    """A small table with many rows a person and every cell spelled in one of several ways."""

    def spelled(text: str) -> str:
        return draw.choice(ODD)(text, draw) if draw.random() < 0.5 else text

    count = draw.randint(20, 60)
    crowd = [draw.choice((f"P{n}", str(n), f"Ana {n}")) for n in range(draw.randint(6, 20))]
    who = [draw.choice(crowd) for _ in range(count)]
    home = {person: draw.choice(("Recife", "São Paulo", "Belém", "Rio")) for person in crowd}
    frame = pl.DataFrame(
        {
            "patient": [spelled(person) for person in who],
            "age": [draw.choice(("", "0")) + str(draw.randint(20, 60)) for _ in who],
            "city": [spelled(home[person]) for person in who],
            "illness": [spelled(draw.choice(("HIV", "flu", "7", "asthma", ""))) for _ in who],
        }
    )
    city = Column("city", "quasi", side_door="accept")
    illness = Column("illness", "sensitive", side_door="accept")
    return frame, Schema({**schema().columns, "city": city, "illness": illness}, constant="allow")


def fuzz(tables: int, seed: int) -> tuple[int, int]:
    """How many tables were released and how many refused; every release was recounted."""
    draw = random.Random(seed)
    released = refused = 0
    for number in range(tables):
        frame, said = odd_table(draw)
        k = draw.randint(2, 4)
        method = draw.choice((Mondrian, Progressive, KMember))()
        diverse = draw.random() < 0.5
        try:
            release = anonymize(
                frame, said, method, (LDiversity(2),) if diverse else (), k=k, suppression=0.2
            )
        except VeladoError:
            refused += 1
            continue
        released += 1
        published, originals = release.frame.to_dicts(), frame[release.rows].to_dicts()
        found = recount(published, originals, "patient", ["age", "city"], "illness")
        assert found.people >= k
        assert not diverse or found.diagnoses >= 2
        assert looks_alike(release.frame["city"].to_list()) == 0
        if number % 50 == 0:
            assert verify(release.frame, _published(said), (KAnonymity(2),)).checked.holds
    return released, refused


def _published(said: Schema) -> Schema:
    return Schema(
        {name: column for name, column in said.columns.items() if name != "patient"}, constant="allow"
    )


@pytest.mark.parametrize(
    ("tables", "seed"), [(15, 11), pytest.param(ODD_TABLES, 12, marks=pytest.mark.slow, id="many")]
)
def test_odd_tables_are_recounted_by_an_independent_checker(tables: int, seed: int) -> None:
    released, refused = fuzz(tables, seed)
    assert released >= 3 * refused
