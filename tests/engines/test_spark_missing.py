"""Without pyspark, asking for Spark is one clear error that says what to install, and nothing is written."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from velado.data.schema import Schema
from velado.errors import MissingExtra
from velado.study.engine_run import publish_files


@pytest.mark.skipif(find_spec("pyspark") is not None, reason="pyspark is installed")
def test_without_pyspark_it_is_said_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "stays.csv").write_text("age\n31\n32\n")
    schema = Schema.from_dict({"columns": {"age": {"role": "quasi", "kind": "numeric"}}})
    with pytest.raises(MissingExtra, match=r"Install velado\[spark\]"):
        publish_files(tmp_path / "stays.csv", schema, k=2, out=tmp_path / "out", engine="spark")
    assert [path.name for path in tmp_path.iterdir()] == ["stays.csv"]
