"""Lines of CSV as the JSON objects that records are read from."""

from __future__ import annotations

import csv
import json


class CsvLines:
    """Lines of CSV as JSON objects, named by the header, which is the first of them.

    >>> CsvLines(";").records([b"who;age", b"p1;40", b"p2"])
    [b'{"who": "p1", "age": "40"}', b'ragged']
    """

    def __init__(self, separator: str) -> None:
        self._separator = separator
        self._names: list[str] | None = None

    def records(self, lines: list[bytes]) -> list[bytes]:
        """One payload for each line behind the header; one of another length is no JSON object, and is counted as broken."""
        out = []
        for line in lines:
            cells = next(csv.reader([line.decode("utf-8", "replace")], delimiter=self._separator), [])
            if self._names is None:
                self._names = [cell.strip().lstrip("\ufeff") for cell in cells]
            elif len(cells) != len(self._names):
                out.append(b"ragged" if cells else b"")
            else:
                out.append(json.dumps(dict(zip(self._names, cells, strict=True))).encode())
        return out
