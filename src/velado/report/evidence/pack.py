"""A pack: its files made from the document, listed, signed, put into one archive; and the same again to check one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import tomli_w

from velado.data.keys import Key
from velado.errors import EvidenceRefused
from velado.report.evidence.archive import read_archive, write_archive
from velado.report.evidence.document import (
    Document,
    Given,
    contradictions,
    document_of,
    given_of,
    refuse_time,
)
from velado.report.evidence.laws import LAWS
from velado.report.evidence.pages import annex_page, evidence_page
from velado.report.evidence.signature import check_signature, fingerprint, public_half, sign
from velado.report.manifest import package_version
from velado.report.render import render_html, render_markdown, to_json
from velado.text import LANGUAGES, join, say, speaking

LIST, SIGNATURE, DOCUMENT = "pack.json", "pack.sig", "evidence.json"
PAGES = ("annex.html", "annex.md", "evidence.html")
"""What a person reads; made by one version of velado, they differ in words from those of another."""
CONTENT = (DOCUMENT, *PAGES, "recipe.toml")
FILES = (*CONTENT, LIST, SIGNATURE)


@dataclass(frozen=True, kw_only=True, repr=False)
class EvidencePack:
    """A pack: the bytes of its archive, its files, its document, and the public key that it was signed with.

    >>> from velado.testing.examples import small_evidence
    >>> small_evidence()
    EvidencePack(lgpd, 7 files)
    """

    content: bytes
    files: Mapping[str, bytes]
    document: Document
    public_key: str

    def __repr__(self) -> str:
        return f"EvidencePack({self.document['law']}, {len(self.files)} files)"

    @property
    def fingerprint(self) -> str:
        """The public key in sixteen digits."""
        return fingerprint(self.public_key)


def make_pack(given: Given, key: Key) -> EvidencePack:
    """The pack of what was *given*, signed under the owner's *key*; the same again gives the same bytes.

    >>> from velado.testing.examples import small_evidence
    >>> sorted(small_evidence().files)
    ['annex.html', 'annex.md', 'evidence.html', 'evidence.json', 'pack.json', 'pack.sig', 'recipe.toml']
    """
    document = document_of(given)
    wrong = contradictions(document)
    if wrong:
        raise EvidenceRefused(
            say("The release contradicts itself: {what}.", what=join(wrong, "; ")),
            "A pack of it would be evidence of nothing.",
            "Publish the table again, and take nothing out of its folder.",
        )
    content = files_of(document)
    public = public_half(key)
    listed = list_of(document, content, public)
    files = {**content, LIST: listed, SIGNATURE: f"{sign(listed, key)}\n".encode()}
    return EvidencePack(content=write_archive(files), files=files, document=document, public_key=public)


def files_of(document: Document) -> dict[str, bytes]:
    """The files that follow from a document.

    >>> from velado.testing.examples import small_evidence
    >>> b"Evidence, not legal advice" in files_of(small_evidence().document)["evidence.html"]
    True
    """
    with speaking("en"):
        plain = to_json(document).encode()
    with speaking(document["language"]):
        annex = annex_page(document)
        return {
            DOCUMENT: plain,
            "evidence.html": render_html(evidence_page(document)).encode(),
            "annex.html": render_html(annex).encode(),
            "annex.md": render_markdown(annex).encode(),
            "recipe.toml": recipe_of(document).encode(),
        }


def recipe_of(document: Document) -> str:
    """The settings of the run, without labels, values and the name of the file: to compare, not to run.

    >>> from velado.testing.examples import small_evidence
    >>> 'name = "mondrian"' in recipe_of(small_evidence().document)
    True
    """
    manifest = document["manifest"]
    return tomli_w.dumps(_without_none({"run": manifest["how"], "schema": manifest["schema"]}))


def _without_none(value: Any) -> Any:
    """TOML has no word for nothing."""
    if isinstance(value, Mapping):
        return {str(name): _without_none(part) for name, part in value.items() if part is not None}
    return [_without_none(part) for part in value] if isinstance(value, list | tuple) else value


def list_of(document: Document, content: Mapping[str, bytes], public: str) -> bytes:
    """The list that is signed: every file by its digest, the table they speak of, and the key.

    >>> from velado.testing.examples import small_evidence
    >>> pack = small_evidence()
    >>> list_of(pack.document, {n: pack.files[n] for n in CONTENT}, pack.public_key) == pack.files["pack.json"]
    True
    """
    output = document["manifest"]["output"]
    told = {
        "format": document["format"],
        "made": document["made"],
        "law": document["law"],
        "velado": document["velado"],
        "table": {"file": output["file"], "sha256": output["sha256"]},
        "files": {
            name: {"sha256": hashlib.sha256(content[name]).hexdigest(), "bytes": len(content[name])}
            for name in sorted(content)
        },
        "public_key": public,
    }
    with speaking("en"):
        return to_json(told).encode()


@dataclass(frozen=True, kw_only=True, repr=False)
class ReadPack:
    """A pack that was read and holds together: *same_version* says whether its pages were compared word for word.

    >>> from velado.testing.examples import small_evidence
    >>> from datetime import UTC
    >>> read_pack(small_evidence().content, datetime(2030, 1, 1, tzinfo=UTC)).same_version
    True
    """

    document: Document
    public_key: str
    made: datetime
    same_version: bool


def read_pack(content: bytes, now: datetime) -> ReadPack:
    """The pack in these bytes, if it is whole, signed with the key it encloses, and free of contradiction.

    Everything in it is made again from its document and compared. That proves that nothing was changed since somebody signed
    it with the key enclosed, not who that was.

    >>> read_pack(b"PK", datetime(2030, 1, 1))
    Traceback (most recent call last):
    velado.errors.EvidenceRefused: The file is not a zip archive that can be read whole. It was cut short or changed, or is another file. Ask for the pack again, from who signed it.
    """
    files = read_archive(content, FILES)
    try:
        listed, document = json.loads(files[LIST]), json.loads(files[DOCUMENT])
        public, signature = listed["public_key"], files[SIGNATURE].decode("ascii")
        check_signature(files[LIST], signature.removesuffix("\n"), public)
        if listed["format"] != 1 or document["format"] != 1:
            raise EvidenceRefused(
                "The pack has a format that this velado does not know.",
                "It could be read wrongly.",
                "Check it with the velado that its list names, or a later one.",
            )
        own = {name: files[name] for name in CONTENT}
        if list_of(document, own, public) != files[LIST] or f"{signature.strip()}\n" != signature:
            raise _changed()
        made = refuse_time(document["made"], now)
        if document["law"] not in LAWS or document["language"] not in LANGUAGES:
            raise _changed()
        wrong = contradictions(document)
        same = document["velado"] == package_version("velado")
        again = {**document_of(given_of(document)), "velado": document["velado"]}
        made_again = files_of(again)
    # What was signed may be of any form: a document that lacks a part, or has one of another type, is none of ours.
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError, ArithmeticError):
        raise _changed() from None
    if wrong:
        raise EvidenceRefused(
            say("The pack contradicts itself: {what}.", what=join(wrong, "; ")),
            "It was signed, but what it says cannot all be true.",
            "Do not rely on it; ask who signed it.",
        )
    compared = CONTENT if same else (DOCUMENT, "recipe.toml")
    differing = [name for name in compared if made_again[name] != files[name]]
    if differing:
        raise EvidenceRefused(
            say(
                "{files} does not say what follows from the figures in the pack.", files=", ".join(differing)
            ),
            "It was signed, but its parts do not fit together.",
            "Do not rely on it; ask who signed it.",
        )
    return ReadPack(document=document, public_key=public, made=made, same_version=same)


def _changed() -> EvidenceRefused:
    return EvidenceRefused(
        "The files in the pack are not those that were signed.",
        "Something in it was changed, added or taken out.",
        "Do not rely on it; ask for the pack again, from who signed it.",
    )
