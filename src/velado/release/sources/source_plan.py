"""Two ways to release a table on an engine, *compress* and *cut*: which one is taken, and the sentence that says why.

*compress* collects all distinct tuples of quasi-identifiers with their counts and runs any method on them. *cut* takes
Mondrian's first cuts from histograms, and then has the tuples of a few parts here at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from velado.engines.row_source import Coding, RowSource, TupleKeys
from velado.engines.sql_cut import CutHere, CutThere
from velado.errors import ParameterError
from velado.release.methods._method import Method
from velado.release.methods.mondrian import Mondrian
from velado.release.run_settings import Plan
from velado.release.sources.source_tuples import MOST_TUPLES, SourceCodes
from velado.text import Sentence, say

_LEAST_PART = 50_000


@runtime_checkable
class Cuttable(Protocol):
    """What a source can do, beside all that every one can, that can be cut where it lies.

    >>> import pyarrow as pa
    >>> from velado.engines.duckdb_source import of_arrow
    >>> isinstance(of_arrow(pa.table({"age": [20]})), Cuttable)
    True
    """

    def about_tuples(self, columns: Sequence[str]) -> int:
        """About how many different combinations of cells *columns* have."""
        ...

    def room(self) -> int:
        """How many bytes may be held in memory."""
        ...

    def cut_rows(
        self, keys: TupleKeys, beside: Sequence[Coding], blanks: Sequence[int]
    ) -> CutHere | CutThere:
        """The coded rows, to be cut into parts."""
        ...


@dataclass(frozen=True)
class ChosenPlan:
    """Which plan is taken and *why*; parts of up to *part_rows* rows are finished here. *about* is the estimate of distinct tuples, where one was made.

    >>> ChosenPlan("compress", say("It was asked for.")).part_rows
    50000
    """

    name: Literal["compress", "cut"]
    why: str
    about: int | None = None
    part_rows: int = _LEAST_PART


def tuple_bytes(codes: SourceCodes) -> int:
    """About how many bytes of memory a distinct tuple takes while groups are chosen, with what is counted beside it.

    >>> import pyarrow as pa
    >>> from velado.engines.duckdb_source import of_arrow
    >>> from velado.release.sources.source_tuples import read_codes
    >>> from velado.testing.examples import table
    >>> tuple_bytes(read_codes(of_arrow(pa.table({"age": [20, 30]})), table(age=[20, 30]).schema))
    192
    """
    beside = len(codes.values) + (codes.person is not None)
    # Keys, counts, orders and stacks of Mondrian, and codes in their column, in the matrix and twice while it is cut.
    # On 980,113 tuples of six columns the peak was 269 bytes each, and 334 with a sensitive column.
    return 176 + 16 * len(codes.columns) + 60 * beside


def choose_plan(asked: Plan, codes: SourceCodes, method: Method) -> ChosenPlan:
    """The plan for a source, or an error where the one that was asked for cannot be, or no plan can.

    >>> import pyarrow as pa
    >>> from velado.engines.duckdb_source import of_arrow
    >>> from velado.release.sources.source_tuples import read_codes
    >>> from velado.testing.examples import table
    >>> codes = read_codes(of_arrow(pa.table({"age": [20, 30]})), table(age=[20, 30]).schema)
    >>> choose_plan("auto", codes, Mondrian()).name
    'compress'
    """
    source = codes.used
    refusal = _not_cut(source, method)
    if asked == "cut" and refusal is not None:
        raise ParameterError(refusal, "The plan cut cannot be taken.", "Leave --plan out.")
    if not isinstance(source, Cuttable):
        return ChosenPlan("compress", refusal or "")
    each, room = tuple_bytes(codes), source.room()
    part_rows = max(_LEAST_PART, room // (2 * each))
    if asked != "auto":
        return ChosenPlan(asked, say("It was asked for."), part_rows=part_rows)
    if source.rows * each <= room:
        fits = say("All rows fit in the memory that is allowed, even if each has a tuple of its own.")
        return ChosenPlan("compress", fits, part_rows=part_rows)
    about = source.about_tuples([one.encoded.name for one in codes.columns])
    parts = {"tuples": about, "each": each, "room": room / 1e6}
    if refusal is not None:
        if about > MOST_TUPLES:
            raise ParameterError(
                say(
                    "The table has about {about:,} distinct tuples of quasi-identifiers; up to {most:,} are held at once.",
                    about=about,
                    most=MOST_TUPLES,
                ),
                refusal,
                "Use --method mondrian, which cuts the table first, or round columns with many values.",
            )
        return ChosenPlan("compress", refusal, about)
    if about * each <= room:
        fits = say("About {tuples:,} distinct tuples of {each} bytes fit in {room:,.0f} MB.", **parts)
        return ChosenPlan("compress", fits, about, part_rows)
    not_fits = say("About {tuples:,} distinct tuples of {each} bytes do not fit in {room:,.0f} MB.", **parts)
    return ChosenPlan("cut", not_fits, about, part_rows)


def _not_cut(source: RowSource, method: Method) -> Sentence | None:
    """Why a source cannot be cut first for a method, in a sentence; None where it can."""
    if not isinstance(method, Mondrian):
        return say(
            "'{method}' needs all distinct tuples at once: only mondrian's cuts can be taken from histograms.",
            method=method.name,
        )
    if method.cut != "strict" or method.recoder != "cover":
        return say("Only strict cuts whose groups are published by their cover can be taken from histograms.")
    if not isinstance(source, Cuttable):
        return say("{engine} cannot cut a table into parts yet.", engine=source.engine)
    return None
