"""A draw: one use of a mechanism on the exact numbers of one need, and what it says of itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NotRequired, TypedDict

from velado.query.accuracy import chance
from velado.query.needs import Counts, GridCells, GridSum, Need, Rows
from velado.query.noise import Mechanism
from velado.query.quantiles import places, rank_error, scores_of
from velado.text import Sentence, say


class RankError(TypedDict):
    """By how many *rows* a quantile may miss its rank, *beyond* what; by no more with that *confidence*.

    >>> RankError(rows=3.2, confidence=0.95, beyond="the asked rank")["rows"]
    3.2
    """

    rows: float
    confidence: float
    beyond: str


def quantile_sentence(name: str, asked: str, at: str, off: RankError, candidates: int) -> Sentence:
    """Which quantile a value is, and by how many rows it may miss its rank: what it has in an interval's place.

    >>> quantile_sentence("m", "quantile", "1/2", {"rows": 3.2, "confidence": 0.95, "beyond": "the asked rank"}, 9)
    'm: the 50% quantile; it may miss the asked rank by 4 rows, by no more with a chance of at least 95%.'
    """
    said = {"rows": math.ceil(off["rows"]), "chance": chance(off["confidence"])}
    if off["beyond"] == "the asked rank":
        rank = say(
            "it may miss the asked rank by {rows:,} rows, by no more with a chance of at least {chance}",
            **said,
        )
    else:
        rank = say(
            "it may miss the asked rank by {rows:,} rows more than the best of {candidates:,} candidates does, "
            "by no more with a chance of at least {chance}",
            **said,
            candidates=candidates,
        )
    told_of = {"name": name, "level": chance(at), "rank": rank}
    if asked in ("min", "max"):
        return say(
            "{name}: {extreme} is answered as the {level} quantile; {rank}.", **told_of, extreme=asked.upper()
        )
    return say("{name}: the {level} quantile; {rank}.", **told_of)


class Swing(TypedDict):
    """By how much one unit moves a draw, and the scale of its noise, in the column's own numbers.

    >>> Swing(sensitivity=120.0, scale=240.0)["scale"]
    240.0
    """

    sensitivity: float
    scale: float


class DrawFacts(TypedDict):
    """A draw as JSON has it.

    >>> Draw(Rows(), "laplace", 1, 10.0, Fraction(1, 10)).to_dict()["charge"]
    '1/10'
    """

    need: str
    what: str
    column: str | None
    mechanism: str
    sensitivity: float
    scale: float
    charge: str
    in_values: NotRequired[Swing]
    level: NotRequired[str]
    candidates: NotRequired[int]
    rank_error: NotRequired[RankError]
    depth: NotRequired[int]


@dataclass(frozen=True)
class Draw:
    """One use of a mechanism on the array of one need; *at* and *candidates* belong to a quantile.

    >>> Draw(Rows(), "laplace", 1, 10.0, Fraction(1, 10)).subject
    ('rows', None)
    """

    need: Need
    mechanism: Mechanism
    sensitivity: int
    scale: float
    charge: Fraction
    at: Fraction | None = None
    candidates: tuple[int, ...] = ()

    def scores(self, tally: Counts) -> Counts:
        """What a noisy maximum chooses by: one score per key and candidate."""
        if self.at is None or not isinstance(self.need, GridCells):
            raise ValueError("only a quantile has scores")
        return scores_of(tally, places(self.need, self.candidates), self.at)

    def to_dict(self, confidence: Fraction = Fraction(19, 20)) -> DrawFacts:
        """Mechanism, scale, sensitivity and charge; for a quantile also its level and the rank it may miss by."""
        word, column = self.subject
        out: DrawFacts = {
            "need": word if column is None else f"{word} '{column}'",
            "what": word,
            "column": column,
            "mechanism": self.mechanism,
            "sensitivity": self.sensitivity,
            "scale": self.scale,
            "charge": str(self.charge),
        }
        if isinstance(self.need, GridSum):
            # Noise is drawn in steps of the grid; a person thinks in the column's own numbers.
            step = self.need.grid.step
            out["in_values"] = {
                "sensitivity": float(self.sensitivity * step),
                "scale": self.scale * float(step),
            }
        if self.at is not None:
            out["level"] = str(self.at)
            out["candidates"] = len(self.candidates)
            out["rank_error"] = self.rank_error(confidence)
        return out

    @property
    def subject(self) -> tuple[str, str | None]:
        """What is drawn, as a word of a fixed list and the column it is about."""
        match self.need:
            case Rows(column):
                return ("rows", None) if column is None else ("rows with", column)
            case GridSum(grid, offset):
                return "sum of" if offset == 0 else "centred sum of", grid.column
            case GridCells(grid, _):
                return "histogram of" if self.at is None else "quantile of", grid.column

    def rank_error(self, confidence: Fraction) -> RankError:
        """By how many rows a quantile may miss the rank that was asked for, with that chance, in each cell.

        Where the candidates are fewer than the grid's points, the miss is counted from the best candidate's.
        """
        if self.at is None or not isinstance(self.need, GridCells):
            raise ValueError("only a quantile has a rank")
        grid = self.need.grid
        every = len(self.candidates) == grid.high - grid.low + 1
        return {
            "rows": rank_error(self.scale, len(self.candidates), self.at, confidence),
            "confidence": float(confidence),
            "beyond": "the asked rank" if every else "the best candidate",
        }


@dataclass(frozen=True)
class LevelDraw(Draw):
    """The draw of one level of a hierarchy, *depth* steps below all rows.

    >>> LevelDraw(Rows(), "laplace", 1, 10.0, Fraction(1, 10), depth=2).to_dict()["depth"]
    2
    """

    depth: int = 0

    def to_dict(self, confidence: Fraction = Fraction(19, 20)) -> DrawFacts:
        """As of every draw, with its level."""
        return {**super().to_dict(confidence), "depth": self.depth}
