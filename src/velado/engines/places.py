"""How the places that rows lie in are told apart by their names alone, before any library that reads them is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

SERVERS = ("postgresql://", "postgres://")
"""How addresses of a PostgreSQL server begin."""
REMOTE = ("s3://", "s3a://", "s3n://", "gs://", "gcs://", "r2://")
"""How addresses begin that DuckDB's extension httpfs reads."""
PARQUET = (".parquet", ".pq")
CSV = (".csv", ".tsv", ".txt")
ARROW = (".arrow", ".ipc", ".feather")
DATABASES = (".duckdb", ".ddb", ".db", ".db3", ".sqlite", ".sqlite3")
"""How the names of files end that may hold tables of their own."""

_SECRETS = frozenset(
    {"password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key"}
)


@dataclass(frozen=True, repr=False)
class ServerAddress:
    """An address of a PostgreSQL server as PostgreSQL takes it apart: to Python's own rules a # or ? would end a password.

    *words* are what stands behind the ?, each as it is written and by its name.

    >>> found = ServerAddress.of("postgresql://ana:a#b@db:6000/clinic?sslmode=require")
    >>> found.login, found.hosts, found.path, [name for name, _ in found.words]
    ('ana:a#b', 'db:6000', '/clinic', ['sslmode'])
    """

    login: str
    hosts: str
    path: str
    words: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, address: str) -> ServerAddress:
        """The parts of an address, whatever stands in it."""
        rest = address.partition("//")[2]
        login, at, behind = rest.partition("@")
        login, rest = (login, behind) if at and "/" not in login else ("", rest)
        front, _, query = rest.partition("?")
        hosts, slash, base = front.partition("/")
        words = tuple((unquote(word.partition("=")[0]), word) for word in query.split("&") if word)
        return cls(login, hosts, slash + base, words)

    @property
    def open_words(self) -> str:
        """What stands behind the ?, without what opens the database."""
        return "&".join(word for name, word in self.words if name not in _SECRETS)

    @property
    def may_hold_secret(self) -> bool:
        """Whether a password stands there, or something that may be a part of one where the address is no address.

        >>> ServerAddress.of("postgresql://ana:geheim@db/study").may_hold_secret
        True
        >>> ServerAddress.of("postgresql://ana@db:5432/study?user=ana%40b").may_hold_secret
        False
        """
        told = bool(self.login.partition(":")[2]) or any(name in _SECRETS for name, _ in self.words)
        ports = [host.rpartition("]")[2].partition(":")[2] for host in self.hosts.split(",")]
        odd = "@" in self.hosts + self.path or any("=" not in word for _, word in self.words)
        return told or odd or any(port and not port.isdigit() for port in ports)
