"""Where ledgers are kept: a SQLite file, a PostgreSQL server, or this process's memory.

All share one chain (`chain`), one account with its rules (`account`), one ledger (`chained`) and one seal (`seal`);
a store only keeps entries in order and makes them durable (`sqlite_store`, `postgres_store`).
"""

from velado.query.store.chain import Entry
from velado.query.store.chained import ChainedLedger
from velado.query.store.opening import (
    address_of,
    create_ledger,
    ledger_exists,
    memory_ledger,
    open_ledger,
    seal_of,
)
from velado.query.store.tables import TableIdentity, agree_version, claim, ledger_known

__all__ = [
    "ChainedLedger",
    "Entry",
    "TableIdentity",
    "address_of",
    "agree_version",
    "claim",
    "create_ledger",
    "ledger_exists",
    "ledger_known",
    "memory_ledger",
    "open_ledger",
    "seal_of",
]
