"""`velado joined`: publish several tables about the same people so that joining them breaks no promise."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.commands._anonymize import refuse_existing
from velado.apps.cli.commands._pseudonymize import KeyFile, Namespace, read_key
from velado.apps.cli.options import DEFAULT_METHOD, META
from velado.apps.cli.show import waiting
from velado.apps.cli.words import number, percent, say
from velado.errors import ParameterError
from velado.text import Language

if TYPE_CHECKING:
    from velado.data.keys import Key
    from velado.data.table import Table
    from velado.release.joined import JoinedRelease

# The last colon that does not belong to a drive letter separates the table from its schema.
_PAIR = re.compile(r"(?P<table>.+?):(?P<schema>(?:[A-Za-z]:[\\/])?[^:]+)")


def joined(
    ctx: typer.Context,
    table: Annotated[
        list[str],
        typer.Option(
            "--table",
            "-t",
            metavar="FILE:SCHEMA",
            help="A table and its schema file; once for each table.",
            show_default=False,
        ),
    ],
    method: Annotated[
        str, typer.Option("--method", "-m", metavar="NAME", help="See `velado methods`.")
    ] = DEFAULT_METHOD,
    k: Annotated[
        int | None,
        typer.Option(
            "-k", "--k", help="People who share all they show in all tables together.", show_default="5"
        ),
    ] = None,
    l_diversity: Annotated[
        int | None,
        typer.Option(
            "--l-diversity",
            help="Distinct values of every sensitive column in each joined group.",
            show_default=False,
        ),
    ] = None,
    suppression: Annotated[
        float, typer.Option("--suppression", help="Share of people who may be left out, from 0 to 1.")
    ] = 0.0,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of every random choice.")] = 0,
    pseudonym: Annotated[
        bool, typer.Option("--pseudonym", help="Keep a pseudonym to join the tables by; needs a key.")
    ] = False,
    key_file: KeyFile = None,
    namespace: Namespace = "default",
    output: flags.Output = Path("out"),
    key: flags.KeyFlag = None,
    undeclared: flags.Undeclared = "refuse",
    encoding: flags.Encoding = None,
    formulas: flags.Formulas = "keep",
    force: flags.Force = False,
    as_json: flags.AsJson = False,
    lang: flags.Lang = None,
    debug: flags.Debug = False,
    quiet: flags.Quiet = False,
) -> None:
    """Publish several tables about the same people.

    Each schema marks its person column with person = true. k counts people who show the same in all tables
    together, being in a table included. DIR/release may leave: one CSV per table and a manifest.
    """
    tongue = flags.language(lang)
    flags.one_of(undeclared, flags.UNDECLARED, "--undeclared")
    flags.one_of(formulas, flags.FORMULAS, "--formulas")
    paths = table_paths(table)
    reads = [*(path for pair in paths.values() for path in pair), key, key_file]
    refuse_existing(output, force, *reads)
    if key_file is not None and not pseudonym:
        raise ParameterError(
            "--key-file was given without --pseudonym.",
            "A key is only needed for a pseudonym to join by.",
            "Add --pseudonym, or leave the key out.",
        )
    names_key = read_key(key_file) if pseudonym else None
    with waiting(tongue, quiet or as_json) as progress:
        from velado.data.io import read_schema, read_table
        from velado.data.keys import OWNER_FILE, owner_key
        from velado.data.staging import PRIVATE, PUBLIC, csv_bytes, write_folder
        from velado.release.guarantees import LDiversity
        from velado.release.joined import anonymize_joined
        from velado.release.methods import method_named
        from velado.report.manifest import manifest_json

        chosen = method_named(method)
        tables = {
            name: read_table(file, read_schema(schema), undeclared, encoding)  # type: ignore[arg-type]
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
            f"{name}.csv": csv_bytes(frame, tables[name].separator, formulas)  # type: ignore[arg-type]
            for name, frame in release.frames.items()
        }
        own = owner_key(key)
        document = manifest_of(release, tables, files, own)
        files["manifest.json"] = manifest_json(document)
        parts = {f"{PUBLIC}/{name}": data for name, data in files.items()}
        parts[f"{PRIVATE}/{OWNER_FILE}"] = own.secret + b"\n"
        folder = write_folder(output, parts, force, [path for path in reads if path is not None])
    if as_json:
        show.as_json({"folder": str(folder), "files": sorted(files), **document})
    elif not quiet:
        _tell(release, folder, tongue)


def table_paths(pairs: list[str]) -> dict[str, tuple[Path, Path]]:
    """The file and the schema of each table, by the name of the file without its ending."""
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
                f"Two tables are named '{name}'.",
                "Each is published under the name of its file.",
                "Rename one of the files.",
            )
        out[name] = (Path(found["table"]), Path(found["schema"]))
    return out


def manifest_of(
    release: JoinedRelease, tables: dict[str, Table], files: dict[str, bytes], key: Key
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


def _tell(release: JoinedRelease, folder: Path, tongue: Language) -> None:
    from velado.data.staging import PUBLIC
    from velado.report.terminal import verdict_line
    from velado.text import told

    for text in release.warnings:
        show.note(f"{say(tongue, 'warning')}: {text}")
    for name, table in release.tables.items():
        show.line(
            say(
                tongue,
                "joined_table",
                name=name,
                rows=number(table.frame.height, tongue),
                suppressed=number(table.suppressed, tongue),
            )
        )
    verdicts = [*release.verdicts, *(v for t in release.tables.values() for v in t.within[1:])]
    show.line(
        say(
            tongue,
            "line_promise",
            type=say(tongue, release.promise),
            sentences=" ".join(dict.fromkeys(told(verdict_line(found), tongue) for found in verdicts)),
        )
    )
    show.line(
        say(
            tongue,
            "joined_people",
            people=number(release.people, tongue),
            groups=number(release.checked.partition.count, tongue),
            suppressed=number(release.suppressed_people, tongue),
            loss=percent(release.loss, tongue),
        )
    )
    show.line(say(tongue, "line_release", path=folder / PUBLIC))
