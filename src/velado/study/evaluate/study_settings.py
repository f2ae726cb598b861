"""StudyRecipe: the five phases of an evaluation as sections of one file. Pure: `load` brings in the table.

[data]           table, schema, target, positive, features, undeclared
[anonymization]  methods, k, guarantees, seeds, suppression, per
[models]         use, interval, taxonomy, widest
[metrics]        quality, loss, risk
[analyses]       protocols, test_share, folds, confidence, most_drop, most_risk
[federated]      optional: models, splits, alpha, methods, k, seeds, and the settings of a federation
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from importlib.util import find_spec
from typing import Any, Literal, get_args

from velado.data.table import Undeclared
from velado.errors import MissingExtra, ParameterError, SchemaError
from velado.learning.flower.federation import Federation
from velado.measures.models.encoder import EncoderSettings
from velado.measures.models.model_registry import Model, model_named
from velado.measures.models.quality import QUALITIES
from velado.release.guarantees import GUARANTEES
from velado.release.guarantees._guarantee import Guarantee
from velado.release.methods import method_named
from velado.release.methods._method import Method
from velado.release.parameters import LARGEST, check_number, entry_of, known_keys, part_from
from velado.settings import read
from velado.study.evaluate.protocols import DEFAULT_PROTOCOL, PROTOCOLS, protocol_named
from velado.study.recipe import Per

# Entries of a study file read one by one: each is what it must be, or an error names its place and the nearest word.

LARGEST_SEED = 2**32 - 1
"""scikit-learn takes no larger one."""

_LISTS: Mapping[type, str] = {int: " of whole numbers", str: " of texts", float: " of numbers"}


def with_name(entry: Any, where: str) -> dict[str, Any]:
    """*entry* as a table with a name; a text alone is the name."""
    values = {"name": entry} if isinstance(entry, str) else entry
    if not isinstance(values, Mapping) or not isinstance(values.get("name"), str):
        raise SchemaError(
            f"An entry of {where} has no name.",
            "What to run is not known.",
            'Write "NAME", or { name = "NAME", ... }.',
        )
    return dict(values)


def list_of(value: Any, what: str, kind: type | None = None) -> list[Any]:
    """*value* as a list that holds something, every entry of *kind*."""
    fits = isinstance(value, list) and bool(value)
    if fits and kind is not None:
        accepted = (int, float) if kind is float else (kind,)
        fits = all(isinstance(one, accepted) and not isinstance(one, bool) for one in value)
        if fits and kind is float:
            check_number(value, what)
    if not fits:
        of = "" if kind is None else _LISTS[kind]
        raise SchemaError(
            f"{what} is not a list{of}, or empty.", "It is an axis of the grid.", "Write [a, b]."
        )
    return list(value)


def numbers_of(entry: Mapping[str, Any], name: str, where: str) -> tuple[int, ...]:
    """The axis *name* ("k" or "seeds"): different whole numbers within its limits."""
    least, most = (2, LARGEST) if name == "k" else (0, LARGEST_SEED)
    numbers = list_of(entry[name], f"'{name}' in {where}", int)
    if any(number < least for number in numbers) or len(set(numbers)) < len(numbers):
        raise ParameterError(
            f"'{name}' in {where} has a number below {least}, or one twice.",
            "Below 2 a crowd hides nobody." if name == "k" else "Each seed is one repetition.",
            f"Write different whole numbers of at least {least}.",
        )
    if max(numbers) > most:
        why = "No table has that many rows." if name == "k" else "Models take no larger seed."
        raise ParameterError(f"'{name}' in {where} has a number above {most}.", why, "Lower it.")
    return tuple(numbers)


def methods_of(entry: Mapping[str, Any], where: str) -> tuple[dict[str, Any], ...]:
    """The methods listed in *entry*, each once, their settings checked."""
    listed = tuple(_method(one, where) for one in list_of(entry["methods"], f"'methods' in {where}"))
    # Two spellings of one method (a default left out, or written) are one method.
    whole = [entry_of(part_from(method_named(one["name"]), one, where)) for one in listed]
    if any(one in whole[:at] for at, one in enumerate(whole)):
        raise SchemaError(
            "A method is listed twice.", "Its cells would be the same.", "Remove one of the two."
        )
    return listed


def _method(entry: Any, where: str) -> dict[str, Any]:
    values = with_name(entry, f"'methods' in {where}")
    kind = method_named(values["name"])
    if "k" in values:
        raise SchemaError(
            f"The method '{kind.name}' is given a k of its own.",
            "k is an axis of the grid, the same for all methods.",
            f"Remove it there and list it in k = [...] of {where}.",
        )
    part_from(kind, values, f"method '{kind.name}'")
    return values


def text_of(entry: Mapping[str, Any], name: str, where: str) -> str:
    """The text under *name*, which must be there."""
    if name in entry and not isinstance(entry[name], str):
        raise SchemaError(
            f"'{name}' in {where} is no text.",
            "Names and classes are compared as texts, numbers among them.",
            f'Put it in quotes: {name} = "...".',
        )
    if not entry.get(name):
        raise SchemaError(
            f"{where} has no '{name}', or an empty one.",
            "The study cannot be run without it.",
            f'Add {name} = "...".',
        )
    return str(entry[name])


def whole_of(value: Any, what: str) -> int:
    """*value* as one whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise SchemaError(
            f"{what} is not a whole number.", "It is a count.", "Write digits alone, without point or quotes."
        )
    check_number(value, what)
    return value


def share_of(value: Any, what: str) -> float:
    """*value* as a number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ParameterError(f"{what} is not a share.", "It is a number from 0 to 1.", "Correct it.")
    return float(value)


def one_of(value: Any, choices: Sequence[str], what: str) -> Any:
    """*value*, which is one of *choices*."""
    if value not in choices:
        raise unknown(what, str(value), choices)
    return value


def unknown(what: str, name: str, choices: Sequence[str]) -> ParameterError:
    """The error that names the nearest of *choices*."""
    # The beginning of one word alone is that word, whatever else looks like it: "acc" is no "auc".
    begun = [choice for choice in choices if name and choice.startswith(name)]
    near = begun if len(begun) == 1 else difflib.get_close_matches(name, choices, n=1, cutoff=0.4)
    return ParameterError(
        f"'{name}' is not known ({what}).",
        f"It is one of {', '.join(choices)}.",
        f"Did you mean '{near[0]}'?" if near else "Choose one of them.",
    )


# FederatedPart: the [federated] section of a study, and the federations it stands for.
#
# Axes are `models`, `splits`, `alpha` (for Dirichlet splits), `methods`, `k` and `seeds`; what is left out of the last three
# is taken from [anonymization], the held-out share from [analyses]. Every other key but `engine` is a setting of `velado.learning.flower.Federation`, the same for all cells.

Engine = Literal["flower", "loop"]
WHERE = "[federated]"
_AXES = ("model", "split", "alpha")
SETTINGS = tuple(part.name for part in fields(Federation) if part.name not in _AXES)
"""The keys of the section that are settings of a federation and no axes."""
KEYS = ("models", "splits", "alpha", "methods", "k", "seeds", "engine", *SETTINGS)
ENGINES = ("flower", "loop")
MODELS, SPLITS = ("logistic", "xgboost"), ("iid", "dirichlet")


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
    made = read(Federation, given, WHERE)
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


SECTIONS = ("data", "anonymization", "models", "metrics", "analyses")
FEDERATED = "federated"
LOSSES = ("ncp", "discernibility", "average_group_size")
RISKS = ("record_linkage", "reidentification", "highest_risk")


def _about(section: str, help: str, choices: Sequence[str] = (), key: str = "") -> dict[str, Any]:
    """What the reference says of a field: it stands in *section* of the file under its own name, or under *key*."""
    return {"section": section, "help": help, "key": key, "choices": tuple(choices)}


def _key(
    section: str, help: str, default: Any = MISSING, *, key: str = "", choices: Sequence[str] = ()
) -> Any:
    metadata = _about(section, help, choices, key)
    return field(metadata=metadata) if default is MISSING else field(default=default, metadata=metadata)


@dataclass(frozen=True)
class StudyRecipe:
    """Everything a study needs but the rows. *methods* are kinds with their settings; k is put in by the grid.

    *guarantees* is one more axis of the grid: each entry is a set of promises beyond k, the empty set among them.
    *most_drop* is how much of the first quality a release may lose to be recommended, *most_risk* the most risk.
    """

    table: str = _key("data", "the table's file, looked for beside the study file")
    schema: str = _key("data", "the schema's file, looked for beside the study file")
    target: str = _key("data", "the column models learn; published, and no quasi-identifier")
    methods: tuple[Mapping[str, Any], ...] = _key(
        "anonymization", 'names, or `{ name = "mondrian", cut = "relaxed" }` with settings of the method'
    )
    models: tuple[Model, ...] = _key(
        "models", 'names, or `{ name = "knn", neighbours = 5 }` with settings of the model', key="use"
    )
    k: tuple[int, ...] = _key(
        "anonymization", "class sizes: one axis for every method that has a k", (5, 10, 20)
    )
    guarantees: tuple[tuple[Guarantee, ...], ...] = _key(
        "anonymization",
        'promises beyond k, one more axis: `[[], { name = "l-diversity", l = 2 }]` runs without and with it',
        ((),),
    )
    seeds: tuple[int, ...] = _key(
        "anonymization",
        "each is one split, one run of every method and one training of every model",
        (0, 1, 2),
    )
    positive: str | None = _key(
        "data",
        "the class whose precision, recall, F1 and AUC are meant; without it they are means over the classes",
        None,
    )
    features: tuple[str, ...] | None = _key(
        "data", "the columns models may use; without it every published one but free text", None
    )
    undeclared: Undeclared = field(
        default="refuse",
        metadata=_about(
            "data", "what becomes of columns that the schema does not name", get_args(Undeclared)
        ),
    )
    suppression: float = _key("anonymization", "share of rows a method may leave out, 0 to 1", 0.0)
    per: Per | None = field(
        default=None,
        metadata=_about(
            "anonymization",
            "k counts rows or people; without it people where the schema names them",
            get_args(Per),
        ),
    )
    encoder: EncoderSettings = field(default_factory=EncoderSettings)
    quality: tuple[str, ...] = _key(
        "metrics",
        "what is shown of every model; the first one decides",
        ("accuracy", "precision", "recall", "f1", "auc", "log_loss"),
        choices=QUALITIES,
    )
    loss: str = _key("metrics", "what a release lost", "ncp", choices=LOSSES)
    risk: str = _key("metrics", "what an attacker can do with it", "record_linkage", choices=RISKS)
    protocols: tuple[str, ...] = _key(
        "analyses", "how rows are split and tested", (DEFAULT_PROTOCOL,), choices=[p.name for p in PROTOCOLS]
    )
    test_share: float = _key("analyses", "the part of the rows that is set aside, between 0 and 1", 0.25)
    folds: int = _key("analyses", "folds of `paper-gok`, at least 2", 5)
    confidence: float = _key("analyses", "of the intervals, between 0 and 1", 0.95)
    most_drop: float = _key(
        "analyses", "what a setting may lose of the first quality to be recommended", 0.01
    )
    most_risk: float | None = _key("analyses", "the most risk a recommended setting may leave", None)
    federated: FederatedPart | None = None

    def method(self, entry: Mapping[str, Any]) -> Method:
        """The method of *entry*, its parameters checked."""
        method: Method = part_from(method_named(str(entry["name"])), entry, f"method '{entry['name']}'")
        return method

    def to_dict(self) -> dict[str, Any]:
        """The five sections, and the sixth where it is used; every default written out."""
        data = {
            "table": self.table,
            "schema": self.schema,
            "target": self.target,
            "undeclared": self.undeclared,
        }
        if self.positive is not None:
            data["positive"] = self.positive
        if self.features is not None:
            data["features"] = list(self.features)  # type: ignore[assignment]
        anonymization: dict[str, Any] = {
            "methods": [dict(entry) for entry in self.methods],
            "k": list(self.k),
            "guarantees": [[entry_of(one) for one in promised] for promised in self.guarantees],
            "seeds": list(self.seeds),
            "suppression": self.suppression,
        }
        if self.per is not None:
            anonymization["per"] = self.per
        analyses: dict[str, Any] = {
            name: getattr(self, name) for name in ("test_share", "folds", "confidence", "most_drop")
        }
        if self.most_risk is not None:
            analyses["most_risk"] = self.most_risk
        across = {} if self.federated is None else {"federated": self.federated.to_dict()}
        return {
            "data": data,
            "anonymization": anonymization,
            "models": {"use": [entry_of(model) for model in self.models], **asdict(self.encoder)},
            "metrics": {"quality": list(self.quality), "loss": self.loss, "risk": self.risk},
            "analyses": {"protocols": list(self.protocols), **analyses},
            **across,
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> StudyRecipe:
        """From parsed TOML. Nothing unknown is passed over; a misspelt key or name is answered with the nearest."""
        known_keys(document, (*SECTIONS, FEDERATED), "the study")
        parts = {name: _section(document, name) for name in SECTIONS}
        settings = _data(parts["data"]) | _anonymization(parts["anonymization"])
        settings |= _models(parts["models"]) | _metrics(parts["metrics"]) | _analyses(parts["analyses"])
        made = cls(**settings)
        if FEDERATED not in document:
            return made
        beside = {name: getattr(made, name) for name in ("methods", "k", "seeds", "test_share")}
        return replace(made, federated=federated_part(_section(document, FEDERATED), beside))


def _section(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    entry = document.get(name, {})
    if not isinstance(entry, Mapping) or (not entry and name in ("data", "anonymization", "models")):
        why = "It is one of the five phases." if name != FEDERATED else "The section is a table of settings."
        raise SchemaError(f"The study has no [{name}], or it is no table.", why, f"Write a table [{name}].")
    return entry


def _data(entry: Mapping[str, Any]) -> dict[str, Any]:
    known_keys(entry, ("table", "schema", "target", "positive", "features", "undeclared"), "[data]")
    out = {name: text_of(entry, name, "[data]") for name in ("table", "schema", "target")}
    if "positive" in entry:
        out["positive"] = text_of(entry, "positive", "[data]")
    if "undeclared" in entry:
        out["undeclared"] = one_of(entry["undeclared"], get_args(Undeclared), "'undeclared' in [data]")
    if "features" in entry:
        named = list_of(entry["features"], "'features' in [data]", str)
        out["features"] = tuple(named)  # type: ignore[assignment]
    return out


def _anonymization(entry: Mapping[str, Any]) -> dict[str, Any]:
    known_keys(entry, ("methods", "k", "guarantees", "seeds", "suppression", "per"), "[anonymization]")
    if not entry.get("methods"):
        raise SchemaError(
            "[anonymization] names no methods.",
            "There is nothing to compare.",
            'Add methods = ["progressive"].',
        )
    where = "[anonymization]"
    out: dict[str, Any] = {"methods": methods_of(entry, where)}
    for name in ("k", "seeds"):
        if name in entry:
            out[name] = numbers_of(entry, name, where)
    if "guarantees" in entry:
        sets = list_of(entry["guarantees"], "'guarantees' in [anonymization]")
        out["guarantees"] = tuple(
            tuple(_guarantee(one) for one in (item if isinstance(item, list) else [item])) for item in sets
        )
        if any(promised.count(one) > 1 for promised in out["guarantees"] for one in promised):
            raise SchemaError(
                "A set of guarantees has the same one twice.",
                "It promises no more than once.",
                "Remove one of the two.",
            )
        # The order of a set says nothing.
        sets = [sorted(map(repr, promised)) for promised in out["guarantees"]]
        if any(one in sets[:at] for at, one in enumerate(sets)):
            raise SchemaError(
                "A set of guarantees is listed twice.",
                "Its cells would be the same.",
                "Remove one of the two.",
            )
    if "suppression" in entry:
        out["suppression"] = share_of(entry["suppression"], "'suppression' in [anonymization]")
    if "per" in entry:
        out["per"] = one_of(entry["per"], get_args(Per), "'per' in [anonymization]")
    return out


def has_k(name: str) -> bool:
    """Whether the method of this name promises a class size, so that k is an axis for it."""
    return method_named(name).promise != "measured"


def _guarantee(entry: Any) -> Guarantee:
    values = with_name(entry, "'guarantees' in [anonymization]")
    for kind in GUARANTEES:
        if kind.name == values["name"]:
            made: Guarantee = part_from(kind, values, f"guarantee '{kind.name}'")
            return made
    raise unknown("guarantee", values["name"], [kind.name for kind in GUARANTEES])


def _models(entry: Mapping[str, Any]) -> dict[str, Any]:
    encoding = tuple(part.name for part in fields(EncoderSettings))
    known_keys(entry, ("use", *encoding), "[models]")
    if not entry.get("use"):
        raise SchemaError(
            "[models] uses no models.",
            "Quality cannot be measured without one.",
            'Add use = ["random-forest"].',
        )
    models = []
    for one in list_of(entry["use"], "'use' in [models]"):
        values = with_name(one, "'use' in [models]")
        models.append(part_from(model_named(values["name"]), values, f"model '{values['name']}'"))
    if len(set(models)) < len(models):
        raise SchemaError(
            "A model is listed twice.", "Its cells would be the same.", "Remove one of the two."
        )
    given = {name: entry[name] for name in encoding if name in entry}
    return {"models": tuple(models), "encoder": part_from(EncoderSettings, given, "[models]")}


def _metrics(entry: Mapping[str, Any]) -> dict[str, Any]:
    known_keys(entry, ("quality", "loss", "risk"), "[metrics]")
    out: dict[str, Any] = {}
    if "quality" in entry:
        named = list_of(entry["quality"], "'quality' in [metrics]", str)
        checked = (one_of(name, QUALITIES, "'quality' in [metrics]") for name in named)
        out["quality"] = tuple(dict.fromkeys(checked))
    for name, choices in (("loss", LOSSES), ("risk", RISKS)):
        if name in entry:
            out[name] = one_of(entry[name], choices, f"'{name}' in [metrics]")
    return out


def _analyses(entry: Mapping[str, Any]) -> dict[str, Any]:
    shares = ("test_share", "confidence", "most_drop", "most_risk")
    known_keys(entry, ("protocols", "folds", *shares), "[analyses]")
    out: dict[str, Any] = {
        name: share_of(entry[name], f"'{name}' in [analyses]") for name in shares if name in entry
    }
    for name in ("test_share", "confidence"):
        if name in out and not 0 < out[name] < 1:
            raise ParameterError(
                f"'{name}' in [analyses] is {out[name]:g}.", "It must lie between 0 and 1.", "Correct it."
            )
    if "folds" in entry:
        out["folds"] = whole_of(entry["folds"], "'folds' in [analyses]")
        if out["folds"] < 2:
            raise ParameterError(
                "'folds' in [analyses] is below 2.", "One fold leaves no training rows.", "Raise it."
            )
    if "protocols" in entry:
        named = list_of(entry["protocols"], "'protocols' in [analyses]", str)
        out["protocols"] = tuple(dict.fromkeys(protocol_named(name).name for name in named))
    return out
