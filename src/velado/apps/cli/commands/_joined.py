"""`velado joined`: publish several tables about the same people so that joining them breaks no promise."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from velado.apps.cli import history_flags, show
from velado.apps.cli import options as flags
from velado.apps.cli.app import command, option
from velado.apps.cli.commands._pseudonymize import KeyFile, Namespace, read_key
from velado.apps.cli.options import META, CommandWithMethodFlags
from velado.errors import ParameterError
from velado.release import DEFAULT_METHOD
from velado.text import join, listed, percent, say

if TYPE_CHECKING:
    from velado.data.keys import Key
    from velado.data.table import Table
    from velado.release.joined import JoinedRelease

# The last colon that does not belong to a drive letter separates the table from its schema.
_PAIR = re.compile(r"(?P<table>.+?):(?P<schema>(?:[A-Za-z]:[\\/])?[^:]+)")


@command("joined", cls=CommandWithMethodFlags)
def joined(
    ctx: typer.Context,
    *,
    table: Annotated[
        list[str], option("--table -t FILE:SCHEMA", help="A table and its schema file; once for each table.")
    ],
    recipe: Annotated[
        Path | None,
        option(
            "--recipe FILE",
            help="Repeat the release of this recipe.toml: its schemas, method, promises and seed, on each --table FILE.",
        ),
    ] = None,
    method: flags.MethodName = DEFAULT_METHOD,
    k: Annotated[
        int | None,
        option(
            "-k --k",
            click_type=flags.CROWD,
            help="People who share all they show in all tables together.",
            show_default="5",
        ),
    ] = None,
    l_diversity: Annotated[
        int | None,
        option(
            "--l-diversity",
            click_type=flags.DIVERSITY,
            help="Distinct values of every sensitive column in each joined group.",
        ),
    ] = None,
    suppression: flags.Suppression = 0.0,
    seed: flags.Seed = 0,
    pseudonym: Annotated[
        bool, option("--pseudonym", help="Keep a pseudonym to join the tables by; needs a key.")
    ] = False,
    key_file: KeyFile = None,
    namespace: Namespace = "default",
    folder: flags.FolderFlags,
    undeclared: flags.Undeclared = "refuse",
    reading: flags.ReadingFlags,
    formulas: flags.Formulas = "keep",
    history: history_flags.History = None,
) -> None:
    """Publish several tables about the same people.

    Each schema marks its person column with person = true. k counts people who show the same in all tables
    together, being in a table included. DIR/release may leave: one CSV per table, a manifest, a short page.
    DIR/private stays: recipe and key.
    """
    paths = table_paths(table, alone=recipe is not None)
    given = (*(one for pair in paths.values() for one in pair), recipe, folder.key, key_file, history)
    reads = [path for path in given if path is not None]
    folder.refuse(*reads)
    if key_file is not None and not pseudonym:
        raise ParameterError(
            "--key-file was given without --pseudonym.",
            "A key is only needed for a pseudonym to join by.",
            "Add --pseudonym, or leave the key out.",
        )
    names_key = read_key(key_file) if pseudonym else None
    with show.waiting() as progress:
        from velado.data.history_file import history_held
        from velado.data.io import read_schema
        from velado.data.keys import OWNER_FILE, owner_key
        from velado.data.staging import PRIVATE, PUBLIC, write_folder
        from velado.data.table_bytes import csv_bytes
        from velado.release.guarantees import LDiversity
        from velado.release.joined import anonymize_joined
        from velado.release.methods import method_named
        from velado.report.joined_page import joined_page
        from velado.report.manifest import input_digest, manifest_json
        from velado.report.render import render_html
        from velado.study.history import HistoryDraft
        from velado.study.recipe import Recipe, RecipeInput, joined_toml, read_joined, without_folders

        if recipe is not None:
            recipes = read_joined(recipe)
            _refuse_others(list(paths), list(recipes))
        else:
            chosen = method_named(method)(**ctx.meta.get(META, {}))
            recipes = {
                name: Recipe(
                    read_schema(schema),
                    chosen,
                    () if l_diversity is None else (LDiversity(l_diversity),),
                    k=k,
                    suppression=suppression,
                    seed=seed,
                    per="person",
                    formulas=formulas,
                    undeclared=undeclared,
                )
                for name, (_, schema) in paths.items()
                if schema is not None
            }
        tables = {
            name: reading.table(file, recipes[name].schema, recipes[name].undeclared)
            for name, (file, _) in paths.items()
        }
        shared = recipes[next(iter(paths))]  # but for schema and input they are alike
        own = owner_key(folder.key)
        with nullcontext() if history is None else history_held(history, own) as held:
            release = anonymize_joined(
                tables,
                shared.method,
                shared.guarantees,
                k=shared.k,
                suppression=shared.suppression,
                seed=shared.seed,
                key=names_key,
                namespace=namespace,
                progress=progress,
            )
            files = {
                f"{name}.csv": csv_bytes(frame, tables[name].separator, shared.formulas)
                for name, frame in release.frames.items()
            }
            entry = None
            if held is not None:
                contents = {name: files[f"{name}.csv"] for name in tables}
                separators = {name: one.separator for name, one in tables.items()}
                entry = HistoryDraft.of_joined(held, release, contents, separators, own)
            document = manifest_of(release, tables, files, own)
            digests = {name: _sha256(files[f"{name}.csv"]) for name in tables}
            files["manifest.json"] = manifest_json(document)
            files["about.html"] = render_html(joined_page(release, digests)).encode()
            parts = {f"{PUBLIC}/{name}": data for name, data in files.items()}
            parts[f"{PRIVATE}/{OWNER_FILE}"] = own.secret + b"\n"
            made = {
                name: replace(
                    recipes[name],
                    k=release.goal.k,
                    schema=without_folders(recipes[name].schema),
                    input=RecipeInput(name=one.source, digest=input_digest(one, own), key=own.fingerprint),
                )
                for name, one in tables.items()
            }
            parts[f"{PRIVATE}/recipe.toml"] = joined_toml(made).encode()
            if entry is not None:
                entry.begin()
            place = write_folder(folder.output, parts, folder.force, reads)
            if entry is not None:
                entry.confirm()
    told = () if entry is None else entry.told.sentences()
    show.result(
        {"folder": str(place), "files": sorted(files), **document}, _view(release, place / PUBLIC, told)
    )


def table_paths(pairs: list[str], *, alone: bool = False) -> dict[str, tuple[Path, Path | None]]:
    """The file and the schema of each table, by the name of the file without its ending; files *alone* with a recipe.

    >>> list(table_paths(["visits.csv:visits.toml"]))
    ['visits']
    """
    out: dict[str, tuple[Path, Path | None]] = {}
    for pair in pairs:
        found = _PAIR.fullmatch(pair)
        if alone:
            file, schema = Path(pair), None
        elif found is not None:
            file, schema = Path(found["table"]), Path(found["schema"])
        else:
            raise ParameterError(
                "--table is not of the form FILE:SCHEMA.",
                "Every table needs the schema that says what its columns mean.",
                "Write for example --table visits.csv:visits.schema.toml.",
            )
        name = file.stem
        if name in out:
            raise ParameterError(
                say("Two tables are named '{name}'.", name=name),
                "Each is published under the name of its file.",
                "Rename one of the files.",
            )
        out[name] = (file, schema)
    return out


def _refuse_others(given: list[str], known: list[str]) -> None:
    """Nothing, if the tables are those of the recipe."""
    if sorted(given) != sorted(known):
        raise ParameterError(
            say("The recipe is for the tables {names}, and others were given.", names=listed(known)),
            "Each table is read with the schema that the recipe has under its name.",
            "Give one --table FILE for each of them, the file named like the table.",
        )


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def manifest_of(
    release: JoinedRelease, tables: Mapping[str, Table], files: Mapping[str, bytes], key: Key
) -> dict[str, object]:
    """What an auditor needs to know of the release, without any cell value."""
    from velado.report.manifest import VERSION, coarse, input_digest, package_version, public_schema

    facts = release.facts()
    described = {}
    for name, table in tables.items():
        digest = _sha256(files[f"{name}.csv"])
        described[name] = {
            "input": {**table.to_dict(), "keyed_sha256": input_digest(table, key), "key": key.fingerprint},
            "schema": public_schema(table.schema, key),
            "output": coarse({"file": f"{name}.csv", "sha256": digest, **release.tables[name].facts()}),
        }
    people = coarse({part: value for part, value in facts["result"].items() if part != "tables"})
    return {
        "manifest_version": VERSION,
        "velado": package_version("velado"),
        "tables": described,
        "people": people,
        "promise": facts["promise"],
        "how": {name: value for name, value in facts["how"].items() if name != "notes"},
        "metrics": coarse(facts["cost"]),
    }


def _view(release: JoinedRelease, leaves: Path, told: tuple[str, ...]) -> Iterator[str | show.Note]:
    from velado.report.phrases import phrase
    from velado.report.terminal import verdict_line

    yield from (show.warning(text) for text in (*release.warnings, *told))
    for name, table in release.tables.items():
        yield say(
            "Table {name}: {rows:,} rows published, {suppressed:,} suppressed",
            name=name,
            rows=table.frame.height,
            suppressed=table.suppressed,
        )
    verdicts = [*release.verdicts, *(one for table in release.tables.values() for one in table.within[1:])]
    yield say(
        "Promise ({type}): {sentences}",
        type=phrase(release.promise),
        sentences=join(dict.fromkeys(verdict_line(found) for found in verdicts)),
    )
    yield say(
        "Joined: {people:,} people in {groups:,} groups; left out: {suppressed:,}; information loss (NCP): {loss}",
        people=release.people,
        groups=release.checked.partition.count,
        suppressed=release.suppressed_people,
        loss=percent(release.loss),
    )
    yield say("May leave: {path}", path=leaves)
