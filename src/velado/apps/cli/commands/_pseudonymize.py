"""`velado pseudonymize`: identifiers become pseudonyms that only the holder of the key can make again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.app import command, option
from velado.errors import OutputError, ParameterError
from velado.text import say

if TYPE_CHECKING:
    from velado.data.keys import Key

VARIABLE = "VELADO_KEY"

KeyFile = Annotated[
    Path | None,
    option(
        "--key-file FILE",
        help="File that holds the key, at least 32 bytes; default: the environment variable VELADO_KEY.",
    ),
]
Namespace = Annotated[
    str, option("--namespace TEXT", help="The project: pseudonyms agree within it, never across projects.")
]


@command("pseudonymize")
def pseudonymize(
    file: flags.MaybeFile = None,
    *,
    schema: flags.MaybeSchema = None,
    columns: Annotated[str, option("--columns -c LIST", help="Identifier columns, comma-separated.")] = "",
    key_file: KeyFile = None,
    new_key: Annotated[
        bool, option("--new-key", help="Make the key file first; without FILE, only that.")
    ] = False,
    output: Annotated[
        Path | None,
        option("--output -o FILE", help="The table with pseudonyms (CSV, or Parquet by its ending)."),
    ] = None,
    mapping: Annotated[
        Path | None,
        option(
            "--mapping FILE", help="Also write which identifier has which pseudonym; readable by you alone."
        ),
    ] = None,
    normalize: Annotated[
        str,
        option(
            "--normalize WAY",
            help="Spellings that are one identifier: normal, trim, digits, cpf or exact; for all, or cpf=cpf,id=trim.",
        ),
    ] = "normal",
    namespace: Namespace = "default",
    undeclared: flags.Undeclared = "refuse",
    reading: flags.ReadingFlags,
    force: flags.Force = False,
) -> None:
    """Replace identifiers by pseudonyms.

    The same identifier gets the same pseudonym in every file of the project. The result is still personal data:
    whoever holds the key can undo it, and the other columns can tell who is who.
    """
    if new_key:
        made = _make_key(key_file)
        if file is None:
            show.result(
                {"key_file": str(key_file), "key_fingerprint": made},
                [
                    say(
                        "Key {fingerprint} written to {path}, readable by you alone. Keep it apart from the tables, "
                        "and back it up.",
                        fingerprint=made,
                        path=key_file,
                    )
                ],
            )
            return
    if file is None or output is None:
        raise ParameterError(
            "The table or the output file is not named.",
            "Nothing can be read or written.",
            "Write: velado pseudonymize FILE --columns cpf --key-file KEY -o OUT.csv",
        )
    _refuse_paths(file, output, mapping, key_file, force)
    key = read_key(key_file)
    names = flags.names_in(columns)
    from velado.data.io import read_schema
    from velado.data.staging import write_file
    from velado.data.table_bytes import csv_bytes, parquet_bytes
    from velado.release.pseudonyms import pseudonymize as replace_identifiers

    table = reading.table(file, None if schema is None else read_schema(schema), undeclared)
    done, pairs = replace_identifiers(table, names, key, namespace=namespace, normalize=_ways(normalize))
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

    def view() -> Iterator[str | show.Note]:
        yield say(
            "{path}: {rows:,} rows; {identifiers:,} identifiers in {columns} replaced with the key {fingerprint}.",
            path=output,
            rows=done.rows,
            identifiers=pairs.height,
            columns=", ".join(names),
            fingerprint=key.fingerprint,
        )
        yield show.warning(
            say(
                "Pseudonyms are not anonymity: the other columns can still tell who is who. To publish, use velado "
                "anonymize."
            )
        )
        if mapping is not None:
            yield show.warning(
                say(
                    "{path} names every person behind a pseudonym: store it apart, and never send it along.",
                    path=mapping,
                )
            )

    show.result(
        {
            "output": str(output),
            "mapping": None if mapping is None else str(mapping),
            "rows": done.rows,
            "columns": {name: int((pairs["column"] == name).sum()) for name in names},
            "namespace": namespace,
            "key_fingerprint": key.fingerprint,
        },
        view(),
    )


def read_key(path: Path | None) -> Key:
    """The key of a file, else of the environment; it is never shown, not even in an error."""
    from velado.data.keys import Key
    from velado.data.keys import read_key as read_file

    if path is not None:
        return read_file(path)
    content = os.environ.get(VARIABLE, "")
    if not content:
        raise ParameterError(
            "No key was given.",
            "Pseudonyms without a key could be undone by trying all identifiers.",
            "Name a file with --key-file, or set VELADO_KEY; --new-key makes one.",
        )
    return Key.of(os.fsencode(content))


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


def _ways(text: str) -> Any:
    """The way for all columns, or one for each."""
    from velado.release.pseudonyms import Normalize
    from velado.settings import checked_flag

    if "=" not in text:
        return checked_flag("--normalize", text, Normalize)
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    if any(not equals for _, equals, _ in pairs):
        raise ParameterError(
            "--normalize mixes a way for all columns with ways for some.",
            "It must be clear which column is meant.",
            "Write one way for all, or COLUMN=WAY for each, comma-separated.",
        )
    return {name.strip(): checked_flag("--normalize", way.strip(), Normalize) for name, _, way in pairs}


def _refuse_paths(file: Path, output: Path, mapping: Path | None, key: Path | None, force: bool) -> None:
    """Nothing is read if the files would overwrite one another, or stand there already."""
    flags.refuse_same_file(file, output, mapping, key)
    if not force:
        flags.refuse_file(output)
        flags.refuse_file(mapping)
