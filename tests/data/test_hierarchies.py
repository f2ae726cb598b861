"""The bundled hierarchies place what they know where it belongs, and refuse what has no one place."""

from itertools import pairwise

import polars as pl
import pytest

from velado import anonymize
from velado.data.encode import encode
from velado.data.hierarchies import HIERARCHIES, fitting, tree_of
from velado.data.hierarchies._bundled import rows_of
from velado.data.hierarchies.ages import AGES
from velado.data.hierarchies.cep import CEP
from velado.data.hierarchies.icd10 import BLOCKS, CHAPTERS, ICD10
from velado.data.hierarchies.municipalities import MUNICIPALITIES, REGIONS, STATES
from velado.data.hierarchies.titles import titles_for
from velado.data.schema import BUILDERS, Schema
from velado.data.table import Table
from velado.errors import TaxonomyError
from velado.report.code_titles import codes_told
from velado.text import told

# IBGE's codes end in a check digit; these nine of the official list do not fit it, and are right all the same.
ODD_DIGITS = {
    "2201919",
    "2201988",
    "2202251",
    "2611533",
    "3117836",
    "3152131",
    "4305871",
    "5203939",
    "5203962",
}


def ancestors(tree, leaf: int) -> set[int]:
    """Every node above a leaf."""
    out, node = set(), leaf
    while (node := int(tree.parent[node])) >= 0 and node not in out:
        out.add(node)
    return out


def check_digit(code: str) -> int:
    products = [int(digit) * weight for digit, weight in zip(code, (1, 2, 1, 2, 1, 2), strict=False)]
    return -sum(product // 10 + product % 10 for product in products) % 10


def test_all_municipalities_are_there_with_right_codes() -> None:
    rows = rows_of("municipalities.csv")
    codes = [row[0] for row in rows]
    assert len(codes) == len(set(codes)) == 5570
    assert {code for code in codes if check_digit(code) != int(code[6])} == ODD_DIGITS
    assert {code[:2] for code in codes} == set(STATES) and {code[0] for code in codes} == set(REGIONS)
    # How many each state has, IBGE 2013.
    of_state = {STATES[state]: sum(code[:2] == state for code in codes) for state in STATES}
    assert (of_state["MG"], of_state["SP"], of_state["RS"], of_state["RR"], of_state["DF"]) == (
        853,
        645,
        497,
        15,
        1,
    )


@pytest.mark.parametrize(
    ("value", "state"),
    [
        ("3171303", "MG"), ("317130", "MG"), ("Viçosa/MG", "MG"), ("VICOSA - AL", "AL"), ("viçosa (rn)", "RN"),
        ("São Paulo", "SP"), ("sao paulo", "SP"), ("Embu das Artes", "SP"), ("Xangri-lá", "RS"), ("Dias d’Ávila", "BA"),
        ("Brasília", "DF"), ("Mojuí dos Campos", "PA"),
    ],
)  # fmt: skip
def test_a_municipality_is_known_by_code_and_by_name(value: str, state: str) -> None:
    (path,) = MUNICIPALITIES.place([value]).paths
    assert path == (value, state, REGIONS[next(code for code, name in STATES.items() if name == state)[0]])


def test_a_name_of_several_states_asks_for_its_state() -> None:
    placed = MUNICIPALITIES.place(["Viçosa", "Atlantis", "9999999", "Viçosa/SP"])
    assert placed.ambiguous == ("Viçosa",) or set(placed.ambiguous) == {"Viçosa"}
    assert set(placed.unknown) == {"Atlantis", "9999999", "Viçosa/SP"}
    with pytest.raises(TaxonomyError) as refused:
        tree_of(MUNICIPALITIES, ["Viçosa"], "city")
    assert "Viçosa" not in refused.value.what and "/MG" in refused.value.fix


def test_icd_codes_have_category_block_and_chapter() -> None:
    found = {path[0]: path[1:] for path in ICD10.place(["J189", "J18.9", "j18", "C50", "X85", "U07.1"]).paths}
    assert found["J189"] == found["J18.9"] == ("J18", "J09-J18", "J00-J99")
    assert found["j18"] == ("J18", "J09-J18", "J00-J99")
    assert found["C50"] == ("C50-C50", "C00-D48")
    assert found["X85"] == ("X85-Y09", "V01-Y98")
    assert ICD10.place(["D49", "18.9", "", "J1"]).unknown == ("D49", "18.9", "", "J1")
    assert ICD10.meaning is not None
    for ranges in (CHAPTERS, BLOCKS):
        assert all(ICD10.meaning(label) == title and title.strip() for label, title in ranges.items())
        assert len(set(ranges.values())) == len(ranges)
    assert len(CHAPTERS) == 22


def test_every_block_lies_in_one_chapter_and_none_overlap() -> None:
    assert len(CHAPTERS) == 22 and len(BLOCKS) == 263
    ranges = [(block[:3], block[4:]) for block in BLOCKS]
    assert all(low <= high for low, high in ranges)
    assert all(before[1] < after[0] for before, after in pairwise(ranges))
    for low, high in ranges:
        assert sum(chapter[:3] <= low and high <= chapter[4:] for chapter in CHAPTERS) == 1


def test_ages_from_ninety_on_are_together() -> None:
    tree = tree_of(AGES, ["0", "89", "89,5", "90", "104"])
    labels = {tree.labels[leaf]: tree.labels[tree.parent[leaf]] for leaf in range(tree.leaves)}
    assert labels == {"0": "[0..4]", "89": "[85..89]", "89,5": "[85..89]", "90": ">=90", "104": ">=90"}
    assert AGES.place(["-1", "old", "131"]).unknown == ("-1", "old", "131")
    # No label says more than it holds: what lies above 80 ends below 90, where the oldest begin.
    ages = tree_of(AGES, [str(age) for age in range(100)])
    for leaf in range(90):
        node = leaf
        while (node := int(ages.parent[node])) >= 0 and ages.labels[node] != "*":
            low, high = (int(end) for end in ages.labels[node].strip("[]").split(".."))
            below = [one for one in range(100) if node in ancestors(ages, one)]
            assert below == list(range(low, high + 1))


def test_postal_codes_are_one_however_they_are_written() -> None:
    paths = CEP.place(["36570-000", "36570000", "36.570-000"]).paths
    assert {path[1:] for path in paths} == {("36570***", "365*****", "36******", "3*******")}
    assert CEP.place(["3657", "abcde-fgh"]).unknown == ("3657", "abcde-fgh")


@pytest.mark.parametrize("hierarchy", HIERARCHIES, ids=lambda one: one.name)
def test_each_hierarchy_is_a_builder_of_the_schema(hierarchy: object) -> None:
    name = hierarchy.name  # type: ignore[attr-defined]
    values = {
        "ages": ["31", "40"],
        "cep": ["36570-000", "36571-000"],
        "icd-10": ["J18", "K35"],
        "municipality": ["Santos", "Ubá"],
    }
    entry = {"role": "quasi", "taxonomy": {"builder": name}}
    schema = Schema.from_dict({"columns": {"x": entry}})
    assert name in BUILDERS and schema.to_dict()["columns"]["x"]["taxonomy"] == {"builder": name}  # type: ignore[index]
    import polars as pl

    (column,) = encode(Table.of(pl.DataFrame({"x": values[name]}), schema)).columns
    assert column.tree is not None and column.tree.height >= 2


def test_titles_stand_beside_codes_only_where_the_column_holds_such_codes() -> None:
    title = titles_for(["J18.9", "C50", "?", "I21"])
    assert (title("I20-I25"), title("I00-I99")) == (BLOCKS["I20-I25"], CHAPTERS["I00-I99"])
    assert title("I21") == title("*") == titles_for(["ward 1", "ward 2", "J18"])("I20-I25") == ""
    assert titles_for([])("I20-I25") == ""


def test_a_report_says_what_codes_in_the_table_stand_for() -> None:
    codes = ["J18.9", "J11.0", "C50.1", "C50.9"] * 4
    frame = pl.DataFrame({"cid": codes, "cost": range(16)})
    columns = {"cid": {"role": "quasi", "taxonomy": {"builder": "icd-10"}}, "cost": {"role": "other"}}
    release = anonymize(frame, Schema.from_dict({"columns": columns}), k=8, method="mondrian")
    shown = release.listed.get_column("cid").unique().to_list()
    (told_codes,) = codes_told(release.data.columns, release.listed.to_dict())
    (table,) = told_codes.blocks
    rows = {row[1]: row[2] for row in table.rows}
    assert set(rows) <= set(shown) and rows["J09-J18"] == BLOCKS["J09-J18"]
    assert told(rows["J09-J18"], "pt") != told(rows["J09-J18"], "en")


def test_a_column_is_known_by_its_values_where_they_are_hardly_anything_else() -> None:
    towns = ["Recife", "Olinda", "Manaus", "Natal", "Curitiba", "Niterói"]
    codes = ["J18.9", "O80", "A09", "E11", "N39", "K35"]
    assert (fitting(towns), fitting(codes)) == (MUNICIPALITIES, ICD10)
    assert fitting([*towns, "Viçosa"]) == MUNICIPALITIES  # of several states: known, and placed by hand
    assert fitting([*towns, "elsewhere", "unknown"]) is None  # a quarter is something else
    assert (
        fitting(["Viçosa", "Belém", "Santa Luzia", "Bom Jesus", "Recife"]) is None
    )  # hardly one has one place
    assert fitting(towns[:4]) is None and fitting([]) is None
    assert fitting([str(age) for age in range(90)]) is None  # ages, days, children: numbers may be anything
    assert fitting([f"{n:08d}" for n in range(36570000, 36570050)]) is None
