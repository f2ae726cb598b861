"""What one run is told beside its table: declared once, for Python, recipes, studies and flags alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from velado.data.table import ReadSettings, Undeclared
from velado.release.guarantees._guarantee import Guarantee
from velado.release.guarantees.k_anonymity import CROWD
from velado.settings import Setting, Where, made, settings, specs

Unit = Literal["row", "person"]
Guarantees: TypeAlias = Sequence[Guarantee | type[Guarantee] | str] | Guarantee | type[Guarantee] | str
"""Promises as Python may give them: made, or by class or name where the defaults are meant."""


def _methods() -> Iterable[type[Any]]:
    from velado.release.methods import METHODS  # which import the goal, and that reads its limit here

    return METHODS


def _guarantees() -> Iterable[type[Any]]:
    from velado.release.guarantees import GUARANTEES

    return GUARANTEES


def _operations() -> Iterable[type[Any]]:
    from velado.release.operations import OPERATIONS

    return OPERATIONS


METHOD = Setting("how groups are made", parts=_methods, kind="method")
GUARANTEES_BEYOND = Setting("promises beyond k", parts=_guarantees, kind="guarantee")
OPERATIONS_FIRST = Setting("column operations done first", parts=_operations, kind="operation")
SeedSetting = Annotated[int, Setting("seed of every random choice", ge=0)]
CrowdSetting = Annotated[int | None, CROWD, Setting("rows or people in each group")]
SuppressionSetting = Annotated[float, Setting("share of rows that may be dropped", ge=0, le=1)]
UnitSetting = Annotated[Unit | None, Setting("what k counts; without it people where they are known")]
UndeclaredSetting = Annotated[Undeclared, specs(ReadSettings)["undeclared"].setting]
OrderSetting = Annotated[bool, Setting("publish the rows in the order of the input")]
ImproveSetting = Annotated[
    bool, Setting("exchange rows between the groups a method made until they lose less")
]
BlindSetting = Annotated[
    bool,
    Setting(
        "make groups without a look at sensitive values, and leave out those that break a promise about them"
    ),
]
Bound = Literal["off", "fast", "tight"]
BoundSetting = Annotated[Bound, Setting("how long the least loss that is possible is looked for")]

Plan = Literal["auto", "compress", "cut"]
PlanSetting = Annotated[
    Plan,
    Setting(
        "how an engine's table is grouped: from all its distinct tuples, or cut by histograms first; auto: by their number"
    ),
]


Reader = Literal["duckdb", "spark"]
"""Who reads files where they lie."""
ReaderSetting = Annotated[Reader, Setting("who counts and writes the rows of files where they lie")]


@settings(kw_only=True)
class RunSettings:
    """The settings that `anonymize`, `verify`, `compare`, `publish` and their flags share.

    >>> RunSettings(seed=3, guarantees="l-diversity").guarantees
    (LDiversity(l=2, column=None),)
    """

    method: Annotated[Any, METHOD] = "progressive"
    methods: Annotated[
        tuple[Any, ...] | None, Setting("methods to compare", parts=_methods, kind="method", items=1)
    ] = None
    guarantees: Annotated[tuple[Any, ...], GUARANTEES_BEYOND] = ()
    operations: Annotated[tuple[Any, ...], OPERATIONS_FIRST] = ()
    seed: SeedSetting = 0
    k: CrowdSetting = None
    suppression: SuppressionSetting = 0.0
    per: UnitSetting = None
    undeclared: UndeclaredSetting = "refuse"
    keep_order: OrderSetting = False
    improve: ImproveSetting = False
    blind: BlindSetting = False
    bound: BoundSetting = "fast"
    plan: PlanSetting = "auto"
    engine: ReaderSetting = "duckdb"


def run_settings(**given: object) -> RunSettings:
    """What was given to a function in Python, checked as a recipe's settings are.

    >>> run_settings(keep_order="no")
    Traceback (most recent call last):
    velado.errors.ParameterError: keep_order= cannot be 'no'. It takes true or false. Correct it.
    """
    return made(RunSettings, given, Where("python"))


@settings(section="data", kw_only=True)
class DataSection:
    """[data]: the schema, the column that models learn, the columns they may use, and what is not declared.

    >>> DataSection(schema="schema.toml", target="ill").undeclared
    'refuse'
    """

    schema: Annotated[str, Setting("the schema's file, looked for beside the recipe", items=1)]
    target: Annotated[str, Setting("the column models learn; published, and no quasi-identifier", items=1)]
    features: Annotated[
        tuple[str, ...] | None,
        Setting("the columns models may use; without it every published one but free text", items=1),
    ] = None
    undeclared: UndeclaredSetting = "refuse"
