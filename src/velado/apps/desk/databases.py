"""A table of a database, copied into the project: the same addresses as on the command line, no password kept anywhere."""

from __future__ import annotations

import os
import re
from pathlib import Path

import polars as pl

from velado.apps.desk.project import Project, digest_of
from velado.data.schema import Schema
from velado.data.staging import scratch_folder
from velado.engines.open_source import open_source
from velado.engines.places import DATABASES, SERVERS, ServerAddress
from velado.errors import InputError


def copy_of(project: Project, address: str, table: str) -> tuple[str, str]:
    """Where the rows of a table lie, and the file below the project that is to hold them; else a refusal."""
    if not table or len(table) > 200:
        raise InputError(
            "No table was named.", "A database holds several.", "Write the table's name, or SCHEMA.NAME."
        )
    if address.startswith(SERVERS):
        place = address
        if ServerAddress.of(address).may_hold_secret:
            raise InputError(
                "The address holds a password, or something that may be one, so it was not used.",
                "What is typed here is kept in the project, and a password must not be.",
                "Leave it out: PGPASSWORD, ~/.pgpass or a service file (?service=NAME) tell it, as on the command line.",
            )
    elif address.lower().endswith(DATABASES):
        place = str(project.inside(address))
        if not Path(place).is_file():
            raise InputError(
                "There is no such database in the project's folder.",
                "Nothing was read.",
                "Copy the file there, or write a postgresql:// address.",
            )
    else:
        raise InputError(
            "This is no address of a database that the desk reads.",
            "PostgreSQL servers and files of SQLite and DuckDB in the project's folder are.",
            "Write postgresql://HOST/DATABASE, or the name of a file that ends in .sqlite, .db or .duckdb.",
        )
    plain = re.sub(r"[^A-Za-z0-9_]+", "_", table)[:60]
    target = project.desk / "uploads" / f"table-{plain}-{digest_of([address, table])[:8]}.parquet"
    return place, str(target)


def copy_table(place: str, table: str, target: Path) -> None:
    """The rows of a table stand in *target*, whole, or nowhere."""
    part = target.parent / f"part-{os.urandom(8).hex()}"
    with scratch_folder() as folder:
        rows = open_source(place, Schema({}), folder, table=table)
        try:
            frame = pl.DataFrame(pl.from_arrow(rows.sample(rows.rows)))
            frame.write_parquet(part)
            part.chmod(0o600)
            os.replace(part, target)
        finally:
            part.unlink(missing_ok=True)
            rows.close()
