"""What commands print: tables, notes and JSON. Column names are shown as text, never as markup."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from velado.apps.cli import show
from velado.apps.cli.error_display import plain
from velado.apps.cli.words import number, say

NARROW = 120
"""Width of tables where the output is a file or a pipe: wide enough that nothing is broken needlessly."""


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table on standard output; long cells are folded, not cut."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else NARROW)
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in head:
        grid.add_column(Text(name), overflow="fold")
    for row in rows:
        grid.add_row(*(Text(plain(str(cell))) for cell in row))
    if title:
        line(title)
    console.print(grid)
    line("")


def line(text: str) -> None:
    """One line on standard output."""
    click.echo(plain(text))


def note(text: str) -> None:
    """One line on standard error, for what is not the result."""
    click.echo(plain(text), err=True)


def as_json(result: Mapping[str, Any]) -> None:
    """The result as JSON on standard output; numbers that JSON lacks become null."""
    click.echo(json.dumps(_clean(result), ensure_ascii=False, indent=2))


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


# The progress bar: on a terminal, after two seconds, on standard error; otherwise nothing at all.

PATIENCE = 2.0


class Bar:
    """Progress that is told to it and shown once the work has lasted longer than two seconds.

    A timer starts the display, because a first compilation of kernels tells nothing while it lasts.
    """

    def __init__(self, lang: str, first: str) -> None:
        self._share = 0.0
        self._doing = first
        self._lang = lang
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
            self._share, self._doing = share, doing or self._doing
            if self._shown is not None:
                self._shown.update(self._task, completed=share, description=self._doing)

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        with self._lock:
            if self._over:
                return
            self._shown = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TimeElapsedColumn(),
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


def nothing(share: float, doing: str = "") -> None:
    """Progress that is not shown."""


@contextmanager
def waiting(lang: str, quiet: bool) -> Iterator[Any]:
    """A callable that shows progress where somebody may be watching, and nothing elsewhere."""
    if quiet or not sys.stderr.isatty():
        yield nothing
        return
    bar = Bar(lang, say(lang, "compiling" if kernels_are_cold() else "working"))
    bar.start()
    try:
        yield bar
    finally:
        bar.stop()


def kernels_are_cold() -> bool:
    """Whether no compiled kernel is found where Numba keeps them: the first run will compile."""
    import velado

    places = [Path(velado.__file__).parent]
    if os.environ.get("NUMBA_CACHE_DIR"):
        places.append(Path(os.environ["NUMBA_CACHE_DIR"]))
    return not any(next(place.rglob("*.nbi"), None) for place in places)


# An answer, and the price of a question, as the command line shows them.

PROMISE = {"epsilon": "query_promise_epsilon", "rho": "query_promise_rho"}
TYPE = {"guaranteed": "query_type_guaranteed", "guaranteed-if": "query_type_guaranteed-if"}
# Between two columns of a table as `show.table` draws it.
GAP = 3


def show_answer(
    answer: Any,
    notes: list[tuple[str, dict[str, Any]]],
    schema: Any,
    lang: str,
    delta: Fraction | None = None,
) -> None:
    """The numbers and how they are to be read, then promise, cost, what the ledger has to say, and any warning."""
    _show_numbers(answer, lang)
    promise, cost = answer.guarantee.to_dict(), answer.cost.to_dict()
    for text in _readings(answer, lang):
        show.line(text)
    measure = cost["measure"]
    charge = amount(promise[measure], lang)
    kind = say(lang, TYPE[promise["type"]])
    show.line(say(lang, PROMISE[measure], type=kind, cost=charge, unit=_unit_text(promise, lang)))
    implied = _implied(promise, delta, lang) if measure == "rho" else None
    if implied is not None:
        show.line(implied)
    parts = {"left": amount(cost["left"], lang), "budget": amount(cost["budget"], lang)}
    if answer.stored:
        show.line(say(lang, "query_cost_stored", **parts))
    else:
        show.line(say(lang, "query_cost", measure=measure, cost=amount(cost["spent"], lang), **parts))
    for key, told in notes:
        show.line(say(lang, key, **told))
    declared = schema.group or schema.person
    if promise.get("warnings") and declared is not None:
        show.note(f"{say(lang, 'warning')}: {say(lang, 'query_wrong_unit', column=declared.name)}")


def amount(cost: str | Fraction | float, lang: str) -> str:
    """An exact cost in at most six decimals, without an exponent; a remainder too small for them is called so."""
    from velado.query.budget import rounded, tiny

    if tiny(cost):
        return say(lang, "query_tiny")
    return rounded(cost) if lang == "en" else rounded(cost).replace(".", ",")


def _show_numbers(answer: Any, lang: str) -> None:
    """One column for each value and its ends or, where that is wider than the terminal, one line for each value."""
    frame = answer.frame
    # A quantile has no interval: two columns of nothing would only ask what they mean.
    empty = [
        f"{name}_{end}"
        for name in answer.how.values
        for end in ("low", "high")
        if frame[f"{name}_{end}"].null_count() == frame.height
    ]
    frame = frame.drop(empty)
    head = frame.columns
    rows = [[_cell(cell, lang) for cell in row] for row in frame.iter_rows()]
    wide = sum(max(len(line[at]) for line in (head, *rows)) + GAP for at in range(len(head)))
    if wide > _room():
        ends = [name for value in answer.how.values for name in (value, f"{value}_low", f"{value}_high")]
        keys = [name for name in head if name not in ends]
        rows = [
            [_cell(row[key], lang) for key in keys]
            + [value, *(_cell(row.get(f"{value}{end}"), lang) for end in ("", "_low", "_high"))]
            for row in frame.iter_rows(named=True)
            for value in answer.how.values
        ]
        head = keys + [say(lang, f"query_{word}") for word in ("name", "value", "low", "high")]
    show.table(say(lang, "query_title"), head, rows)


def _room() -> int:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else show.NARROW


def _cell(value: Any, lang: str) -> str:
    if value is None:
        return "-"
    return (
        number(value, lang) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
    )


def _readings(answer: Any, lang: str) -> list[str]:
    """What each value is; an interval is explained where there is one, a rank where there is none."""
    values, promise = answer.how.plan["values"], answer.guarantee.to_dict()
    out = []
    for value in values:
        told = {"name": value["name"], "column": value["column"]}
        if value["answered_as"] == "bound":
            out.append(say(lang, "query_bound", **told))
        elif value["answered_as"] == "quantile":
            told |= {"level": _level(value["level"], lang), "asked": value["asked"].upper()}
            key = "query_extreme" if value["asked"] in ("min", "max") else "query_quantile"
            out.append(f"{say(lang, key, **told)} {_rank(value, lang)}")
    if any(value["answered_as"] == "number" for value in values):
        rows = say(lang, "query_every_row")
        if promise["mode"] != "strict":
            rows = say(lang, "query_rows_that_count", rows=promise["most_rows"], column=promise["column"])
        out.append(say(lang, "query_interval", rows=rows, confidence=_level(answer.how.confidence, lang)))
    return out


def _rank(value: Mapping[str, Any], lang: str) -> str:
    told = value["rank_error"]
    key = "query_rank" if told["beyond"] == "the asked rank" else "query_rank_best"
    return say(
        lang,
        key,
        rows=number(math.ceil(told["rows"]), lang),
        confidence=_level(told["confidence"], lang),
        candidates=number(value["candidates"], lang),
    )


def _level(level: str | float, lang: str) -> str:
    """A level or a confidence in percent, with the digits it has: 99.99% is not 100%."""
    text = f"{float(100 * Fraction(str(level))):.6g}%"
    return text if lang == "en" else text.replace(".", ",")


def _implied(promise: Mapping[str, Any], delta: Fraction | None, lang: str) -> str | None:
    """What rho means as an epsilon, at the delta of the question or else of the ledger."""
    from velado.query.budget import epsilon_of, exact

    if delta is None:
        if "implies" not in promise:
            return None
        delta = exact(promise["implies"]["delta"])
    one, whole = (epsilon_of(Fraction(rho), delta) for rho in (promise["rho"], promise["budget"]["total"]))
    told = f"{float(delta):g}"
    return say(lang, "query_implied", delta=told, epsilon=amount(one, lang), total=amount(whole, lang))


def _unit_text(promise: Mapping[str, Any], lang: str) -> str:
    if promise["mode"] == "strict":
        return say(lang, "query_unit_record")
    if "dependence" in promise:
        return say(lang, "query_unit_dependence", column=promise["column"], dependence=promise["dependence"])
    return say(lang, "query_unit_group", column=promise["column"], rows=promise["most_rows"])


def show_price(told: dict[str, Any], asked: Any, lang: str, as_json: bool) -> None:
    """Every draw with its noise and cost, and their sum beside what was asked for."""
    if as_json:
        show.as_json(told)
        return
    for value in told["values"]:
        if value["answered_as"] == "bound":
            show.line(say(lang, "query_bound", name=value["name"], column=value["column"]))
    if not told["draws"]:
        show.line(say(lang, "query_price_free"))
        return
    ranks = [draw["rank_error"] for draw in told["draws"] if "rank_error" in draw]
    heads = ["query_draw", "query_mechanism", "query_sensitivity", "query_scale", "query_charge"]
    rows = [_price_row(draw, lang) for draw in told["draws"]]
    if ranks:
        heads.insert(-1, "query_rank_error")
        for row, draw in zip(rows, told["draws"], strict=True):
            off = draw.get("rank_error")
            row.insert(-1, "-" if off is None else _rank_rows(off, lang))
    show.table(say(lang, "query_price_title"), [say(lang, key) for key in heads], rows)
    if ranks:
        show.line(say(lang, "query_price_rank", confidence=_level(ranks[0]["confidence"], lang)))
    total, most = (amount(cost, lang) for cost in (told["charge"], asked.total))
    show.line(say(lang, "query_price_total", measure=told["measure"], cost=total, asked=most))


def _price_row(draw: Mapping[str, Any], lang: str) -> list[str]:
    """A quantile's scores have a scale too, but what it means to a person is the rank it may miss by."""
    size = draw.get("in_values", draw)
    noise = [number(size["sensitivity"], lang), number(size["scale"], lang)]
    level = _level(draw["level"], lang) if "level" in draw else ""
    return [
        say(lang, f"query_need_{draw['what']}", column=draw["column"], level=level),
        draw["mechanism"],
        *(["-", "-"] if "rank_error" in draw else noise),
        amount(draw["charge"], lang),
    ]


def _rank_rows(off: Mapping[str, Any], lang: str) -> str:
    return say(lang, "query_rank_rows", rows=number(math.ceil(off["rows"]), lang))
