"""Which questions are still open: what a screen may offer, and what must be answered before a run or a signature."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from velado.apps.desk import jobs, profile
from velado.apps.desk.answers import Answers
from velado.apps.desk.deciding import decided
from velado.apps.desk.jobs import Job
from velado.apps.desk.profile import Profile
from velado.apps.desk.project import Project, person_digest, roles_digest, source_digest
from velado.errors import InputError
from velado.study.recipe import Recipe
from velado.text import Sentence, join, say


@dataclass(frozen=True)
class Walk:
    """A project as it stands now: its files, read once for one request."""

    project: Project
    answers: Answers
    recipe: Recipe | None
    profile: Profile | None
    state: str

    @classmethod
    def of(cls, project: Project) -> Walk:
        """The project as its files tell it."""
        with project.lock:
            answers = project.answers()
            found = profile.load(project.desk / "profiles" / answers.profile) if answers.profile else None
            return cls(project, answers, project.recipe(), found, project.state())

    @property
    def file_changed(self) -> bool:
        """Whether the table's file is no longer the one that was read."""
        source = self.answers.source
        if source is None:
            return False
        try:
            path = self.project.source_path(source)
            status = path.stat()
            return _digest(str(path), status.st_size, status.st_mtime_ns) != source.digest
        except (OSError, InputError):
            return True

    @property
    def reading_settled(self) -> bool:
        """Whether somebody said that the rows look right."""
        return self.profile is not None and self.answers.reading is not None and self.recipe is not None

    @property
    def person_settled(self) -> bool:
        """Whether somebody said who one person is, of this table and as the recipe has it."""
        source, said = self.answers.source, self.answers.person
        if not self.reading_settled or source is None or said is None or self.recipe is None:
            return False
        return said.digest == person_digest(self.recipe, source.digest)

    @property
    def roles_settled(self) -> bool:
        """Whether somebody settled every column's role, of this table and as the recipe has it."""
        source, said = self.answers.source, self.answers.roles
        if not self.person_settled or source is None or said is None or self.recipe is None:
            return False
        return said.digest == roles_digest(self.recipe.schema, source.digest)

    def open_questions(self) -> list[Sentence]:
        """What must be answered before anything may be run, in order."""
        out = []
        if not self.reading_settled:
            out.append(say("Nobody has said yet that the rows were read right."))
        if not self.person_settled:
            out.append(say("Nobody has said yet who one person is."))
        if not self.roles_settled:
            out.append(say("Nobody has settled the roles of the columns yet."))
        if self.file_changed:
            out.append(say("The table's file is not the one that was read."))
        return out

    def refuse_run(self) -> tuple[Answers, Recipe]:
        """Answers and recipe, if nothing is open; else a refusal names what is."""
        found = self.open_questions()
        if found or self.recipe is None:
            raise InputError(
                join(found),
                "What is promised depends on it, so nothing is run, compared or signed before.",
                "Answer the open questions first: they are marked in the list of screens.",
            )
        return self.answers, self.recipe

    def recipe_digest(self) -> str:
        """The digest of the recipe's file."""
        return hashlib.sha256(self.project.recipe_file.read_bytes()).hexdigest()

    def run(self) -> Job | None:
        """The run that is looked at."""
        return self.job(self.answers.run)

    def job(self, name: str) -> Job | None:
        """A job of the project, if there is one of that name."""
        try:
            return jobs.look(self.project.runs, name) if name else None
        except InputError:
            return None

    def is_current(self, job: Job) -> bool:
        """Whether a run was made with the recipe and the table as they are now."""
        source = self.answers.source
        return (
            self.recipe is not None
            and source is not None
            and job.asked.get("recipe") == self.recipe_digest()
            and job.asked.get("digest") == source.digest
            and not self.file_changed
        )

    def undecided(self, job: Job) -> list[str]:
        """The names of the side doors that a run found open and nobody accepted, as open as they are, with a reason that the recipe carries."""
        doors = job.result()["doors"]
        return [door["name"] for door in doors if not decided(door, self.recipe)]


@lru_cache(maxsize=4)
def _digest(path: str, size: int, moment: int) -> str:
    return source_digest(Path(path))
