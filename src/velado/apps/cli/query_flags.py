"""The flags of `velado query`: how exact or how dear, who is protected, the source's approaches, and where the rows are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

from velado.apps.cli import options as flags
from velado.apps.cli.app import option
from velado.errors import ParameterError
from velado.text import say

if TYPE_CHECKING:
    from velado.data.schema import Schema
    from velado.query.budget import Budget, Measure
    from velado.query.unit import Unit

RECORD = "record"


def flag_of(name: str) -> str:
    """A setting's name as a flag.

    >>> flag_of("min_points")
    '--min-points'
    """
    return "--" + name.replace("_", "-")


@dataclass(frozen=True, kw_only=True)
class PriceFlags:
    """How exact an answer is to be or what it may cost, and of which account."""

    within: Annotated[
        str | None,
        option(
            "--within N|N%",
            help=(
                "How exact: the least spend is found with which each value is off by no more (95%, or --confidence). A "
                "number in the value's own unit, or a percentage of all it can be."
            ),
        ),
    ] = None
    epsilon: flags.Epsilon = None
    rho: flags.Rho = None
    delta: Annotated[
        str | None,
        option(
            "--delta D",
            help=(
                "With --rho: the delta at which it is told as an epsilon. With --budget alone: the promise is that epsilon but for a "
                "chance of D, and is held as epsilon or as rho, whichever pays more questions like this one."
            ),
        ),
    ] = None
    budget: Annotated[
        str | None,
        option(
            "--budget E",
            help="Total for all questions about this file, when its ledger is made; default: this question alone.",
        ),
    ] = None
    ledger: Annotated[
        str | None,
        option(
            "--ledger PATH|URL",
            help="The ledger; default: as [dataset] of the schema says, else FILE.ledger.",
        ),
    ] = None
    seal: flags.SealFile = None
    analyst: Annotated[str, option("--analyst NAME", help="Who asks.")] = "owner"
    price: Annotated[bool, option("--price", help="Say what it would cost, and ask nothing.")] = False

    def either(self) -> tuple[Budget, ...]:
        """The ways to hold a total that was promised as an epsilon with a delta, the stronger first; none where it was not."""
        from velado.query.budget import Budget

        if self.delta is None or self.budget is None or self.epsilon is not None or self.rho is not None:
            return ()
        return Budget.epsilon(self.budget), Budget.approximate(self.budget, self.delta)

    def allowed(
        self, usual: Callable[[Measure], Fraction] | None, counted: Measure = "epsilon"
    ) -> Budget | None:
        """What this question may cost, or as much as the table's size suggests; None where its accuracy alone decides.

        Where neither epsilon nor rho was named, it is *counted* as the account is.
        """
        from velado.query.budget import Budget, spend_of
        from velado.settings import Where

        both = self.epsilon is not None and self.rho is not None
        none = self.epsilon is None and self.rho is None
        if both or (self.delta is not None and self.rho is None and not self.either()):
            raise ParameterError(
                "A question is asked with either --epsilon, or --rho (and, if you like, --delta).",
                "It is the most this question may cost. Without both, --delta goes with --budget.",
                "Write for example --epsilon 0.5, or --within 20 --budget 2 --delta 1e-9.",
            )
        if none and self.within is not None:
            return None
        if none and usual is not None:
            return Budget(counted, usual(counted))
        if none:
            raise ParameterError(
                "It was not said how exact the answer is to be, nor what it may cost.",
                "Both are yours to decide: the more exact, the more of the budget it takes.",
                "Write for example --within 10, --within 5% (with rows = N in [dataset] of the schema), or --epsilon 0.5.",
            )
        if self.rho is None:
            return Budget.epsilon(spend_of(self.epsilon, "epsilon", Where("flag")))
        return Budget.rho(spend_of(self.rho, "rho", Where("flag")), self.delta)

    def total(self, asked: Budget) -> Budget | None:
        """What all questions together may cost, if that was said."""
        from velado.query.budget import Budget, spend_of
        from velado.settings import Where

        if self.budget is None:
            return None
        total = Budget(asked.measure, spend_of(self.budget, "budget", Where("flag")), asked.delta)
        self.check_total(asked, total)
        return total

    @staticmethod
    def check_total(asked: Budget, total: Budget) -> None:
        """Refuse a total that does not pay this question."""
        if total.total < asked.total:
            raise ParameterError(
                "--budget is less than what this question may cost.",
                "The ledger would be made and the question refused.",
                "Lower --epsilon or --rho, ask for a larger half-width, or raise --budget.",
            )


@dataclass(frozen=True, kw_only=True)
class ProtectedFlags:
    """Who is protected."""

    unit: Annotated[
        str | None,
        option(
            "--unit COLUMN|record",
            help="Who is protected: all rows of one value of a column, or one record; default: as the schema declares.",
        ),
    ] = None
    rows: Annotated[
        int | None, option("--rows", min=1, help="With --unit: the most rows of a group that count.")
    ] = None
    dependence: Annotated[
        str | None,
        option(
            "--dependence D",
            help=(
                "With a group: the most by which a related row's contribution to any answer asked moves, as a fraction "
                "of all it could; a bound on its values alone does not do for COUNT with WHERE. Default: fully."
            ),
        ),
    ] = None

    def in_(self, schema: Schema) -> Unit:
        """The unit of protection: as asked, else as the schema declares."""
        from velado.query.budget import exact
        from velado.query.unit import Unit

        share = None if self.dependence is None else exact(self.dependence)
        if self.unit is None and self.rows is None:
            found = Unit.declared(schema)
            return found if share is None else Unit(found.column, found.rows, share)
        if self.unit is None or (self.unit == RECORD) != (self.rows is None):
            raise ParameterError(
                "--unit and --rows do not fit together.",
                "A group needs its column and the most rows that count; one record needs neither.",
                "Write for example --unit household --rows 10, or --unit record.",
            )
        return Unit(None, 1, share) if self.unit == RECORD else Unit(self.unit, int(self.rows or 1), share)


@dataclass(frozen=True, kw_only=True)
class PaperFlags:
    """The approaches of the source on correlated records, which promise nothing."""

    paper: Annotated[
        str | None,
        option("--paper NAME", help="As in the source, without any promise: baseline, dbscan, gmm, gmm-rfe."),
    ] = None
    scale_parameter: Annotated[
        float, option("--scale-parameter", help="With --paper: the epsilon of the source.")
    ] = 1.0
    eps: Annotated[float | None, option("--eps", help="With --paper dbscan: how near.")] = None
    min_points: Annotated[
        int | None,
        option(
            "--min-points",
            help="With --paper dbscan: neighbours of a core point, itself included (minPoints).",
        ),
    ] = None
    threshold: Annotated[
        float | None,
        option(
            "--threshold",
            help="With --paper baseline or dbscan: correlations at or below it count as 0 (delta_0 of the source).",
        ),
    ] = None
    coefficient: Annotated[
        str | None,
        option(
            "--coefficient NAME", help="With --paper baseline, dbscan or gmm: spearman (default) or pearson."
        ),
    ] = None
    components: Annotated[
        int | None,
        option("--components", help="With --paper gmm or gmm-rfe: Gaussians; default: BIC chooses."),
    ] = None
    keep: Annotated[int | None, option("--keep", help="With --paper gmm-rfe: columns kept.")] = None
    target: Annotated[
        str | None,
        option(
            "--target COLUMN",
            help="With --paper: the column records are not compared by, and gmm-rfe's target.",
        ),
    ] = None
    impute: Annotated[
        list[str] | None,
        option(
            "--impute COLUMN[:WAY]",
            help="With --paper: fill the column's blanks first, by median, mean, most-frequent or neighbours.",
        ),
    ] = None
    show_unprotected: Annotated[
        bool, option("--show-unprotected", help="With --paper: show answers that get no noise.")
    ] = False
    seed: Annotated[int, option("--seed", help="With --paper: makes the run repeatable.")] = 0

    def refuse_alone(self) -> None:
        """Refuse a flag of the source's approaches where none of them was asked for."""
        for one in fields(self):
            if self.paper is None and getattr(self, one.name) != one.default:
                raise ParameterError(
                    say("{flag} needs --paper.", flag=flag_of(one.name)),
                    "It is a setting of the source's approaches; a private answer does not have it.",
                    "Leave it out, or name the approach, for example --paper dbscan.",
                )


@dataclass(frozen=True, kw_only=True)
class SourceFlags:
    """Where the rows are."""

    engine: Annotated[str, option("--engine duckdb|URL", help="DuckDB, or a PostgreSQL address.")] = "duckdb"
    relation: Annotated[str | None, option("--relation NAME", help="The table's name in SQL.")] = None

    @property
    def remote(self) -> bool:
        """Whether the rows are in a database."""
        return self.engine != "duckdb"
