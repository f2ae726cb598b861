"""The blocks that a report is made of, so that page, Markdown, terminal and JSON show the same content.

A `Page` opens with its verdict and a few key figures, then come `Section`s of blocks. Blocks are data: they know
nothing of how they are shown, and their texts are told in the reader's language when they are rendered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeVar

from velado.report.charts import BarChart, LegendEntry
from velado.text import join, say

T = TypeVar("T")
State = Literal["good", "caution", "warning"]


@dataclass(frozen=True)
class Text:
    """A paragraph; a *hint* is set smaller.

    >>> text("One.", "", "Two.").text
    'One. Two.'
    """

    kind: ClassVar[str] = "text"
    text: str
    hint: bool = False


def text(*sentences: str) -> Text:
    """A paragraph of *sentences*; empty ones are left out.

    >>> text("It holds.")
    Text(text='It holds.', hint=False)
    """
    said = [sentence for sentence in sentences if sentence]
    return Text(said[0] if len(said) == 1 else join(said))


@dataclass(frozen=True)
class Heading:
    """A heading within a section.

    >>> Heading("Clients").title
    'Clients'
    """

    kind: ClassVar[str] = "heading"
    title: str


@dataclass(frozen=True)
class Bullets:
    """A list of sentences.

    >>> Bullets(("one", "two")).items[1]
    'two'
    """

    kind: ClassVar[str] = "list"
    items: Sequence[str]


@dataclass(frozen=True)
class Code:
    """A command to copy.

    >>> Code("velado --help").text
    'velado --help'
    """

    kind: ClassVar[str] = "code"
    text: str


@dataclass(frozen=True)
class Table:
    """A table; *figures* says which columns are numbers and stand to the right: all but the first *labels*.

    >>> Table("Loss", ("column", "loss"), (("age", "12%"),)).figures
    (False, True)
    """

    kind: ClassVar[str] = "table"
    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    labels: int = 1
    figures: tuple[bool, ...] = ()

    def __post_init__(self) -> None:
        if not self.figures:
            object.__setattr__(self, "figures", tuple(at >= self.labels for at in range(len(self.header))))


def table(title: str, items: Iterable[T], *columns: tuple[str, Callable[[T], str]], labels: int = 1) -> Table:
    """A table of *items*, a row each; *columns* are headings with what stands below them.

    >>> table("Squares", [2, 3], ("number", str), ("square", lambda n: str(n * n))).rows
    [['2', '4'], ['3', '9']]
    """
    rows = [[cell(item) for _, cell in columns] for item in items]
    return Table(title, [heading for heading, _ in columns], rows, labels)


@dataclass(frozen=True)
class Drawing:
    """A finished chart: *svg* is made with `charts`, which escaped every text of it.

    Where charts cannot be drawn its *description* stands. *data* is what a script knows it by; one that is *hidden*
    waits for the reader's choice.

    >>> Drawing("<svg></svg>", "It rises.", data={"loss": "ncp"}).caption
    ''
    """

    kind: ClassVar[str] = "drawing"
    svg: str
    description: str
    caption: str = ""
    data: Mapping[str, int | str] = field(default_factory=dict)
    hidden: bool = False
    wide: bool = False


@dataclass(frozen=True)
class Legend:
    """What the marks, colours and dashes of the drawings above mean.

    >>> Legend((LegendEntry("k = 5", "<svg></svg>"),)).entries[0].text
    'k = 5'
    """

    kind: ClassVar[str] = "legend"
    entries: tuple[LegendEntry, ...]


@dataclass(frozen=True)
class Folded:
    """Blocks that a reader of the page unfolds; elsewhere they stand under their title.

    >>> Folded("Every client", (text("one"),)).title
    'Every client'
    """

    kind: ClassVar[str] = "folded"
    title: str
    blocks: tuple[Block, ...]


Block = Text | Heading | Bullets | Code | Table | BarChart | Drawing | Legend | Folded


@dataclass(frozen=True)
class Section:
    """One titled part of the report; *name* is its anchor.

    >>> Section("risk", "Risk", (text("None."),)).name
    'risk'
    """

    name: str
    title: str
    blocks: tuple[Block, ...]


def section(name: str, title: str, *parts: Block | str) -> Section:
    """A section of blocks; a part that is a sentence becomes a paragraph.

    >>> section("risk", "Risk", "None.").blocks
    (Text(text='None.', hint=False),)
    """
    return Section(name, title, tuple(Text(part) if isinstance(part, str) else part for part in parts))


@dataclass(frozen=True, kw_only=True)
class VerdictCard:
    """The answer first: its *state* by colour, in a *label*, in one sentence, and what goes with it.

    >>> VerdictCard(state="good", label="The promise holds", headline="Everybody has four look-alikes.").details
    ()
    """

    state: State
    label: str
    headline: str
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class Figure:
    """One of the figures at the top of a page; a *long* one takes the room of two.

    >>> Figure("Rows left out", "12").value
    '12'
    """

    name: str
    value: str
    long: bool = False


@dataclass(frozen=True, kw_only=True)
class Notice:
    """What a reader must know before reading on.

    >>> Notice(title="For the steward only.", text="Do not publish it.").title
    'For the steward only.'
    """

    title: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Page:
    """A whole report, in reading order.

    >>> Page(title="Release report", sections=(section("risk", "Risk", "None."),)).sections[0].title
    'Risk'
    """

    title: str
    sections: tuple[Section, ...]
    subtitle: str = ""
    verdict: VerdictCard | None = None
    notice: Notice | None = None
    key_figures: tuple[Figure, ...] = ()
    footer: str = ""
    notice_first: bool = False
    contents: str = say("Contents")
