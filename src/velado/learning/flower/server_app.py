"""The server's Flower app: one and the same in a simulation and on a SuperLink.

On a SuperLink, `app` takes the agreement and the output folder from the run's configuration, has the clients score, and
writes fit.json, rounds.csv, model.npz and report.md. In a simulation the held-out rows are pooled and scored here.

The rounds are Flower's strategy loop with our rules: who is asked, how many must answer, what is recorded. They build on
Flower's `Strategy` (FedAvg and FedXgbBagging are subclasses of it as well) rather than on FedXgbBagging itself, whose
server sends the whole model to everybody in every round.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import Strategy

from velado.errors import InputError, SchemaError
from velado.learning.flower._client import OTHER_KEY
from velado.learning.flower._local_rows import IntVector
from velado.learning.flower._packets import read_reply, to_content
from velado.learning.flower._roster import Roster, both_gaps
from velado.learning.flower._rounds_kept import private_folder
from velado.learning.flower._server import (
    OTHER_CLIENT,
    OTHER_ROWS,
    Holder,
    holder_of,
    log,
    round_fault,
    take_round,
)
from velado.learning.flower._terms import Agreed
from velado.learning.flower.agreement import Agreement, read_agreement
from velado.learning.flower.flower_records import (
    Fact,
    FederatedFit,
    FederationStopped,
    FloatMatrix,
    Packet,
    RoundRecord,
)
from velado.learning.flower.outcome import fit_files, make_fit, write_files
from velado.measures.models.quality import curve_area, log_loss
from velado.randomness import seeded
from velado.text import say

OnRound = Callable[[RoundRecord], None]
_NO_AREA = say("No AUC: the held-out rows hold a single class.")
_NO_AREA_ANYWHERE = say("No AUC: no client that scored holds out rows of two classes.")


_NO_AREA_IN_SUMS = say("No AUC: the clients' scores were summed under masks.")


class _Finished(Exception):
    """Leaves Flower's loop over rounds before its end."""


class Rounds(Strategy):
    """One run at the server. *truth* are the pooled held-out labels in a simulation; without them clients score.

    >>> from velado.learning.flower.simulation import small_ready
    >>> agreed = small_ready().terms.agreed
    >>> Rounds(agreed, holder_of(agreed, None), Roster(agreed.federation), 0, np.array([0, 1, 1, 1])).majority
    0.75
    """

    def __init__(
        self,
        agreed: Agreed,
        holder: Holder,
        roster: Roster,
        seed: int,
        truth: npt.NDArray[np.int64] | None,
        on_round: OnRound | None = None,
    ) -> None:
        self.agreed, self.holder, self.roster, self.truth = agreed, holder, roster, truth
        self.records: list[RoundRecord] = []
        self.majority: float | None = None
        self._seed, self._on_round = seed, on_round
        self._asked: list[int] = []
        self._absent: dict[int, str] = {}
        self._uncounted: dict[int, Packet] = {}
        self._grid: Grid | None = None
        self._start = 0.0
        self._down = self._up = 0
        self._unmet = 0
        if truth is not None:
            self.majority = float(np.bincount(truth).max() / truth.size)

    def summary(self) -> None:
        """Nothing: the fit says how the run was set up."""

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """One message for each client that is asked, with what is new to it."""
        if self.holder.finished:
            raise _Finished
        self._start, self._grid = time.monotonic(), grid
        self._down = self._up = 0
        federation = self.agreed.federation
        able = self.roster.present(grid, self.greeting())
        self._absent = self.roster.absent()
        if len(self.roster.able_at_most()) < federation.needed:
            able_at_most = len(self.roster.able_at_most())
            self._stop(
                say(
                    "{able} of {clients} clients can take part",
                    able=able_at_most,
                    clients=federation.clients,
                )
            )
        random = seeded(self._seed, "federated", "asked", str(server_round))
        able = self.holder.enlist(able, self.roster.keys, self.roster.signatures)
        count = min(federation.asked, len(able))
        self._asked = sorted(int(one) for one in random.permutation(able)[:count])
        self._uncounted = {}
        if self.holder.uncounted and not self._count(server_round, grid):
            return []
        return self._messages(self._asked, "train", server_round)

    def _count(self, server_round: int, grid: Grid) -> bool:
        """Whether the rows were counted and keep the thresholds; FederationStopped where they do not, and nothing else is summed then."""
        asked = self._messages(self._asked, "train", server_round, census=True)
        answers = self._read(grid.send_and_receive(asked, timeout=self.agreed.federation.patience))
        try:
            fault = self.holder.take_census(answers)
        except InputError as error:
            raise FederationStopped(error.what, error.why, error.fix) from None
        if fault:
            # The round is void, like one that somebody missed; who did not answer is named.
            self._uncounted = {
                one: packet if packet.text("error") else Packet({"error": fault})
                for one, packet in answers.items()
            }
        return not fault

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """The round is applied or recorded as a gap; clients that lost their state are sent everything first."""
        answers = self._uncounted | self._read(replies)
        lost = [one for one, packet in answers.items() if packet.number("lost")]
        if lost and self._grid is not None:
            log.info(
                "Round %d: %d client(s) lost their state and are sent the whole model.",
                server_round,
                len(lost),
            )
            again = self._messages(lost, "train", server_round, everything=True)
            timeout = self.agreed.federation.patience
            answers |= self._read(self._grid.send_and_receive(again, timeout=timeout))
        for one, packet in answers.items():
            if packet.text("error") in (OTHER_ROWS, OTHER_CLIENT, OTHER_KEY):
                self.roster.doubt(one)
            self.roster.note(one, packet)
            if "have" in packet.facts:
                self.holder.acknowledged(one, packet)
        if self.truth is None and self.records:
            self._complete(answers)
        found = take_round(
            self.holder, self.agreed.federation, server_round, self._asked, answers, self._absent
        )
        record = RoundRecord(
            number=server_round,
            asked=len(self._asked),
            replied=len(found.answered),
            applied=found.applied,
            gap=both_gaps(found.gap, self.roster.remarks()),
            missing=found.missing,
            bytes_up=self._up,
            bytes_down=self._down,
            seconds=time.monotonic() - self._start,
        )
        self.records.append(record)
        if self.truth is not None:
            self._score()
        self._unmet = 0 if found.applied else self._unmet + 1
        if self._unmet >= self.agreed.federation.unmet:
            self._stop(
                say("{rounds} rounds in a row were not applied ({gap})", rounds=self._unmet, gap=found.gap)
            )
        return None, None

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Clients score the model at the beginning of the next round; after the last one they are asked once more."""
        if self.truth is not None or not self._last(server_round):
            return []
        there = self.holder.enlist(
            self.roster.present(grid, self.greeting()), self.roster.keys, self.roster.signatures
        )
        return self._messages(there, "evaluate", server_round)

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """The last round's record is completed."""
        if self.truth is None and self._last(server_round):
            self._complete(self._read(replies), last=True)
        return None

    def _last(self, number: int) -> bool:
        return self.holder.finished or number == self.agreed.federation.rounds

    def notes(self) -> tuple[str, ...]:
        """What a reader of the fit must know: clients that stand out, and a model that is worse than none."""
        said, last = self.holder.notes(), self.records[-1] if self.records else None
        right = None if last is None else last.accuracy
        if right is not None and self.majority is not None and right < self.majority - 0.005:
            said.append(
                say(
                    "The model is right less often than always answering the most frequent class: do not use it. "
                    "Clients differ too much for averaging, one of them is hostile, or there is nothing to learn."
                )
            )
        return tuple(said)

    def greeting(self) -> Packet:
        """What a client is asked first: whether its terms are ours."""
        return Packet({"digest": self.agreed.digest})

    def _messages(
        self, clients: list[int], kind: str, number: int, everything: bool = False, census: bool = False
    ) -> list[Message]:
        out = []
        for one in clients:
            packet = self.holder.packet_for(one, everything)
            facts: dict[str, Fact] = {
                "digest": self.agreed.digest,
                "round": number,
                "evaluate": int(self.truth is None),
                "census": int(census),
            }
            packet = replace(packet, facts={**packet.facts, **facts})
            self._down += packet.size
            patience = self.agreed.federation.patience
            out.append(
                Message(
                    to_content(packet), self.roster.node_of(one), kind, group_id=str(number), ttl=patience
                )
            )
        return out

    def _read(self, replies: Iterable[Message]) -> dict[int, Packet]:
        """Every reply by its client. One that cannot be read or true counts as missing, and only for that client."""
        out = {}
        for message in replies:
            packet = read_reply(message)
            self._up += packet.size
            client = self.roster.client_of(message.metadata.src_node_id)
            if client is None:
                continue
            private = self.agreed.federation.noise is not None
            fault = round_fault(packet, self.roster.records.get(client), self.agreed.classes, private)
            if packet.number("client", client) != client:
                fault = OTHER_CLIENT
            out[client] = Packet({"error": fault}) if fault else packet
        return out

    def _score(self) -> None:
        """The newest record gets the pooled scores."""
        chances, truth = self.holder.scores(), self.truth
        assert chances is not None and truth is not None
        right = float((np.argmax(chances, axis=1) == truth).mean())
        area, loss = curve_area(truth, chances), log_loss(truth, chances)
        gap = self.records[-1].gap if area is not None else both_gaps(self.records[-1].gap, _NO_AREA)
        self._finish(accuracy=right, auc=area, loss=loss, test_rows=int(truth.size), gap=gap)

    def _complete(self, answers: dict[int, Packet], last: bool = False) -> None:
        """The newest record gets what the clients counted on their own held-out rows."""
        found = self.holder.scored(answers, last)
        if found is None or not found.rows:
            self._finish(
                gap=both_gaps(self.records[-1].gap, say("No client scored the model after this round."))
            )
            return
        if self.majority is None and found.classes.sum():
            self.majority = float(found.classes.max() / found.classes.sum())
        self._finish(
            accuracy=found.right / found.rows,
            loss=None if found.loss is None else found.loss / found.rows,
            auc=found.auc,
            test_rows=int(found.rows),
            gap=self.records[-1].gap
            if found.auc is not None
            else both_gaps(self.records[-1].gap, self._no_area),
        )

    @property
    def _no_area(self) -> str:
        hidden = self.agreed.hidden and (self.agreed.classes > 2 or self.agreed.federation.noise is not None)
        return _NO_AREA_IN_SUMS if hidden else _NO_AREA_ANYWHERE

    def _finish(self, **values: Any) -> None:
        self.records[-1] = replace(self.records[-1], **values)
        if self._on_round is not None:
            self._on_round(self.records[-1])

    def _stop(self, what: str) -> None:
        federation = self.agreed.federation
        raise FederationStopped(
            say("The federation stopped in round {records}: {what}.", records=len(self.records), what=what),
            say(
                "A round needs {needed} of {clients} clients.",
                needed=federation.needed,
                clients=federation.clients,
            ),
            "Bring the clients back, lower 'participation', or give clients more rows.",
        )


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
    >>> from velado.learning.flower.client_app import LoopGrid, make_client_app, number_of
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
    roster = Roster(
        federation,
        digest=agreed.digest,
        signers=agreed.signers,
        # Averages cap what a client says; of a secret sum nothing can be capped, so that who says too much is turned away.
        most_rows=federation.most_rows if agreed.hidden and federation.noise is None else None,
    )
    rounds = Rounds(agreed, holder, roster, seed, truth, on_round)
    try:
        rounds.start(grid, ArrayRecord(), num_rounds=federation.rounds, timeout=federation.patience)
    except _Finished:
        log.info("Further rounds would change nothing; the run ends.")
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
        notes=ended.rounds.notes(),
        keys=ended.rounds.holder.keys,
    )
    return replace(fit, split="as it is", alpha=None)


def _teller(folder: Path) -> OnRound:
    """Every round is appended to progress.jsonl, so that a run that is cut off leaves its history."""
    private_folder(folder)

    def tell(record: RoundRecord) -> None:
        with (folder / "progress.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(record.to_dict()) + "\n")

    return tell
