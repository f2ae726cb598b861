"""The evidence pack of a release, made by the room that makes it for the command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from velado.apps.desk.signing import Signature


def laws() -> Sequence[tuple[str, str]]:
    """The laws a pack can be made for."""
    return (("lgpd", "LGPD"), ("gdpr", "GDPR"), ("hipaa", "HIPAA"))


def writer(key: Path | None) -> Callable[[Path, Signature], None] | None:
    """What writes the pack of a release's folder into it."""
    del key
    return None
