"""A synthetic table in a folder: the table, its manifest and its page may leave; the owner's page, which reads true rows, stays."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from velado.data.io import read_schema, read_table
from velado.data.release_folder import PublishedFolder
from velado.data.schema import Schema
from velado.data.staging import PRIVATE, PUBLIC, refuse_folder, write_folder
from velado.data.table_bytes import csv_bytes
from velado.errors import ParameterError, VeladoError
from velado.query.budget import Budget, plain
from velado.query.synthetic.synthesize import Synthetic, Wanted, spend, synthesize
from velado.query.unit import Unit
from velado.report.manifest import VERSION, manifest_json, package_version
from velado.report.render import render_html, to_json
from velado.report.synthetic_page import synthetic_page
from velado.report.synthetic_report import synthetic_report
from velado.report.synthetic_tried import Trial
from velado.settings import Where, made
from velado.study.synthetic_trial import try_synthetic
from velado.text import listed, say

LIBRARIES = ("numpy", "polars", "opendp", "duckdb")
TABLE = "table.csv"


@dataclass(frozen=True, kw_only=True, repr=False)
class PublishedSynthetic(PublishedFolder):
    """A synthetic table was written to *folder*; *trial* is what true rows say of it, for the owner alone."""

    synthetic: Synthetic
    manifest: Mapping[str, object]
    trial: Trial | None


def publish_synthetic(
    file: str | Path,
    schema: Schema | str | Path,
    folder: str | Path,
    *,
    report: bool = True,
    target: str | None = None,
    force: bool = False,
    **asked: Any,
) -> PublishedSynthetic:
    """The synthetic table of a file stands in *folder*/release with its manifest and page; *folder*/private has the owner's page.

    *asked* goes to `synthesize`: epsilon, rho, delta, unit, ledger, budget, method and so on. The folder is refused before anything is
    paid. Whoever asks again for the same table gets it from the ledger for nothing.
    """
    place = Path(folder)
    declared = schema if isinstance(schema, Schema) else read_schema(schema)
    if target is not None and target not in declared.columns:
        raise ParameterError(
            say("{names} is not in the schema.", names=listed([target])),
            "The cells of a synthetic table are declared there.",
            "Name columns of the schema.",
        )
    refuse_folder(place, force, [Path(file)])
    found = synthesize(file, declared, **asked)
    data = csv_bytes(found.frame.fill_null(""), declared.separator or ",")
    digest = hashlib.sha256(data).hexdigest()
    document = synthetic_manifest(found, digest)
    parts = {
        f"{PUBLIC}/{TABLE}": data,
        f"{PUBLIC}/manifest.json": manifest_json(document),
        f"{PUBLIC}/about.html": render_html(synthetic_page(found, digest)).encode(),
    }
    trial = _trial(file, declared, target, asked) if report else None
    if trial is not None:
        parts[f"{PRIVATE}/report.html"] = render_html(synthetic_report(found, digest, trial)).encode()
        parts[f"{PRIVATE}/measured.json"] = to_json(plain(trial)).encode()
    written = write_folder(place, parts, force, [Path(file)])
    return PublishedSynthetic(folder=written, synthetic=found, manifest=document, trial=trial)


def synthetic_manifest(found: Synthetic, sha256: str) -> dict[str, object]:
    """What an auditor needs to know of a synthetic table: nothing in it depends on the rows but through the noise.

    >>> from velado.testing.examples import small_synthetic
    >>> document = synthetic_manifest(small_synthetic(), "f0")
    >>> document["promise"]["type"], document["promise"]["k_anonymity"], document["output"]["file"]
    ('guaranteed', 'not promised', 'table.csv')
    """
    told = found.facts()
    promise = {name: value for name, value in told["promise"].items() if name not in ("budget", "covers")}
    return {
        "manifest_version": VERSION,
        "kind": "synthetic",
        "velado": package_version("velado"),
        "libraries": {name: package_version(name) for name in LIBRARIES},
        "promise": promise,
        "cost": {
            "measure": found.cost.measure,
            "spent": str(found.cost.asked),
            "about": float(found.cost.asked),
        },
        "how": {name: value for name, value in told["how"].items() if name != "stored"},
        "output": {"file": TABLE, "sha256": sha256, **told["result"]},
    }


def _trial(file: str | Path, schema: Schema, target: str | None, asked: Mapping[str, Any]) -> Trial:
    unit: Unit = asked.get("unit") or Unit.declared(schema)
    names = ("method", "bins", "columns", "group_size")
    wanted = made(Wanted, {name: asked[name] for name in names if name in asked}, Where("python"))
    budget: Budget = spend(asked.get("epsilon"), asked.get("rho"), asked.get("delta"))
    try:
        return try_synthetic(read_table(file, schema, "drop"), budget, unit, wanted, target)
    except VeladoError as error:
        # The table is paid for and leaves, whether or not true rows can be held against it.
        return Trial(tables=(), target=None, rows=0, held_out=0, no_models=error.what)
