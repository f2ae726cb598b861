"""Presets decide every column, and what Safe Harbor publishes holds nothing that the rule lists."""

import polars as pl
import pytest

from velado.data.identifiers import identifying_columns
from velado.data.identifiers.eighteen import EIGHTEEN, letters_of
from velado.data.io import read_table
from velado.data.keys import Key
from velado.data.schema import Schema
from velado.release.operations import OPERATIONS
from velado.release.operations.zip_prefix import FEW_PEOPLE
from velado.release.transform import transform
from velado.settings import describe, named, part_of
from velado.study.presets import PRESETS, PublicDownload, Researchers, SafeHarbor
from velado.text import Sentence, told

ROWS = 40
FRAME = pl.DataFrame(
    {
        "patient_name": [f"Maria Silva {'ABCDEFGHIJ'[n % 10]}{'KLMN'[n // 10]}" for n in range(ROWS)],
        "fax": [f"(212) 555-{1000 + n}" for n in range(ROWS)],
        "zip": ["03601", "90210", "02139-4307", "89399"] * 10,
        "city": ["Keene", "Beverly Hills", "Cambridge", "Elko"] * 10,
        "state": ["NH", "CA", "MA", "NV"] * 10,
        "age": [str(60 + n) for n in range(ROWS)],
        "birth_date": [f"{1963 - n}-05-17" for n in range(ROWS)],
        "admission_date": ["2023-02-03", "2022-11-30"] * 20,
        "sex": ["F", "M"] * 20,
        "illness": ["flu", "gout", "flu", "cold"] * 10,
    }
)
ENTRIES = {
    "patient_name": {"role": "other", "kind": "text"},
    "fax": {"role": "other", "kind": "text"},
    "zip": {"role": "quasi"},
    "city": {"role": "quasi"},
    "state": {"role": "quasi"},
    "age": {"role": "quasi", "kind": "numeric"},
    "birth_date": {"role": "quasi", "kind": "date"},
    "admission_date": {"role": "quasi", "kind": "date"},
    "sex": {"role": "quasi"},
    "illness": {"role": "sensitive"},
}
TABLE = read_table(FRAME, Schema.from_dict({"columns": ENTRIES}))


def test_safe_harbor_decides_each_column_with_the_letter_of_the_rule() -> None:
    plan = SafeHarbor().applied(TABLE)
    found = {one.column: (one.action, one.rule) for one in plan.decisions}
    assert list(found) == FRAME.columns
    assert found["patient_name"] == ("held back", "A") and found["fax"] == ("held back", "E")
    assert found["city"] == ("held back", "B") and found["zip"] == ("changed", "B")
    assert found["age"] == found["birth_date"] == found["admission_date"] == ("changed", "C")
    assert found["state"] == found["sex"] == found["illness"] == ("as the schema says", "")
    assert len(EIGHTEEN) == 18 and plan.k is None and "no actual knowledge" in plan.said[0]


def test_what_safe_harbor_publishes_is_coarse_enough() -> None:
    plan = SafeHarbor().applied(TABLE)
    out = transform(TABLE, plan.schema, plan.operations, key=Key(bytes(range(40)))).frame
    assert set(out.columns) == {"zip", "state", "age", "birth_date", "admission_date", "sex", "illness"}
    assert set(out["zip"]) == {"000", "902", "021"}  # 036 and 893 have few people
    assert max(int(age) for age in out["age"]) == 90
    assert set(out["admission_date"]) == {"2022", "2023"}
    # In 2023 whoever was born in 1933 or before may be 90.
    assert min(year for year in out["birth_date"] if year[0] != "<") == "1934" and "<=1933" in set(
        out["birth_date"]
    )


def test_operations_of_a_preset_stand_in_a_recipe() -> None:
    from velado.settings import entry_of

    for operation in SafeHarbor().applied(TABLE).operations:
        assert part_of(OPERATIONS, entry_of(operation), "[[operations]]", "operation") == operation


def test_a_birth_date_without_a_year_to_tell_ages_in_is_held_back() -> None:
    entries = {name: ENTRIES[name] for name in ("birth_date", "sex")}
    table = read_table(FRAME.select("birth_date", "sex"), Schema.from_dict({"columns": entries}))
    assert SafeHarbor().applied(table).decisions[0].action == "held back"
    (operation,) = SafeHarbor(year=2026).applied(table).operations
    assert operation.oldest == 1936  # type: ignore[attr-defined]


@pytest.mark.parametrize("cell", ["zip", "postal_code"])
def test_what_is_no_zip_code_is_hidden(cell: str) -> None:
    frame = pl.DataFrame(
        {cell: ["1234", "ABC", "90210", "90210-12", " 90210 ", ""] * 4, "sex": ["F", "M"] * 12}
    )
    table = read_table(
        frame, Schema.from_dict({"columns": {cell: {"role": "quasi"}, "sex": {"role": "quasi"}}})
    )
    plan = SafeHarbor().applied(table)
    out = transform(table, plan.schema, plan.operations, key=Key(bytes(range(40)))).frame
    assert set(out[cell].drop_nulls()) == {"000", "902"}
    assert len(FEW_PEOPLE) == 17


@pytest.mark.parametrize("preset", PRESETS, ids=lambda one: one.name)
def test_a_preset_of_the_registry_has_what_every_view_asks_of_it(preset) -> None:
    assert [one.name for one in PRESETS].count(preset.name) == 1
    for said in (preset.title, preset.recipient, preset.purpose):
        assert isinstance(said, Sentence) and told(said, "en").strip()
        assert told(said, "pt") != told(said, "en"), "its Portuguese stands in the catalogue"
    plan = preset().applied(TABLE)
    assert set(plan.schema.columns) == set(TABLE.schema.columns) and plan.said
    assert plan.k is None or plan.k >= 2
    entries = [dict(describe(one), column="sex") for one in plan.operations]
    assert all(part_of(OPERATIONS, entry, "operation") for entry in entries)


HEADERS = [name for name in FRAME.columns if name not in ("patient_name", "sex")] + [
    "county", "cep", "bairro", "region", "regiao_uf", "uf", "estado", "latitude", "town", "geocode", "ages", "nasc", "dob",
    "dt_obito", "obito", "ssn", "mrn", "plate", "ip_address", "rua", "codigo_postal", "zip5", "weight",
    "phone", "celular", "email", "email_address", "url",
]  # fmt: skip
CELLS = {
    "short numbers": [str(60 + n % 5) for n in range(ROWS)],
    "telephones": [f"(212) 555-{1000 + n}" for n in range(ROWS)],
    "mail": [f"ana{n}@mail{n}.org" for n in range(ROWS)],
    "web": [f"https://example.org/people/ana{n}" for n in range(ROWS)],
}


@pytest.mark.parametrize("kind", ["categorical", "text"])
@pytest.mark.parametrize("cells", CELLS)
@pytest.mark.parametrize("header", HEADERS)
def test_what_the_preset_removes_and_what_the_pack_reports_go_by_one_list(
    header: str, cells: str, kind: str
) -> None:
    frame = pl.DataFrame({header: CELLS[cells], "sex": ["F", "M"] * 20})
    entries = {header: {"role": "quasi", "kind": kind}, "sex": {"role": "quasi"}}
    table = read_table(frame, Schema.from_dict({"columns": entries}))
    (decision, _) = SafeHarbor().applied(table).decisions
    # As the pack asks: with what the judgement found in the values.
    judged = {one.column: str(one.kind) for one in identifying_columns(table)}.get(header, "")
    letters = letters_of(header, kind, "quasi", judged)
    assert decision.rule in letters if letters else decision.rule == ""


def test_a_column_is_one_of_the_list_by_its_values_where_somebody_read_them() -> None:
    for header, letter in (("phone", "D"), ("celular", "D"), ("fax", "E"), ("email", "F"), ("url", "N")):
        assert letters_of(header, "categorical", "quasi") == [
            letter
        ]  # nobody read the values: the header's word
        assert letters_of(header, "categorical", "quasi", "") == []
        assert letters_of(header, "categorical", "identifier", "") == [letter]
    assert letters_of("ip_address", "categorical", "other", "ip") == ["O"]


def test_the_other_presets_promise_and_leave_the_schema_alone() -> None:
    public, contract = PublicDownload().applied(TABLE), Researchers().applied(TABLE)
    assert public.k == 11 and [one.name for one in public.guarantees] == ["l-diversity"]
    assert contract.k == 5 and contract.guarantees == () and public.schema == contract.schema == TABLE.schema
    assert named(PRESETS, "researchers", "preset") is Researchers


@pytest.mark.parametrize(
    ("cells", "kept"),
    [
        (["0,3", "1,2", "0,45"], True),
        (["1960", "1971", "1955"], False),
        (["21916,5", "25934,0", "20090,0"], False),
    ],
)
def test_a_measurement_whose_header_may_be_short_for_a_birth_is_no_day(cells: list[str], kept: bool) -> None:
    frame = pl.DataFrame({"BD": cells * 10, "sex": ["F", "M", "F"] * 10})
    entries = {"BD": {"role": "other", "kind": "numeric"}, "sex": {"role": "quasi"}}
    table = read_table(frame, Schema.from_dict({"table": {"decimal": ","}, "columns": entries}))
    assert SafeHarbor().applied(table).schema.columns["BD"].publish is kept
