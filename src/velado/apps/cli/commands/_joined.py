"""`velado joined`: publish several tables about the same people so that joining them breaks no promise."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.app import command, option
from velado.apps.cli.commands._pseudonymize import KeyFile, Namespace, read_key
from velado.apps.cli.options import DEFAULT_METHOD, META, CommandWithMethodFlags
from velado.errors import ParameterError
from velado.text import join, percent, say

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
    method: flags.MethodName = DEFAULT_METHOD,
    k: Annotated[
        int | None,
        option("-k --k", help="People who share all they show in all tables together.", show_default="5"),
    ] = None,
    l_diversity: Annotated[
        int | None,
        option("--l-diversity", help="Distinct values of every sensitive column in each joined group."),
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
) -> None:
    """Publish several tables about the same people.

    Each schema marks its person column with person = true. k counts people who show the same in all tables
    together, being in a table included. DIR/release may leave: one CSV per table and a manifest.
    """
    paths = table_paths(table)
    reads = [
        path for path in (*(one for pair in paths.values() for one in pair), folder.key, key_file) if path
    ]
    folder.refuse(*reads)
    if key_file is not None and not pseudonym:
        raise ParameterError(
            "--key-file was given without --pseudonym.",
            "A key is only needed for a pseudonym to join by.",
            "Add --pseudonym, or leave the key out.",
        )
    names_key = read_key(key_file) if pseudonym else None
    with show.waiting() as progress:
        from velado.data.io import read_schema
        from velado.data.keys import OWNER_FILE, owner_key
        from velado.data.staging import PRIVATE, PUBLIC, csv_bytes, write_folder
        from velado.release.guarantees import LDiversity
        from velado.release.joined import anonymize_joined
        from velado.release.methods import method_named
        from velado.report.manifest import manifest_json

        chosen = method_named(method)
        tables = {
            name: reading.table(file, read_schema(schema), undeclared)
            for name, (file, schema) in paths.items()
        }
        asked = () if l_diversity is None else (LDiversity(l_diversity),)
        release = anonymize_joined(
            tables,
            chosen(**ctx.meta.get(META, {})),
            asked,
            k=k,
            suppression=suppression,
            seed=seed,
            key=names_key,
            namespace=namespace,
            progress=progress,
        )
        files = {
            f"{name}.csv": csv_bytes(frame, tables[name].separator, formulas)
            for name, frame in release.frames.items()
        }
        own = owner_key(folder.key)
        document = manifest_of(release, tables, files, own)
        files["manifest.json"] = manifest_json(document)
        parts = {f"{PUBLIC}/{name}": data for name, data in files.items()}
        parts[f"{PRIVATE}/{OWNER_FILE}"] = own.secret + b"\n"
        place = write_folder(folder.output, parts, folder.force, reads)
    show.result({"folder": str(place), "files": sorted(files), **document}, _view(release, place / PUBLIC))


def table_paths(pairs: list[str]) -> dict[str, tuple[Path, Path]]:
    """The file and the schema of each table, by the name of the file without its ending.

    >>> list(table_paths(["visits.csv:visits.toml"]))
    ['visits']
    """
    out: dict[str, tuple[Path, Path]] = {}
    for pair in pairs:
        found = _PAIR.fullmatch(pair)
        if found is None:
            raise ParameterError(
                "--table is not of the form FILE:SCHEMA.",
                "Every table needs the schema that says what its columns mean.",
                "Write for example --table visits.csv:visits.schema.toml.",
            )
        name = Path(found["table"]).stem
        if name in out:
            raise ParameterError(
                say("Two tables are named '{name}'.", name=name),
                "Each is published under the name of its file.",
                "Rename one of the files.",
            )
        out[name] = (Path(found["table"]), Path(found["schema"]))
    return out


def manifest_of(
    release: JoinedRelease, tables: Mapping[str, Table], files: Mapping[str, bytes], key: Key
) -> dict[str, Any]:
    """What an auditor needs to know of the release, without any cell value."""
    from velado.report.manifest import VERSION, coarse, input_digest, package_version, public_schema

    facts = release.to_dict()
    facts |= {part: coarse(facts[part]) for part in ("result", "cost")}
    described = {}
    for name, table in tables.items():
        described[name] = {
            "input": {**table.to_dict(), "keyed_sha256": input_digest(table, key), "key": key.fingerprint},
            "schema": public_schema(table.schema, key),
            "output": {
                "file": f"{name}.csv",
                "sha256": hashlib.sha256(files[f"{name}.csv"]).hexdigest(),
                **facts["result"]["tables"][name],
            },
        }
    people = {key: value for key, value in facts["result"].items() if key != "tables"}
    return {
        "manifest_version": VERSION,
        "velado": package_version("velado"),
        "tables": described,
        "people": people,
        "promise": facts["promise"],
        "how": {name: value for name, value in facts["how"].items() if name != "notes"},
        "metrics": facts["cost"],
    }


def _view(release: JoinedRelease, leaves: Path) -> Iterator[str | show.Note]:
    from velado.report.phrases import phrase
    from velado.report.terminal import verdict_line

    yield from (show.warning(text) for text in release.warnings)
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
