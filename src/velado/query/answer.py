"""Answer: the numbers, what they promise, what they cost, and how they were made."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import polars as pl

from velado.data.io import to_frame
from velado.errors import ParameterError

FORMAT = 1
"""The layout of `Answer.to_dict`; a reader refuses any other."""

LEAST = Fraction(1, 1_000_000)
"""Amounts below it are not told apart in what people read."""

_TYPES: Mapping[str, Any] = {
    "text": pl.String,
    "whole": pl.Int64,
    "number": pl.Float64,
    "date": pl.Date,
    "yes/no": pl.Boolean,
}


@dataclass(frozen=True)
class Answer:
    """One answered question. Everything in it may be shown to the analyst who asked.

    *frame* has one row per key (or one row in all): the keys, then for each aggregate its value and the interval
    `_low` .. `_high` (null where there is none: quantiles, MIN and MAX). `how["plan"]["values"]` says how each is to be
    read. *guarantee* is the promise, *cost* what it took of the budget, *how* the query, the mechanisms
    and their scales. *question* is a fingerprint of what was asked, *receipt* the head of the ledger's chain at its entry,
    and *stored* tells that these numbers were drawn before and cost nothing now. *entry* is the name by which the ledger
    knows the question on this content of the table; it is made from the exact rows, so it is the owner's alone and no
    written form of the answer has it.
    """

    frame: pl.DataFrame
    guarantee: Mapping[str, Any]
    cost: Mapping[str, Any]
    how: Mapping[str, Any]
    question: str
    stored: bool
    receipt: str
    entry: str = field(default="", repr=False, compare=False)

    @property
    def value(self) -> Any:
        """The number itself, where one number was asked for."""
        names = [name for name in self.how["values"] if name in self.frame.columns]
        if self.frame.height != 1 or len(names) != 1:
            raise ParameterError(
                f"The answer has {self.frame.height} row(s) and {len(names)} value(s) in each.",
                "Only an answer of one row and one value is a single number.",
                "Read its frame instead.",
            )
        return self.frame.item(0, names[0])

    def interval(self) -> tuple[Any, Any]:
        """The interval around a single number, at the confidence that was asked for."""
        self.value  # noqa: B018 - raises where there is more than one number
        name = next(name for name in self.how["values"] if name in self.frame.columns)
        return self.frame.item(0, f"{name}_low"), self.frame.item(0, f"{name}_high")

    def to(self, like: str = "polars") -> Any:
        """The frame as "polars", "pandas" or "arrow"."""
        return to_frame(self.frame, like)

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON has it: fractions as text, floats to their last bit, missing as null."""
        return {
            "format": FORMAT,
            "question": self.question,
            "stored": self.stored,
            "receipt": self.receipt,
            "guarantee": plain(self.guarantee),
            "cost": plain(self.cost),
            "how": plain(self.how),
            "columns": [{"name": name, "type": _type_of(dtype)} for name, dtype in self.frame.schema.items()],
            "rows": [[plain(cell) for cell in row] for row in self.frame.iter_rows()],
        }

    def to_json(self, indent: int | None = None) -> str:
        """`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=indent)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Answer:
        """The answer that `to_dict` wrote, equal in every number."""
        try:
            if document["format"] != FORMAT:
                raise KeyError("format")
            names = [column["name"] for column in document["columns"]]
            types = {column["name"]: _TYPES[column["type"]] for column in document["columns"]}
            cells = {name: [row[at] for row in document["rows"]] for at, name in enumerate(names)}
            series = [
                pl.Series(name, cells[name], dtype=pl.String).str.to_date()
                if types[name] == pl.Date
                else pl.Series(name, cells[name], dtype=types[name])
                for name in names
            ]
            return cls(
                pl.DataFrame(series),
                document["guarantee"],
                document["cost"],
                document["how"],
                document["question"],
                document["stored"],
                document["receipt"],
            )
        except (KeyError, IndexError, TypeError, ValueError, pl.exceptions.PolarsError):
            raise ParameterError(
                "This is not an answer as this version of velado writes it.",
                "Its parts are missing or of another layout.",
                "Read a file that `velado query --json` or `Answer.to_json` wrote.",
            ) from None

    def sentences(self) -> list[str]:
        """How the numbers are to be read, the promise, the cost and what is left, as a person reads them."""
        cost, promise = self.cost, self.guarantee
        measure = cost["measure"]
        out = readings(self.how, promise)
        out.append(f"Promise ({promise['type']}): {promise['definition']} for {promise['unit']}.")
        if "implies" in promise:
            told = promise["implies"]
            out.append(
                f"At delta {told['delta']:g} this answer alone implies an epsilon of {short(told['epsilon'])}."
            )
        if self.stored:
            out.append(
                f"Cost: nothing; asked before, these are the same numbers. Left: {measure} {short(cost['left'])}."
            )
        else:
            out.append(
                f"Cost: {measure} {short(cost['spent'])}. Left: {measure} {short(cost['left'])} of {short(cost['budget'])}."
            )
        out.append(f"Covers {promise['covers']}.")
        return out + [f"Warning: {text}" for text in promise.get("warnings", ())]

    def __str__(self) -> str:
        return "\n".join([table_text(self.frame), *self.sentences()])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.frame.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell_text(cell))}</td>" for cell in row) + "</tr>"
            for row in self.frame.iter_rows()
        )
        notes = "".join(f"<li>{html.escape(text)}</li>" for text in self.sentences())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><ul>{notes}</ul>"


def plain(value: Any) -> Any:
    """A value as JSON has it; fractions and dates become their exact text."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def readings(how: Mapping[str, Any], promise: Mapping[str, Any]) -> list[str]:
    """What each value of an answer is, and what its interval or its rank says; nothing is said that is not so."""
    values = how["plan"].get("values", ())
    out = []
    for value in values:
        if value["answered_as"] == "bound":
            out.append(
                f"{value['name']} is the declared bound of '{value['column']}'; no rows were looked at."
            )
        elif value["answered_as"] == "quantile":
            level = level_text(value["level"])
            extreme = value["asked"].upper() if value["asked"] in ("min", "max") else ""
            named = f"{extreme} is answered as the {level} quantile" if extreme else f"the {level} quantile"
            out.append(f"{value['name']}: {named}; {rank_text(value)}.")
    if any(value["answered_as"] == "number" for value in values):
        kept = "every row" if promise["mode"] == "strict" else "the rows that count"
        most = f" (at most {promise['most_rows']} per unit)" if "most_rows" in promise else ""
        out.append(
            f"Each interval holds the exact value over {kept}{most}, with numbers moved to their declared bounds and "
            f"steps, with a chance of at least {level_text(how['confidence'])}. It is about the noise alone."
        )
    return out


def rank_text(value: Mapping[str, Any]) -> str:
    """By how many rows a quantile may miss its rank."""
    told = value["rank_error"]
    best = f" more than the best of {value['candidates']:,} candidates does"
    beyond = "" if told["beyond"] == "the asked rank" else best
    return (
        f"it may miss the asked rank by {math.ceil(told['rows']):,} rows{beyond}, "
        f"by no more with a chance of at least {level_text(told['confidence'])}"
    )


def level_text(level: str | float) -> str:
    """A level or a confidence in percent, with the digits it has."""
    return f"{float(100 * Fraction(str(level))):.6g} %"


def rounded(amount: str | float | Fraction) -> str:
    """An amount in at most six decimals, never as a fraction or with an exponent; the exact one stands in the JSON."""
    text = f"{float(Fraction(amount)):.6f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def tiny(amount: str | float | Fraction) -> bool:
    """Whether an amount is above 0 but rounds to it."""
    return 0 < Fraction(amount) < LEAST


def short(amount: str | float | Fraction) -> str:
    """An exact amount as a person reads it: its decimals where they end soon, else about as many as matter."""
    if tiny(amount):
        return "less than 0.000001"
    text = rounded(amount)
    return text if Fraction(text) == Fraction(amount) else f"about {text}"


def cell_text(cell: Any) -> str:
    """One cell of an answer as text; a missing key is the cell of missing and undeclared values."""
    if cell is None:
        return "-"
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)


def table_text(frame: pl.DataFrame) -> str:
    """A frame as lines of aligned columns."""
    lines = [list(frame.columns)] + [[cell_text(cell) for cell in row] for row in frame.iter_rows()]
    widths = [max(len(line[at]) for line in lines) for at in range(frame.width)]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines
    )


def _type_of(dtype: Any) -> str:
    if dtype.is_integer():
        return "whole"
    if dtype.is_float():
        return "number"
    return {pl.Date: "date", pl.Boolean: "yes/no"}.get(dtype.base_type(), "text")
