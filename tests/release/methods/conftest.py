"""Adult as the known answers use it."""

from __future__ import annotations

import pytest

from velado.data.encode import encode
from velado.data.io import attach_taxonomies, read_table
from velado.data.schema import Schema

EIGHT = ("sex", "age", "race", "marital_status", "education", "native_country", "workclass", "occupation")


@pytest.fixture(scope="session")
def adult_tree(request):
    """Adult with eight quasi-identifiers, all with ARX's hierarchies (age a tree of 100 leaves), encoded."""
    import os
    from pathlib import Path

    folder = os.environ.get("VELADO_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs the public Adult table: set VELADO_DATA to the folder that holds it")
    columns = {
        name: {
            "role": "quasi",
            "kind": "categorical",
            "taxonomy": f"adult/hierarchies/adult_hierarchy_{name.replace('_', '-')}.csv",
        }
        for name in EIGHT
    }
    schema = attach_taxonomies(Schema.from_dict({"columns": columns}), Path(folder))
    return encode(read_table(Path(folder) / "adult" / "adult_clean.csv", schema, "drop"))
