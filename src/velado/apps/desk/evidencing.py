"""The evidence pack of a release, made by the room that makes it for the command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from velado.apps.desk.signing import Signature
from velado.report.evidence.laws import LAWS
from velado.report.evidence.statements import Statements
from velado.study.evidence import gather_evidence
from velado.text import language, told


def laws() -> Sequence[tuple[str, str]]:
    """The laws a pack can be made for, with their titles."""
    return [(name, told(law.title)) for name, law in LAWS.items()]


def writer(key: Path | None) -> Callable[[Path, Signature], None]:
    """What writes the pack of a release's folder into it."""

    def write(folder: Path, signature: Signature) -> None:
        gather_evidence(
            folder,
            signature.law,
            out=folder / pack_name(signature),
            key=key,
            language=language(),
            statements=Statements(
                recipient=signature.recipient,
                purpose=signature.purpose,
                legal_basis=told(signature.legal_basis),
                signed_by=signature.name,
                approved_by=signature.approved_by,
                remarks=signature.remarks,
            ),
        )

    return write


def pack_name(signature: Signature) -> str:
    """The file of the pack."""
    return f"evidence-{signature.law}.zip"
