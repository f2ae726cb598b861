"""Who may ask: tokens that are shown once and kept as hashes, in a file only its owner can read.

A token is 256 random bits from the operating system, so its plain SHA-256 is enough at rest: salts and slow
hashes defend secrets that people choose and others can guess, and nobody tries 2^256. The file is read again
when it changes, so that a revoked token ends without a restart; a file that cannot be read lets nobody in. It
also holds a random key, under which the service names questions to analysts: the ledger's own name of a
question depends on the table's content.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

from velado.data.staging import locked, put_file
from velado.errors import InputError, ParameterError
from velado.randomness import secure
from velado.settings import Setting, checked_argument
from velado.text import say

Role = Literal["owner", "analyst"]
TokenDays = Annotated[float, Setting(gt=0, le=36_500, why=say("A token that has ended opens nothing."))]
"""Days until a token ends."""
PREFIX = "velado-"
_BYTES = 32


@dataclass(frozen=True)
class Token:
    """What is kept of a token: never the token. *datasets* empty means every data set.

    >>> token = Token("1f", "0" * 64, "analyst", "ana", "2026-01-01T00:00:00+00:00", datasets=("people",))
    >>> token.state(datetime.now(UTC)), token.may_ask("people"), token.may_ask("wards")
    ('valid', True, False)
    """

    id: str
    hash: str
    role: Role
    analyst: str
    created: str
    expires: str | None = None
    revoked: str | None = None
    datasets: tuple[str, ...] = ()

    def state(self, now: datetime) -> Literal["valid", "expired", "revoked"]:
        """Whether it opens anything at *now*."""
        if self.revoked is not None:
            return "revoked"
        if self.expires is not None and datetime.fromisoformat(self.expires) <= now:
            return "expired"
        return "valid"

    def may_ask(self, dataset: str) -> bool:
        """Whether the data set is among the token's."""
        return not self.datasets or dataset in self.datasets


@dataclass(frozen=True)
class TokenFile:
    """The tokens, and the key under which questions are named to analysts.

    >>> TokenFile("secret", ())
    TokenFile(tokens=())
    """

    key: str = field(repr=False)
    tokens: tuple[Token, ...]


def add_token(
    path: Path,
    analyst: str,
    role: Role = "analyst",
    days: float | None = None,
    datasets: tuple[str, ...] = (),
) -> tuple[str, Token]:
    """A new token stands in the file; its text is returned, here and never again.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text, token = add_token(Path(folder) / "tokens.json", "ana", days=90)
    ...     text in (Path(folder) / "tokens.json").read_text()
    False
    """
    if not analyst or len(analyst) > 100 or not analyst.isprintable():
        raise ParameterError(
            "The name of the analyst must be 1 to 100 printable characters.",
            "The ledger keeps each analyst's spending under it.",
            "Choose a short name, for example ana.",
        )
    if days is not None:
        checked_argument("days", days, TokenDays)
    text = PREFIX + base64.urlsafe_b64encode(secure().randbytes(_BYTES)).decode().rstrip("=")
    now = datetime.now(UTC)
    expires = None if days is None else (now + timedelta(days=days)).isoformat()
    token = Token(
        id=secure().randbytes(4).hex(),
        hash=_hash(text),
        role=role,
        analyst=analyst,
        created=now.isoformat(),
        expires=expires,
        datasets=datasets,
    )
    with one_writer(path):
        held = read_tokens(path) if path.exists() else TokenFile(secure().randbytes(_BYTES).hex(), ())
        _write(path, replace(held, tokens=(*held.tokens, token)))
    return text, token


def revoke_token(path: Path, name: str) -> list[Token]:
    """Every valid token with this id or analyst name ends now; none found is an error.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = add_token(Path(folder) / "tokens.json", "ana")
    ...     [token.analyst for token in revoke_token(Path(folder) / "tokens.json", "ana")]
    ['ana']
    """
    now = datetime.now(UTC)
    with one_writer(path):
        held = read_tokens(path)
        ended = [t for t in held.tokens if name in (t.id, t.analyst) and t.revoked is None]
        if not ended:
            raise ParameterError(
                "No token that is in force has that id or analyst.",
                "Nothing was revoked.",
                "See `velado serve token list`.",
            )
        after = tuple(replace(t, revoked=now.isoformat()) if t in ended else t for t in held.tokens)
        _write(path, replace(held, tokens=after))
    return ended


def read_tokens(path: Path) -> TokenFile:
    """What the file holds, or an error when it is missing, open to others, or not ours.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = add_token(Path(folder) / "tokens.json", "ana", "owner")
    ...     read_tokens(Path(folder) / "tokens.json").tokens[0].role
    'owner'
    """
    try:
        with path.open("rb") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise InputError(
                    "The tokens file can be read or written by other users.",
                    "Who can change it can make themselves an owner.",
                    "Give it the mode 0600.",
                )
            document = json.loads(file.read())
        if document["version"] != 1 or len(bytes.fromhex(document["key"])) != _BYTES:
            raise ValueError
        return TokenFile(document["key"], tuple(_token(entry) for entry in document["tokens"]))
    except OSError:
        raise InputError(
            "The tokens file cannot be read.",
            "Without it nobody can be told from anybody.",
            "Make one with `velado serve token add`.",
        ) from None
    except (ValueError, KeyError, TypeError):
        raise InputError(
            "The tokens file is not one that velado wrote.",
            "A token that is half understood must not open anything.",
            "Restore it, or move it away and add the tokens anew.",
        ) from None


class Tokens:
    """The tokens in force, read again when the file changes.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text, token = add_token(Path(folder) / "tokens.json", "ana")
    ...     Tokens(Path(folder) / "tokens.json").find(text) == token
    True
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._seen: tuple[int, int, int] | None = None
        self._held = TokenFile("", ())
        self.current()

    def current(self) -> TokenFile:
        """What the file holds now."""
        try:
            status = os.stat(self._path)
            seen = (status.st_mtime_ns, status.st_size, status.st_ino)
        except OSError:
            seen = None
        with self._lock:
            if seen is None or seen != self._seen:
                self._seen = None
                self._held = read_tokens(self._path)
                self._seen = seen
            return self._held

    def find(self, text: str) -> Token | None:
        """The token with this text, valid or not; every stored hash is compared, in the same time."""
        wanted = _hash(text).encode()
        found: Token | None = None
        for token in self.current().tokens:
            if hmac.compare_digest(token.hash.encode(), wanted):
                found = token
        return found

    def name_of(self, question: str) -> str:
        """What an analyst calls a question: HMAC-SHA-256 of the ledger's fingerprint under the file's key."""
        return hmac.new(bytes.fromhex(self._held.key), question.encode(), hashlib.sha256).hexdigest()[:32]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _token(entry: dict[str, Any]) -> Token:
    token = Token(**{**entry, "datasets": tuple(entry.get("datasets", ()))})
    if token.role not in ("owner", "analyst") or len(token.hash) != 64 or not token.analyst:
        raise ValueError
    if token.expires is not None and datetime.fromisoformat(token.expires).tzinfo is None:
        raise ValueError
    return token


def _write(path: Path, held: TokenFile) -> None:
    document = {"version": 1, "key": held.key, "tokens": [asdict(token) for token in held.tokens]}
    put_file(path, (json.dumps(document, ensure_ascii=False, indent=1) + "\n").encode(), private=True)


@contextmanager
def one_writer(path: Path) -> Iterator[None]:
    """One writer of the file at a time, among processes too.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, one_writer(Path(folder) / "tokens.json"):
    ...     [found.name for found in Path(folder).iterdir()]
    ['tokens.json.lock']
    """
    handle = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        locked(handle, wait=True)
        yield
    finally:
        os.close(handle)
