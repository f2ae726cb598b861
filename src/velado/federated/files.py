"""A fit as files: fit.json, rounds.csv or rounds.parquet, model.npz, and report.md in the reader's language."""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

import numpy as np
import polars as pl

from velado.data.folders import csv_bytes, parquet_bytes
from velado.errors import OutputError
from velado.federated.records import FederatedFit
from velado.federated.report import report

ROUND_COLUMNS = {
    "round": pl.Int64,
    "accuracy": pl.Float64,
    "auc": pl.Float64,
    "loss": pl.Float64,
    "test_rows": pl.Int64,
    "asked": pl.Int64,
    "replied": pl.Int64,
    "applied": pl.Boolean,
    "gap": pl.String,
    "missing": pl.String,
    "bytes_up": pl.Int64,
    "bytes_down": pl.Int64,
    "seconds": pl.Float64,
}


def rounds_frame(fit: FederatedFit) -> pl.DataFrame:
    """One row per round; clients that did not answer are named in one text."""
    rows = [{**one.to_dict(), "missing": "; ".join(one.missing)} for one in fit.rounds]
    return pl.DataFrame([[row[name] for name in ROUND_COLUMNS] for row in rows], ROUND_COLUMNS, orient="row")


def fit_files(fit: FederatedFit, language: str = "en", form: str = "csv") -> dict[str, bytes]:
    """The files by name."""
    frame = rounds_frame(fit)
    files = {
        "fit.json": json.dumps(fit.to_dict(), ensure_ascii=False, indent=1).encode(),
        f"rounds.{form}": csv_bytes(frame) if form == "csv" else parquet_bytes(frame),
        "report.md": report(fit, language).encode(),
    }
    if fit.learned is not None:
        held = BytesIO()
        np.savez(held, **fit.learned.arrays())
        files["model.npz"] = held.getvalue()
    return files


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """All *files* stand in *folder*, fit.json last: who sees it finds the others."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in sorted(files, key=lambda name: name == "fit.json"):
            scratch = folder / f".{name}"
            scratch.write_bytes(files[name])
            scratch.replace(folder / name)
    except OSError as error:
        raise OutputError(
            f"The folder '{folder.name}' cannot be written ({error.strerror or 'system error'}).",
            "The fit is not kept.",
            "Check the path, the permissions and the space left.",
        ) from None
