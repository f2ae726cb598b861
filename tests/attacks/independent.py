"""People and diagnoses of a published table, recounted in plain Python that shares no line with velado.

Written from the description of the normal form alone, row by row and slowly, so that a fault of velado's own counting
is not made twice.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Row = Mapping[str, str | None]

# Unseen characters that are no format characters (Cf) to Unicode.
_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")


def normal(text: str, decimal: str = ".") -> str:
    """What a reader takes a cell for; letters' case does not count."""
    seen = "".join(c for c in unicodedata.normalize("NFKC", text) if not _unseen(c))
    words = "".join(" " if unicodedata.category(c)[0] in "ZC" else c for c in seen).split()
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", " ".join(words)).casefold())
    return _number(plain, decimal) or plain


def _unseen(character: str) -> bool:
    return (
        unicodedata.category(character) == "Cf"
        or character in _FILLERS
        or 0xFE00 <= ord(character) <= 0xFE0F
        or 0x180B <= ord(character) <= 0x180F
    )


def _number(text: str, decimal: str) -> str | None:
    sign, digits = ("-", text[1:]) if text[:1] == "-" else ("", text.removeprefix("+"))
    if decimal == ",":
        head, comma, tail = digits.partition(",")
        parts = head.split(".")
        marked = len(parts) > 1 and 1 <= len(parts[0]) <= 3 and all(len(part) == 3 for part in parts[1:])
        if marked and all(part.isascii() and part.isdigit() for part in parts) and comma + tail != ",":
            head = "".join(parts)
        elif comma and "." in head:
            return None
        digits = head + ("." if comma else "") + tail
    whole, _, rest = digits.partition(".")
    if not (whole + rest).isascii() or not (whole + rest).isdigit():
        return None
    whole, rest = whole.lstrip("0") or "0", rest.rstrip("0")
    value = f"{whole}.{rest}" if rest else whole
    return value if value == "0" else sign + value


@dataclass(frozen=True)
class Recount:
    """The fewest people and the fewest different diagnoses that any visible group has."""

    groups: int
    people: int
    diagnoses: int


def recount(
    published: Sequence[Row],
    originals: Sequence[Row],
    person: str | None,
    quasi: Sequence[str],
    sensitive: str | None,
    decimal: str = ".",
) -> Recount:
    """Group *published* by what its cells show, and count whose rows they are (*originals*, row by row beside them).

    A row without a person is nobody new: all such rows of a group count as one person. A blank is no diagnosis.
    """
    crowds: dict[tuple[str, ...], set[str]] = defaultdict(set)
    found: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for number, (shown, true) in enumerate(zip(published, originals, strict=True)):
        # Exactly as the cells are: what looks different to a program is another group.
        group = tuple("" if shown[name] is None else str(shown[name]) for name in quasi)
        crowds[group].add(str(number) if person is None else normal(true[person] or "", decimal))
        if sensitive is not None:
            value = normal(true[sensitive] or "", decimal)
            found[group] |= {value} - {""}
    return Recount(
        len(crowds),
        min((len(crowd) for crowd in crowds.values()), default=0),
        min((len(values) for values in found.values()), default=0),
    )


def looks_alike(cells: Sequence[str | None], decimal: str = ".") -> int:
    """How many different texts of a column differ from another only in how they are written."""
    texts = {cell for cell in cells if cell is not None}
    return len(texts) - len({normal(text, decimal) for text in texts})
