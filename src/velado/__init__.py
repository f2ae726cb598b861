"""velado: publish, query and learn from tables about people without exposing them, and prove it.

The public names, sorted. Each is imported when it is first used, so that `velado --help` does not wait for
libraries it does not need.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "Column": "velado.data.schema",
    "Cover": "velado.anonymize.recoders",
    "DAS": "velado.anonymize.methods",
    "GFKMC": "velado.anonymize.methods",
    "GUARANTEES": "velado.anonymize.guarantees",
    "Goal": "velado.anonymize.goal",
    "KAnonymity": "velado.anonymize.guarantees",
    "LDiversity": "velado.anonymize.guarantees",
    "METHODS": "velado.anonymize.methods",
    "Mondrian": "velado.anonymize.methods",
    "OPERATIONS": "velado.anonymize.operations",
    "Partition": "velado.data.partition",
    "GroupCounts": "velado.data.partition",
    "Release": "velado.anonymize.release",
    "Schema": "velado.data.schema",
    "Scores": "velado.measure.measured",
    "Table": "velado.data.table",
    "Taxonomy": "velado.data.taxonomy",
    "VeladoError": "velado.errors",
    "Verdict": "velado.anonymize.guarantees",
    "anonymize": "velado.anonymize.release",
    "apply_recipe": "velado.study.run",
    "encode": "velado.data.encode",
    "inspect": "velado.data.inspect",
    "measure": "velado.measure.measured",
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
