"""A plain CSV is cut without Polars: whatever is cut has the cells that the one door reads, and the rest goes through it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from velado.data.io import read_table
from velado.data.plain_csv import LARGEST_PLAIN, plain_columns

CELLS = st.text(alphabet='ab01 ,;|\t."\r\n-é\u2028\x85\ufeff\x00', max_size=6)
LINES = st.lists(st.lists(CELLS, min_size=1, max_size=4), min_size=1, max_size=5)


@settings(max_examples=400, deadline=None)
@given(LINES, st.sampled_from([",", ";", "\t", "|"]), st.sampled_from(["\n", "\r\n"]), st.booleans())
@example([["a", "b"], ["1", ""], ["", ""]], ",", "\n", True)
@example([["a", "b"], ["", "é "]], ";", "\r\n", False)
@example([["a", "b"], ["1", "2", "3"]], ",", "\n", True)
@example([["a", "a"], ["1", "2"]], ",", "\n", True)
@example([["31", "b"], ["1", "2"]], ",", "\n", True)
def test_what_is_cut_has_the_doors_cells(lines: list[list[str]], mark: str, end: str, last: bool) -> None:
    text = end.join(mark.join(cells) for cells in lines) + (end if last else "")
    found = plain_columns(text.encode(), "t.csv")
    if found is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_bytes(text.encode())
        frame = read_table(path).frame
    assert list(found) == frame.columns
    assert {name: frame[name].to_list() for name in frame.columns} == found


def test_plain_tables_are_cut_and_the_others_are_not() -> None:
    assert plain_columns("idade;São\r\n31;\r\n 7;é\r\n".encode(), "t.csv") == {
        "idade": ["31", " 7"],
        "São": [None, "é"],
    }
    for other in (
        b'a,b\n"1",2\n',  # quotes
        b"a,b\n1\n",  # a short line
        b"a,b\n\n1,2\n",  # a blank line
        b"a,b\n1,2\r\n",  # mixed line ends
        b"a,b\n",  # no rows
        b"a\n1\n",  # one column
        b"a,b\n1,\xe3\n",  # not UTF-8
        b"\xef\xbb\xbfa,b\n1,2\n",  # a mark before the text
        b"a,b\n1,\x00\n",
        b"PAR1,b\x15\n1,2\n",
        b"a,b\n" + b"1,2\n" * LARGEST_PLAIN,
    ):
        assert plain_columns(other, "t.csv") is None
