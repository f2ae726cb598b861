"""What a federated run with noise costs a table: one debit for the whole run, before a row is summed."""

from __future__ import annotations

from pathlib import Path

from velado.learning.flower.federation import Federation
from velado.learning.noise_account import NoiseAccount, debit_noise
from velado.randomness import Tape
from velado.text import Sentence


def debit_run(file: Path, federation: Federation, target: str, account: NoiseAccount) -> Sentence | None:
    """The run's rho is spent from the table's ledger, durably and once for the whole run; None where a run has no noise.

    >>> debit_run(Path("rows.csv"), Federation(), "ill", NoiseAccount()) is None
    True
    """
    question = f"federated {target} {Tape.fresh_seed().hex()}"
    return debit_noise(
        file, federation.noise, federation.delta, account, question, f"FEDERATED MODEL OF {target}"
    )
