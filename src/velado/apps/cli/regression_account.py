"""What a regression with noise costs a table, debited from the ledger that its queries are debited from, before a row is summed."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from velado.apps.cli import options as flags
from velado.apps.cli.app import option
from velado.errors import MissingExtra, ParameterError
from velado.text import Sentence, say

if TYPE_CHECKING:
    from velado.learning.regression.job import Job


@dataclass(frozen=True, kw_only=True)
class AccountFlags:
    """Which account a regression with noise is debited from."""

    budget: Annotated[
        str | None,
        option("--budget R", help="With noise: total rho of all answers, when the table's ledger is made."),
    ] = None
    ledger: Annotated[
        str | None, option("--ledger PATH|URL", help="With noise: the table's ledger; default: FILE.ledger.")
    ] = None
    seal: flags.SealFile = None
    analyst: Annotated[str, option("--analyst NAME", help="With noise: in whose name it is debited.")] = (
        "regression"
    )


def debit(file: Path, job: Job, account: AccountFlags, run: str) -> Sentence | None:
    """The job's rho is spent from the table's ledger, durably; says so, or nothing where the job has no noise.

    *run* tells runs of one job apart: each draws noise of its own, and costs anew.

    >>> from velado.learning.regression.simulate import small_job
    >>> debit(Path("rows.csv"), small_job(), AccountFlags(), "1") is None
    True
    """
    asked = job.noise
    if asked is None:
        if account.budget is not None or account.ledger is not None:
            raise ParameterError(
                "--budget and --ledger were given, and the job has no noise.",
                "An exact result has no cost that could be counted.",
                "Give --epsilon or --rho, or leave them out.",
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
    from velado.settings import Where

    total = None
    if account.budget is not None:
        total = Budget.rho(spend_of(account.budget, "budget", Where("flag")), job.delta)
    found = account_of(file, asked, where=account.ledger, seal=account.seal, budget=total)
    with closing(found.ledger) as ledger:
        if (held := ledger.state().budget).measure != "rho":
            raise ParameterError(
                say("The ledger counts in {held}, and a regression costs rho.", held=held.measure),
                "The two measures cannot be added.",
                "Begin the ledger of this table with --rho.",
            )
        question = f"regression {job.digest()} {run}"
        text = f"REGRESSION {job.target.name} ON {', '.join(one.name for one in job.features)}"
        held_back = ledger.reserve(Charge(account.analyst, question, text, asked.total))
        ledger.record(held_back, question, "{}")
        left = ledger.state().left
    return say(
        "Debited: rho {cost} from {ledger}; {left} is left.",
        cost=short(asked.total),
        ledger=found.where,
        left=short(left),
    )
