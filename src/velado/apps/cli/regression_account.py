"""What a regression with noise costs a table, debited from the ledger that its queries are debited from, before a row is summed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from velado.apps.cli import options as flags
from velado.apps.cli.app import option
from velado.text import Sentence

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
    from velado.learning.noise_account import NoiseAccount, debit_noise

    text = f"REGRESSION {job.target.name} ON {', '.join(one.name for one in job.features)}"
    given = NoiseAccount(
        ledger=account.ledger, seal=account.seal, budget=account.budget, analyst=account.analyst
    )
    return debit_noise(file, job.noise, job.delta, given, f"regression {job.digest()} {run}", text)
