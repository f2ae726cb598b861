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
    "BetaLikeness": "velado.release.guarantees",
    "Budget": "velado.query.budget",
    "Column": "velado.data.schema",
    "Cover": "velado.release.recoders",
    "DAS": "velado.release.methods",
    "DeltaPresence": "velado.release.guarantees",
    "EntropyLDiversity": "velado.release.guarantees",
    "Fit": "velado.learning.regression.fit",
    "FixedInterval": "velado.release.methods",
    "FullDomain": "velado.release.methods",
    "GFKMC": "velado.release.methods",
    "GOK": "velado.release.methods",
    "GUARANTEES": "velado.release.guarantees",
    "Goal": "velado.release.goal",
    "GroupCounts": "velado.data.partition",
    "Job": "velado.learning.regression.job",
    "KAnonymity": "velado.release.guarantees",
    "KMap": "velado.release.guarantees",
    "KMember": "velado.release.methods",
    "Key": "velado.data.keys",
    "LDiversity": "velado.release.guarantees",
    "MDAV": "velado.release.methods",
    "METHODS": "velado.release.methods",
    "Mondrian": "velado.release.methods",
    "NearestNeighbours": "velado.release.methods",
    "OPERATIONS": "velado.release.operations",
    "Partition": "velado.data.partition",
    "Progressive": "velado.release.methods",
    "RecursiveLDiversity": "velado.release.guarantees",
    "Release": "velado.release.release",
    "Schema": "velado.data.schema",
    "Scores": "velado.measures.measured",
    "Session": "velado.query.session",
    "TCloseness": "velado.release.guarantees",
    "Table": "velado.data.table",
    "Taxonomy": "velado.data.taxonomy",
    "TopDownGreedy": "velado.release.methods",
    "Unit": "velado.query.unit",
    "VeladoError": "velado.errors",
    "Verdict": "velado.release.guarantees",
    "anonymize": "velado.release.anonymize",
    "anonymize_joined": "velado.release.joined",
    "apply_recipe": "velado.study.run",
    "compare": "velado.study.compare",
    "create_ledger": "velado.query.store",
    "encode": "velado.data.encode",
    "inspect": "velado.data.inspect",
    "measure": "velado.measures.measured",
    "measure_files": "velado.measures.measured",
    "open_ledger": "velado.query.store",
    "pseudonymize": "velado.release.pseudonyms",
    "publish": "velado.study.run",
    "read_schema": "velado.data.io",
    "read_table": "velado.data.io",
    "to_frame": "velado.data.io",
    "verify": "velado.release.verify",
}

__all__ = sorted([*_HOME, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'velado' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
