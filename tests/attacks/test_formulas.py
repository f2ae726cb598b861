"""A cell or header that a spreadsheet program would run does not leave as it is when --formulas escape is asked for.

The payloads are those of OWASP's page on CSV injection, the ways around a check of the first character, and the
separator of another country. The file is read back by Python's csv module, as a program would read it.
"""

import csv
import io

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from velado.data.formulas import bare_names, count_formulas, escape_formulas, escaped_names
from velado.data.table_bytes import csv_bytes
from velado.errors import OutputError

SIGNS = "=+-@＝＋－＠﹦﹢﹣﹫−"
BEFORE = ["", " ", "   ", "\t", "\r", "\n", "\r\n", "\n\n", "\u00a0", "\u3000", "\u2028", "\u200b", "\u200d"]
BEFORE += [
    "\ufeff",
    "\u2060",
    "\u00ad",
    "\u202e",
    "\u3164",
    "\u2800",
    "\ufe0f",
    "\x00",
    "\x1f",
    "\x85",
    " \u200b\n ",
]
PAYLOADS = [before + sign + "cmd|' /C calc'!A0" for before in BEFORE for sign in SIGNS]
PAYLOADS += [
    "=1+1",
    "-2+3+cmd|' /C calc'!A0",
    '=HYPERLINK("http://x","y")',
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "-1+1",
]

HARMLESS = ["-5", "+3.2", "-1,5", "1e-3", "-1e-3", "+1.5E+10", "-1.234,56", "-.5", "-5%", " -5", "-5 ", "−5"]
HARMLESS += [
    "[20..29]",
    "[-5..-3]",
    "[-1,5..2)",
    "*",
    "-",
    "--",
    "",
    " ",
    "a-b",
    "a=b",
    "x@y.com",
    "2020-01-05",
]
HARMLESS += ["10-20", "{a, b}", "1;-5;3", "[1,-2]", "'=1", "São Paulo", "a, b; c", ">=60", "<5", None]


def read(data: bytes, separator: str = ",") -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode(), newline=""), delimiter=separator))


def runs(cell: str) -> bool:
    """Whether a program that drops what cannot be seen would read a formula; written without our expressions."""
    import unicodedata

    hidden = "\u3164\u2800\ufe0f"
    seen = cell.lstrip(
        "".join({c for c in cell if c.isspace() or unicodedata.category(c) in ("Cc", "Cf")}) + hidden
    )
    return seen[:1] != "" and seen[0] in SIGNS


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, "enum"])
def test_no_payload_is_left_to_run_in_a_cell(dtype: object) -> None:
    kind = pl.Enum(PAYLOADS) if dtype == "enum" else dtype
    frame = pl.DataFrame({"id": range(len(PAYLOADS)), "x": pl.Series(PAYLOADS).cast(kind)})  # type: ignore[arg-type]
    assert all(runs(cell) for cell in PAYLOADS)
    assert count_formulas(frame) == len(PAYLOADS)
    with pytest.raises(OutputError, match=str(len(PAYLOADS))):
        csv_bytes(frame, formulas="refuse")
    rows = read(csv_bytes(frame, formulas="escape"))
    assert len(rows) == len(PAYLOADS) + 1
    for (_, cell), payload in zip(rows[1:], PAYLOADS, strict=True):
        assert cell[0] == "'" and not runs(cell)
        assert cell.replace("'", "") == payload.replace("'", "")  # nothing else is changed


def test_no_payload_is_left_to_run_in_a_header() -> None:
    frame = pl.DataFrame({name: ["a"] for name in [*PAYLOADS, "age", "-5"]})
    assert count_formulas(frame) == len(PAYLOADS)
    with pytest.raises(OutputError, match="column name"):
        csv_bytes(frame, formulas="refuse")
    header = read(csv_bytes(frame, formulas="escape"))[0]
    assert not any(runs(name) for name in header[:-1]) and header[-2:] == ["age", "-5"]
    assert bare_names(header, frame.columns) == {v: k for k, v in escaped_names(frame.columns).items()}
    assert frame.columns[0] == PAYLOADS[0]


def test_headers_that_would_fall_together_stay_apart() -> None:
    frame = pl.DataFrame({"=a": [1], "'=a": [2]})
    assert read(csv_bytes(frame, formulas="escape")) == [["''=a", "'=a"], ["1", "2"]]
    assert bare_names(["''=a", "'=a"], ["=a", "'=a"]) == {"''=a": "=a"}
    assert bare_names(["'=a"], ["=a"]) == {"'=a": "=a"}
    assert bare_names(["=a", "'=a"], ["=a"]) == {}


@pytest.mark.parametrize("written", [",", ";", "\t"])
@pytest.mark.parametrize("opened", [",", ";", "\t"])
@pytest.mark.parametrize("inner", [",", ";", "\t", "\n", "\r\n", ";\u200b ", ';"', ';""'])
def test_no_payload_runs_for_a_reader_with_another_separator(written: str, opened: str, inner: str) -> None:
    texts = [f"note{inner}{sign}cmd|x" for sign in SIGNS] + [f"note{inner}-2+3+cmd|x", f"{inner}=1+1"]
    frame = pl.DataFrame({"id": range(len(texts)), "x": texts, "y": ["end"] * len(texts)})
    plain, safe = csv_bytes(frame, written), csv_bytes(frame, written, "escape")
    assert not any(runs(cell) for row in read(safe, opened) for cell in row)
    if written == "," and opened == inner == ";":
        assert any(runs(cell) for row in read(plain, opened) for cell in row)  # the attack


def test_numbers_intervals_and_blanks_are_left_as_they_are() -> None:
    frame = pl.DataFrame({"x": HARMLESS, "n": [-1.5] * len(HARMLESS)})
    assert count_formulas(frame) == 0
    assert csv_bytes(frame, formulas="escape") == csv_bytes(frame, formulas="refuse") == csv_bytes(frame)
    kinds = frame.with_columns(pl.col("x").cast(pl.Categorical))
    assert escape_formulas(kinds).schema == kinds.schema


def test_only_the_columns_and_cells_concerned_are_touched() -> None:
    kind = pl.Enum(["a", "b"])
    frame = pl.DataFrame(
        {"x": ["=1", None, "ok"], "y": pl.Series(["a", "b", None], dtype=kind), "z": [1, 2, -3]}
    )
    safe = escape_formulas(frame)
    assert safe.to_dict(as_series=False) == {"x": ["'=1", None, "ok"], "y": ["a", "b", None], "z": [1, 2, -3]}
    assert safe.schema == frame.schema
    assert csv_bytes(frame) == b"x,y,z\n=1,a,1\n,b,2\nok,,-3\n"


def test_an_empty_table_and_one_without_text_are_no_trouble() -> None:
    for frame in (
        pl.DataFrame(),
        pl.DataFrame({"x": []}),
        pl.DataFrame({"x": [None]}),
        pl.DataFrame({"n": [-1]}),
    ):
        assert count_formulas(frame) == 0
        assert escape_formulas(frame).equals(frame)


ODD = st.text(st.sampled_from([*"=+-@＝'\",;\t\n\r 1.a[]*%|e", "\u200b", "\u00a0"]), max_size=8)


@given(st.lists(ODD, min_size=1, max_size=20))
def test_an_escaped_table_has_no_formula_left_and_is_not_escaped_again(texts: list[str]) -> None:
    frame = pl.DataFrame({"x": texts})
    safe = escape_formulas(frame)
    assert count_formulas(safe) == 0
    assert escape_formulas(safe).equals(safe)
    assert [row[0] if row else "" for row in read(csv_bytes(frame, formulas="escape"))[1:]] == safe[
        "x"
    ].to_list()
