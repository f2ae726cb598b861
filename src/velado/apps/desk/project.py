"""A project is a folder with the files the command line uses; `.desk` below it keeps what only the desk needs.

    schema.toml, taxonomies/   what each column means          recipe.toml   everything a run needs but the rows
    releases/NAME/             what was signed                  .desk/        uploads, profiles, runs, answers; private

Every file is written whole or not at all. The recipe is the state: what a person edited by hand counts as well.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import shutil
import unicodedata
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from typing import Any

import tomli_w

from velado.apps.desk.answers import Answers, Settled, Source
from velado.data.formats import FORMATS
from velado.data.level_files import levels_text
from velado.data.schema import Schema
from velado.data.staging import file_digest, write_file
from velado.engines.places import CSV, DATABASES
from velado.errors import InputError, OutputError
from velado.release.operations._operation import Operation
from velado.study.recipe import Recipe
from velado.study.run import read_recipe
from velado.text import say

TABLES = frozenset(
    (*CSV, *(f".{end}" for one in FORMATS.values() if one.read or one.unpack for end in one.endings))
)
"""How the names of files end that are offered to be opened."""
LONGEST_NAME = 120
_PART = "part-"


@dataclass(frozen=True)
class Project:
    """The folder of a project. Two threads never write at once.

    >>> Project(Path("study")).recipe_file.name
    'recipe.toml'
    """

    folder: Path
    lock: RLock = field(default_factory=RLock, repr=False, compare=False)

    @property
    def desk(self) -> Path:
        """What only the desk needs; nobody else can read it."""
        return self.folder / ".desk"

    @property
    def recipe_file(self) -> Path:
        """The state."""
        return self.folder / "recipe.toml"

    @property
    def runs(self) -> Path:
        """One folder for every job."""
        return self.desk / "runs"

    @property
    def waiting_file(self) -> Path:
        """The signature that waits for a second person, while one does."""
        return self.desk / "waiting.json"

    @property
    def releases(self) -> Path:
        """What was signed."""
        return self.folder / "releases"

    def begin(self) -> None:
        """The folders are there, private where they must be; what broken uploads left is gone."""
        try:
            for folder in (self.desk, self.desk / "uploads", self.runs, self.desk / "profiles"):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                folder.chmod(0o700)
            for left in self.desk.rglob(f"{_PART}*"):
                shutil.rmtree(left) if left.is_dir() else left.unlink()
        except OSError as error:
            raise _unwritable(error) from None

    # ---- what stands in the folder

    def answers(self) -> Answers:
        """What was answered so far."""
        try:
            return Answers.from_json((self.desk / "answers.json").read_bytes())
        except FileNotFoundError:
            return Answers()

    def recipe(self) -> Recipe | None:
        """The recipe, with what its taxonomy files say; None before a table was opened."""
        return read_recipe(self.recipe_file) if self.recipe_file.exists() else None

    def state(self) -> str:
        """The digest of recipe, answers and the signature that waits: every form carries it, so that nobody signs what changed meanwhile."""
        parts = []
        for file in (self.recipe_file, self.desk / "answers.json", self.waiting_file):
            try:
                parts.append(hashlib.sha256(file.read_bytes()).hexdigest())
            except FileNotFoundError:
                parts.append("")
        return digest_of(parts)

    def source_path(self, source: Source) -> Path:
        """Where the rows lie; never outside the project."""
        return self.inside(source.file)

    def inside(self, name: str) -> Path:
        """The place of *name* below the folder, or a refusal: no path leads out, and no link does."""
        try:
            place = (self.folder / name).resolve()
            place.exists()  # a name too long for the system is found out here
        except (OSError, ValueError):
            place = Path("/")
        if not self.holds(place):
            raise InputError(
                "This name leads out of the project's folder.",
                "The desk reads and writes below that folder alone.",
                "Choose a file of the folder, or drop one on the page.",
            )
        return place

    def holds(self, place: Path) -> bool:
        """Whether *place* lies below the folder once every link is followed."""
        return place.resolve().is_relative_to(self.folder.resolve())

    def files(self) -> list[str]:
        """Files of the folder and of uploads that may be tables, the newest first; no link that leads out."""
        return self._listed(TABLES)

    def databases(self) -> list[str]:
        """Files that hold tables of their own, in the same way."""
        return self._listed(DATABASES)

    def _listed(self, endings: Collection[str]) -> list[str]:
        places = [self.folder, self.desk / "uploads"]
        found = [
            path
            for place in places
            if place.is_dir()
            for path in place.iterdir()
            if path.suffix.lower() in endings
            and not path.name.startswith((".", _PART))
            and path.is_file()
            and self.holds(path)
        ]
        found.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        return [path.relative_to(self.folder).as_posix() for path in found]

    # ---- writing

    def change(
        self, edit: Callable[[Answers, Recipe | None], tuple[Answers, Recipe | None]], shown: str = ""
    ) -> None:
        """Recipe and answers as *edit* makes them of those that stand; refused if they are not those that were *shown*.

        "" says that no page asks; a page's form always says what it showed (`velado.apps.desk.door.form`).
        """
        with self.lock:
            if shown and shown != self.state():
                raise changed_meanwhile()
            before, recipe = self.answers(), self.recipe()
            answers, after = edit(before, recipe)
            if after is not None and after != recipe:
                self._write_recipe(after)
            if answers != before:
                write_file(self.desk / "answers.json", answers.to_json(), force=True, private=True)

    def _write_recipe(self, recipe: Recipe) -> None:
        for column in recipe.schema.columns.values():
            spec = column.taxonomy
            if spec is not None and spec.file is not None and spec.paths is not None:
                lines = levels_text(spec.paths)
                place = self.inside(spec.file)
                if not place.exists() or place.read_bytes() != lines.encode():
                    write_file(place, lines.encode(), force=True)
        schema = tomli_w.dumps(recipe.schema.to_dict(), multiline_strings=True)
        write_file(self.folder / "schema.toml", schema.encode(), force=True)
        # Last: the recipe is the state, and it holds what the other files say.
        write_file(self.recipe_file, recipe.to_toml().encode(), force=True)

    @contextmanager
    def upload(self, name: str) -> Iterator[tuple[Any, Path]]:
        """An open file whose bytes stand under *name* among the uploads, whole, or nowhere."""
        refuse_name(name)
        target = self.desk / "uploads" / name
        part = self.desk / "uploads" / f"{_PART}{os.urandom(8).hex()}"
        try:
            handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as file:
                yield file, target
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, target)
        except OSError as error:
            raise _unwritable(error) from None
        finally:
            part.unlink(missing_ok=True)


def digest_of(parts: object) -> str:
    """A short digest of plain values.

    >>> len(digest_of(["a", 1]))
    32
    """
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:32]


def source_digest(path: Path) -> str:
    """The SHA-256 of a table's file, or a refusal that says why there is none."""
    try:
        return file_digest(path)
    except OSError as error:
        raise InputError(
            say("'{name}' cannot be read.", name=path.name[:LONGEST_NAME]),
            say("The system says: {reason}.", reason=error.strerror or ""),
            "Choose another file, or check its permissions.",
        ) from None


def roles_digest(schema: Schema, source: str) -> str:
    """The digest of what every column's role says about the table *source*."""
    told = {
        name: [column.role, column.kind, column.publish, column.identifier, column.reason]
        for name, column in schema.columns.items()
    }
    return digest_of([source, told])


def person_digest(recipe: Recipe, source: str) -> str:
    """The digest of who one person is in the table *source*."""
    person = recipe.schema.person
    return digest_of([source, None if person is None else person.name, recipe.per])


def settled(digest: str) -> Settled:
    """This user settled, now, what *digest* is about."""
    return Settled(by=user(), at=now(), digest=digest)


def now() -> str:
    """This moment, as files have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def user() -> str:
    """The name under which this user is known to the machine."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "?"


def refuse_name(name: str) -> None:
    """Nothing, if *name* is a plain name of a file; no folders, no hidden files, no characters that hide others.

    >>> refuse_name("stays 2024.csv")
    >>> refuse_name("../stays.csv")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.InputError: The file has a name that the desk does not take. ...
    """
    odd = any(unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") for letter in name)
    if odd or not name.strip() or len(name) > LONGEST_NAME or name[0] == "." or set(name) & set('/\\:*?"<>|'):
        raise InputError(
            "The file has a name that the desk does not take.",
            "It is too long, hidden, or holds characters of paths, of control or of writing direction.",
            "Give the file a plain name, such as patients.csv, and drop it again.",
        )


def changed_meanwhile() -> InputError:
    """The refusal of a form that shows what stands no longer."""
    return InputError(
        "The project changed after this page was shown, so nothing was done.",
        "Another tab, another program or another person edited it, and you would have decided about what you did not see.",
        "Look at the page as it is now, and decide again.",
    )


def _unwritable(error: OSError) -> OutputError:
    return OutputError(
        say("The project's folder cannot be written ({reason}).", reason=error.strerror or "system error"),
        "Nothing was changed.",
        "Check the permissions and the space left, then try again.",
    )


def operations_left(recipe: Recipe, schema: Schema) -> tuple[Operation, ...]:
    """The column operations whose column is still published."""
    return tuple(
        one for one in recipe.operations if one.column is None or schema.columns[one.column].published
    )


def with_source(answers: Answers, source: Source) -> Answers:
    """A table is at work; every question about another one is open again."""
    return replace(answers.unsettled(), source=source)
