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
    "Budget": "velado.query.budget",
    "Column": "velado.data.schema",
    "Cover": "velado.release.recoders",
    "Fit": "velado.learning.regression.fit",
    "GUARANTEES": "velado.release.guarantees",
    "Goal": "velado.release.goal",
    "GroupCounts": "velado.data.partition",
    "Job": "velado.learning.regression.job",
    "Key": "velado.data.keys",
    "METHODS": "velado.release.methods",
    "OPERATIONS": "velado.release.operations",
    "Partition": "velado.data.partition",
    "Release": "velado.release.release",
    "Schema": "velado.data.schema",
    "Scores": "velado.measures.measured",
    "Session": "velado.query.session",
    "Table": "velado.data.table",
    "Taxonomy": "velado.data.taxonomy",
    "Unit": "velado.query.unit",
    "VeladoError": "velado.errors",
    "Verdict": "velado.release.guarantees",
    "anonymize": "velado.release.anonymize",
    "anonymize_joined": "velado.release.joined",
    "apply_recipe": "velado.study.run",
    "apply_recipe_to_files": "velado.study.engine_recipe",
    "apply_recipe_to_table": "velado.study.engine_recipe",
    "compare": "velado.study.compare",
    "create_ledger": "velado.query.store",
    "encode": "velado.data.encode",
    "gather_evidence": "velado.study.evidence",
    "inspect": "velado.data.inspect",
    "inspect_source": "velado.release.sources.source_inspect",
    "measure": "velado.measures.measured",
    "measure_files": "velado.measures.measured",
    "measure_sources": "velado.measures.source_measured",
    "open_ledger": "velado.query.store",
    "pseudonymize": "velado.release.pseudonyms",
    "publish": "velado.study.run",
    "publish_files": "velado.study.engine_run",
    "publish_table": "velado.study.engine_run",
    "read_schema": "velado.data.io",
    "read_table": "velado.data.io",
    "synthesize": "velado.query.synthetic.synthesize",
    "to_frame": "velado.data.frames",
    "transform": "velado.release.transform",
    "verify": "velado.release.verify",
    "verify_evidence": "velado.study.evidence",
    "verify_source": "velado.release.sources.source_verify",
}

_REGISTRIES = ("METHODS", "GUARANTEES")
"""What stands in them is public by its own name: a new method or guarantee is named in its registry alone."""


def _registered() -> dict[str, Any]:
    return {kind.__name__: kind for registry in _REGISTRIES for kind in __getattr__(registry)}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name == "__all__":
        return sorted([*_HOME, *_registered(), "__version__"])
    # Other modules' names have capitals too, but only a person asks for one that is not listed above.
    if name[0].isupper() and name in (found := _registered()):
        return found[name]
    raise AttributeError(f"module 'velado' has no attribute {name!r}")


def __dir__() -> list[str]:
    names: list[str] = __getattr__("__all__")
    return names
