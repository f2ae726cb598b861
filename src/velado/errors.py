"""Every error velado raises on purpose, in one tree.

::

    VeladoError                      what happened, why it matters, what to do
    ├── InputError                   the table cannot be used as it is
    │   ├── TableError               the file or frame itself: missing, empty, not UTF-8, bad cells
    │   ├── SchemaError              the schema: unknown key, column that is not there, wrong type
    │   ├── TaxonomyError            a taxonomy that is no tree, or does not cover the column
    │   └── PersonUndecided          rows repeat people, and nobody said what one person is
    ├── ParameterError               a parameter outside its limits, or settings that contradict
    ├── GuaranteeNotMet              the promise does not hold on the published values
    │   ├── SideDoorOpen             a published column repeats a quasi-identifier one to one
    │   └── IdentifierOpen           a published column identifies people, and nobody signed for it
    ├── SuppressionLimitExceeded     keeping the promise would drop more rows than allowed
    ├── QueryRefused                 a query that is not in the accepted subset, or lacks a declared domain or bound
    ├── BudgetExceeded               the answer would cost more than what is left
    ├── LedgerError                  the ledger is missing, edited, rolled back, or cannot be written
    ├── EngineError                  the engine did not answer: unreachable, too slow, wrong column types
    │   └── FederationStopped        too few clients answered for too long; in velado.learning.flower, it keeps the history
    ├── EncryptionError              an encrypted computation cannot go on
    │   ├── KeyRefused               a key of the wrong form or size, a key file that does not open
    │   ├── CiphertextRefused        a ciphertext out of range, of another key, seen before, or not re-randomised
    │   ├── OutOfBounds              a value outside the public bounds of its column, or missing
    │   ├── PlaintextOverflow        a number that does not fit in what it would be encrypted in
    │   ├── SingularDesignError      columns that are combinations of others; also an InputError
    │   └── ProtocolError            a message that a party refuses
    ├── OutputError                  the output folder exists, or cannot be written
    └── MissingExtra                 an optional library is not installed

No message ever holds a cell value: messages end up in logs, tickets and terminals that the table must
never reach. Column names, counts and row numbers are allowed.
"""

from __future__ import annotations

from collections.abc import Sequence


class VeladoError(Exception):
    """What happened, why it matters, and what to do about it, as three sentences.

    Each is a literal, or a `velado.text.Sentence` (also a str) where it has parts; either is a key of the
    catalogue. `str(error)` is English; `velado.text.told_error(error, "pt")` tells it in another language.

    >>> str(VeladoError("The table is empty.", "Nothing can be published.", "Give a table with rows."))
    'The table is empty. Nothing can be published. Give a table with rows.'
    """

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
    """A taxonomy is not a tree, or does not cover its column.

    *hidden* are the values it does not cover: cells, for the owner's own eyes. They stand in no message, repr or
    pickle; who asks for them by name writes them to a private file.
    """

    def __init__(self, what: str, why: str, fix: str, hidden: Sequence[str] = ()) -> None:
        super().__init__(what, why, fix)
        self._hidden = _Hidden(tuple(hidden))

    @property
    def hidden(self) -> tuple[str, ...]:
        """The values that the taxonomy does not cover; never to be shown."""
        return self._hidden.values

    def __reduce__(self) -> tuple[type[TaxonomyError], tuple[str, str, str]]:
        return type(self), (self.what, self.why, self.fix)


class _Hidden:
    """Values that no repr shows, so that a log of an error's attributes does not either."""

    __slots__ = ("values",)

    def __init__(self, values: tuple[str, ...]) -> None:
        self.values = values

    def __repr__(self) -> str:
        return f"<{len(self.values)} values, not shown>"


class PersonUndecided(InputError):
    """Rows repeat people, and neither the schema nor a flag says what one person is."""


class ParameterError(VeladoError):
    """A parameter is outside its limits, or two settings contradict each other."""

    exit_code = 2


class GuaranteeNotMet(VeladoError):
    """The promise does not hold on the published values, so nothing was published."""

    exit_code = 4


class SideDoorOpen(GuaranteeNotMet):
    """A published column repeats a quasi-identifier, so the promise would be void."""


class IdentifierOpen(GuaranteeNotMet):
    """A published column identifies people, and the schema does not sign for it."""


class SuppressionLimitExceeded(GuaranteeNotMet):
    """Keeping the promise would drop more rows than the limit allows."""


class QueryRefused(VeladoError):
    """The query is not one we answer; the reason depends on the query and the schema alone, never on a row."""

    exit_code = 2


class BudgetExceeded(VeladoError):
    """The answer would cost more than what is left of the budget or of the analyst's share."""

    exit_code = 7


class LedgerError(VeladoError):
    """The ledger is missing, was edited or rolled back, or cannot be written; nothing is answered."""

    exit_code = 8


class EngineError(VeladoError):
    """The engine did not answer; the message says nothing of what the rows hold."""

    exit_code = 9


class EncryptionError(VeladoError):
    """An encrypted computation cannot go on; the message says nothing of what was encrypted."""

    exit_code = 10


class KeyRefused(EncryptionError):
    """A key is not of the form or size it must have, or a key file does not open."""


class CiphertextRefused(EncryptionError):
    """A ciphertext is out of range, of another key, seen before, or would leave without being re-randomised."""


class OutOfBounds(EncryptionError):
    """A value lies outside the public bounds of its column, or is missing; the column is named, the value is not."""


class PlaintextOverflow(EncryptionError):
    """A number does not fit in the plaintext or the slot it was meant for."""


class SingularDesignError(EncryptionError, InputError):
    """Some columns are combinations of others, so that no single set of coefficients is the answer."""


class ProtocolError(EncryptionError):
    """A message was refused: forged, repeated, out of order, of another job, or not of a known form."""


class OutputError(VeladoError):
    """The output folder exists already, or cannot be written."""

    exit_code = 5


class MissingExtra(VeladoError):
    """An optional library is not installed."""

    exit_code = 6
