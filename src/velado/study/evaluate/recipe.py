"""StudyRecipe: the five phases of an evaluation as sections of one file. Pure: `load` brings in the table.

[data]           table, schema, target, positive, features, undeclared
[anonymization]  methods, k, guarantees, seeds, suppression, per
[models]         use, interval, taxonomy, widest
[metrics]        quality, loss, risk
[analyses]       protocols, test_share, folds, confidence, most_drop, most_risk
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, get_args

from velado.anonymize.guarantees import GUARANTEES
from velado.anonymize.guarantees.base import Guarantee
from velado.anonymize.methods import method_named
from velado.anonymize.methods.base import Method
from velado.anonymize.methods.parameters import check_parameters
from velado.data.table import Undeclared
from velado.errors import ParameterError, SchemaError
from velado.measure.models.encoder import EncoderSettings
from velado.measure.models.quality import QUALITIES
from velado.measure.models.registry import Model, model_named
from velado.study.evaluate.protocols import DEFAULT_PROTOCOL, protocol_named
from velado.study.parameters import entry_of, known_keys, part_from
from velado.study.recipe import Per

SECTIONS = ("data", "anonymization", "models", "metrics", "analyses")
LOSSES = ("ncp", "discernibility", "average_group_size")
RISKS = ("record_linkage", "reidentification", "highest_risk")


@dataclass(frozen=True)
class StudyRecipe:
    """Everything a study needs but the rows. *methods* are kinds with their settings; k is put in by the grid.

    *guarantees* is one more axis of the grid: each entry is a set of promises beyond k, the empty set among them.
    *most_drop* is how much of the first quality a release may lose to be recommended, *most_risk* the most risk.
    """

    table: str
    schema: str
    target: str
    methods: tuple[Mapping[str, Any], ...]
    models: tuple[Model, ...]
    k: tuple[int, ...] = (5, 10, 20)
    guarantees: tuple[tuple[Guarantee, ...], ...] = ((),)
    seeds: tuple[int, ...] = (0, 1, 2)
    positive: str | None = None
    features: tuple[str, ...] | None = None
    undeclared: Undeclared = "refuse"
    suppression: float = 0.0
    per: Per | None = None
    encoder: EncoderSettings = field(default_factory=EncoderSettings)
    quality: tuple[str, ...] = ("accuracy", "f1", "auc", "log_loss")
    loss: str = "ncp"
    risk: str = "record_linkage"
    protocols: tuple[str, ...] = (DEFAULT_PROTOCOL,)
    test_share: float = 0.25
    folds: int = 5
    confidence: float = 0.95
    most_drop: float = 0.01
    most_risk: float | None = None

    def method(self, entry: Mapping[str, Any], k: int | None) -> Method:
        """The method of *entry* at *k*, its parameters checked."""
        values = dict(entry) if k is None else {**entry, "k": k}
        method: Method = part_from(method_named(str(entry["name"])), values, f"method '{entry['name']}'")
        check_parameters(method)
        return method

    def to_dict(self) -> dict[str, Any]:
        """The five sections, every default written out."""
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
        return {
            "data": data,
            "anonymization": anonymization,
            "models": {"use": [entry_of(model) for model in self.models], **asdict(self.encoder)},
            "metrics": {"quality": list(self.quality), "loss": self.loss, "risk": self.risk},
            "analyses": {"protocols": list(self.protocols), **analyses},
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> StudyRecipe:
        """From parsed TOML. Nothing unknown is passed over; a misspelt key or name is answered with the nearest."""
        known_keys(document, SECTIONS, "the study")
        parts = {name: _section(document, name) for name in SECTIONS}
        settings = _data(parts["data"]) | _anonymization(parts["anonymization"])
        settings |= _models(parts["models"]) | _metrics(parts["metrics"]) | _analyses(parts["analyses"])
        return cls(**settings)


def _section(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    entry = document.get(name, {})
    if not isinstance(entry, Mapping) or (not entry and name in ("data", "anonymization", "models")):
        raise SchemaError(
            f"The study has no [{name}].", "It is one of the five phases.", f"Add a table [{name}]."
        )
    return entry


def _data(entry: Mapping[str, Any]) -> dict[str, Any]:
    known_keys(entry, ("table", "schema", "target", "positive", "features", "undeclared"), "[data]")
    out = {name: _text(entry, name, "[data]") for name in ("table", "schema", "target")}
    if "positive" in entry:
        out["positive"] = _text(entry, "positive", "[data]")
    if "undeclared" in entry:
        out["undeclared"] = _one_of(entry["undeclared"], get_args(Undeclared), "'undeclared' in [data]")
    if "features" in entry:
        named = _list(entry["features"], "'features' in [data]", str)
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
    out: dict[str, Any] = {"methods": tuple(_method(one) for one in _list(entry["methods"], "'methods'"))}
    if len(set(map(repr, out["methods"]))) < len(out["methods"]):
        raise SchemaError(
            "A method is listed twice.", "Its cells would be the same.", "Remove one of the two."
        )
    for name, least in (("k", 2), ("seeds", 0)):
        if name in entry:
            numbers = _list(entry[name], f"'{name}' in [anonymization]", int)
            if any(number < least for number in numbers) or len(set(numbers)) < len(numbers):
                raise ParameterError(
                    f"'{name}' in [anonymization] has a number below {least}, or one twice.",
                    "Below 2 a crowd hides nobody." if name == "k" else "Each seed is one repetition.",
                    f"Write different whole numbers of at least {least}.",
                )
            out[name] = tuple(numbers)
    if "guarantees" in entry:
        sets = _list(entry["guarantees"], "'guarantees' in [anonymization]")
        out["guarantees"] = tuple(
            tuple(_guarantee(one) for one in (item if isinstance(item, list) else [item])) for item in sets
        )
    if "suppression" in entry:
        out["suppression"] = _share(entry["suppression"], "'suppression' in [anonymization]")
    if "per" in entry:
        out["per"] = _one_of(entry["per"], get_args(Per), "'per' in [anonymization]")
    return out


def _method(entry: Any) -> dict[str, Any]:
    values = _with_name(entry, "'methods' in [anonymization]")
    kind = method_named(values["name"])
    if "k" in values:
        raise SchemaError(
            f"The method '{kind.name}' is given a k of its own.",
            "k is an axis of the grid, the same for all methods.",
            "Remove it there and list it in k = [...] of [anonymization].",
        )
    check_parameters(part_from(kind, values, f"method '{kind.name}'"))
    return values


def has_k(name: str) -> bool:
    """Whether the method of this name promises a class size, so that k is an axis for it."""
    return "k" in {part.name for part in fields(method_named(name))}  # type: ignore[arg-type]


def _guarantee(entry: Any) -> Guarantee:
    values = _with_name(entry, "'guarantees' in [anonymization]")
    for kind in GUARANTEES:
        if kind.name == values["name"]:
            made: Guarantee = part_from(kind, values, f"guarantee '{kind.name}'")
            return made
    raise _unknown("guarantee", values["name"], [kind.name for kind in GUARANTEES])


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
    for one in _list(entry["use"], "'use' in [models]"):
        values = _with_name(one, "'use' in [models]")
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
        named = _list(entry["quality"], "'quality' in [metrics]", str)
        out["quality"] = tuple(_one_of(name, QUALITIES, "'quality' in [metrics]") for name in named)
    for name, choices in (("loss", LOSSES), ("risk", RISKS)):
        if name in entry:
            out[name] = _one_of(entry[name], choices, f"'{name}' in [metrics]")
    return out


def _analyses(entry: Mapping[str, Any]) -> dict[str, Any]:
    shares = ("test_share", "confidence", "most_drop", "most_risk")
    known_keys(entry, ("protocols", "folds", *shares), "[analyses]")
    out: dict[str, Any] = {
        name: _share(entry[name], f"'{name}' in [analyses]") for name in shares if name in entry
    }
    for name in ("test_share", "confidence"):
        if name in out and not 0 < out[name] < 1:
            raise ParameterError(
                f"'{name}' in [analyses] is {out[name]:g}.", "It must lie between 0 and 1.", "Correct it."
            )
    if "folds" in entry:
        (out["folds"],) = _list([entry["folds"]], "'folds' in [analyses]", int)
        if out["folds"] < 2:
            raise ParameterError(
                "'folds' in [analyses] is below 2.", "One fold leaves no training rows.", "Raise it."
            )
    if "protocols" in entry:
        named = _list(entry["protocols"], "'protocols' in [analyses]", str)
        out["protocols"] = tuple(dict.fromkeys(protocol_named(name).name for name in named))
    return out


def _with_name(entry: Any, where: str) -> dict[str, Any]:
    values = {"name": entry} if isinstance(entry, str) else entry
    if not isinstance(values, Mapping) or not isinstance(values.get("name"), str):
        raise SchemaError(
            f"An entry of {where} has no name.",
            "What to run is not known.",
            'Write "NAME", or { name = "NAME", ... }.',
        )
    return dict(values)


def _list(value: Any, what: str, kind: type | None = None) -> list[Any]:
    fits = isinstance(value, list) and bool(value)
    if fits and kind is not None:
        fits = all(isinstance(one, kind) and not isinstance(one, bool) for one in value)
    if not fits:
        of = "" if kind is None else {int: " of whole numbers", str: " of texts"}[kind]
        raise SchemaError(
            f"{what} is not a list{of}, or empty.", "It is an axis of the grid.", "Write [a, b]."
        )
    return list(value)


def _text(entry: Mapping[str, Any], name: str, where: str) -> str:
    if not isinstance(entry.get(name), str) or not entry[name]:
        raise SchemaError(
            f"{where} has no '{name}', or it is no text.",
            "The study cannot be run without it.",
            f'Add {name} = "...".',
        )
    return str(entry[name])


def _share(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ParameterError(f"{what} is not a share.", "It is a number from 0 to 1.", "Correct it.")
    return float(value)


def _one_of(value: Any, choices: Sequence[str], what: str) -> Any:
    if value not in choices:
        raise _unknown(what, str(value), choices)
    return value


def _unknown(what: str, name: str, choices: Sequence[str]) -> ParameterError:
    import difflib

    near = difflib.get_close_matches(name, choices, n=1, cutoff=0.4)
    return ParameterError(
        f"'{name}' is not known ({what}).",
        f"It is one of {', '.join(choices)}.",
        f"Did you mean '{near[0]}'?" if near else "Choose one of them.",
    )
