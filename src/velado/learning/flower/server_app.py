"""The server's Flower app: one and the same in a simulation and on a SuperLink.

On a SuperLink, `app` takes the agreement and the output folder from the run's configuration, has the clients score, and
writes fit.json, rounds.csv, model.npz and report.md. In a simulation the held-out rows are pooled and scored here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp

from velado.errors import SchemaError
from velado.learning.flower._local_rows import IntVector
from velado.learning.flower._rounds_kept import private_folder
from velado.learning.flower._server import holder_of
from velado.learning.flower._strategy import OnRound, Roster, Rounds
from velado.learning.flower._terms import Agreed
from velado.learning.flower.agreement import Agreement, read_agreement
from velado.learning.flower.flower_records import FederatedFit, FederationStopped, FloatMatrix, RoundRecord
from velado.learning.flower.outcome import fit_files, make_fit, write_files
from velado.text import say


@dataclass(frozen=True, repr=False)
class Ended:
    """A run that has ended: its rounds, and the error that stopped it early, if one did.

    >>> Ended(rounds=None, stopped=None).stopped is None  # all rounds were run
    True
    """

    rounds: Rounds
    stopped: FederationStopped | None


def serve(
    grid: Grid,
    agreed: Agreed,
    seed: int,
    tested: tuple[FloatMatrix, IntVector] | None = None,
    on_round: OnRound | None = None,
) -> Ended:
    """All rounds are run over *grid*. *tested* are pooled held-out rows to score on; without them clients score.

    >>> from velado.learning.flower._client import TrainingClient
    >>> from velado.learning.flower._loop_grid import LoopGrid
    >>> from velado.learning.flower.client_app import make_client_app, number_of
    >>> from velado.learning.flower.simulation import small_ready
    >>> ready = small_ready()
    >>> agreed, parts = ready.terms.agreed, ready.parts
    >>> app = make_client_app(lambda context: TrainingClient(agreed, parts[number_of(context) - 1]))
    >>> serve(LoopGrid(app, 2), agreed, seed=0).rounds.records[0].replied
    2
    """
    federation = agreed.federation
    holder = holder_of(agreed, None if tested is None else tested[0])
    truth = None if tested is None else tested[1]
    rounds = Rounds(agreed, holder, Roster(federation), seed, truth, on_round)
    try:
        rounds.start(grid, ArrayRecord(), num_rounds=federation.rounds, timeout=federation.patience)
    except FederationStopped as stopped:
        return Ended(rounds, stopped)
    return Ended(rounds, None)


app = ServerApp()


@app.main()
def _main(grid: Grid, context: Context) -> None:
    """A run over several machines, from the agreement folder to the output folder."""
    folders = {}
    for key in ("agreement", "output"):
        named = context.run_config.get(key)
        if not isinstance(named, str) or not named:
            raise SchemaError(
                say("The run's configuration has no '{key}'.", key=key),
                "The server app does not know its folders.",
                'Start it with flwr run APP SUPERLINK --run-config \'agreement="..." output="..."\'.',
            )
        folders[key] = Path(named)
    agreement = read_agreement(folders["agreement"])
    ended = serve(grid, agreement.terms.agreed, agreement.locally.seed, on_round=_teller(folders["output"]))
    fit = _deployed_fit(agreement, ended)
    write_files(folders["output"], fit_files(fit))
    if ended.stopped is not None:
        raise ended.stopped


def _deployed_fit(agreement: Agreement, ended: Ended) -> FederatedFit:
    """The fit of a run over several machines: clients scored, and how rows are split is nobody's setting."""
    fit = make_fit(
        agreement.terms,
        agreement.locally,
        ended.rounds.records,
        ended.rounds.roster.client_records(),
        majority=ended.rounds.majority,
        learned=ended.rounds.holder.learned(),
        engine="flower, several machines",
        evaluation="clients",
        stopped=ended.stopped,
    )
    return replace(fit, split="as it is", alpha=None)


def _teller(folder: Path) -> OnRound:
    """Every round is appended to progress.jsonl, so that a run that is cut off leaves its history."""
    private_folder(folder)

    def tell(record: RoundRecord) -> None:
        with (folder / "progress.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(record.to_dict()) + "\n")

    return tell
