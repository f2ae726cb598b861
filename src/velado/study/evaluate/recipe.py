"""StudyRecipe: the five phases of an evaluation as sections of one file. Pure: `load` brings in the table.

[data]           table, schema, target, positive, features, undeclared
[anonymization]  methods, k, guarantees, seeds, suppression, per
[models]         use, interval, taxonomy, widest
[metrics]        quality, loss, risk
[analyses]       protocols, test_share, folds, confidence, most_drop, most_risk
[federated]      optional: models, splits, alpha, methods, k, seeds, and the settings of a federation
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from typing import Any, get_args

from velado.anonymize.guarantees import GUARANTEES
from velado.anonymize.guarantees.base import Guarantee
from velado.anonymize.methods import method_named
from velado.anonymize.methods.base import Method
from velado.anonymize.methods.parameters import check_parameters
from velado.anonymize.parameters import entry_of, known_keys, part_from
from velado.data.table import Undeclared
from velado.errors import ParameterError, SchemaError
from velado.measure.models.encoder import EncoderSettings
from velado.measure.models.quality import QUALITIES
from velado.measure.models.registry import Model, model_named
from velado.study.evaluate.entries import (
    list_of,
    methods_of,
    numbers_of,
    one_of,
    share_of,
    text_of,
    unknown,
    whole_of,
    with_name,
)
from velado.study.evaluate.federated import FederatedPart, federated_part
from velado.study.evaluate.protocols import DEFAULT_PROTOCOL, PROTOCOLS, protocol_named
from velado.study.recipe import Per

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

    def method(self, entry: Mapping[str, Any], k: int | None) -> Method:
        """The method of *entry* at *k*, its parameters checked."""
        values = dict(entry) if k is None else {**entry, "k": k}
        method: Method = part_from(method_named(str(entry["name"])), values, f"method '{entry['name']}'")
        check_parameters(method)
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
    return "k" in {part.name for part in fields(method_named(name))}  # type: ignore[arg-type]


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
