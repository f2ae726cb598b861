"""FederatedPart: the [federated] section of a study, and the federations it stands for.

Axes are `models`, `splits`, `alpha` (for Dirichlet splits), `methods`, `k` and `seeds`; what is left out of the last three
is taken from [anonymization], the held-out share from [analyses]. Every other key but `engine` is a setting of `velado.federated.Federation`, the same for all cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from importlib.util import find_spec
from typing import Any, Literal

from velado.anonymize.parameters import known_keys, part_from
from velado.errors import MissingExtra
from velado.federated.federation import Federation
from velado.study.evaluate.entries import list_of, methods_of, numbers_of, one_of

Engine = Literal["flower", "loop"]
WHERE = "[federated]"
_AXES = ("model", "split", "alpha")
SETTINGS = tuple(part.name for part in fields(Federation) if part.name not in _AXES)
"""The keys of the section that are settings of a federation and no axes."""
KEYS = ("models", "splits", "alpha", "methods", "k", "seeds", "engine", *SETTINGS)
ENGINES = ("flower", "loop")
MODELS, SPLITS = (
    next(tuple(part.metadata["choices"]) for part in fields(Federation) if part.name == name)
    for name in ("model", "split")
)


@dataclass(frozen=True)
class FederatedPart:
    """What is trained across clients: every model x split x method x k x seed, and the untouched rows beside them.

    *engine* carries the messages of Flower's apps: "loop" within one process, so that runs go side by side; "flower"
    through its simulation engine, with a process per core and one run at a time. Both give the same numbers, so that no
    cell depends on it.
    """

    methods: tuple[Mapping[str, Any], ...] = field(
        metadata={"help": "as in [anonymization], and by default those"}
    )
    k: tuple[int, ...] = field(metadata={"help": "as in [anonymization], and by default those"})
    seeds: tuple[int, ...] = field(metadata={"help": "as in [anonymization], and by default those"})
    models: tuple[str, ...] = field(
        default=("logistic",),
        metadata={"help": "logistic regression (FedAvg) or XGBoost (bagging)", "choices": MODELS},
    )
    splits: tuple[str, ...] = field(
        default=("iid",), metadata={"help": "how the rows are dealt out to the clients", "choices": SPLITS}
    )
    alpha: tuple[float, ...] = field(
        default=(0.5,),
        metadata={"help": "Dirichlet concentration over the classes; small: unlike clients. One or several"},
    )
    engine: Engine = field(
        default="loop",
        metadata={
            "help": "messages within one process, runs side by side; or through Flower's simulation engine, one run at a "
            "time; the numbers are the same",
            "choices": ENGINES,
        },
    )
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def federations(self) -> tuple[Federation, ...]:
        """One for each model and way to deal out the rows; alpha is an axis of Dirichlet splits alone."""
        ways = [
            (split, alpha)
            for split in self.splits
            for alpha in (self.alpha if split == "dirichlet" else (Federation.alpha,))
        ]
        return tuple(
            Federation(model=model, split=split, alpha=alpha, **self.settings)
            for model in self.models
            for split, alpha in ways
        )

    def to_dict(self) -> dict[str, Any]:
        """The section with every default written out."""
        written = asdict(Federation(**self.settings))
        return {
            "models": list(self.models),
            "splits": list(self.splits),
            "alpha": list(self.alpha),
            "methods": [dict(entry) for entry in self.methods],
            "k": list(self.k),
            "seeds": list(self.seeds),
            "engine": self.engine,
            **{name: written[name] for name in SETTINGS},
        }


def federated_part(entry: Mapping[str, Any], beside: Mapping[str, Any]) -> FederatedPart:
    """The section *entry* of a study; methods, k, seeds and test_share default to those *beside* it."""
    known_keys(entry, KEYS, WHERE)
    out: dict[str, Any] = {name: beside[name] for name in ("methods", "k", "seeds")}
    if "methods" in entry:
        out["methods"] = methods_of(entry, WHERE)
    for name in ("k", "seeds"):
        if name in entry:
            out[name] = numbers_of(entry, name, WHERE)
    for name, choices in (("models", MODELS), ("splits", SPLITS)):
        if name in entry:
            what = f"'{name}' in {WHERE}"
            listed = list_of(entry[name], what, str)
            out[name] = tuple(dict.fromkeys(one_of(one, choices, what) for one in listed))
    if "alpha" in entry:
        several = entry["alpha"] if isinstance(entry["alpha"], list) else [entry["alpha"]]
        numbers = list_of(several, f"'alpha' in {WHERE}", float)
        out["alpha"] = tuple(dict.fromkeys(float(number) for number in numbers))
    if "engine" in entry:
        out["engine"] = one_of(entry["engine"], ENGINES, f"'engine' in {WHERE}")
    given = {name: entry[name] for name in SETTINGS if name in entry}
    given.setdefault("test_share", beside["test_share"])
    made = part_from(Federation, given, WHERE)
    settings = {name: getattr(made, name) for name in SETTINGS}
    part = FederatedPart(**out, settings=settings)
    assert part.federations  # made once, so that every combination is checked before anything is run
    return part


def label(federation: Federation) -> str:
    """How the rows lie: `iid`, or `dirichlet(0.5)`."""
    return federation.split if federation.split != "dirichlet" else f"dirichlet({federation.alpha:g})"


def require_federated(part: FederatedPart) -> None:
    """What the section needs is installed, or MissingExtra says which extra brings it."""
    needed = ["flwr", *(["xgboost"] if "xgboost" in part.models else [])]
    for library in needed:
        if find_spec(library) is None:
            raise MissingExtra(
                f"The section {WHERE} needs {library}, which is not installed.",
                "Training across clients is an extra, so that publishing tables stays light.",
                'Install it with pip install "velado[federated]", or leave the section out.',
            )
