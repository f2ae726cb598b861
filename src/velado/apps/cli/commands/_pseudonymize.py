"""`velado pseudonymize`: identifiers become pseudonyms that only the holder of the key can make again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.words import number, say
from velado.errors import OutputError, ParameterError

if TYPE_CHECKING:
    from velado.data.keys import Key

VARIABLE = "VELADO_KEY"

KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key-file",
        metavar="FILE",
        help=f"File that holds the key, at least 32 bytes; default: the environment variable {VARIABLE}.",
        show_default=False,
    ),
]
Namespace = Annotated[
    str,
    typer.Option(
        "--namespace", metavar="TEXT", help="The project: pseudonyms agree within it, never across projects."
    ),
]


def pseudonymize(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", show_default=False)] = None,
    schema: flags.SchemaFile = None,
    columns: Annotated[
        str, typer.Option("--columns", "-c", metavar="LIST", help="Identifier columns, comma-separated.")
    ] = "",
    key_file: KeyFile = None,
    new_key: Annotated[
        bool, typer.Option("--new-key", help="Make the key file first; without FILE, only that.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The table with pseudonyms (CSV, or Parquet by its ending).",
            show_default=False,
        ),
    ] = None,
    mapping: Annotated[
        Path | None,
        typer.Option(
            "--mapping",
            metavar="FILE",
            help="Also write which identifier has which pseudonym; readable by you alone.",
            show_default=False,
        ),
    ] = None,
    normalize: Annotated[
        str,
        typer.Option(
            "--normalize",
            metavar="WAY",
            help="Spellings that are one identifier: normal, trim, digits, cpf or exact; for all, or cpf=cpf,id=trim.",
        ),
    ] = "normal",
    namespace: Namespace = "default",
    undeclared: flags.Undeclared = "refuse",
    encoding: flags.Encoding = None,
    force: flags.Force = False,
    as_json: flags.AsJson = False,
    lang: flags.Lang = None,
    debug: flags.Debug = False,
    quiet: flags.Quiet = False,
) -> None:
    """Replace identifiers by pseudonyms.

    The same identifier gets the same pseudonym in every file of the project. The result is still personal data:
    whoever holds the key can undo it, and the other columns can tell who is who.
    """
    tongue = flags.language(lang)
    flags.one_of(undeclared, flags.UNDECLARED, "--undeclared")
    if new_key:
        fingerprint = _make_key(key_file)
        if file is None:
            _tell_key(key_file, fingerprint, tongue, as_json, quiet)
            return
    if file is None or output is None:
        raise ParameterError(
            "The table or the output file is not named.",
            "Nothing can be read or written.",
            "Write: velado pseudonymize FILE --columns cpf --key-file KEY -o OUT.csv",
        )
    _refuse_paths(file, output, mapping, key_file, force)
    key = read_key(key_file)
    names = [name.strip() for name in columns.split(",") if name.strip()]
    from velado.data.io import read_schema, read_table
    from velado.data.staging import csv_bytes, parquet_bytes, write_file
    from velado.release.pseudonyms import pseudonymize as replace_identifiers

    meaning = None if schema is None else read_schema(schema)
    table = read_table(file, meaning, undeclared, encoding)  # type: ignore[arg-type]  # checked by one_of()
    done, pairs = replace_identifiers(
        table,
        names,
        key,
        namespace=namespace,
        normalize=_ways(normalize, names),  # type: ignore[arg-type]  # checked by pseudonymize()
    )
    binary = output.suffix.lower() in (".parquet", ".pq")
    data = parquet_bytes(done.frame) if binary else csv_bytes(done.frame, table.separator)
    if mapping is not None:
        write_file(mapping, csv_bytes(pairs), force, private=True)
    try:
        write_file(output, data, force)
    except OutputError:
        if mapping is not None:
            mapping.unlink(missing_ok=True)
        raise
    if as_json:
        show.as_json(
            {
                "output": str(output),
                "mapping": None if mapping is None else str(mapping),
                "rows": done.rows,
                "columns": {name: int((pairs["column"] == name).sum()) for name in names},
                "namespace": namespace,
                "key_fingerprint": key.fingerprint,
            }
        )
    elif not quiet:
        show.line(
            say(
                tongue,
                "pseudonyms_written",
                path=output,
                rows=number(done.rows, tongue),
                identifiers=number(pairs.height, tongue),
                columns=", ".join(names),
                fingerprint=key.fingerprint,
            )
        )
        show.note(f"{say(tongue, 'warning')}: {say(tongue, 'pseudonyms_are_personal')}")
        if mapping is not None:
            show.note(f"{say(tongue, 'warning')}: {say(tongue, 'mapping_written', path=mapping)}")


def read_key(path: Path | None) -> Key:
    """The key of a file, else of the environment; it is never shown, not even in an error."""
    from velado.data.keys import Key
    from velado.data.keys import read_key as read_file

    if path is None:
        content = os.environ.get(VARIABLE, "")
        if not content:
            raise ParameterError(
                "No key was given.",
                "Pseudonyms without a key could be undone by trying all identifiers.",
                f"Name a file with --key-file, or set {VARIABLE}; --new-key makes one.",
            )
        return Key.of(os.fsencode(content))
    return read_file(path)


def _make_key(path: Path | None) -> str:
    from velado.data.keys import Key, new_key
    from velado.data.staging import write_file
    from velado.randomness import secure

    if path is None:
        raise ParameterError(
            "--new-key needs --key-file.", "A new key must be kept somewhere.", "Add --key-file FILE."
        )
    # Never over an old key, not even with --force: what was made with it could not be matched any more.
    content = new_key(secure())
    write_file(path, content, private=True)
    return Key.of(content).fingerprint


def _tell_key(path: Path | None, fingerprint: str, tongue: str, as_json: bool, quiet: bool) -> None:
    if as_json:
        show.as_json({"key_file": str(path), "key_fingerprint": fingerprint})
    elif not quiet:
        show.line(say(tongue, "key_written", path=path, fingerprint=fingerprint))


def _ways(text: str, names: list[str]) -> str | dict[str, str]:
    if "=" not in text:
        return text
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    if any(not equals for _, equals, _ in pairs):
        raise ParameterError(
            "--normalize mixes a way for all columns with ways for some.",
            "It must be clear which column is meant.",
            "Write one way for all, or COLUMN=WAY for each, comma-separated.",
        )
    return {name.strip(): way.strip() for name, _, way in pairs}


def _refuse_paths(file: Path, output: Path, mapping: Path | None, key: Path | None, force: bool) -> None:
    """Nothing is read if the files would overwrite one another, or stand there already."""
    used = [path.resolve() for path in (file, output, mapping, key) if path is not None]
    if len(set(used)) != len(used):
        raise ParameterError(
            "Two of the table, the output, the mapping and the key are the same file.",
            "One would overwrite the other.",
            "Give each its own name.",
        )
    for path in (output, mapping):
        if path is not None and path.exists() and not force:
            raise OutputError(
                f"'{path.name}' exists already.",
                "It would be overwritten.",
                "Choose another name, or pass --force.",
            )
