"""The manifest of a release: what was made from what, with which promise, and how; never a cell value.

It leaves with the table, so it holds nothing of the original but its size and the names of its columns: the input and
the taxonomies are named by fingerprints under the owner's key, which nobody else can test guesses with, and the loss
is the one that the published table shows. The same run gives the same manifest: there are no times in it.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from statistics import fmean
from typing import TYPE_CHECKING, cast

from velado.data.keys import Key, content_of
from velado.data.schema import Schema
from velado.data.table import Table
from velado.report.facts import OutputFacts, ReleaseFacts, SourceFacts
from velado.report.render import to_json
from velado.text import speaking

if TYPE_CHECKING:
    from velado.report.engine_facts import EngineFacts

VERSION = 2
DECIMALS = 3
LIBRARIES = ("numpy", "numba", "scipy", "polars")
SHOWN_OF_DOORS = ("column", "reveals", "kind", "accepted")


def manifest(facts: ReleaseFacts, key: Key, population: Table | None = None) -> dict[str, object]:
    """Everything an auditor needs to know of a release, without values, times or durations.

    >>> from velado.testing.examples import small_release
    >>> manifest(small_release().facts, Key(bytes(range(40))))["output"]["rows"]
    8
    """
    release = facts.release
    return {
        **_document(
            told=release.facts(),
            source=facts.source,
            output=facts.output,
            schema=release.table.schema,
            losses=release.public_losses,
            before=release.public_loss_before,
            warnings=release.public_warnings,
            key=key,
        ),
        "population": None
        if population is None
        else {"keyed_sha256": input_digest(population, key), "rows": population.rows},
    }


def engine_manifest(facts: EngineFacts, key: Key) -> dict[str, object]:
    """The same of a table that an engine wrote; it says besides which engine, how, and what was judged on a sample.

    >>> from velado.testing.examples import small_lake
    >>> engine_manifest(small_lake().facts, Key(bytes(range(40))))["how"]["engine"]
    'DuckDB'
    """
    release = facts.release
    return {
        **_document(
            told=release.facts(),
            source=facts.source,
            output=facts.output,
            schema=release.plan.prepared.schema,
            losses=release.plan.public_losses,
            warnings=release.public_warnings,
            key=key,
            engine=release.plan.prepared.source.libraries,
        ),
        "population": None,
        "judged": release.plan.prepared.judged.said,
    }


def _document(
    *,
    told: Mapping[str, Mapping[str, object]],
    source: SourceFacts,
    output: OutputFacts,
    schema: Schema,
    losses: Mapping[str, float],
    before: float | None = None,
    warnings: Sequence[str],
    key: Key,
    engine: Sequence[str] = (),
) -> dict[str, object]:
    result, promise = told["result"], told["promise"]
    doors = cast(Sequence[Mapping[str, object]], promise["side_doors"])
    return {
        "manifest_version": VERSION,
        "velado": package_version("velado"),
        "libraries": {
            "python": platform.python_version(),
            **{n: package_version(n) for n in (*LIBRARIES, *engine)},
        },
        "input": {
            "keyed_sha256": source.keyed_sha256,
            "key": key.fingerprint,
            "rows": source.rows,
            "columns": source.columns,
        },
        "population": None,
        "schema": public_schema(schema, key),
        "promise": {
            name: promise[name]
            for name in ("type", "verdicts", "readings_of_blanks", "over_time")
            if name in promise
        },
        "side_doors": [{name: door[name] for name in SHOWN_OF_DOORS} for door in doors],
        "signed_columns": promise["signed_columns"],
        "warnings": warnings,
        "cells_like_formulas": output.formulas,
        "how": {name: value for name, value in told["how"].items() if name != "notes"},
        "metrics": {
            "rows": result["rows"],
            "ncp": coarse({"overall": fmean(losses.values()), "by_column": losses}),
            **({} if before is None else {"ncp_before_improving": coarse(before)}),
            "domain": "declared bounds, else the range of the published rows; suppressed rows count 1",
        },
        "output": {
            "file": output.file,
            "sha256": output.sha256,
            "rows": result["rows"],
            "columns": result["columns"],
            "escaped_names": output.escaped_names,
            "row_order": result["row_order"],
            "suppressed_rows": result["suppressed_rows"],
        },
    }


def coarse(figures: object) -> object:
    """Numbers to three decimals: a loss in full precision depends on withheld rows, and guesses of them could be tried.

    >>> coarse({"age": 0.12345, "rows": 10})
    {'age': 0.123, 'rows': 10}
    """
    if isinstance(figures, Mapping):
        return {name: coarse(value) for name, value in figures.items()}
    return round(figures, DECIMALS) if isinstance(figures, float) else figures


def input_digest(table: Table, key: Key) -> str:
    """The table's fingerprint under the owner's key: that of its file's bytes, or of its cells where it had none.

    >>> from velado.testing.examples import small_release
    >>> len(input_digest(small_release().release.original, Key(bytes(range(40)))))
    64
    """
    return key.digest(bytes.fromhex(table.fingerprint) if table.fingerprint else content_of(table.frame))


def manifest_json(document: Mapping[str, object]) -> bytes:
    r"""The manifest as it stands in the folder.

    >>> manifest_json({"rows": 40})
    b'{\n  "rows": 40\n}\n'
    """
    with speaking("en"):  # a file for programs and auditors: the same bytes whatever language the run spoke
        return to_json(document).encode()


def package_version(name: str) -> str:
    """The installed version, or "not installed" where the package runs from its source tree.

    >>> package_version("no-such-package")
    'not installed'
    """
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def public_schema(schema: Schema, key: Key) -> dict[str, object]:
    """The schema with each taxonomy replaced by its builder, options and keyed digest: its labels are values.

    So are texts that mean no value: a cell of the original that is blank in what leaves. Their number and keyed digest stand there.

    >>> from velado.testing.examples import small_release
    >>> public_schema(small_release().release.table.schema, Key(bytes(range(40))))["columns"]["illness"]
    {'role': 'sensitive', 'kind': 'categorical'}
    """
    columns = {name: column.to_dict() for name, column in schema.columns.items()}
    for name, column in schema.columns.items():
        if column.missing_values is not None:
            columns[name]["missing_values"] = _no_values(column.missing_values, key)
        spec = column.taxonomy
        if spec is None:
            continue
        entry: dict[str, object] = {"builder": spec.builder, **spec.options}
        content = spec.tree if spec.tree is not None else spec.paths
        if content is not None:
            entry["keyed_sha256"] = _keyed(content, key)
        columns[name]["taxonomy"] = entry
    # Where the owner keeps the accounts of questions is nobody else's business.
    document = replace(schema, dataset=replace(schema.dataset, ledger="")).to_dict()
    if "missing_values" in document.get("table", {}):
        document["table"]["missing_values"] = _no_values(schema.missing_values, key)
    return {**document, "columns": columns}


def _no_values(texts: Sequence[str], key: Key) -> dict[str, object]:
    return {"texts": len(texts), "keyed_sha256": _keyed(sorted(texts), key)}


def _keyed(content: object, key: Key) -> str:
    return key.digest(json.dumps(content, ensure_ascii=False, sort_keys=True).encode())
