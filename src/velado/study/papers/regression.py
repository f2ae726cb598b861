"""Tables 7 to 10 of the encrypted-regression source, by name; what they need is imported when one is run."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from velado.anonymize.goal import Progress
from velado.errors import MissingExtra
from velado.study.papers.registry import Reproduced, Reproduction
from velado.study.papers.regression_data import DATA_SETS

SOURCE = (
    "Nascimento 2023, Privacidade em algoritmos de aprendizado de máquina: comparação de duas implementações de "
    "regressão linear usando criptografia homomórfica (UFC)"
)


def _run(folder: Path, progress: Progress, *, function: str, quick: bool, **more: Any) -> Reproduced:
    """The table, made by the module that needs big integers and exact algebra (velado[encrypted])."""
    try:
        tables = import_module("velado.study.papers.regression_tables")
    except ImportError:
        raise MissingExtra(
            "gmpy2, python-flint or cryptography is not installed.",
            "The source's regressions are run with them.",
            "Install velado[encrypted].",
        ) from None
    made: Reproduced = getattr(tables, function)(folder, progress, quick=quick, **more)
    return made


def _reproduction(number: int, title: str, function: str, **more: Any) -> Reproduction:
    run = partial(_run, function=function, **more)
    return Reproduction(
        f"regression-table-{number}",
        SOURCE,
        f"Table {number}: {title}",
        tuple(one.file for one in DATA_SETS),
        partial(run, quick=False),
        partial(run, quick=True),
    )


REPRODUCTIONS = (
    _reproduction(7, "the error of Method 1 against beta with conversion", "errors", table=7),
    _reproduction(8, "the error of Method 1 against beta without conversion", "errors", table=8),
    _reproduction(9, "the errors of Methods 1 and 2 compared", "difference"),
    _reproduction(10, "the time of the regression stage", "times"),
)
