"""Who settled what: the answers that are not part of a recipe, as `.desk/answers.json` keeps them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from velado.errors import InputError

VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Source:
    """The table at work: a *file* below the project, or the *table* at an *address*, copied to *file* when it was opened.

    *digest* is the SHA-256 of the file's bytes. The other fields are how the file is read where a person said so; None
    means as it was found. *missing* are the texts that mean no value in every column, *missing_in* those of single columns.
    *columns* are those of the recipe that these texts were taken from: of a table with others nothing of it holds.

    >>> Source(file="stays.csv", digest="ab").reading()
    {}
    """

    file: str
    digest: str
    address: str = ""
    table: str = ""
    encoding: str | None = None
    separator: str | None = None
    decimal: str | None = None
    missing: tuple[str, ...] | None = None
    missing_in: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sheet: str | None = None
    columns: tuple[str, ...] = ()

    def reading(self) -> dict[str, object]:
        """What a person said about how the file is read."""
        said: dict[str, object] = {
            "encoding": self.encoding,
            "separator": self.separator,
            "decimal": self.decimal,
        }
        said |= {"missing": None if self.missing is None else list(self.missing), "sheet": self.sheet}
        said["missing_in"] = {name: list(codes) for name, codes in self.missing_in.items()} or None
        said["columns"] = list(self.columns) or None
        return {key: value for key, value in said.items() if value is not None}

    def of_table(self, header: Collection[str]) -> Source:
        """What is said of a table with these columns: without the texts of a recipe about others.

        >>> Source(file="stays.csv", digest="ab", missing=("", "ND"), columns=("age",)).of_table(["sex"]).missing
        """
        if not self.columns or set(self.columns) == set(header):
            return self
        return replace(self, missing=None, missing_in={}, columns=())


@dataclass(frozen=True, kw_only=True)
class Settled:
    """Somebody answered a question: when, who, and the digest of what the answer is about.

    >>> Settled(by="ana", at="2026-05-01T10:00:00+00:00", digest="ab").by
    'ana'
    """

    by: str
    at: str
    digest: str


@dataclass(frozen=True, kw_only=True)
class DoorAnswer:
    """What became of a side door: the *decision* about its *column*, its *step* or *reason* where it needs one, and who took it.

    >>> DoorAnswer(decision="accept", reason="rooms, not people", by="ana", at="2026").decision
    'accept'
    """

    decision: str
    reason: str = ""
    by: str = ""
    at: str = ""
    column: str = ""
    step: str = ""


@dataclass(frozen=True, kw_only=True)
class Answers:
    """Everything that was answered in a project beside its recipe.

    *run* is the run that is looked at, *compared* the last comparison. *opened* says that the desk has written the recipe
    before: the files that lay in the folder when it was first opened are taken as they are. *recipe_of* is the digest of the
    file that the recipe was last settled on, and *kept* says that it was settled on another file than the one at work.

    >>> Answers.from_json(Answers(preset="public").to_json()).preset
    'public'
    """

    source: Source | None = None
    reading: Settled | None = None
    person: Settled | None = None
    roles: Settled | None = None
    doors: Mapping[str, DoorAnswer] = field(default_factory=dict)
    preset: str = ""
    said: Mapping[str, list[str]] = field(default_factory=dict)
    run: str = ""
    profile: str = ""
    profile_job: str = ""
    compared: str = ""
    opened: bool = False
    recipe_of: str = ""
    kept: bool = False

    def to_json(self) -> bytes:
        """As the file has it."""
        return (
            json.dumps({"version": VERSION, **asdict(self)}, ensure_ascii=False, indent=1) + "\n"
        ).encode()

    @classmethod
    def from_json(cls, content: bytes) -> Answers:
        """From the file; what cannot be read is refused, for nobody's answer may be guessed."""
        try:
            found = json.loads(content)
            if found.pop("version") != VERSION:
                raise ValueError
            return cls(
                source=_made(Source, found.pop("source")),
                reading=_made(Settled, found.pop("reading")),
                person=_made(Settled, found.pop("person")),
                roles=_made(Settled, found.pop("roles")),
                doors={name: DoorAnswer(**entry) for name, entry in found.pop("doors").items()},
                **found,
            )
        except (ValueError, TypeError, KeyError, AttributeError):
            raise InputError(
                "The file of answers (.desk/answers.json) cannot be read.",
                "It says who settled what, and nobody's answer is guessed.",
                "Put its last good copy back, or remove it and answer again; recipe.toml is not touched.",
            ) from None

    def unsettled(self) -> Answers:
        """The same source, with every question about it open again."""
        return Answers(source=self.source, opened=self.opened, recipe_of=self.recipe_of)


def _made(kind: type[Any], entry: Any) -> Any:
    if entry is None:
        return None
    if kind is Source and entry.get("missing") is not None:
        entry = {**entry, "missing": tuple(entry["missing"])}
    if kind is Source and entry.get("missing_in"):
        entry = {**entry, "missing_in": {name: tuple(codes) for name, codes in entry["missing_in"].items()}}
    if kind is Source and "columns" in entry:
        entry = {**entry, "columns": tuple(entry["columns"])}
    return kind(**entry)
