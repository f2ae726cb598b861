"""Studies for the page: a small real one with a gap in it, trainings across clients, and one with 500 cells."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from velado.learning.flower.flower_records import FORMAT, FederatedFit
from velado.measures.models.quality import Interval
from velado.study.evaluate.analysis import ReleaseSetting, StudyRow, Training
from velado.study.evaluate.study_outcome import StudyFacts
from velado.study.evaluate.study_settings import StudyRecipe
from velado.text import Sentence

EVIL = "</script><img src=x onerror=hacked()>\"'&{{7*7}}"


NOTHING_SAID = dict.fromkeys(("guaranteed", "measured", "not_promised", "what_leaves"), ())
PROMISE = {"type": "measured", "clients_checked": 0, "en": NOTHING_SAID, "pt": NOTHING_SAID}


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
        "alpha": 0.5 if split == "dirichlet" else None,
        "method": method,
        "k": k,
        "seed": seed,
        "clients_asked": 10,
        "participation": 0.8,
        "majority": 0.7,
        "rounds": lines,
        "clients": clients,
        "promise": PROMISE,
        "how": {},
        "format": FORMAT,
    }


def trainings(rounds: int = 30) -> tuple[Training, ...]:
    """The same as a study holds them."""
    return tuple(
        Training(
            setting=ReleaseSetting(one["method"], one["k"]), seed=one["seed"], fit=FederatedFit.from_dict(one)
        )
        for one in fits(rounds)
    )


def with_fits(facts: StudyFacts) -> StudyFacts:
    """The study with trainings across clients."""
    return replace(facts, federated=trainings())


def renamed(value: Any, old: str, new: str) -> Any:
    """The same value with every text *old* replaced inside the texts and keys that hold it."""
    if isinstance(value, Sentence):
        return Sentence(value.template, {name: renamed(part, old, new) for name, part in value.parts.items()})
    if isinstance(value, str):
        return value.replace(old, new)
    if isinstance(value, Mapping):
        return {renamed(key, old, new): renamed(one, old, new) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(renamed(one, old, new) for one in value)
    if is_dataclass(value) and not isinstance(value, StudyRecipe):
        return replace(
            value, **{one.name: renamed(getattr(value, one.name), old, new) for one in fields(value)}
        )
    return value


def grown(facts: StudyFacts, methods: int = 5, ks: int = 6, models: int = 4) -> StudyFacts:
    """The study with as many methods, k and models as asked for: rows are repeated and moved a little."""
    rng = np.random.default_rng(1)
    one_model = next(row for row in facts.quality if not row.setting.is_original)
    one_release = next(row for row in facts.releases if not row.setting.is_original)
    base = next(row for row in facts.quality if row.setting.is_original)
    settings = [ReleaseSetting(f"method-{m}", 2 + 5 * k) for m in range(methods) for k in range(ks)]
    names = [f"model-{n}" for n in range(models)]

    def moved(row: StudyRow, setting: ReleaseSetting, model: str | None = None) -> StudyRow:
        factor = float(rng.uniform(0.6, 1.0))
        numbers = {
            name: Interval(*(None if end is None else end * factor for end in found.ends))
            for name, found in row.numbers.items()
        }
        return replace(row, setting=setting, model=model, numbers=numbers)

    originals = [row for row in facts.releases if row.setting.is_original]
    return replace(
        facts,
        releases=(*originals, *(moved(one_release, setting) for setting in settings)),
        quality=(
            *(replace(base, model=name) for name in names),
            *(moved(one_model, setting, name) for setting in settings for name in names),
        ),
        gaps=(),
        same_risk=(),
        best=(),
    )
