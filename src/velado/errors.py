"""Every error velado raises on purpose, in one tree.

::

    VeladoError                      what happened, why it matters, what to do
    ├── InputError                   the table cannot be used as it is
    │   ├── TableError               the file or frame itself: missing, empty, not UTF-8, bad cells
    │   │   └── NoRows               columns, and no row
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
    ├── HistoryError                 the history of releases is missing, edited, in use, or cannot be written
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
    ├── EvidenceRefused              an evidence pack was changed, contradicts itself, or is of another table or key
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
    """The input cannot be used as it is.

    >>> InputError.exit_code, issubclass(InputError, VeladoError)
    (3, True)
    """

    exit_code = 3


class TableError(InputError):
    """The file or data frame itself is at fault.

    *choices* are names of which one must be chosen, as of the sheets of a workbook: for who holds the file to choose
    from. A message names few of them, and none that looks like a value.

    >>> TableError.exit_code, issubclass(TableError, InputError)
    (3, True)
    >>> TableError("Two sheets.", "One is the table.", "Name it.", choices=["2023", "2024"]).choices
    ('2023', '2024')
    """

    def __init__(self, what: str, why: str, fix: str, choices: Sequence[str] = ()) -> None:
        super().__init__(what, why, fix)
        self._choices = _Hidden(tuple(choices))

    @property
    def choices(self) -> tuple[str, ...]:
        """The names to choose from."""
        return self._choices.values

    def __reduce__(self) -> tuple[type[TableError], tuple[str, str, str]]:
        return type(self), (self.what, self.why, self.fix)


class NoRows(TableError):
    """The file or data frame has columns and no row.

    >>> issubclass(NoRows, TableError)
    True
    """


class SchemaError(InputError):
    """The schema is at fault, or does not fit the table.

    >>> raise SchemaError("Unknown key 'rol' in [columns.age].", "A misspelt key would be passed over.", "Write role.")
    Traceback (most recent call last):
    velado.errors.SchemaError: Unknown key 'rol' in [columns.age]. A misspelt key would be passed over. Write role.
    """


class TaxonomyError(InputError):
    """A taxonomy is not a tree, or does not cover its column.

    *hidden* are the values it does not cover: cells, for the owner's own eyes. They stand in no message, repr or
    pickle; who asks for them by name writes them to a private file.

    >>> error = TaxonomyError("A value has no place.", "It would stay as it is.", "Add it.", hidden=["Ana"])
    >>> "Ana" in f"{error!r} {vars(error)}", error.hidden
    (False, ('Ana',))
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
    """Rows repeat people, and neither the schema nor a flag says what one person is.

    >>> PersonUndecided.exit_code, issubclass(PersonUndecided, InputError)
    (3, True)
    """


class ParameterError(VeladoError):
    """A parameter is outside its limits, or two settings contradict each other.

    >>> raise ParameterError("--k cannot be 1.", "It takes a whole number, at least 2.", "Give 2 or more.")
    Traceback (most recent call last):
    velado.errors.ParameterError: --k cannot be 1. It takes a whole number, at least 2. Give 2 or more.
    """

    exit_code = 2


class GuaranteeNotMet(VeladoError):
    """The promise does not hold on the published values, so nothing was published.

    >>> GuaranteeNotMet("Group 17 has 3 rows.", "5-anonymity needs 5.", "Lower k.").fix, GuaranteeNotMet.exit_code
    ('Lower k.', 4)
    """

    exit_code = 4


class SideDoorOpen(GuaranteeNotMet):
    """A published column repeats a quasi-identifier, so the promise would be void.

    >>> SideDoorOpen.exit_code, issubclass(SideDoorOpen, GuaranteeNotMet)
    (4, True)
    """


class IdentifierOpen(GuaranteeNotMet):
    """A published column identifies people, and the schema does not sign for it.

    >>> IdentifierOpen.exit_code, issubclass(IdentifierOpen, GuaranteeNotMet)
    (4, True)
    """


class SuppressionLimitExceeded(GuaranteeNotMet):
    """Keeping the promise would drop more rows than the limit allows.

    >>> SuppressionLimitExceeded.exit_code, issubclass(SuppressionLimitExceeded, GuaranteeNotMet)
    (4, True)
    """


class QueryRefused(VeladoError):
    """The query is not one we answer; the reason depends on the query and the schema alone, never on a row.

    >>> QueryRefused.exit_code, issubclass(QueryRefused, VeladoError)
    (2, True)
    """

    exit_code = 2


class BudgetExceeded(VeladoError):
    """The answer would cost more than what is left of the budget or of the analyst's share.

    >>> BudgetExceeded.exit_code, issubclass(BudgetExceeded, VeladoError)
    (7, True)
    """

    exit_code = 7


class HistoryError(VeladoError):
    """The history of releases is missing, was edited, is in use by another run, or cannot be written; nothing is published.

    >>> HistoryError.exit_code, issubclass(HistoryError, VeladoError)
    (8, True)
    """

    exit_code = 8


class LedgerError(VeladoError):
    """The ledger is missing, was edited or rolled back, or cannot be written; nothing is answered.

    >>> LedgerError.exit_code, issubclass(LedgerError, VeladoError)
    (8, True)
    """

    exit_code = 8


class EngineError(VeladoError):
    """The engine did not answer; the message says nothing of what the rows hold.

    >>> EngineError.exit_code, issubclass(EngineError, VeladoError)
    (9, True)
    """

    exit_code = 9


class EncryptionError(VeladoError):
    """An encrypted computation cannot go on; the message says nothing of what was encrypted.

    >>> EncryptionError.exit_code, issubclass(EncryptionError, VeladoError)
    (10, True)
    """

    exit_code = 10


class KeyRefused(EncryptionError):
    """A key is not of the form or size it must have, or a key file does not open.

    >>> KeyRefused.exit_code, issubclass(KeyRefused, EncryptionError)
    (10, True)
    """


class CiphertextRefused(EncryptionError):
    """A ciphertext is out of range, of another key, seen before, or would leave without being re-randomised.

    >>> CiphertextRefused.exit_code, issubclass(CiphertextRefused, EncryptionError)
    (10, True)
    """


class OutOfBounds(EncryptionError):
    """A value lies outside the public bounds of its column, or is missing; the column is named, the value is not.

    >>> OutOfBounds.exit_code, issubclass(OutOfBounds, EncryptionError)
    (10, True)
    """


class PlaintextOverflow(EncryptionError):
    """A number does not fit in the plaintext or the slot it was meant for.

    >>> PlaintextOverflow.exit_code, issubclass(PlaintextOverflow, EncryptionError)
    (10, True)
    """


class SingularDesignError(EncryptionError, InputError):
    """Some columns are combinations of others, so that no single set of coefficients is the answer.

    >>> issubclass(SingularDesignError, EncryptionError) and issubclass(SingularDesignError, InputError)
    True
    """


class ProtocolError(EncryptionError):
    """A message was refused: forged, repeated, out of order, of another job, or not of a known form.

    >>> ProtocolError.exit_code, issubclass(ProtocolError, EncryptionError)
    (10, True)
    """


class EvidenceRefused(VeladoError):
    """An evidence pack was changed, contradicts itself, or does not belong to the table or key it was held against.

    >>> EvidenceRefused.exit_code, issubclass(EvidenceRefused, VeladoError)
    (11, True)
    """

    exit_code = 11


class OutputError(VeladoError):
    """The output folder exists already, or cannot be written.

    >>> OutputError.exit_code, issubclass(OutputError, VeladoError)
    (5, True)
    """

    exit_code = 5


class MissingExtra(VeladoError):
    """An optional library is not installed.

    >>> MissingExtra("polars is not installed.", "Tables are read with it.", "Install velado.").exit_code
    6
    """

    exit_code = 6
