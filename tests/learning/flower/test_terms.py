"""The terms all clients share: from the schema alone, the same for all, and told apart by their digest."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from velado.data.schema import Schema
from velado.data.table import Table
from velado.errors import SchemaError
from velado.learning.flower import Federation
from velado.learning.flower._terms import complete, make_terms
from velado.measures.models.encoder import EncoderSettings
from velado.release.anonymize import anonymize
from velado.release.methods import Mondrian

CODES = [f"{letter}1{digit}" for letter in "ABC" for digit in range(4)]
AUTOMATIC = Schema.from_dict(
    {
        "columns": {
            "job": {"role": "quasi", "kind": "categorical", "values": [*CODES, "retired"]},
            "age": {"role": "quasi", "kind": "numeric", "bounds": [0, 100]},
            "outcome": {"role": "sensitive", "kind": "categorical", "values": ["ill", "well"]},
        }
    }
)


def terms_of(schema: Schema, **settings):
    return make_terms(schema, "outcome", Federation(**settings), {})


def test_the_same_schema_gives_the_same_terms_and_any_change_another_digest(people) -> None:
    first = terms_of(people.schema)
    assert terms_of(people.schema).digest == first.digest
    age = replace(people.schema.columns["age"], bounds=(0.0, 99.0))
    others = [
        terms_of(replace(people.schema, columns={**people.schema.columns, "age": age})),
        terms_of(people.schema, model="xgboost"),
        terms_of(people.schema, penalty=0.1),
        make_terms(people.schema, "outcome", Federation(), {"method": "mondrian"}),
        make_terms(people.schema, "outcome", Federation(), {}, encoding=EncoderSettings(taxonomy="ordinal")),
        make_terms(people.schema, "outcome", Federation(), {}, classes=["well", "ill"]),
        make_terms(people.schema, "outcome", Federation(), {}, features=["age"]),
    ]
    assert len({first.digest, *(one.digest for one in others)}) == 8


@pytest.mark.parametrize(
    ("column", "change"),
    [
        ("age", {"role": "other"}),
        ("smokes", {"role": "sensitive"}),
        ("person", {"role": "other", "publish": False}),
        ("person", {"person": True}),
        ("marker", {"missing": "refuse"}),
        ("city", {"missing": "suppress"}),
        ("age", {"clamp": True}),
        ("age", {"weight": 2.0}),
        ("age", {"round": 5.0}),
        ("age", {"side_door": "accept"}),
        ("marker", {"kind": "categorical", "values": ("1", "2")}),
        ("marker", {"bounds": (0.0, 11.0)}),
        ("smokes", {"values": ("no", "perhaps", "yes")}),
        ("person", {"group": True}),
        ("person", {"max_rows": 3}),
        ("marker", {"step": 0.5}),
        ("person", {"format": "%d/%m/%Y"}),
    ],
)
def test_whatever_the_schema_says_of_a_column_is_in_the_digest(people, column: str, change: dict) -> None:
    """Two parties with another role for a column encode alike and anonymize differently."""
    columns = {**people.schema.columns, column: replace(people.schema.columns[column], **change)}
    other = terms_of(replace(people.schema, columns=columns))
    assert other.digest != terms_of(people.schema).digest


def test_policies_paths_and_the_order_of_the_columns_are_in_the_digest(people) -> None:
    schema, columns = people.schema, people.schema.columns
    spec = columns["city"].taxonomy
    paths = tuple((*path[:1], "East" if path[1] == "North" else "West", *path[2:]) for path in spec.paths)
    moved = replace(columns["city"], taxonomy=replace(spec, paths=paths))
    others = [
        replace(schema, missing="refuse"),
        replace(schema, missing_values=("", "NA")),
        replace(schema, columns={**columns, "city": moved}),
        replace(schema, columns=dict(reversed(columns.items()))),
        replace(schema, columns={name: one for name, one in columns.items() if name != "person"}),
    ]
    digests = [terms_of(one).digest for one in (schema, *others)]
    assert len(set(digests)) == 6
    # The same tree from a file of another name is the same tree.
    renamed = replace(columns["city"], taxonomy=replace(spec, file="places.csv", separator=";"))
    assert terms_of(replace(schema, columns={**columns, "city": renamed})).digest == digests[0]


def test_of_the_settings_the_agreed_ones_are_in_the_digest_and_the_servers_own_are_not(people) -> None:
    first = terms_of(people.schema).digest
    for agreed in ({"rounds": 7}, {"participation": 0.5}, {"clients": 9}, {"test_share": 0.3}, {"depth": 2}):
        assert terms_of(people.schema, **agreed).digest != first
    own = {"patience": 5.0, "unmet": 9, "dropout": 0.1, "split": "dirichlet", "alpha": 3.0, "fraction": 0.9}
    assert terms_of(people.schema, **own).digest == first


def test_rows_are_never_in_the_digest(people) -> None:
    digests = set()
    for rows in (people.table.frame[:200], people.table.frame[200:], people.table.frame[::3]):
        part = people.table.with_frame(rows)
        full, read_off = complete(people.schema, part, "outcome", None)
        assert not read_off
        digests.add(terms_of(full).digest)
    assert digests == {terms_of(people.schema).digest}


def test_clients_with_different_values_and_blanks_get_the_same_columns(people) -> None:
    encoder = terms_of(people.schema).encoder
    frame = people.table.frame
    few = frame.filter(pl.col("city") == "Fonte").with_columns(pl.lit(None).cast(pl.String).alias("smokes"))
    assert encoder.features(few).shape[1] == encoder.features(frame).shape[1] == len(encoder.names)


def test_what_the_schema_leaves_open_is_named(people) -> None:
    columns = dict(people.schema.columns)
    columns["age"] = replace(columns["age"], bounds=None)
    columns["smokes"] = replace(columns["smokes"], values=None)
    with pytest.raises(SchemaError, match="which values 'age' and 'smokes' may have"):
        terms_of(replace(people.schema, columns=columns))
    columns = dict(people.schema.columns)
    columns["outcome"] = replace(columns["outcome"], values=None)
    with pytest.raises(SchemaError, match="classes of the target 'outcome' are not declared"):
        terms_of(replace(people.schema, columns=columns))


def test_a_simulation_completes_the_schema_and_says_which_columns_it_read_off(people) -> None:
    columns = dict(people.schema.columns)
    columns["age"] = replace(columns["age"], bounds=None)
    columns["smokes"] = replace(columns["smokes"], values=None)
    bare = replace(people.schema, columns=columns)
    full, found = complete(bare, people.table.with_schema(bare), "outcome", None)
    assert found == ("age", "smokes")
    ages = people.table.frame.get_column("age").cast(float)
    assert full.columns["age"].bounds == (ages.min(), ages.max())
    assert complete(people.schema, people.table, "outcome", None) == (people.schema, ())


def test_a_label_that_one_client_publishes_is_known_to_all() -> None:
    """A client that has codes only would by itself generalize by prefixes, one that has words too would not."""
    terms = terms_of(AUTOMATIC)
    encoder = terms.encoder
    for jobs in (CODES[:6], [*CODES[6:], "retired"]):
        frame = pl.DataFrame(
            {
                "job": [job for job in jobs for _ in range(2)],
                "age": ["40"] * (2 * len(jobs)),
                "outcome": ["ill", "well"] * len(jobs),
            }
        )
        release = anonymize(Table(frame, terms.schema), terms.schema, Mondrian(), k=4)
        features = encoder.features(release.aligned)
        at = [place for place, name in enumerate(encoder.names) if name.startswith("job#")]
        assert np.allclose(features[:, at].sum(axis=1), 1.0)
        assert set(release.aligned.get_column("job").to_list()) <= set(encoder.columns[0].tree.labels)


def test_a_feature_that_cannot_be_one_is_refused(people) -> None:
    with pytest.raises(SchemaError, match="'person' cannot be a feature"):
        make_terms(people.schema, "outcome", Federation(), {}, features=["age", "person"])
