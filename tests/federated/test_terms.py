"""The terms all clients share: from the schema alone, the same for all, and told apart by their digest."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from velado.anonymize.methods import Mondrian
from velado.anonymize.release import anonymize
from velado.data.schema import Schema
from velado.data.table import Table
from velado.errors import SchemaError
from velado.federated import Federation
from velado.federated.terms import complete, make_terms
from velado.measure.models.encoder import EncoderSettings

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
    # How long to wait is the server's own business.
    assert terms_of(people.schema, patience=5.0, rounds=7).digest == first.digest


def test_clients_with_different_values_and_blanks_get_the_same_columns(people) -> None:
    encoder = terms_of(people.schema).encoder
    frame = people.table.frame
    few = frame.filter(pl.col("city") == "Fonte").with_columns(pl.lit(None).cast(pl.String).alias("smokes"))
    assert encoder.features(few).shape[1] == encoder.features(frame).shape[1] == len(encoder.names)


def test_what_the_schema_leaves_open_is_named(people) -> None:
    columns = dict(people.schema.columns)
    columns["age"] = replace(columns["age"], bounds=None)
    columns["smokes"] = replace(columns["smokes"], values=None)
    with pytest.raises(SchemaError, match="which values 'age', 'smokes' may have"):
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
        release = anonymize(Table(frame, terms.schema), terms.schema, Mondrian(k=4))
        features = encoder.features(release.frame)
        at = [place for place, name in enumerate(encoder.names) if name.startswith("job#")]
        assert np.allclose(features[:, at].sum(axis=1), 1.0)
        assert set(release.frame.get_column("job").to_list()) <= set(encoder.columns[0].tree.labels)


def test_a_feature_that_cannot_be_one_is_refused(people) -> None:
    with pytest.raises(SchemaError, match="'person' cannot be a feature"):
        make_terms(people.schema, "outcome", Federation(), {}, features=["age", "person"])
