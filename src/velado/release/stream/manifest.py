"""The manifest of a window: what was promised and what it cost, chained to the window before by a hash.

It is public and holds no cell: the digests in it are of published bytes. Whoever has the manifests of a stream sees whether one was
left out, exchanged or added.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping

from velado.errors import TableError
from velado.text import say

FIRST = "0" * 64
"""What the first window names as the one before it."""


def digest(data: bytes) -> str:
    """The SHA-256 of published bytes.

    >>> digest(b"age")[:8]
    '013f5440'
    """
    return hashlib.sha256(data).hexdigest()


def manifest_bytes(facts: Mapping[str, object], table: bytes | None, before: str) -> bytes:
    """The manifest as it is published: *facts*, the digest of the window's table, and that of the manifest before.

    >>> manifest_bytes({"window": 1}, None, FIRST).endswith(b"\\n")
    True
    """
    whole = {**facts, "table_sha256": None if table is None else digest(table), "previous_sha256": before}
    return json.dumps(whole, ensure_ascii=False, sort_keys=True).encode() + b"\n"


def check_chain(manifests: Iterable[bytes], tables: Mapping[int, bytes]) -> int:
    """How many windows there are, if each manifest names the one before it and its own table; else an error.

    >>> one = manifest_bytes({"window": 1}, b"age", FIRST)
    >>> two = manifest_bytes({"window": 2}, b"sex", digest(one))
    >>> check_chain([one, two], {1: b"age", 2: b"sex"})
    2
    """
    before, count = FIRST, 0
    for data in manifests:
        read = json.loads(data)
        number, shown = read["window"], read["table_sha256"]
        table = tables.get(number)
        if read["previous_sha256"] != before or number != count + 1:
            raise _broken(number, say("it does not follow the window before it"))
        if shown != (None if table is None else digest(table)):
            raise _broken(number, say("its table is another one"))
        before, count = digest(data), count + 1
    return count


def _broken(number: int, why: str) -> TableError:
    return TableError(
        say("The chain of windows breaks at window {number}: {why}.", number=number, why=why),
        "A window was left out, exchanged or added after it was published.",
        "Get the windows from their owner again.",
    )
