"""What the runs across clients come to: their fits as the page draws them, and one row per setting over seeds."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

import polars as pl

from velado.measure.models.quality import Interval
from velado.study.evaluate.federated_work import gaps_of
from velado.study.evaluate.grid import ORIGINAL

SETTING = ("model", "split", "method", "k")
NUMBERS = ("accuracy", "auc", "log_loss")


def fits_of(results: pl.DataFrame) -> list[dict[str, Any]]:
    """Every run as `FederatedFit.to_dict` gives it, the method named as in the study; *gap* says why one was given up."""
    cells = results.filter((pl.col("kind") == "federated") & pl.col("fit").is_not_null())
    return [
        {
            **json.loads(row["fit"]),
            "method": row["method"],
            "k": row["k"],
            "seed": row["seed"],
            "gap": row["reason"] if row["status"] == "gap" else None,
        }
        for row in cells.iter_rows(named=True)
    ]


def summary_of(
    results: pl.DataFrame, interval_of: Callable[[str, pl.Series], Interval | None]
) -> list[dict[str, Any]]:
    """One row per model, split, method and k: quality after the last round with its interval over seeds.

    `drop_accuracy` is what was lost, seed by seed, against clients that share their rows untouched. *rounds* and
    *applied* count over all seeds, *sat_out* the clients without a release or with too few rows, *missed* the answers that
    were asked for and did not come. NCP and linkage are those of the clients' own releases: least, median, most.
    """
    cells = results.filter((pl.col("kind") == "federated") & (pl.col("status") == "done"))
    base = cells.filter(pl.col("method") == ORIGINAL).select(
        "model", "split", "seed", pl.col("accuracy").alias("untouched")
    )
    cells = cells.join(base, on=["model", "split", "seed"], how="left").with_columns(
        drop_accuracy=pl.col("untouched") - pl.col("accuracy")
    )
    rows = []
    for values, part in cells.group_by(SETTING, maintain_order=True):
        row: dict[str, Any] = dict(zip(SETTING, values, strict=True)) | {"seeds": part.height}
        for name in (*NUMBERS, "drop_accuracy"):
            found = interval_of(name, part.get_column(name))
            ends = (None, None, None) if found is None else (found.mean, found.low, found.high)
            row |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
        row["majority"] = part.get_column("majority").mean()
        fits = [json.loads(text) for text in part.get_column("fit").to_list()]
        rounds = [one for fit in fits for one in fit["rounds"]]
        clients = [one for fit in fits for one in fit["clients"]]
        rows.append(
            row
            | {
                "rounds": len(rounds),
                "applied": sum(bool(one["applied"]) for one in rounds),
                "missed": sum(one["asked"] - one["replied"] for one in rounds),
                "clients": len(clients),
                "sat_out": sum(1 for one in clients if one.get("gap")),
                **_ends("ncp", clients),
                **_ends("linkage", clients),
            }
        )
    return rows


def gaps_by_setting(fits: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What is missing inside runs that were finished, setting by setting: each sentence once, with how often it holds."""
    out: dict[tuple[Any, ...], dict[str, int]] = {}
    for fit in fits:
        split = fit["split"] if fit["split"] != "dirichlet" else f"dirichlet({fit['alpha']:g})"
        counts = out.setdefault((fit["model"], split, fit["method"], fit["k"]), {})
        for text in gaps_of(fit):
            counts[text] = counts.get(text, 0) + 1
    return [
        dict(zip(SETTING, key, strict=True))
        | {"gaps": [text if times == 1 else f"{text} (x {times})" for text, times in counts.items()]}
        for key, counts in out.items()
        if counts
    ]


def _ends(name: str, clients: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    known = [one[name] for one in clients if one[name] is not None]
    found = (min(known), median(known), max(known)) if known else (None, None, None)
    return dict(zip((f"{name}_least", f"{name}_median", f"{name}_most"), found, strict=True))
