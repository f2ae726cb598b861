"""Open: a file is dropped, chosen or a database's table is named; how it was read is shown and can be changed."""

from __future__ import annotations

import codecs
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool

from velado.apps.desk import jobs, profile
from velado.apps.desk.answers import Answers, Source
from velado.apps.desk.databases import copy_of
from velado.apps.desk.door import Form, check_token, form
from velado.apps.desk.profile import Profile
from velado.apps.desk.project import Project, digest_of, refuse_name, settled, source_digest, with_source
from velado.apps.desk.screens._screen import awaited, go, job_told, page, project_of, settings_of, start
from velado.apps.desk.screens.people_screen import with_person
from velado.apps.desk.walk import Walk
from velado.data.formats import FileFormat, expected_format
from velado.data.io import read_schema
from velado.data.schema import Schema
from velado.errors import InputError, ParameterError, VeladoError
from velado.study.recipe import Recipe
from velado.text import Language, language, say, size

screen = APIRouter()
_ROOM_LEFT = 64 << 20
ENCODINGS = ("utf-8", "latin-1", "cp1252", "utf-16")
SEPARATORS = ((",", say("comma")), (";", say("semicolon")), ("\t", say("tabulator")), ("|", say("bar")))


@screen.get("/open")
def show(request: Request) -> Response:
    """The screen."""
    walk = Walk.of(project_of(request))
    job = walk.job(walk.answers.profile_job)
    header = list(walk.profile.schema().columns) if walk.profile is not None else []
    return page(
        request,
        "open",
        walk,
        files=project_of(request).files(),
        job=job_told(job),
        found=walk.profile,
        header=header,
        person=None if walk.profile is None else proposed_person(walk.profile),
        encodings=ENCODINGS,
        separators=SEPARATORS,
        largest=size(settings_of(request).largest_upload),
        databases=project_of(request).databases(),
        shape=_shape(walk.answers.source),
        said=_said(walk),
    )


def _shape(source: Source | None) -> FileFormat | None:
    """The format that the name promises, where the file is not text: it says by itself how its cells are to be read."""
    found = None if source is None else expected_format(source.file)
    return found if found is not None and found.read is not None else None


@screen.get("/jobs/{name}")
def job(request: Request, name: str) -> JSONResponse:
    """How a job stands, for the page's script."""
    return JSONResponse(job_told(jobs.look(project_of(request).runs, name)))


@screen.post("/jobs/{name}/cancel")
async def cancel(request: Request, name: str) -> Response:
    """The job's process is ended."""
    given = await form(request)
    jobs.cancel(project_of(request).runs, name)
    back = given.one("back", "history")
    return go(f"/{back}" if back in ("open", "look", "compare", "history", "promise") else "/history")


@screen.post("/open/choose")
async def choose(request: Request) -> Response:
    """A file of the folder is the table."""
    given = await form(request)
    _open(request, given.one("file"), given.one("state"))
    return go("/open")


@screen.put("/open/upload/{name}")
async def upload(request: Request, name: str) -> JSONResponse:
    """A dropped file is kept among the uploads and opened."""
    check_token(request, request.headers.get("x-desk-token", ""))
    refuse_name(name)
    settings = settings_of(request)
    most = settings.largest_upload
    told_size = request.headers.get("content-length", "")
    if told_size.isdigit() and int(told_size) > most:
        raise _too_large(most)
    if told_size.isdigit() and int(told_size) + _ROOM_LEFT > shutil.disk_usage(settings.project.desk).free:
        raise _no_room()
    taken = 0
    with settings.project.upload(name) as (file, target):
        async for part in request.stream():
            taken += len(part)
            if taken > most:
                raise _too_large(most)
            file.write(part)
        if taken == 0 or (told_size.isdigit() and taken != int(told_size)):
            raise InputError("The file did not arrive whole.", "Nothing of it is kept.", "Drop it again.")
    _open(request, target.relative_to(settings.project.folder).as_posix(), "")
    return JSONResponse({"go": "/open"})


@screen.post("/open/table")
async def database(request: Request) -> Response:
    """The table of a database is copied into the project and opened; what opens the database is kept nowhere."""
    given = await form(request)
    address, table = given.one("address").strip(), given.one("table").strip()
    project = project_of(request)
    place, target = copy_of(project, address, table)
    await run_in_threadpool(_copied, request, {"place": place, "table": table, "target": target})
    name = Path(target).relative_to(project.folder).as_posix()
    _open(request, name, given.one("state"), address=address, table=table)
    return go("/open")


def _copied(request: Request, asked: dict[str, str]) -> None:
    """A process of its own copies the rows: the server holds none."""
    runs = project_of(request).runs
    known = {"kind": "copy", "language": language(), "memory": settings_of(request).memory}
    name = jobs.start(runs, {**known, **asked})
    awaited(request, name)


@screen.post("/open/reading")
async def reread(request: Request) -> Response:
    """The same file is read as a person says."""
    given = await form(request)
    walk = Walk.of(project_of(request))
    if walk.answers.source is None:
        raise _nothing_open()
    encoding, separator = given.one("encoding").strip(), given.one("separator")
    if encoding:
        try:
            codecs.lookup(encoding)
        except LookupError:
            raise ParameterError(
                say("There is no encoding '{name}'.", name=encoding[:40]),
                "The table cannot be read in it.",
                "Choose one of the list.",
            ) from None
    decimal = given.one("decimal")
    missing = (
        [line.strip("\r") for line in given.one("missing").split("\n")] if "missing" in given.fields else None
    )
    said = _said(walk)
    assert said is not None
    source = replace(
        said,
        encoding=encoding or None,
        separator=separator or None,
        decimal=decimal if decimal in (".", ",") else None,
        missing=None if missing is None else tuple(dict.fromkeys(["", *missing])),
        missing_in=_codes_of_columns(walk, said, given),
        sheet=given.one("sheet").strip() or None,
    )
    before = walk.answers.source
    if said != before and any(
        getattr(source, one) != getattr(before, one) for one in ("encoding", "separator", "sheet")
    ):
        # Read so, the table may have the columns of the recipe, and then its codes are those of the recipe.
        source = replace(source, missing=before.missing, missing_in=before.missing_in, columns=before.columns)
    _read(request, source, given.one("state"))
    return go("/open")


def _said(walk: Walk) -> Source | None:
    """How the table is read, as far as it holds for the columns that are shown."""
    source = walk.answers.source
    if source is None or walk.profile is None:
        return source
    return source.of_table(list(walk.profile.schema().columns))


def _codes_of_columns(walk: Walk, said: Source, given: Form) -> dict[str, tuple[str, ...]]:
    """The codes of single columns: those said before, those that were accepted or written now, without those taken back."""
    codes = {name: list(own) for name, own in said.missing_in.items()}
    header = [] if walk.profile is None else list(walk.profile.schema().columns)
    found = [] if walk.profile is None else walk.profile.document["missing_codes"]
    for one in found:
        if one["code"] in given.all("accept"):
            for name in one["columns"]:
                codes.setdefault(name, []).append(one["code"])
    column, code = given.one("code_column"), given.one("code").strip()
    if code and column in header:
        codes.setdefault(column, []).append(code)
    for taken in given.all("drop"):
        place, _, old = taken.partition(":")  # by its place: a form may not bring every name back as it was
        known = list(said.missing_in)
        if place.isdigit() and int(place) < len(known):
            codes[known[int(place)]] = [one for one in codes[known[int(place)]] if one != old]
    return {name: tuple(dict.fromkeys(own)) for name, own in codes.items() if own}


@screen.post("/open/right")
async def right(request: Request) -> Response:
    """Somebody says that the rows were read right, and maybe who one person is; the recipe begins with what was found."""
    given = await form(request)
    project = project_of(request)
    walk = Walk.of(project)
    found, source = walk.profile, walk.answers.source
    if found is None or source is None:
        raise _nothing_open()
    tongue, column = language(), given.one("column")

    def edit(answers: Answers, recipe: Recipe | None) -> tuple[Answers, Recipe | None]:
        own = _begun_with(answers, recipe, source)
        codes_too = bool(source.of_table(found.schema().columns).columns)
        begun = begin_recipe(project, found.schema(), own, answers.opened, tongue, codes_too)
        same = own is not None and set(own.schema.columns) == set(begun.schema.columns)
        kept = answers.opened and same
        read = replace(
            answers, reading=settled(source.digest), opened=True, recipe_of=source.digest, kept=kept
        )
        return with_person(read, begun, column, source.digest) if column else (read, begun)

    project.change(edit, given.one("state"))
    return go("/roles" if column else "/people")


def proposed_person(found: Profile) -> dict[str, Any] | None:
    """The column that most looks like one that names people, with its rows, if one does."""
    return next((one for one in found.document["candidates"] if one["proposed"]), None)


def _begun_with(answers: Answers, recipe: Recipe | None, source: Source) -> Recipe | None:
    """The recipe that a table begins with: one that lay in the folder, or what was settled about the last delivery.

    Of a file that is read otherwise nothing is kept.
    """
    return recipe if not answers.opened or answers.recipe_of not in ("", source.digest) else None


def _with_codes(source: Source, recipe: Recipe | None) -> Source:
    """The table is read with what means no value in the recipe that it begins with."""
    if recipe is None:
        return source
    schema = recipe.schema
    texts = {name: [one for one in schema.missing_texts(name) if one] for name in schema.columns}
    # A column whose own list lacks a text of the table holds it as a value: then each column has it by itself.
    everywhere = [one for one in schema.missing_values if all(one in own for own in texts.values())]
    own = {name: tuple(one for one in codes if one not in everywhere) for name, codes in texts.items()}
    return replace(
        source,
        missing=("", *everywhere),
        missing_in={name: codes for name, codes in own.items() if codes},
        columns=tuple(schema.columns),
    )


def begin_recipe(
    project: Project,
    proposed: Schema,
    recipe: Recipe | None,
    opened: bool,
    tongue: Language,
    codes_too: bool = False,
) -> Recipe:
    """The recipe that lay in the folder, if it is about these columns; else one with its schema, or with the proposal.

    *codes_too* says that the table was read with the codes of that recipe, so that those missing now were taken back.
    """
    columns = set(proposed.columns)
    read: dict[str, Any] = {
        "encoding": proposed.encoding,
        "separator": proposed.separator,
        "decimal": proposed.decimal,
        "missing_values": proposed.missing_values,
    }
    if recipe is not None and set(recipe.schema.columns) == columns:
        if codes_too:
            own = _with_proposed_codes(recipe.schema, proposed)
            return replace(recipe, schema=replace(own, **read | {"missing_values": own.missing_values}))
        return replace(recipe, schema=_read_so(recipe.schema, proposed, read))
    schema = proposed
    file = project.folder / "schema.toml"
    if not opened and file.exists():
        try:
            own = read_schema(file)
        except VeladoError:
            own = Schema({})
        if set(own.columns) == columns:
            schema = _read_so(own, proposed, read)
    document = {
        "version": 1,
        "schema": schema.to_dict(),
        "method": {"name": "progressive"},
        "k": 5,
        "language": tongue,
    }
    made = Recipe.from_dict(document)
    return replace(made, schema=schema)


def _read_so(own: Schema, proposed: Schema, read: dict[str, Any]) -> Schema:
    """A schema that lay in the folder, its table read as was shown; what it says of single columns stays where nobody said else."""
    columns = []
    for name, column in own.columns.items():
        codes = proposed.columns[name].missing_values
        columns.append(column if codes is None else replace(column, missing_values=codes))
    return replace(own.with_columns(columns), **read)


def _with_proposed_codes(own: Schema, proposed: Schema) -> Schema:
    """A schema with what means no value in the one proposed; where that is the same it stays as it was written."""
    wanted = {name: {"", *proposed.missing_texts(name)} for name in own.columns}
    same = all({"", *own.missing_texts(name)} == texts for name, texts in wanted.items())
    same = same or {"", *own.missing_values} == {"", *proposed.missing_values}
    table = own.missing_values if same else proposed.missing_values
    read = replace(own, missing_values=table)
    columns = [
        column
        if {"", *read.missing_texts(name)} == wanted[name]
        else replace(column, missing_values=proposed.columns[name].missing_values)
        for name, column in own.columns.items()
    ]
    return read.with_columns(columns)


def _open(request: Request, file: str, shown: str, address: str = "", table: str = "") -> None:
    project = project_of(request)
    path = project.inside(file)
    if not path.is_file():
        raise InputError(
            "There is no such file in the project.", "Nothing was opened.", "Choose one of the list."
        )
    name = path.relative_to(project.folder.resolve()).as_posix()
    source = Source(file=name, digest=source_digest(path), address=address, table=table)
    _read(request, _with_codes(source, _begun_with(project.answers(), project.recipe(), source)), shown)


def _read(request: Request, source: Source, shown: str) -> None:
    """The profile of *source* is made by a job, if it is not there yet."""
    project = project_of(request)
    key = digest_of([source.digest, source.reading(), Path(source.file).suffix])
    place = project.desk / "profiles" / key
    walk = Walk.of(project)
    fresh = replace(walk, answers=replace(walk.answers, source=source))
    name = ""
    if profile.load(place) is None:
        name = start(request, "profile", fresh, profile=str(place), reading=source.reading())

    def edit(answers: Answers, recipe: Recipe | None) -> tuple[Answers, Recipe | None]:
        return replace(with_source(answers, source), profile=key, profile_job=name), recipe

    try:
        project.change(edit, shown)
    except VeladoError:
        if name:
            jobs.cancel(project.runs, name)
        raise


def _too_large(most: int) -> InputError:
    return InputError(
        say("The file is larger than {most}.", most=size(most)),
        "It is not taken over the page; nothing of it is kept.",
        "Copy it into the project's folder and choose it there.",
    )


def _no_room() -> InputError:
    return InputError(
        "There is not enough room on the disk for this file.",
        "Nothing of it is kept.",
        "Make room, or copy the file into the project's folder and choose it there.",
    )


def _nothing_open() -> InputError:
    return InputError("No table is open.", "Nothing was done.", "Open a table first.")
