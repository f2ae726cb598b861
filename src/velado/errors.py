"""Every error velado raises on purpose, in one tree.

::

    VeladoError                      what happened, why it matters, what to do
    ├── InputError                   the table cannot be used as it is
    │   ├── TableError               the file or frame itself: missing, empty, not UTF-8, bad cells
    │   ├── SchemaError              the schema: unknown key, column that is not there, wrong type
    │   └── TaxonomyError            a taxonomy that is no tree, or does not cover the column
    ├── ParameterError               a parameter outside its limits, or settings that contradict
    ├── GuaranteeNotMet              the promise does not hold on the published values
    │   └── SideDoorOpen             a published column repeats a quasi-identifier one to one
    ├── SuppressionLimitExceeded     keeping the promise would drop more rows than allowed
    ├── OutputError                  the output folder exists, or cannot be written
    └── MissingExtra                 an optional library is not installed

No message ever holds a cell value: messages end up in logs, tickets and terminals that the table must
never reach. Column names, counts and row numbers are allowed.
"""

from __future__ import annotations


class VeladoError(Exception):
    """What happened, why it matters, and what to do about it, as three sentences."""

    exit_code = 1

    def __init__(self, what: str, why: str, fix: str) -> None:
        super().__init__(f"{what} {why} {fix}")
        self.what = what
        self.why = why
        self.fix = fix


class InputError(VeladoError):
    """The input cannot be used as it is."""

    exit_code = 3


class TableError(InputError):
    """The file or data frame itself is at fault."""


class SchemaError(InputError):
    """The schema is at fault, or does not fit the table."""


class TaxonomyError(InputError):
    """A taxonomy is not a tree, or does not cover its column."""


class ParameterError(VeladoError):
    """A parameter is outside its limits, or two settings contradict each other."""

    exit_code = 2


class GuaranteeNotMet(VeladoError):
    """The promise does not hold on the published values, so nothing was published."""

    exit_code = 4


class SideDoorOpen(GuaranteeNotMet):
    """A published column repeats a quasi-identifier, so the promise would be void."""


class SuppressionLimitExceeded(GuaranteeNotMet):
    """Keeping the promise would drop more rows than the limit allows."""


class OutputError(VeladoError):
    """The output folder exists already, or cannot be written."""

    exit_code = 5


class MissingExtra(VeladoError):
    """An optional library is not installed."""

    exit_code = 6
