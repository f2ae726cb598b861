"""Which account a question of `velado query` is paid from, in which measure it counts, and what the question costs there."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from velado.apps.cli.query_flags import PriceFlags, ProtectedFlags, SourceFlags
from velado.errors import ParameterError

if TYPE_CHECKING:
    from velado.data.schema import Schema
    from velado.query.accuracy import Wish
    from velado.query.budget import Budget, LedgerState, Measure
    from velado.query.unit import Unit


class _Plan(Protocol):
    @property
    def charge(self) -> Fraction: ...


Made = TypeVar("Made", bound=_Plan)


@dataclass(frozen=True, kw_only=True)
class Priced(Generic[Made]):
    """A question priced: its plan, what it may cost, the *total* to make a ledger with, and the *account* with what is *left* of it.

    *total* is None where none was said, *account* where the question would be paid from one of its own.
    """

    made: Made
    asked: Budget
    total: Budget | None
    account: Budget | None
    left: Fraction

    def facts(self) -> dict[str, Any]:
        """The account as JSON has it, and how many such questions it pays."""
        from velado.query.budget import how_many

        if self.account is None:
            return {}
        charge = self.made.charge
        return {
            "account": self.account.to_dict(),
            "left": str(self.left),
            "questions": how_many(self.left, charge) if charge else None,
        }


@dataclass(frozen=True, kw_only=True)
class Ready:
    """What a question is asked under, all of it public and checked before a ledger is made or a row is read."""

    declared: Schema
    ledger: str | Path | None
    unit: Unit
    name: str
    sure: Fraction
    usual: Callable[[Measure], Fraction] | None
    held: LedgerState | None
    price: PriceFlags

    @classmethod
    def of(
        cls,
        file: Path,
        schema: Path,
        price: PriceFlags,
        protected: ProtectedFlags,
        source: SourceFlags,
        confidence: float,
    ) -> Ready:
        """As the flags, the schema and the ledger, where there is one, say."""
        from velado.data.io import read_schema
        from velado.query.accuracy import suggested_spend
        from velado.query.session import analyst_name, check_unit_column, confidence_level, table_name

        declared = read_schema(schema)
        ledger = price.ledger or declared.dataset.ledger_file
        if source.remote and (source.relation is None or ledger is None):
            raise ParameterError(
                "With a PostgreSQL engine --relation and --ledger are needed.",
                "There is no file to name the table or to keep the ledger beside.",
                "Name the table and a ledger, for example --relation admissions --ledger admissions.ledger.",
            )
        unit = protected.in_(declared)
        check_unit_column(unit, declared)
        sure = confidence_level(confidence)
        analyst_name(price.analyst)
        rows = declared.dataset.rows
        usual = None if rows is None else partial(suggested_spend, unit, rows)
        price.allowed(usual)
        return cls(
            declared=declared,
            ledger=ledger,
            unit=unit,
            name=table_name(file.name) if source.relation is None else source.relation.rpartition(".")[2],
            sure=sure,
            usual=usual,
            held=_held(price, file, ledger),
            price=price,
        )

    def priced(
        self,
        by_spend: Callable[[Measure, Fraction], Made],
        by_wish: Callable[[Measure, Wish, Fraction], Made],
    ) -> Priced[Made]:
        """The question's plan by its spend or by its accuracy, in the measure of its account.

        Of a ledger that is to be made for an epsilon with a delta, that is the measure in which it pays more such questions.
        """
        from velado.query.budget import Budget, roomiest, spend_of
        from velado.settings import Where

        price = self.price
        if self.held is not None:
            made, asked = self._in(self.held.budget.measure, self.held.budget.total, by_spend, by_wish)
            same = asked.measure == self.held.budget.measure
            return Priced(
                made=made,
                asked=asked,
                total=price.total(asked),
                account=self.held.budget if same else None,
                left=self.held.left_for(price.analyst) if same else Fraction(0),
            )
        either = price.either()
        if either:
            # The least spend is no part of the comparison: it is the same share of either total.
            total = roomiest(
                either, lambda one: self._in(one.measure, one.total, by_spend, by_wish)[0].charge or one.total
            )
            made, asked = self._in(total.measure, total.total, by_spend, by_wish)
            price.check_total(asked, total)
            return Priced(made=made, asked=asked, total=total, account=total, left=total.total)
        if price.budget is None:
            made, asked = self._in("epsilon", None, by_spend, by_wish)
            return Priced(made=made, asked=asked, total=None, account=None, left=Fraction(0))
        said = spend_of(price.budget, "budget", Where("flag"))
        made, asked = self._in("epsilon", said, by_spend, by_wish)
        whole = price.total(asked)
        return Priced(
            made=made, asked=asked, total=whole, account=whole or Budget("epsilon", said), left=said
        )

    def _in(
        self,
        measure: Measure,
        total: Fraction | None,
        by_spend: Callable[[Measure, Fraction], Made],
        by_wish: Callable[[Measure, Wish, Fraction], Made],
    ) -> tuple[Made, Budget]:
        """The plan under an account of that *total*, and what the question may cost."""
        from velado.query.accuracy import Wish, check_least, check_most, least_spend
        from velado.query.budget import LEAST, Budget
        from velado.settings import Where

        least = Fraction(0) if total is None else least_spend(total)
        allowed = self.price.allowed(self.usual, measure)
        if self.price.within is None:
            assert allowed is not None
            made = by_spend(allowed.measure, allowed.total)
            if made.charge:
                check_least(allowed.total, least, allowed.measure)
            return made, allowed
        counted = measure if allowed is None else allowed.measure
        made = by_wish(counted, Wish.of(self.price.within, "within", Where("flag")), least)
        check_most(made.charge, None if allowed is None else allowed.total, counted)
        # An answer made of declared bounds costs nothing, but an account of nothing cannot be opened.
        return made, Budget(counted, made.charge or LEAST, None if allowed is None else allowed.delta)


def _held(price: PriceFlags, file: Path, ledger: str | Path | None) -> LedgerState | None:
    """The state of the ledger that is there; None where it would be made."""
    from velado.query.store import ledger_exists, ledger_path, open_ledger

    place = ledger_path(file) if ledger is None else ledger
    if not ledger_exists(place, price.seal):
        return None
    with closing(open_ledger(place, price.seal)) as account:
        return account.state()
