"""LocalRows rows on a client's own disk: arrays without code in them, readable by their owner alone."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from velado.errors import OutputError, SchemaError
from velado.learning.flower._client import TrainingClient
from velado.learning.flower._local_rows import LocalRows, prepare
from velado.learning.flower._logistic import FeatureScaling
from velado.learning.flower._run_debit import debit_run
from velado.learning.flower._terms import Agreed, FeatureLayout
from velado.learning.flower.federation import Federation
from velado.learning.flower.flower_records import ClientRecord
from velado.learning.noise_account import NoiseAccount
from velado.text import say


def write_client(folder: Path, number: int, agreed: Agreed, prepared: LocalRows) -> None:
    """Client *number* can be read from *folder* again, by this user only."""
    said = {
        "digest": agreed.digest,
        "federation": agreed.federation.to_dict(),
        "classes": agreed.classes,
        "columns": agreed.columns,
        "signers": agreed.signers,
        "layout": asdict(agreed.layout),
        "record": asdict(prepared.record),
    }
    arrays = {**prepared.arrays(), "shift": agreed.scaling.shift, "scale": agreed.scaling.scale}
    held = BytesIO()
    np.savez(held, **arrays)
    _write_private(folder / f"{number}.npz", held.getvalue())
    _write_private(folder / f"{number}.json", json.dumps(said).encode())


def read_client(folder: Path, number: int) -> TrainingClient:
    """The client that `write_client` put there."""
    said = json.loads((folder / f"{number}.json").read_text("utf-8"))
    with np.load(folder / f"{number}.npz", allow_pickle=False) as held:
        arrays = {name: held[name] for name in held.files}
    scaling = FeatureScaling(arrays.pop("shift"), arrays.pop("scale"))
    federation = Federation.from_dict(said["federation"])
    layout: dict[str, Any] = {
        key: tuple(part) if isinstance(part, list) else part for key, part in said["layout"].items()
    }
    agreed = Agreed(
        said["digest"],
        federation,
        said["classes"],
        scaling,
        said["columns"],
        tuple(said["signers"]),
        FeatureLayout(**layout),
    )
    return TrainingClient(agreed, LocalRows(**arrays, record=ClientRecord(**said["record"])))


def read_own(node: Mapping[str, object], number: int) -> TrainingClient:
    """The rows of this machine, prepared at the first message and kept in its `work` folder.

    *node* is the SuperNode's --node-config: `agreement` (folder), `table` (file), `client` (number), `work` (private
    folder); `identity` (folder of `velado party keygen`) and `passphrase_file`, where the agreement names parties; with noise also
    `ledger`, `seal` and `budget`, by default those of the table. All are this machine's own; the server names none of them.
    """
    from velado.learning.flower._parties import OwnParty, marks_of, refuse_unnamed
    from velado.learning.flower.agreement import read_agreement

    for key in ("agreement", "table", "work"):
        if not isinstance(node.get(key), str) or not node[key]:
            raise SchemaError(
                say("--node-config of this SuperNode has no '{key}'.", key=key),
                "The client app does not know where its rows are.",
                'Start it with --node-config \'client=1 agreement="..." table="..." work="..."\'.',
            )
    work = Path(str(node["work"]))
    agreement = read_agreement(Path(str(node["agreement"])))
    if not 1 <= number <= agreement.terms.federation.clients:
        raise SchemaError(
            "--node-config of this SuperNode has no 'client', or one beyond the federation's clients.",
            "Which of the clients it is cannot be known.",
            say("Write client=1 ... client={clients}.", clients=agreement.terms.federation.clients),
        )
    terms = agreement.terms
    refuse_unnamed(terms)
    table = Path(str(node["table"]))
    own = work / f"{agreement.terms.digest[:16]}-{_stamp(table)}"
    party = None
    if terms.parties:
        keys, words = _identity_in(node)
        party = OwnParty(keys, words, terms, number, {})
    marks = own / f"{number}.columns.json"
    if not (own / f"{number}.json").exists():
        rows = agreement.read(table)
        prepared = prepare(rows, terms, agreement.locally, number)
        private_folder(own)
        if party is not None:
            _write_private(marks, json.dumps(marks_of(rows, terms, party.identity)).encode())
        write_client(own, number, terms.agreed, prepared)
    if party is not None:
        party = replace(party, **json.loads(marks.read_bytes()))
    client, federation = read_client(own, number), agreement.terms.federation
    client = replace(
        client, heard=lambda digest: _write_private(own / "keys.txt", f"{digest}\n".encode()), party=party
    )
    if federation.noise is None:
        return client
    texts = {key: str(node[key]) for key in ("ledger", "seal", "budget") if node.get(key)}
    seal = Path(texts["seal"]) if "seal" in texts else None
    account = NoiseAccount(ledger=texts.get("ledger"), seal=seal, budget=texts.get("budget"))

    def debit() -> None:
        debit_run(table, federation, agreement.recipe.data.target, account)

    return replace(client, debit=debit)


def _identity_in(node: Mapping[str, object]) -> tuple[Path, Path]:
    """The folder of this party's identity and the file with its passphrase, as --node-config has them."""
    for key in ("identity", "passphrase_file"):
        if not isinstance(node.get(key), str) or not node[key]:
            raise SchemaError(
                say("--node-config of this SuperNode has no '{key}'.", key=key),
                "The agreement names the parties, and this one could not sign as itself.",
                'Add identity="..." passphrase_file="...", made with velado party keygen --new-passphrase-file.',
            )
    return Path(str(node["identity"])), Path(str(node["passphrase_file"]))


def _stamp(table: Path) -> str:
    """Another file, or the same one changed, is prepared anew."""
    import hashlib

    try:
        about = table.stat()
    except OSError:
        raise SchemaError(
            "The table that --node-config names is not there.",
            "There is nothing to train on.",
            "Check 'table'.",
        ) from None
    said = f"{table.resolve()}|{about.st_size}|{about.st_mtime_ns}"
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def private_folder(folder: Path) -> Path:
    """*folder* exists and only its owner may look into it."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.chmod(0o700)
    except OSError:
        raise OutputError(
            say("The folder '{folder}' for prepared rows cannot be made.", folder=folder.name),
            "The rows have to be kept between rounds.",
            "Give a folder that may be written to.",
        ) from None
    return folder


def _write_private(path: Path, data: bytes) -> None:
    # Written aside and renamed: a reader never finds half a file.
    scratch = path.with_suffix(f"{path.suffix}.{os.getpid()}")
    handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    scratch.replace(path)
