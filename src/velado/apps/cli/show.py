"""What commands print: lines, tables, notes, JSON and progress. Column names are shown as text, never as markup.

A command hands over its result once, as the document for `--json` and as a view: sentences, tables and notes in the
order they are read. Sentences are told in the language spoken; any other text, a column's name, stays as it is.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from velado.text import Sentence, say, told

if TYPE_CHECKING:
    from velado.release.goal import Progress
    from velado.report.blocks import Table

NARROW = 120
"""Width of tables where the output is a file or a pipe: wide enough that nothing is broken needlessly."""
PATIENCE = 2.0
"""Seconds that a run lasts before its progress is shown."""
_TELLING, _MINUTES = 0.05, 120  # less of the work tells nothing of the rest; longer times are told in minutes


@dataclass(frozen=True, kw_only=True)
class Manner:
    """How this run speaks, beside its language: *as_json* in one object, *quiet* in errors only.

    >>> Manner().silent, Manner(quiet=True).silent
    (False, True)
    """

    as_json: bool = False
    quiet: bool = False

    @property
    def silent(self) -> bool:
        """Whether lines for people are left out."""
        return self.as_json or self.quiet


_ALOUD = Manner()
_manner: ContextVar[Manner] = ContextVar("velado_manner", default=_ALOUD)


def manner() -> Manner:
    """How this run speaks.

    >>> manner()
    Manner(as_json=False, quiet=False)
    """
    return _manner.get()


def speak(**changes: bool) -> None:
    """From now on, in this context, the run speaks in that manner.

    >>> from contextvars import copy_context
    >>> copy_context().run(lambda: (speak(quiet=True), manner().quiet)[1])
    True
    """
    _manner.set(replace(manner(), **changes))


@dataclass(frozen=True)
class Note:
    """A line for standard error, which is not the result.

    >>> warning(say("read this")).text
    'Warning: read this'
    """

    text: str


def warning(text: str) -> Note:
    """A note that begins with the word for a warning.

    >>> warning(say("read this"))
    Note(text='Warning: read this')
    """
    return Note(say("Warning: {text}", text=text))


def table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """A table of the report's kit; cells are told when it is shown.

    >>> table("", ["column"], [["age"]]).rows
    [['age']]
    """
    from velado.report.blocks import Table

    return Table(
        title, header, [[cell if isinstance(cell, str) else str(cell) for cell in row] for row in rows]
    )


def result(
    document: Mapping[str, object] | Callable[[], Mapping[str, object]],
    view: Iterable[str | Note | Table] = (),
) -> None:
    """The result is printed: as JSON if that was asked for, else as its *view*; nothing where all is to be quiet.

    A *document* that costs something to make is a function, called where it is needed.

    >>> result({"rows": 2}, [say("{rows} rows", rows=2)])
    2 rows
    """
    if manner().as_json:
        as_json(document() if callable(document) else document)
    elif not manner().quiet:
        present(view)


def present(view: Iterable[str | Note | Table]) -> None:
    """Each part of a view is printed, whatever the manner.

    >>> present([say("one"), "two"])
    one
    two
    """
    for part in view:
        if isinstance(part, Note):
            note(part.text)
        elif isinstance(part, str):
            line(part)
        else:
            _print_table(part)


def _print_table(made: Table) -> None:
    """The table on standard output; long cells are folded, not cut, and where columns are too many it goes on below itself."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as Grid
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else NARROW)
    header = [_spoken(name) for name in made.header]
    rows = [[_spoken(cell) for cell in row] for row in made.rows]
    if made.title:
        line(made.title)
    for part in laid_out(header, rows, console.width):
        grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for place, width in part.items():
            grid.add_column(Text(header[place]), overflow="fold", width=width)
        for row in rows:
            grid.add_row(*(Text(row[place]) for place in part))
        console.print(grid)
        line("")


_NUMBER = re.compile(r"[<>≤≥~±(]?[-+−]?\d[\d.,…eE+\-−%)]*")
_GAP = 3
_LONGEST_WORD = 16
_LABEL = 24


def laid_out(header: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[dict[int, int]]:
    """The columns that stand side by side, by place and width: no number is broken, so that none is read wrongly.

    Where they do not all fit into *width* the table is told in parts, each with the first column in front.

    >>> laid_out(["column", "value", "error"], [["age", "1.2345", "0.1"]], 80)
    [{0: 6, 1: 6, 2: 5}]
    >>> laid_out(["column", "value", "error"], [["age", "1.2345", "0.1"]], 18)
    [{0: 6, 1: 6}, {0: 6, 2: 5}]
    """
    from rich.cells import cell_len

    columns = [[name, *(row[place] for row in rows)] for place, name in enumerate(header)]
    natural = [max(1, *(cell_len(part) for cell in cells for part in cell.split("\n"))) for cells in columns]
    least = []
    for cells, most in zip(columns, natural, strict=True):
        words = [len(word) for word in cells[0].split()]
        numbers = [len(word) for cell in cells[1:] for word in cell.split() if _NUMBER.fullmatch(word)]
        least.append(min(most, max(1, min(max(words, default=1), _LONGEST_WORD), *numbers)))
    if least:
        least[0] = max(least[0], min(natural[0], _LABEL))
    parts: list[list[int]] = []
    for place in range(len(header)):
        taken = sum(least[one] + _GAP for one in parts[-1]) if parts else 0
        if not parts or (taken + least[place] > width and len(parts[-1]) > 1):
            parts.append([0, place] if place else [0])
        else:
            parts[-1].append(place)
    return [_widths(part, natural, least, width) for part in parts]


def _widths(part: Sequence[int], natural: Sequence[int], least: Sequence[int], width: int) -> dict[int, int]:
    """Every column as wide as it is, or as narrow as it may be, the widest first."""
    found = {place: natural[place] for place in part}
    while sum(found.values()) + _GAP * (len(part) - 1) > width:
        wide = [place for place in part if found[place] > least[place]]
        if not wide:
            break
        found[max(wide, key=found.__getitem__)] -= 1
    return found


def line(text: str) -> None:
    """One line on standard output.

    >>> line(say("done"))
    done
    """
    click.echo(_spoken(text))


def note(text: str) -> None:
    """One line on standard error, for what is not the result.

    >>> note(say("working"))
    """
    click.echo(_spoken(text), err=True)


def as_json(document: Mapping[str, object]) -> None:
    """The document as JSON on standard output; numbers that JSON lacks become null.

    >>> as_json({"share": float("nan")})
    {
      "share": null
    }
    """
    click.echo(json.dumps(_clean(document), ensure_ascii=False, indent=2))


def printable(text: str) -> str:
    """The text without control characters: a column name must not be able to steer the terminal.

    >>> printable("a\\x1bb")
    'a�b'
    """
    return "".join(c if c.isprintable() else "�" for c in text)


def _spoken(text: str) -> str:
    return printable(told(text) if isinstance(text, Sentence) else text)


def _clean(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy scalars and arrays
        return _clean(value.tolist())
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


# What the library says it is doing, in plain words, as the catalogue must know them.
_DOING = (
    say("bounding what is possible"),
    say("clustering"),
    say("cutting the table"),
    say("done"),
    say("generalizing"),
    say("making groups around seeds"),
    say("making groups from the cheapest boxes"),
    say("measuring"),
    say("merging groups that are too small"),
    say("publishing groups"),
    say("publishing"),
    say("searching for better groups"),
    say("searching the lattice"),
    say("what if"),
    say("writing"),
)

# The progress bar: on a terminal, after two seconds, on standard error; otherwise nothing at all.


def time_left(share: float, seconds: float) -> str:
    """How long the rest takes if it goes on as before, after *seconds* for a *share* of the work; blank at the beginning.

    >>> time_left(0.25, 30), time_left(0.5, 600), time_left(0.01, 3), time_left(1.0, 9)
    ('about 90 s left', 'about 10 min left', '', '')
    """
    if share < _TELLING or share >= 1:
        return ""
    left = seconds * (1 - share) / share
    if left < _MINUTES:
        return say("about {n} s left", n=max(1, round(left)))
    return say("about {n} min left", n=round(left / 60))


class ProgressBar:
    """Progress that is told to it and shown once the work has lasted longer than two seconds.

    A timer starts the display, because a first compilation of kernels tells nothing while it lasts.

    >>> bar = ProgressBar("working")
    >>> bar(0.5, "measuring")
    >>> bar.stop()
    """

    def __init__(self, first: str) -> None:
        self._share, self._doing = 0.0, first
        self._lock = threading.Lock()
        self._shown: Any = None
        self._task: Any = None
        self._over = False
        self._timer = threading.Timer(PATIENCE, self._show)
        self._timer.daemon = True

    def start(self) -> None:
        """The two seconds begin."""
        self._timer.start()

    def __call__(self, share: float, doing: str = "") -> None:
        with self._lock:
            self._share, self._doing = share, told(doing) if doing else self._doing
            if self._shown is not None:
                self._shown.update(self._task, completed=share, description=self._doing)

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            ProgressColumn,
            SpinnerColumn,
            Task,
            TextColumn,
            TimeElapsedColumn,
        )
        from rich.text import Text

        begun = time.monotonic() - PATIENCE

        class TimeLeft(ProgressColumn):
            def render(self, task: Task) -> Text:
                return Text(told(time_left(task.completed, time.monotonic() - begun)))

        with self._lock:
            if self._over:
                return
            self._shown = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TimeElapsedColumn(),
                TimeLeft(),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._shown.add_task(self._doing, total=1.0, completed=self._share)
            self._shown.start()

    def stop(self) -> None:
        """The bar is gone, and does not come back."""
        self._timer.cancel()
        with self._lock:
            self._over = True
            if self._shown is not None:
                self._shown.stop()


@contextmanager
def waiting() -> Iterator[Progress]:
    """A callable that shows progress where somebody may be watching, and nothing elsewhere.

    >>> with waiting() as progress:
    ...     progress(0.5, "half")
    """
    if manner().silent or not sys.stderr.isatty():
        yield lambda share, doing="": None
        return
    bar = ProgressBar(told(say("compiling once, about 40 s") if kernels_are_cold() else say("working")))
    bar.start()
    try:
        yield bar
    finally:
        bar.stop()


def kernels_are_cold() -> bool:
    """Whether no compiled kernel is found where Numba keeps them: the first run will compile.

    >>> kernels_are_cold() in (True, False)
    True
    """
    import velado

    places = [Path(velado.__file__).parent]
    if os.environ.get("NUMBA_CACHE_DIR"):
        places.append(Path(os.environ["NUMBA_CACHE_DIR"]))
    return not any(next(place.rglob("*.nbi"), None) for place in places)
