"""What a run with noise costs a table, debited from the ledger that its queries are debited from, before a row is summed."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from velado.errors import MissingExtra, ParameterError
from velado.learning.flower.federation import Federation
from velado.randomness import Tape
from velado.settings import Where
from velado.text import Sentence, say


@dataclass(frozen=True, kw_only=True)
class RunAccount:
    """Which ledger a run is debited from, in whose name, and the total of a ledger that is made for it."""

    ledger: str | None = None
    seal: Path | None = None
    budget: str | None = None
    analyst: str = "federation"


def debit_run(file: Path, federation: Federation, target: str, account: RunAccount) -> Sentence | None:
    """The run's rho is spent from the table's ledger, durably and once for the whole run; None where a run has no noise."""
    asked = federation.noise
    if asked is None:
        if account.budget is not None or account.ledger is not None:
            raise ParameterError(
                "--budget and --ledger were given, and the federation has no noise.",
                "An exact result has no cost that could be counted.",
                "Give epsilon in [federation], or leave them out.",
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
        total = Budget.rho(spend_of(account.budget, "budget", Where("flag")), federation.delta)
    found = account_of(file, asked, where=account.ledger, seal=account.seal, budget=total)
    with closing(found.ledger) as ledger:
        if (held := ledger.state().budget).measure != "rho":
            raise ParameterError(
                say("The ledger counts in {held}, and a federated run costs rho.", held=held.measure),
                "The two measures cannot be added.",
                "Begin the ledger of this table with --rho.",
            )
        # Every run draws noise of its own, and costs anew.
        question = f"federated {target} {Tape.fresh_seed().hex()}"
        reserved = ledger.reserve(
            Charge(account.analyst, question, f"FEDERATED MODEL OF {target}", asked.total)
        )
        ledger.record(reserved, question, "{}")
        left = ledger.state().left
    return say(
        "Debited: rho {cost} from {ledger}; {left} is left.",
        cost=short(asked.total),
        ledger=found.where,
        left=short(left),
    )
