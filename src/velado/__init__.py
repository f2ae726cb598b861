"""velado: publish, query and learn from tables about people without exposing them, and prove it.

The public names, sorted. Each is imported when it is first used, so that `velado --help` does not wait for
libraries it does not need.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "Answer": "velado.query.answer",
    "BetaLikeness": "velado.anonymize.guarantees",
    "Budget": "velado.query.budget",
    "Column": "velado.data.schema",
    "Cover": "velado.anonymize.recoders",
    "DAS": "velado.anonymize.methods",
    "DeltaPresence": "velado.anonymize.guarantees",
    "EntropyLDiversity": "velado.anonymize.guarantees",
    "Fit": "velado.encrypted.fit",
    "FixedInterval": "velado.anonymize.methods",
    "FullDomain": "velado.anonymize.methods",
    "GFKMC": "velado.anonymize.methods",
    "GOK": "velado.anonymize.methods",
    "GUARANTEES": "velado.anonymize.guarantees",
    "Goal": "velado.anonymize.goal",
    "GroupCounts": "velado.data.partition",
    "Job": "velado.encrypted.job",
    "KAnonymity": "velado.anonymize.guarantees",
    "KMap": "velado.anonymize.guarantees",
    "KMember": "velado.anonymize.methods",
    "Key": "velado.data.keys",
    "LDiversity": "velado.anonymize.guarantees",
    "MDAV": "velado.anonymize.methods",
    "METHODS": "velado.anonymize.methods",
    "Mondrian": "velado.anonymize.methods",
    "NearestNeighbours": "velado.anonymize.methods",
    "OPERATIONS": "velado.anonymize.operations",
    "Partition": "velado.data.partition",
    "Progressive": "velado.anonymize.methods",
    "RecursiveLDiversity": "velado.anonymize.guarantees",
    "Release": "velado.anonymize.release",
    "Schema": "velado.data.schema",
    "Scores": "velado.measure.measured",
    "Session": "velado.query.session",
    "TCloseness": "velado.anonymize.guarantees",
    "Table": "velado.data.table",
    "Taxonomy": "velado.data.taxonomy",
    "TopDownGreedy": "velado.anonymize.methods",
    "Unit": "velado.query.unit",
    "VeladoError": "velado.errors",
    "Verdict": "velado.anonymize.guarantees",
    "anonymize": "velado.anonymize.anonymize",
    "anonymize_joined": "velado.anonymize.joined",
    "apply_recipe": "velado.study.run",
    "compare": "velado.study.compare",
    "create_ledger": "velado.query.store",
    "encode": "velado.data.encode",
    "inspect": "velado.data.inspect",
    "measure": "velado.measure.measured",
    "measure_files": "velado.measure.measured",
    "open_ledger": "velado.query.store",
    "pseudonymize": "velado.anonymize.pseudonyms",
    "publish": "velado.study.run",
    "read_schema": "velado.data.io",
    "read_table": "velado.data.io",
    "to_frame": "velado.data.io",
    "verify": "velado.anonymize.verify",
}

__all__ = sorted([*_HOME, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'velado' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
