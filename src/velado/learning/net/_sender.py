"""The calling end: every message is offered to its receiver, in order, until it is acknowledged."""

from __future__ import annotations

import contextlib
import http.client
import ssl
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from velado.errors import KeyRefused, OutputError
from velado.learning.net._journal import PartyLog
from velado.learning.net._mutual_tls import Pins, check_server, client_context
from velado.learning.net.identity import Identity

SECONDS = 30.0
ABORT = "abort"
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0


class Undelivered(Exception):
    """Why an attempt to deliver failed, in words that hold no content."""


class Post:
    """Posts one envelope to one party; its certificate is compared before anything is sent."""

    def __init__(self, identity: Identity, pins: Pins) -> None:
        self._identity, self._pins = identity, pins
        self._own, self._anonymous = client_context(identity), client_context(None)
        self._introduced: set[str] = set()

    def deliver(self, peer: str, data: bytes) -> None:
        """The party has the envelope on its disk; Undelivered or KeyRefused where not."""
        if peer not in self._introduced:
            self._request(peer, self._anonymous, "/v1/certificate", self._identity.certificate)
            self._introduced.add(peer)
        try:
            self._request(peer, self._own, "/v1/messages", data)
        except Undelivered:
            # It may have been started anew and not know us any more.
            self._introduced.discard(peer)
            raise

    def note(self, peer: str) -> None:
        """The party knows that we know that our last message arrived, if it can be told."""
        self._request(peer, self._own, "/v1/noted", b"")

    def _request(self, peer: str, context: ssl.SSLContext, path: str, data: bytes) -> None:
        host, port = self._pins.addresses[peer]
        connection = http.client.HTTPSConnection(host, port, timeout=SECONDS, context=context)
        try:
            connection.connect()
            check_server(connection.sock.getpeercert(binary_form=True), self._pins, peer)
            connection.request("POST", path, body=data, headers={"Content-Type": "application/octet-stream"})
            answer = connection.getresponse()
            reason = answer.read(500).decode("ascii", "replace")
            status = answer.status
        except ConnectionRefusedError:
            raise Undelivered("nobody answers at its address") from None
        except ssl.SSLError:
            raise Undelivered("it ended the handshake") from None
        except TimeoutError:
            raise Undelivered("it did not answer in time") from None
        except (OSError, http.client.HTTPException, UnicodeError):
            raise Undelivered("the connection failed") from None
        finally:
            connection.close()
        if status != 200:
            clean = "".join(c if c.isprintable() else "?" for c in reason)
            raise Undelivered(f"it refused: {clean}")


@dataclass(frozen=True)
class Letter:
    """An envelope on its way; *last* marks what a role said in the step in which it had its result."""

    number: int
    kind: str
    data: bytes
    last: bool


class Outbox:
    """Letters to each party, in order; one thread a party offers the first of them until it is taken."""

    def __init__(self, post: Post, kept: Callable[[str, int], None], audit: PartyLog) -> None:
        self._post, self._kept, self._audit = post, kept, audit
        self._letters: dict[str, deque[Letter]] = {}
        self._changed = threading.Condition()
        self._closed = threading.Event()
        self.reasons: dict[str, str] = {}
        self.reached: set[str] = set()

    def put(self, peer: str, letter: Letter) -> None:
        """The letter is on its way."""
        with self._changed:
            if peer not in self._letters:
                self._letters[peer] = deque()
                threading.Thread(target=self._offer, args=(peer,), name=f"to {peer}", daemon=True).start()
            self._letters[peer].append(letter)
            self._changed.notify_all()

    def owed(self, only_last: bool) -> list[str]:
        """Parties that letters wait for; with *only_last* those that a result waits for.

        A party that has its result needs no answer to what it said before: the result could not be there otherwise.
        """
        with self._changed:
            return sorted(
                peer
                for peer, letters in self._letters.items()
                if (any(letter.last for letter in letters) if only_last else letters)
            )

    def wait(self, seconds: float) -> None:
        """Returns when a letter was taken, or after so many seconds."""
        with self._changed:
            self._changed.wait(seconds)

    def close(self) -> None:
        """Nothing more is offered."""
        self._closed.set()
        with self._changed:
            self._changed.notify_all()

    def _offer(self, peer: str) -> None:
        pause = FIRST_PAUSE
        while (letter := self._next(peer)) is not None:
            try:
                self._post.deliver(peer, letter.data)
                self._kept(peer, letter.number)
            except (Undelivered, KeyRefused, OutputError) as error:
                reason = error.what if isinstance(error, KeyRefused | OutputError) else str(error)
                if self.reasons.get(peer) != reason:
                    self._audit.write("waiting", peer=peer, reason=reason)
                self.reasons[peer] = reason
                self._closed.wait(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
                continue
            pause = FIRST_PAUSE
            self.reasons.pop(peer, None)
            self._audit.write(
                "sent", peer=peer, kind=letter.kind, number=letter.number, bytes=len(letter.data)
            )
            if letter.last and letter.kind != ABORT:
                # If it cannot be told, it waits a few seconds in vain before it leaves: nothing is lost.
                with contextlib.suppress(Undelivered, KeyRefused):
                    self._post.note(peer)
            with self._changed:
                self.reached.add(peer)
                self._letters[peer].popleft()
                self._changed.notify_all()

    def _next(self, peer: str) -> Letter | None:
        with self._changed:
            while not self._letters[peer] and not self._closed.is_set():
                self._changed.wait()
            return None if self._closed.is_set() else self._letters[peer][0]
