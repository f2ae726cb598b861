"""A signature: the run that was looked at becomes a release of the project, whole, with who answers for it.

releases/NAME/release, private   as the command line writes them       signature.json   who signed what, for whom, and why
releases/NAME/evidence-LAW.zip   what an auditor checks alone
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import unicodedata
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from velado.apps.desk.jobs import Job
from velado.apps.desk.project import TABLES, Project, now, user
from velado.data.staging import file_digest, put_file
from velado.errors import InputError, OutputError
from velado.text import say

LONGEST = 2_000
_UNSEEN = ("Mn", "Me", "Cf", "Cc", "Cs", "Co", "Cn")
"""Marks on letters, and characters that a reader does not see."""


@dataclass(frozen=True, kw_only=True)
class Signature:
    """Who answers for a release: what was signed, for whom, why, on which ground; and who approved it, if that is asked."""

    run: str
    sha256: str
    recipe: str
    name: str
    recipient: str
    purpose: str
    legal_basis: str
    law: str = "lgpd"
    at: str = ""
    account: str = ""
    second: bool = False
    approved_by: str = ""
    approved_at: str = ""
    approved_account: str = ""
    release: str = ""
    remarks: str = ""
    file: str = ""
    sheet: str = ""
    doors: dict[str, Any] = field(default_factory=dict)

    @property
    def waits(self) -> bool:
        """Whether a second person has still to approve."""
        return self.second and not self.approved_by

    def apply_line(self, key: Path | None) -> str:
        """The command that does the same with the next table, as a shell takes it, in the project's folder.

        >>> told = {"run": "r", "sha256": "", "recipe": "", "name": "Ana", "recipient": "", "purpose": "", "legal_basis": ""}
        >>> Signature(**told, release="2026-05-01-1", file="Exames 1.xlsx", sheet="Maio 2026").apply_line(None)
        "velado apply releases/2026-05-01-1/private/recipe.toml NEXT.xlsx -o NEXT --sheet 'Maio 2026'"
        """
        ending = "".join(one for one in Path(self.file).suffixes[-2:] if one.lower() in TABLES) or ".csv"
        line = [
            "velado",
            "apply",
            f"releases/{self.release}/private/recipe.toml",
            f"NEXT{ending}",
            "-o",
            "NEXT",
        ]
        line += ["--sheet", self.sheet] if self.sheet else []
        return shlex.join(line + (["--key", str(key)] if key is not None else []))

    @property
    def one_account(self) -> bool:
        """Whether both names were written from one account of the machine: then nothing but the names tells two people."""
        return bool(self.approved_by) and self.account == self.approved_account


def checked(given: dict[str, str]) -> dict[str, str]:
    """What a person wrote, if nothing that must be said is missing."""
    for key, what in (
        ("name", say("your name")),
        ("recipient", say("the recipient")),
        ("purpose", say("the purpose")),
        ("legal_basis", say("the legal basis")),
    ):
        if not _letters(given[key]):
            raise InputError(
                say("The signature lacks {what}.", what=what),
                "A release leaves with somebody who answers for it.",
                "Fill it in and sign again.",
            )
    return {key: value.strip()[:LONGEST] for key, value in given.items()}


def same_name(one: str, other: str) -> bool:
    """Whether two names are one person's, however they are written: case, accents, marks and what is not seen do not count.

    >>> same_name("Ana Lima", "ANA\u200b  Li\u0301ma."), same_name("Ana Lima", "Bia Lima")
    (True, False)
    """
    return _letters(one) == _letters(other)


def _letters(name: str) -> str:
    """The letters and digits of a name, its words apart."""
    seen = [
        one
        for one in unicodedata.normalize("NFKD", name).casefold()
        if unicodedata.category(one) not in _UNSEEN
    ]
    return " ".join("".join(one if one.isalnum() else " " for one in seen).split())


def waiting(project: Project) -> Signature | None:
    """The signature that waits for a second person, if one does."""
    try:
        return Signature(**json.loads(project.waiting_file.read_bytes()))
    except FileNotFoundError:
        return None


def keep_waiting(project: Project, signature: Signature) -> None:
    """The signature waits for a second person."""
    put_file(project.waiting_file, _json(signature), private=True)


def withdraw(project: Project) -> None:
    """No signature waits any more."""
    project.waiting_file.unlink(missing_ok=True)


def hand_over(
    project: Project, job: Job, signature: Signature, evidence: Callable[[Path, Signature], None]
) -> Path:
    """The release stands below releases/, whole, with its signature and its evidence pack; or nothing does."""
    out = job.folder / "out"
    table = out / "release" / job.result()["table"]
    if file_digest(table) != signature.sha256:
        raise InputError(
            "The table of this run is not the one that was signed.",
            "Somebody changed it after it was made.",
            "Make the release again and look at it.",
        )
    name = free_name(project)
    signature = replace(signature, release=name)
    stage = project.desk / f"part-{os.urandom(8).hex()}"
    try:
        shutil.copytree(out, stage)  # copies modes too: what is private stays so
        stage.chmod(0o700)
        evidence(stage, signature)
        put_file(stage / "signature.json", _json(signature), private=True)
        project.releases.mkdir(exist_ok=True)
        os.rename(stage, project.releases / name)
    except OSError as error:
        raise OutputError(
            say("The release could not be written ({reason}).", reason=error.strerror or ""),
            "Nothing was handed over, and nothing half-written is kept.",
            "Make room on the disk or check the permissions, then sign again.",
        ) from None
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    return project.releases / name


def free_name(project: Project) -> str:
    """A name that no release has: the day, and a number."""
    day = now()[:10]
    number = 1
    while (project.releases / f"{day}-{number}").exists():
        number += 1
    return f"{day}-{number}"


def released(project: Project) -> list[Signature]:
    """Every release that was signed, the newest first."""
    if not project.releases.is_dir():
        return []
    out = []
    for place in project.releases.iterdir():
        try:
            out.append(Signature(**json.loads((place / "signature.json").read_bytes())))
        except (OSError, ValueError, TypeError):
            continue
    return sorted(out, key=lambda one: (one.approved_at or one.at, one.release), reverse=True)


def signed(job: Job, recipe: str, said: dict[str, str], second: bool, doors: dict[str, Any]) -> Signature:
    """The signature of this user, now."""
    return Signature(
        run=job.name,
        sha256=job.result()["sha256"],
        recipe=recipe,
        at=now(),
        account=user(),
        second=second,
        doors=doors,
        file=str(job.asked.get("file") or ""),
        sheet=str(job.asked.get("sheet") or ""),
        **said,
    )


def _json(signature: Signature) -> bytes:
    return (json.dumps(asdict(signature), ensure_ascii=False, indent=1) + "\n").encode()
