"""What learning with noise costs a table, debited from the ledger that its queries are debited from, before a row is summed."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from velado.errors import MissingExtra, ParameterError
from velado.settings import Where
from velado.text import Sentence, say

if TYPE_CHECKING:
    from velado.query.budget import Budget


@dataclass(frozen=True, kw_only=True)
class NoiseAccount:
    """Which ledger noise is debited from, in whose name, and the total of a ledger that is made for it."""

    ledger: str | None = None
    seal: Path | None = None
    budget: str | None = None
    analyst: str = "federation"


def debit_noise(
    file: Path, asked: Budget | None, delta: Fraction | None, account: NoiseAccount, question: str, text: str
) -> Sentence | None:
    """The rho that is *asked* is spent from the table's ledger, durably; says so, or None where there is no noise.

    *question* tells runs apart: each draws noise of its own, and costs anew. *text* is what the ledger shows of it.

    >>> debit_noise(Path("rows.csv"), None, None, NoiseAccount(), "1", "REGRESSION y ON x") is None
    True
    """
    if asked is None:
        if account.budget is not None or account.ledger is not None:
            raise ParameterError(
                "--budget and --ledger were given, and nothing is learned with noise.",
                "An exact result has no cost that could be counted.",
                "Ask for noise (--epsilon or --rho; epsilon in [federation]), or leave them out.",
            )
        return None
    try:
        from velado.query.budget import Budget, Charge, short, spend_of
        from velado.query.store import account_of
    except ImportError:  # pragma: no cover - exercised where the extra is not installed
        raise MissingExtra(
            "The ledger's libraries are not installed.",
            "Noise is debited from the ledger of the table.",
            "Install velado[query].",
        ) from None
    total = None
    if account.budget is not None:
        total = Budget.rho(spend_of(account.budget, "budget", Where("flag")), delta)
    found = account_of(file, asked, where=account.ledger, seal=account.seal, budget=total)
    with closing(found.ledger) as ledger:
        if (held := ledger.state().budget).measure != "rho":
            raise ParameterError(
                say("The ledger counts in {held}, and learning with noise costs rho.", held=held.measure),
                "The two measures cannot be added.",
                "Begin the ledger of this table with --rho.",
            )
        reserved = ledger.reserve(Charge(account.analyst, question, text, asked.total))
        ledger.record(reserved, question, "{}")
        left = ledger.state().left
    return say(
        "Debited: rho {cost} from {ledger}; {left} is left.",
        cost=short(asked.total),
        ledger=found.where,
        left=short(left),
    )
