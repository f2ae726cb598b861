"""The files of a release that a browser may save or read: a fixed few of each, found below releases/ and nowhere else."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path

from velado.apps.desk.evidencing import pack_name
from velado.apps.desk.project import Project
from velado.apps.desk.signing import Signature, released
from velado.errors import InputError
from velado.text import Sentence, say

ALONE = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; sandbox"
}
"""Headers of these pages: they bring their own style and need nothing else; no script runs, and none is of the desk's origin."""
_MOST_PAGE = 16 << 20
"""Bytes of a page that is shown: what this program writes is far smaller."""


@dataclass(frozen=True)
class Offered:
    """A file of a release as a link: how it is called in an address, what a person reads, and who it is for."""

    name: str
    title: Sentence
    reader: str
    page: bool


OFFERED: tuple[Offered, ...] = (
    Offered("table", say("Save the table"), "recipient", page=False),
    Offered("about", say("Read what goes with it"), "recipient", page=True),
    Offered("manifest", say("Save the manifest"), "recipient", page=False),
    Offered("pack", say("Save the evidence pack"), "auditor", page=False),
    Offered("evidence", say("Read or print the evidence"), "auditor", page=True),
    Offered("annex", say("Read or print the annex"), "auditor", page=True),
    Offered("report", say("Read the report"), "owner", page=True),
)
READERS: tuple[tuple[str, Sentence], ...] = (
    ("recipient", say("May leave:")),
    ("auditor", say("For the auditor:")),
    ("owner", say("For you alone:")),
)


def signature_of(project: Project, name: str) -> Signature:
    """The release of that name, or a refusal."""
    found = next((one for one in released(project) if one.release == name), None)
    if found is None or name not in {place.name for place in project.releases.iterdir()}:
        raise _missing()
    return found


def file_of(project: Project, signature: Signature, what: str) -> Path:
    """The file of a release that is saved as it is; no link leads out of the project."""
    folder = project.releases / signature.release
    places = {
        "table": next(iter(sorted((folder / "release").glob("table.*"))), folder / "release" / "table.csv"),
        "about": folder / "release" / "about.html",
        "manifest": folder / "release" / "manifest.json",
        "pack": folder / pack_name(signature),
        "report": folder / "private" / "report.html",
    }
    return plain_file(project, places.get(what))


def page_of(project: Project, signature: Signature, what: str) -> bytes:
    """A page of a release; those of the auditor are read out of the pack, so that what is read is what was signed."""
    if what in ("evidence", "annex"):
        pack = plain_file(project, project.releases / signature.release / pack_name(signature))
        try:
            with zipfile.ZipFile(pack) as files:
                found = files.getinfo(f"{what}.html")
                if found.file_size > _MOST_PAGE:
                    raise _missing()
                return files.read(found)
        except (KeyError, OSError, zipfile.BadZipFile):
            raise _missing() from None
    return read_page(project, file_of(project, signature, what))


def read_page(project: Project, place: Path) -> bytes:
    """The bytes of a page that this program wrote."""
    place = plain_file(project, place)
    if place.stat().st_size > _MOST_PAGE:
        raise _missing()
    return place.read_bytes()


def plain_file(project: Project, place: Path | None) -> Path:
    """A file that lies in the project itself, or a refusal."""
    if place is None or not place.is_file() or not project.holds(place):
        raise _missing()
    return place


def _missing() -> InputError:
    return InputError(
        "There is no such file of a release.",
        "It was moved or taken away, or never made.",
        "Look into the folder of the release, or go back to the list of screens.",
    )
