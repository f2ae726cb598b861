"""One federated cell computed: a model trained across clients that anonymize their own rows, tested on true rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from velado.errors import ParameterError
from velado.learning.flower.federation import Federation
from velado.learning.flower.flower_records import FederationStopped
from velado.study.evaluate.load import Material
from velado.study.evaluate.study_grid import Job


def federated_numbers(job: Job, federation: Federation, material: Material) -> dict[str, Any]:
    """What the last round reached, and the run as JSON; rounds and clients that are missing stay in it as gaps."""
    from velado.learning.flower import simulate

    recipe = material.recipe
    assert recipe.federated is not None
    fit = simulate(
        material.table,
        material.table.schema,
        None if job.method is None else recipe.method(job.method),
        federation,
        k=job.k,
        target=recipe.target,
        encoding=recipe.encoder,
        seed=job.seed,
        features=material.features,
        suppression=recipe.suppression,
        engine=recipe.federated.engine,
    )
    document = fit.to_dict()
    measured = [one for one in document["rounds"] if one["accuracy"] is not None]
    if not measured or not any(one["applied"] for one in document["rounds"]):
        raise FederationStopped(
            f"None of {len(document['rounds'])} round(s) was applied.",
            "Too few clients answered, so that no model was trained.",
            "Lower 'participation' or k, or use fewer clients with more rows each.",
            fit,
        )
    last = measured[-1]
    return {
        "accuracy": last["accuracy"],
        "auc": last["auc"],
        "log_loss": last["loss"],
        "majority": document["majority"],
        "rows": sum(one["rows"] for one in document["clients"]),
        "test_rows": sum(one["test_rows"] for one in document["clients"]),
        "ncp": mean_by_rows(document["clients"], "ncp"),
        "record_linkage": mean_by_rows(document["clients"], "linkage"),
        "seconds": sum(one["seconds"] for one in document["rounds"]),
        "reason": " ".join(gaps_of(document)),
        "fit": as_json(document),
    }


def stopped_fit(error: Exception) -> str | None:
    """The run up to where it was given up, as JSON; None where there is none."""
    fit = error.fit if isinstance(error, FederationStopped) else None
    return None if fit is None else as_json(fit.to_dict())


def as_json(document: Mapping[str, Any]) -> str:
    """The run on one line; a number that is none would be an error here, not a hole in a chart."""
    try:
        return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        raise ParameterError(
            "A round of the run has a quality that is not a number.",
            "The model diverged, so that what it says means nothing.",
            "Use more clients or rows, or a stronger 'penalty'.",
        ) from None


def mean_by_rows(clients: Sequence[Mapping[str, Any]], name: str) -> float | None:
    """The mean of *name* over the clients that have it, each counted with its rows."""
    known = [one for one in clients if one[name] is not None and one["rows"]]
    total = sum(one["rows"] for one in known)
    return sum(one[name] * one["rows"] for one in known) / total if total else None


def gaps_of(document: Mapping[str, Any]) -> list[str]:
    """What is missing in a run: clients that sat out, each with its reason, and how many rounds were not applied."""
    out = [f"{one['name']}: {one['gap']}" for one in document["clients"] if one.get("gap")]
    skipped = sum(not one["applied"] for one in document["rounds"])
    if skipped:
        out.append(f"{skipped} of {len(document['rounds'])} rounds were not applied.")
    return out
