"""Studies for the page: a small real one with a gap in it, trainings across clients, and one with 500 cells."""

from collections.abc import Mapping
from typing import Any

import numpy as np

EVIL = "</script><img src=x onerror=hacked()>\"'&{{7*7}}"


def fits(rounds: int = 30) -> list[dict[str, Any]]:
    """Trainings as `FederatedFit.to_dict` gives them: two settings and the original, two seeds, two kinds of split.

    Mondrian's rounds 7 and 20 are short of replies, and its round 9 has no value; its client 4 has no release.
    """
    rng = np.random.default_rng(0)
    found = []
    for split in ("iid", "dirichlet"):
        for place, (method, k) in enumerate((("original", None), ("progressive", 3), ("mondrian", 6))):
            for seed in (0, 1):
                found.append(fit(rng, split, place, method, k, seed, rounds))
    return found


def fit(
    rng: np.random.Generator, split: str, place: int, method: str, k: int | None, seed: int, rounds: int
) -> dict[str, Any]:
    short = method == "mondrian"
    lines = []
    for number in range(1, rounds + 1):
        accuracy = 0.84 - 0.02 * place - 0.1 * float(np.exp(-number / 6)) + float(rng.normal(0, 0.001))
        missed = short and number in (7, 20)
        unknown = short and number == 9
        lines.append(
            {
                "round": number,
                "accuracy": None if unknown else accuracy,
                "auc": None if unknown else accuracy + 0.05,
                "loss": None if unknown else 1 - accuracy,
                "asked": 10,
                "replied": 6 if missed else 10,
                "applied": not missed,
                "gap": "6 of 10 clients replied; 8 are needed." if missed else None,
                "missing": [],
                "bytes_up": 12_000,
                "bytes_down": 9_000,
                "seconds": 0.1,
            }
        )
    clients = [
        {
            "name": f"client {n}",
            "rows": 100 + n,
            "test_rows": 20,
            "classes": 2,
            "ncp": None if short and n == 4 else 0.1 * place + 0.01 * n,
            "linkage": None if short and n == 4 else 0.05,
            "promised": "",
            "gap": "It has fewer rows than k." if short and n == 4 else None,
        }
        for n in range(1, 11)
    ]
    return {
        "model": "logistic",
        "split": split,
        "alpha": 0.5,
        "method": method,
        "k": k,
        "seed": seed,
        "clients_asked": 10,
        "participation": 0.8,
        "majority": 0.7,
        "rounds": lines,
        "clients": clients,
        "promise": {},
        "how": {},
        "gap": None,
    }


def with_fits(document: Mapping[str, Any], language: str = "en") -> dict[str, Any]:
    """The study with trainings across clients."""
    assert document["language"] == language
    return {**document, "federated": fits()}


def renamed(value: Any, old: str, new: str) -> Any:
    """The same plain values with every text *old* replaced inside the texts and keys that hold it."""
    if isinstance(value, str):
        return value.replace(old, new)
    if isinstance(value, Mapping):
        return {renamed(key, old, new): renamed(one, old, new) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [renamed(one, old, new) for one in value]
    return value


def grown(document: Mapping[str, Any], methods: int = 5, ks: int = 6, models: int = 4) -> dict[str, Any]:
    """The study with as many methods, k and models as asked for: rows are repeated and moved a little."""
    rng = np.random.default_rng(1)
    one_model = next(row for row in document["quality"] if row["method"] != "original")
    one_release = next(row for row in document["releases"] if row["method"] != "original")
    originals = [row for row in document["releases"] if row["method"] == "original"]
    base = next(row for row in document["quality"] if row["method"] == "original")
    settings = [(f"method-{m}", 2 + 5 * k) for m in range(methods) for k in range(ks)]
    names = [f"model-{n}" for n in range(models)]

    def moved(row: Mapping[str, Any]) -> dict[str, Any]:
        factor = float(rng.uniform(0.6, 1.0))
        return {key: value * factor if isinstance(value, float) else value for key, value in row.items()}

    releases = [{**moved(one_release), "method": method, "k": k} for method, k in settings]
    quality = [{**base, "model": name} for name in names]
    quality += [
        {**moved(one_model), "method": method, "k": k, "model": name}
        for method, k in settings
        for name in names
    ]
    return {
        **document,
        "releases": originals + releases,
        "quality": quality,
        "gaps": [],
        "same_risk": [],
        "best": [],
    }
