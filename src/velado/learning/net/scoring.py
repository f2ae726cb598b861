"""The files of encrypted prediction: the owner's offer and register of scores, the asker's private folder.

The register counts how many rows of whoever were scored with a model, since as many scores as the model has unknowns are
equations enough to work it out, and it knows every question, so that none is answered twice.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from velado.data.staging import locked, reason_of, write_file
from velado.errors import InputError, OutputError, ProtocolError
from velado.learning.crypto import paillier_keys as keyfile
from velado.learning.crypto.paillier_keys import PrivateKey
from velado.learning.net.identity import make_private_folder, read_private
from velado.learning.regression.inference import ScoringTerms
from velado.text import say

KEY, QUESTION = "asker.key", "question.bin"
LARGEST = 1 << 28
LARGEST_REGISTER = 1 << 26


def read_bytes(path: Path) -> bytes:
    """The bytes of a question or an answer.

    >>> read_bytes(write_file(Path("asked.bin"), b"x"))
    b'x'
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(LARGEST + 1)
    except OSError as error:
        raise InputError(
            say("'{path}' cannot be read ({strerror}).", path=path.name, strerror=reason_of(error)),
            "It holds a question, an answer or an offer.",
            "Check the path.",
        ) from None
    if len(data) > LARGEST:
        raise InputError(
            say("'{path}' is too large.", path=path.name),
            "No question and no answer of velado is that large.",
            "Ask about fewer rows at a time.",
        )
    return data


def read_offer(path: Path) -> ScoringTerms:
    """The terms an owner offers.

    >>> from velado.learning.crypto.fixed_point import Bounded
    >>> terms = ScoringTerms((Bounded("age", (0, 120)),))
    >>> read_offer(write_offer(Path("offer.json"), terms)) == terms
    True
    """
    try:
        document = json.loads(read_bytes(path))
    except (ValueError, RecursionError):
        document = None
    return ScoringTerms.from_dict(document)


def write_offer(path: Path, terms: ScoringTerms) -> Path:
    """The offer stands in a file that may be given to anybody.

    >>> from velado.learning.crypto.fixed_point import Bounded
    >>> write_offer(Path("an-offer.json"), ScoringTerms((Bounded("age", (0, 120)),))).name
    'an-offer.json'
    """
    text = json.dumps(terms.to_dict(), ensure_ascii=False, indent=2, default=str)
    return write_file(path, text.encode() + b"\n")


def keep_question(folder: Path, private: PrivateKey, question: bytes, passphrase: str) -> Path:
    """The question stands in *folder*, which only its owner can enter, beside the key that opens the answer; its path."""
    make_private_folder(folder, empty=True)
    write_file(folder / KEY, keyfile.seal(private, passphrase), private=True)
    return write_file(folder / QUESTION, question, private=True)


def open_question(folder: Path, passphrase: str) -> tuple[PrivateKey, bytes]:
    """The key and the question that `keep_question` wrote."""
    private = keyfile.open_sealed(read_private(folder / KEY), passphrase)
    return private, read_private(folder / QUESTION, LARGEST)


@dataclass(frozen=True, kw_only=True)
class Scored:
    """One question that was answered: the model, a digest of the question, how many rows.

    >>> Scored(model="0a", question="0b", rows=3).rows
    3
    """

    model: str
    question: str
    rows: int


def answered_rows(path: Path, model: str, question: bytes, rows: int, most: int | None) -> int:
    """The question stands in the register, before its answer leaves; returns how many rows of this model were scored.

    >>> answered_rows(Path("scores.register"), "0a", b"first", 3, None)
    3
    >>> answered_rows(Path("scores.register"), "0a", b"second", 4, 6)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.ProtocolError: With this question 7 rows would be scored, and 6 are allowed...
    """
    mark = hashlib.sha256(question).hexdigest()
    with _alone(path):
        known = _read_register(path)
        if any(one.question == mark for one in known):
            raise ProtocolError(
                "This question was answered before.",
                "A question that is sent again is a mistake, or somebody who listened.",
                "Let the asker make a new question; the register has the first one.",
            )
        total = rows + sum(one.rows for one in known if one.model == model)
        if most is not None and total > most:
            raise ProtocolError(
                say(
                    "With this question {total} rows would be scored, and {most} are allowed.",
                    total=total,
                    most=most,
                ),
                "Every score is an equation in the model's coefficients.",
                "Raise --limit if the askers may know the model, or refuse.",
            )
        entries = [asdict(one) for one in (*known, Scored(model=model, question=mark, rows=rows))]
        write_file(path, json.dumps({"scored": entries}, indent=1).encode(), force=True, private=True)
        return total


def _read_register(path: Path) -> tuple[Scored, ...]:
    if not path.exists():
        return ()
    try:
        document = json.loads(read_private(path, LARGEST_REGISTER))
        found = tuple(
            Scored(model=str(one["model"]), question=str(one["question"]), rows=int(one["rows"]))
            for one in document["scored"]
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        raise OutputError(
            say("The register '{path}' is damaged.", path=path.name),
            "How many rows were scored is not known any more.",
            "Put it back from a copy.",
        ) from None
    return found


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """No other process writes to the register meanwhile."""
    lock = path.with_name(path.name + ".lock")
    try:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise OutputError(
            say("'{path}' cannot be written ({reason}).", path=path.name, reason=reason_of(error)),
            "What is not in the register is not answered.",
            "Check the path, the permissions and the space left.",
        ) from None
    try:
        locked(handle, wait=True)
        yield
    finally:
        os.close(handle)
