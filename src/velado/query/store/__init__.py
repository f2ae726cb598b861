"""Where ledgers are kept: a SQLite file, a PostgreSQL server, or this process's memory.

All share one chain and account with its rules (`_chain`), one ledger (`_ledger`) and one seal (`_seal`); a store only keeps
entries in order and makes them durable (`_entries`, `_postgres_entries`). `_tables` knows which ledger goes with a table.
"""

from velado.query.store._chain import Entry
from velado.query.store._ledger import (
    QUESTION,
    ChainedLedger,
    UnitOfAccount,
    address_of,
    create_ledger,
    ledger_exists,
    memory_ledger,
    open_ledger,
    people_state,
    seal_of,
)
from velado.query.store._running_state import RunningShelf
from velado.query.store._tables import (
    FileLedger,
    account_of,
    agree_version,
    claim,
    has_ledger,
    ledger_known,
    ledger_path,
    open_soon,
    refuse_lost,
    refuse_second,
    settle,
)

__all__ = [
    "QUESTION",
    "ChainedLedger",
    "Entry",
    "FileLedger",
    "RunningShelf",
    "UnitOfAccount",
    "account_of",
    "address_of",
    "agree_version",
    "claim",
    "create_ledger",
    "has_ledger",
    "ledger_exists",
    "ledger_known",
    "ledger_path",
    "memory_ledger",
    "open_ledger",
    "open_soon",
    "people_state",
    "refuse_lost",
    "refuse_second",
    "seal_of",
    "settle",
]
