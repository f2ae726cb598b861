"""Secret keys: the owner's, under which everything is drawn that must be secret and yet repeat, and those of pseudonyms.

One of the edges: keys are files that only their owner can read. The owner's key is made at first use in the
user's private state folder, so that nobody has to think of it before the first release.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import polars as pl

from velado.data.staging import reason_of, write_file
from velado.data.table_bytes import csv_pieces
from velado.errors import OutputError, ParameterError
from velado.randomness import KeyedDraws, secure
from velado.text import say

LEAST_BYTES = 32
LEAST_VARIETY = 8
LARGEST_FILE = 65_536
OWNER_FILE = "owner.key"
_PSEUDONYM = b"velado pseudonym 1\0"
_FINGERPRINT = b"velado key fingerprint 1\0"
_DRAW = b"velado draw 1\0"
_DIGEST = b"velado digest 1\0"
_SEED = b"velado seed 1\0"


class _RandomBytes(Protocol):
    """A source of bytes nobody can predict, such as `velado.randomness.secure()`."""

    def randbytes(self, n: int, /) -> bytes: ...


@dataclass(frozen=True, repr=False)
class Key:
    """A secret of at least 32 bytes. Its repr shows the fingerprint, never the secret.

    The *fingerprint* (8 hexadecimal digits) tells whether two runs used the same key and nothing else: it is
    no help in finding a random key.

    >>> key = Key(bytes(range(32)))
    >>> key.fingerprint, key.digest(b"table")[:8]
    ('d8fb58ca', '2d92c436')
    """

    secret: bytes

    def __post_init__(self) -> None:
        if len(self.secret) < LEAST_BYTES:
            raise ParameterError(
                say(
                    "The key has {bytes} bytes; at least {least_bytes} are needed.",
                    bytes=len(self.secret),
                    least_bytes=LEAST_BYTES,
                ),
                "A short key can be guessed, and then everything made with it can be undone.",
                "Let velado make one: `velado pseudonymize --new-key --key-file FILE`.",
            )
        if len(set(self.secret)) < LEAST_VARIETY:
            raise ParameterError(
                say(
                    "The key repeats fewer than {least_variety} different characters.",
                    least_variety=LEAST_VARIETY,
                ),
                "It was not made at random and can be guessed.",
                "Let velado make one: `velado pseudonymize --new-key --key-file FILE`.",
            )

    def __repr__(self) -> str:
        return f"Key(fingerprint={self.fingerprint})"

    @classmethod
    def of(cls, content: bytes) -> Key:
        """The key a file or an environment variable holds; white space around it does not count."""
        return cls(content.strip(b" \t\r\n"))

    @property
    def fingerprint(self) -> str:
        """Eight hexadecimal digits that name the key without showing it."""
        return hashlib.sha256(_FINGERPRINT + self.secret).hexdigest()[:8]

    def within(self, namespace: str) -> bytes:
        """The key of one namespace: pseudonyms of two namespaces cannot be compared."""
        if not namespace.strip() or "\0" in namespace:
            raise ParameterError(
                "The namespace is empty or holds a zero byte.",
                "It keeps the pseudonyms of one project apart from those of another.",
                "Give the project's name, for example --namespace dengue-2024.",
            )
        return hmac.digest(self.secret, _PSEUDONYM + namespace.encode(), "sha256")

    def draws(self, use: str, content: bytes) -> KeyedDraws:
        """The random draws of one *use* on one *content* (a digest): the same again for who has the key, else secret.

        The content is part of it so that two tables never share a draw: noise that is the same in two releases
        would cancel out in their difference.
        """
        return KeyedDraws(hmac.digest(self.secret, _DRAW + use.encode() + b"\0" + content, "sha256"))

    def seed_for(self, use: str) -> bytes:
        """32 secret bytes for one *use*, such as a signing key, that tell nothing of the key or of another use."""
        return hmac.digest(self.secret, _SEED + use.encode(), "sha256")

    def digest(self, content: bytes) -> str:
        """A fingerprint of *content* that only the owner can compute, so that nobody can test guesses of it."""
        return hmac.digest(self.secret, _DIGEST + content, "sha256").hex()


def new_key(source: _RandomBytes) -> bytes:
    """The content of a key file: 256 random bits as 64 hexadecimal digits and a line end.

    >>> len(Key.of(new_key(secure())).secret)
    64
    """
    return source.randbytes(32).hex().encode() + b"\n"


def content_of(frame: pl.DataFrame) -> bytes:
    """A digest of the cells of *frame*, as they would be written; to be used under a key only.

    >>> content_of(pl.DataFrame({"age": [31]})).hex()[:8]
    '30990973'
    """
    whole = hashlib.sha256()
    for piece in csv_pieces(frame):
        whole.update(piece)
    return whole.digest()


def state_folder() -> Path:
    """Where velado keeps this user's key, seals and notes: $VELADO_STATE, else the user's state folder.

    >>> isinstance(state_folder(), Path)
    True
    """
    named = os.environ.get("VELADO_STATE")
    if named:
        return Path(named)
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "velado"


def read_key(path: str | Path) -> Key:
    """The key in the file *path*.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> _ = (Path(folder.name) / "owner.key").write_bytes(bytes(range(32)))
    >>> read_key(Path(folder.name) / "owner.key"), folder.cleanup()
    (Key(fingerprint=d8fb58ca), None)
    """
    path = Path(path)
    try:
        with path.open("rb") as stream:
            data = stream.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        raise ParameterError(
            say("The key file '{path}' cannot be read ({reason}).", path=path.name, reason=reason_of(error)),
            "Without the key nothing that depends on it can be made.",
            "Check the path and the permissions. Where nothing was made with a key yet, `velado pseudonymize --new-key --key-file FILE` makes one.",
        ) from None
    if len(data) > LARGEST_FILE:
        raise ParameterError(
            say(
                "The key file '{path}' is larger than {largest_file:,} bytes.",
                path=path.name,
                largest_file=LARGEST_FILE,
            ),
            "It is some other file.",
            "Name the file that holds the key.",
        )
    return Key.of(data)


def owner_key(given: Key | str | Path | None = None) -> Key:
    """The owner's key: the one *given*, itself or as a file, else that of this user, made now if there is none.

    The user's own key lies in `state_folder()`; others cannot read it, and a file that they can is refused.

    >>> owner_key(Key(bytes(range(32))))
    Key(fingerprint=d8fb58ca)
    """
    if isinstance(given, Key):
        return given
    if isinstance(given, str | Path):
        return read_key(given)
    if given is not None:
        raise ParameterError(
            say("A key cannot be a {kind}.", kind=type(given).__name__),
            "Row order and random operations are drawn under it.",
            "Pass the path of a key file, velado.Key(...), or leave it out.",
        )
    path = state_folder() / OWNER_FILE
    if not path.exists():
        _make(path)
    if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise ParameterError(
            say("The owner's key '{path}' can be read by others.", path=path),
            "Whoever has it can undo the order of rows and the random operations of every release made with it.",
            say(
                "Run `chmod 600 {path}`; if others may have read it, move it away so that a new one is made.",
                path=path,
            ),
        )
    return read_key(path)


def _make(path: Path) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_file(path, new_key(secure()), private=True)
    except OSError as error:
        raise OutputError(
            say(
                "The owner's key cannot be written to '{path}' ({reason}).",
                path=path,
                reason=reason_of(error),
            ),
            "Without it the order of the published rows could not be kept secret and repeated.",
            "Name a key file with --key FILE, or set XDG_STATE_HOME to a folder of yours.",
        ) from None
    except OutputError:
        if not path.exists():  # another run made it in the meantime: that one is the key
            raise
