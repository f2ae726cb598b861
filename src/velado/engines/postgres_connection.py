"""The way into a PostgreSQL server, and the words for one that lets nobody in: they never repeat an address."""

from __future__ import annotations

from typing import Any

from velado.engines.duckdb_files import need
from velado.errors import EngineError
from velado.text import say

SETTINGS = (
    "SET TimeZone = 'UTC'",
    "SET DateStyle = 'ISO, YMD'",
    "SET extra_float_digits = 1",
    "SET client_encoding = 'UTF8'",
    "SET standard_conforming_strings = on",
)
"""How a session reads and writes cells, whatever its server's defaults are."""


def connected(url: str) -> Any:
    """A connection to the server of *url*; what the address leaves out comes from the environment or a service file.

    >>> connected("postgresql://127.0.0.1:1/x")
    Traceback (most recent call last):
    velado.errors.EngineError: The PostgreSQL server could not be reached. The address, name or password is wrong, or the server is not running. Check the URL and try again; it is not repeated here because it may hold a password.
    """
    need("psycopg", say("Tables in PostgreSQL are reached through it."), "postgres")
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        address: dict[str, Any] = {"connect_timeout": 10, **conninfo_to_dict(url)}
        connection = psycopg.connect(**address)
        for setting in SETTINGS:
            connection.execute(setting)
        connection.commit()
    except psycopg.OperationalError as error:
        raise _refused(str(error)) from None
    except (psycopg.Error, UnicodeError, ValueError):
        raise unreachable() from None
    return connection


def _refused(said: str) -> EngineError:
    """Why nobody was let in, where the server's words for it are known; they are not repeated: they may hold an address."""
    if "FATAL" in said and ("authentication failed" in said or "no password supplied" in said):
        return EngineError(
            "The PostgreSQL server did not accept the name or the password.",
            "It was reached, and let nobody in.",
            "Check the name in the address, and what PGPASSWORD, ~/.pgpass or the service file says.",
        )
    if "FATAL" in said and ('database "' in said or 'role "' in said):
        return EngineError(
            "The PostgreSQL server does not know the name or the database of the address.",
            "It was reached, and opened nothing.",
            "Check the name before the @ (without one it is that of your account), and the database at the end.",
        )
    return unreachable()


def unreachable() -> EngineError:
    """The error for a server that cannot be reached: it says nothing of the address.

    >>> unreachable().what
    'The PostgreSQL server could not be reached.'
    """
    return EngineError(
        "The PostgreSQL server could not be reached.",
        "The address, name or password is wrong, or the server is not running.",
        "Check the URL and try again; it is not repeated here because it may hold a password.",
    )
