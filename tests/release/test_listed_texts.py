"""Published texts that stand in a list once are read, counted and written as the texts themselves are."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import velado
from velado.data.encode import CodedTexts, VisibleTexts
from velado.data.formulas import count_formulas
from velado.data.published_column import PublishedColumn
from velado.data.staging import file_digest, staged_folder
from velado.data.table_bytes import csv_bytes

TEXTS = ["b", None, "a", "=1+1", 'q"uote', "", "c,d", "b", "*"]
LISTED = pl.Series("x", TEXTS, dtype=pl.Enum(["z", "*", 'q"uote', "b", "", "a", "=1+1", "unused", "c,d"]))


def test_a_listed_column_is_coded_as_its_texts_are() -> None:
    plain, listed = CodedTexts.of(LISTED.cast(pl.String)), CodedTexts.of(LISTED)
    assert listed.codes.tolist() == plain.codes.tolist()
    assert listed.codes.dtype == plain.codes.dtype
    assert listed.texts.to_list() == plain.texts.to_list()
    frames = pl.DataFrame([LISTED]), pl.DataFrame([LISTED.cast(pl.String)])
    own, other = (VisibleTexts.of(frame, ["x"]).wildcard_sizes().tolist() for frame in frames)
    assert own == other


@pytest.mark.parametrize("formulas", ["keep", "escape"])
def test_a_listed_column_is_written_as_its_texts_are(formulas: str) -> None:
    listed, plain = pl.DataFrame([LISTED]), pl.DataFrame([LISTED.cast(pl.String)])
    order = np.random.default_rng(0).permutation(len(TEXTS))
    assert csv_bytes(listed, ";", formulas, order) == csv_bytes(plain, ";", formulas, order)
    assert count_formulas(listed) == count_formulas(plain) == 1


def test_two_covers_with_one_text_are_one_text() -> None:
    codes, ends = np.array([2, 0, 1, 3], dtype=np.int32), np.zeros(4, dtype=np.int32)
    column = PublishedColumn("age", codes, ("*", None, "*", "20"), ends, ends)
    kept = np.array([True, True, True, False])
    assert column.listed(kept).to_list() == column.series(kept).to_list() == ["*", "*", None]


def test_no_list_leaves_with_a_release() -> None:
    frame = pl.DataFrame(
        {
            "age": [20, 21, 40, 41, 60],
            "ill": pl.Series(["f", "g", "f", "g", "secret"], dtype=pl.Enum(["f", "g", "secret"])),
        }
    )
    schema = velado.Schema.from_dict(
        {
            "columns": {
                "age": {"role": "quasi", "kind": "numeric"},
                "ill": {"role": "sensitive", "kind": "categorical"},
            }
        }
    )
    made = velado.anonymize(frame, schema, method="mondrian", k=2)
    assert isinstance(made.listed.schema["age"], pl.Enum)
    for shown in (made.aligned, made.frame):
        assert set(shown.dtypes) == {pl.String}


def test_what_is_poured_has_the_digest_and_the_mode_of_what_is_put(tmp_path: Path) -> None:
    with staged_folder(tmp_path / "out") as staged:
        digest = staged.pour("release/table.csv", [b"age\n", b"31\n"])
        staged.put({"release/other.csv": b"age\n31\n"})
    poured, put = tmp_path / "out/release/table.csv", tmp_path / "out/release/other.csv"
    assert poured.read_bytes() == put.read_bytes()
    assert poured.stat().st_mode == put.stat().st_mode
    assert digest == file_digest(put)


@pytest.mark.parametrize(("given", "seen"), [(None, "1"), ("2", "2")])
def test_the_command_line_takes_one_thread_for_linear_algebra_unless_told(
    given: str | None, seen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    if given is not None:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", given)
    told = (
        "import os, sys\nsys.argv = ['velado', '--version']\nfrom velado.apps.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\nprint(os.environ['OPENBLAS_NUM_THREADS'])"
    )
    ran = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.split()[-1] == seen
