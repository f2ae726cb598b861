"""StudyRecipe: the five phases of an evaluation, and training across clients, as sections of one file.

[data]           table, schema, target, positive, features, undeclared
[anonymization]  methods, k, guarantees, seeds, suppression, per
[models]         use, interval, taxonomy, widest
[metrics]        quality, loss, risk
[analyses]       protocols, test_share, folds, confidence, most_drop, most_risk
[federated]      optional: models, splits, alpha, methods, k, seeds, and the settings of a federation

Pure: `load` brings in the table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from importlib.util import find_spec
from typing import Annotated, Literal

from velado.errors import MissingExtra, ParameterError, SchemaError
from velado.learning.flower.federation import Federation
from velado.measures.measure_registry import losses, risks
from velado.measures.models._model import Model
from velado.measures.models.encoder import EncoderSettings
from velado.measures.models.model_registry import MODELS
from velado.measures.models.number_quality import NUMBER_QUALITIES
from velado.measures.models.quality import QUALITIES
from velado.release.guarantees import GUARANTEES
from velado.release.guarantees._guarantee import Guarantee
from velado.release.guarantees.k_anonymity import CROWD
from velado.release.methods import METHODS
from velado.release.methods._method import Method
from velado.release.run_settings import (
    BlindSetting,
    DataSection,
    ImproveSetting,
    SuppressionSetting,
    UnitSetting,
)
from velado.settings import Setting, Where, read, settings, specs, table_of, unknown_key
from velado.study.evaluate.protocols import DEFAULT_PROTOCOL, PROTOCOLS
from velado.text import say

LARGEST_SEED = 2**32 - 1
"""scikit-learn takes no larger one."""


def _each_once(values: Sequence[object]) -> bool:
    return all(one not in values[:at] for at, one in enumerate(values))


_AXIS = Setting(items=1, test=_each_once)


Ks = Annotated[
    tuple[Annotated[int, CROWD], ...],
    _AXIS,
    Setting(
        "group sizes: one axis for every method that has a k",
        takes="a list of different whole numbers, at least 2",
        why=CROWD.why,
    ),
]
Seeds = Annotated[
    tuple[Annotated[int, Setting(ge=0, le=LARGEST_SEED, why="Each seed is one repetition.")], ...],
    _AXIS,
    Setting(
        "each is one split, one run of every method and one training of every model; fewer than three show no interval",
        takes="a list of different whole numbers, at least 0",
    ),
]
Methods = Annotated[
    tuple[Method, ...],
    Setting(parts=lambda: METHODS, kind="method"),
    _AXIS,
    Setting(
        'names, or `{ name = "mondrian", cut = "relaxed" }` with settings of the method',
        takes="a list of different methods",
    ),
]
Share = Annotated[float, Setting(ge=0, le=1)]
Inside = Annotated[float, Setting(gt=0, lt=1)]


@settings(section="data", kw_only=True)
class StudyData(DataSection):
    """The table, its schema, and what models learn.

    >>> StudyData(table="t.csv", schema="s.toml", target="ill").positive is None
    True
    """

    table: Annotated[str, Setting("the table's file, looked for beside the study file", items=1)]
    positive: Annotated[
        str | None,
        Setting(
            "the class whose precision, recall, F1 and AUC are meant; without it they are means over the classes"
        ),
    ] = None


@settings(section="anonymization", kw_only=True)
class AnonymizationAxes:
    """The releases that are made: every method x k x set of promises x seed.

    >>> AnonymizationAxes(methods=["mdav"], k=[3, 6]).seeds
    (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
    """

    methods: Methods
    k: Ks = (5, 10, 20)
    guarantees: Annotated[
        tuple[tuple[Guarantee, ...], ...],
        Setting(
            'promises beyond k, one more axis: `[[], { name = "l-diversity", l = 2 }]` runs without and with it',
            parts=lambda: GUARANTEES,
            kind="guarantee",
            items=1,
        ),
    ] = ((),)
    seeds: Seeds = tuple(range(10))
    suppression: SuppressionSetting = 0.0
    improve: ImproveSetting = False
    blind: BlindSetting = False
    per: UnitSetting = None

    def __post_init__(self) -> None:
        sets = [
            sorted(map(repr, promised)) for promised in self.guarantees
        ]  # the order of a set says nothing
        for twice, what in (
            (any(not _each_once(one) for one in sets), say("A set of guarantees has the same one twice.")),
            (not _each_once(sets), say("A set of guarantees is listed twice.")),
        ):
            if twice:
                raise ParameterError(what, "Its cells would be the same.", "Remove one of the two.")


@settings(section="models", kw_only=True)
class StudyModels(EncoderSettings):
    """The models that are trained, and how cells become numbers for them.

    >>> StudyModels(use=["knn"]).encoding
    {'interval': 'midpoint', 'taxonomy': 'shares', 'widest': 256, 'taught_with': 'ranges'}
    """

    use: Annotated[
        tuple[Model, ...],
        Setting(parts=lambda: MODELS, kind="model"),
        _AXIS,
        Setting(
            'names, or `{ name = "knn", neighbours = 5 }` with settings of the model',
            takes="a list of different models",
        ),
    ]

    @property
    def encoding(self) -> dict[str, object]:
        """How cells become numbers, by name."""
        return {one.name: getattr(self, one.name) for one in fields(EncoderSettings)}


@settings(section="metrics", kw_only=True)
class StudyMetrics:
    """What is measured of every release and model; the first quality decides.

    >>> StudyMetrics(quality=["auc"]).risk
    'record_linkage'
    """

    quality: Annotated[
        tuple[Annotated[str, Setting(choices=(*QUALITIES, *NUMBER_QUALITIES))], ...],
        _AXIS,
        Setting(
            "what is shown of every model; the first one decides. Models of numbers have `r2`, `rmse` and `mae`, and by "
            "default these",
            takes=say("different ones of {words}", words=", ".join((*QUALITIES, *NUMBER_QUALITIES))),
        ),
    ] = ("accuracy", "precision", "recall", "f1", "auc", "log_loss")
    loss: Annotated[str, Setting("what a release lost", choices=losses)] = "ncp"
    risk: Annotated[str, Setting("what an attacker can do with it", choices=risks)] = "record_linkage"


@settings(section="analyses", kw_only=True)
class StudyAnalyses:
    """How rows are split and tested, how sure intervals are, and what a recommended setting may cost.

    >>> StudyAnalyses(most_drop=0.02).protocols
    ('split-first',)
    """

    protocols: Annotated[
        tuple[Annotated[str, Setting(choices=lambda: [one.name for one in PROTOCOLS])], ...],
        _AXIS,
        Setting("how rows are split and tested", takes="a list of different protocols"),
    ] = (DEFAULT_PROTOCOL,)
    test_share: Annotated[Inside, Setting("the part of the rows that is set aside")] = 0.25
    folds: Annotated[int, Setting("folds of `paper-gok`", ge=2, why="One fold leaves no training rows.")] = 5
    confidence: Annotated[Inside, Setting("of the intervals")] = 0.95
    most_drop: Annotated[Share, Setting("what a setting may lose of the first quality to be recommended")] = (
        0.01
    )
    most_risk: Annotated[Share | None, Setting("the most risk a recommended setting may leave")] = None


_AS_BEFORE = Setting("as in [anonymization], and by default those")
_AXES = ("model", "split", "alpha")
FEDERATION = tuple(name for name in (one.name for one in fields(Federation)) if name not in _AXES)
"""The keys of [federated] that are settings of a federation and no axes."""


@settings(section="federated", kw_only=True)
class FederatedAxes:
    """What is trained across clients: every model x split x method x k x seed, and the untouched rows beside them.

    *engine* carries the messages of Flower's apps: "loop" within one process, so that runs go side by side; "flower"
    through its simulation engine, with a process per core and one run at a time. Both give the same numbers, so that no
    cell depends on it.

    >>> [one.alpha for one in FederatedAxes(splits=["dirichlet"], alpha=[0.1, 1]).federations]
    [0.1, 1.0]
    """

    methods: Annotated[Methods, _AS_BEFORE] = ()
    k: Annotated[Ks, _AS_BEFORE] = ()
    seeds: Annotated[Seeds, _AS_BEFORE] = ()
    models: Annotated[
        tuple[Literal["logistic", "xgboost"], ...],
        _AXIS,
        Setting("logistic regression (FedAvg) or XGBoost (bagging)", takes="a list of different models"),
    ] = ("logistic",)
    splits: Annotated[
        tuple[Literal["iid", "dirichlet"], ...],
        _AXIS,
        Setting("how the rows are dealt out to the clients", takes="a list of different splits"),
    ] = ("iid",)
    alpha: Annotated[
        tuple[Annotated[float, Setting(ge=1e-3)], ...],
        _AXIS,
        Setting(
            "Dirichlet concentration over the classes; small: unlike clients. One or several",
            takes="a list of different numbers",
        ),
    ] = (0.5,)
    engine: Annotated[
        Literal["flower", "loop"],
        Setting(
            "messages within one process, runs side by side; or through Flower's simulation engine, one run at a time; "
            "the numbers are the same"
        ),
    ] = "loop"
    federation: Federation = Federation()

    @property
    def federations(self) -> tuple[Federation, ...]:
        """One for each model and way to deal out the rows; alpha is an axis of Dirichlet splits alone."""
        ways = [
            (split, alpha)
            for split in self.splits
            for alpha in (self.alpha if split == "dirichlet" else (Federation.alpha,))
        ]
        return tuple(
            replace(self.federation, model=model, split=split, alpha=alpha)
            for model in self.models
            for split, alpha in ways
        )


@settings(kw_only=True)
class StudyRecipe:
    """Everything a study needs but the rows. *methods* are kinds with their settings; k is put in by the grid.

    *guarantees* is one more axis of the grid: each entry is a set of promises beyond k, the empty set among them.
    *most_drop* is how much of the first quality a release may lose to be recommended, *most_risk* the most risk.

    >>> recipe = StudyRecipe.from_dict({
    ...     "data": {"table": "people.csv", "schema": "schema.toml", "target": "ill"},
    ...     "anonymization": {"methods": ["mondrian"]}, "models": {"use": ["knn"]}})
    >>> recipe.anonymization.k, recipe.metrics.loss, recipe.federated
    ((5, 10, 20), 'ncp', None)
    """

    data: StudyData
    anonymization: AnonymizationAxes
    models: StudyModels
    metrics: StudyMetrics = StudyMetrics()
    analyses: StudyAnalyses = StudyAnalyses()
    federated: FederatedAxes | None = None

    @property
    def number(self) -> bool:
        """Whether the models answer with numbers; else they tell classes apart."""
        return any(one.predicts == "number" for one in self.models.use)

    def to_dict(self) -> dict[str, object]:
        """The five sections, and the sixth where it is used, as a file holds them; every default written out."""
        out = table_of(self)
        if self.federated is not None:
            own, given = table_of(self.federated), table_of(self.federated.federation)
            del own["federation"]
            out["federated"] = own | {name: given[name] for name in FEDERATION if name in given}
        return out

    @classmethod
    def from_dict(cls, document: Mapping[str, object]) -> "StudyRecipe":
        """From parsed TOML. Nothing unknown is passed over; a misspelt key or name is answered with the nearest."""
        place = Where("file", say("the study"))
        given = dict(document)
        for name in ("anonymization", "federated"):
            _no_k(given.get(name), name)
        part = given.get("federated")
        if isinstance(part, Mapping):
            given["federated"] = _federated(part, place.inside("federated"))
        made = read(cls, given, place)
        metrics = given.get("metrics")
        if made.number and not (isinstance(metrics, Mapping) and "quality" in metrics):
            made = replace(made, metrics=replace(made.metrics, quality=NUMBER_QUALITIES))
        _of_one_kind(made)
        if made.federated is None:
            return made
        # What the section leaves out is taken from the other phases.
        axes = {
            name: getattr(made.anonymization, name)
            for name in ("methods", "k", "seeds")
            if not getattr(made.federated, name)
        }
        federation = made.federated.federation
        if isinstance(part, Mapping) and "test_share" not in part:
            federation = replace(federation, test_share=made.analyses.test_share)
        return replace(made, federated=replace(made.federated, federation=federation, **axes))


def _federated(part: Mapping[str, object], place: Where) -> dict[str, object]:
    """The table [federated] with the settings of a federation in a table of their own."""
    axes = [name for name in specs(FederatedAxes) if name != "federation"]
    for key in part:
        if key not in (*axes, *FEDERATION):
            raise unknown_key(key, (*axes, *FEDERATION), place)
    out = {key: value for key, value in part.items() if key in axes}
    given = {key: value for key, value in part.items() if key in FEDERATION}
    return {**out, "federation": read(Federation, given, place)}


def _of_one_kind(made: "StudyRecipe") -> None:
    """Models and qualities are all of numbers, or all of classes."""
    classes = [one.name for one in made.models.use if one.predicts == "class"]
    if made.number and classes:
        raise SchemaError(
            say(
                "[models] use has models of numbers, and '{name}', which tells classes apart.",
                name=classes[0],
            ),
            "A target is a number or a class, and a study has one target.",
            "Keep one kind; make a study of its own for the other.",
        )
    known = NUMBER_QUALITIES if made.number else QUALITIES
    odd = [name for name in made.metrics.quality if name not in known]
    if odd:
        raise SchemaError(
            say("The models of the study have no '{name}'.", name=odd[0]),
            "It is measured of numbers only."
            if odd[0] in NUMBER_QUALITIES
            else "It is measured of classes only.",
            say("Choose among {names} in [metrics] quality, or other models.", names=", ".join(known)),
        )
    if made.number and made.federated is not None:
        raise SchemaError(
            "The section [federated] trains models that tell classes apart, and the target is a number.",
            "Training across clients knows classes only.",
            "Leave the section out, or choose a target with classes.",
        )


def _no_k(section: object, name: str) -> None:
    entries = section.get("methods") if isinstance(section, Mapping) else None
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, Mapping) and "k" in entry:
            raise SchemaError(
                say("The method '{name}' is given a k of its own.", name=str(entry.get("name"))),
                "k is an axis of the grid, the same for all methods.",
                say("Remove it there and list it in k = [...] of [{section}].", section=name),
            )


def require_federated(part: FederatedAxes) -> None:
    """What the section needs is installed, or MissingExtra says which extra brings it.

    >>> require_federated(FederatedAxes())
    """
    for library in ("flwr", *(("xgboost",) if "xgboost" in part.models else ())):
        if find_spec(library) is None:
            raise MissingExtra(
                say("The section [federated] needs {library}, which is not installed.", library=library),
                "Training across clients is an extra, so that publishing tables stays light.",
                'Install it with pip install "velado[federated]", or leave the section out.',
            )


def has_k(method: Method | type[Method]) -> bool:
    """Whether the method promises a group size, so that k is an axis for it.

    >>> [method.name for method in METHODS if not has_k(method)]
    ['das', 'fixed-interval']
    """
    return method.promise != "measured"


def label_of(part: Method | Guarantee | Model) -> str:
    """`name` or `name(setting=value, ...)` of a method, guarantee or model; defaults left out.

    >>> from velado.release.methods import Mondrian
    >>> label_of(Mondrian(cut="relaxed")), label_of(Mondrian())
    ('mondrian(cut=relaxed)', 'mondrian')
    """
    inside = ", ".join(f"{key}={value}" for key, value in table_of(part, defaults=False).items())
    return f"{part.name}({inside})" if inside else part.name
