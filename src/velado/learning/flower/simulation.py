"""simulate(): one table dealt out to clients, who anonymize, train and are scored, on this machine.

The apps are the ones several machines run. "flower" carries their messages through Flower's simulation engine, clients
side by side in one process per core; "loop" hands them over in this process. Both give the same numbers.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import polars as pl

from velado.data.io import read_table
from velado.data.normal import value_codes
from velado.data.schema import Schema
from velado.data.staging import locked
from velado.data.table import Table
from velado.errors import ParameterError, TableError
from velado.learning.flower._local_rows import Locally, LocalRows, prepare, refuse_no_test, split_rows, trains
from velado.learning.flower._membership import MembershipAttack, membership_attack
from velado.learning.flower._rounds_kept import private_folder, write_client
from velado.learning.flower._terms import FederationTerms, complete, make_terms
from velado.learning.flower.agreement import local_entry
from velado.learning.flower.deployment import (
    FederationInterrupted,
    Interruption,
    beside,
    closed_network,
    one_thread,
    require_flower,
)
from velado.learning.flower.federation import Federation
from velado.learning.flower.flower_records import FederatedFit, FederatedModel, FederationStopped, RoundRecord
from velado.learning.flower.outcome import make_fit
from velado.measures.models.encoder import EncoderSettings, check_target
from velado.randomness import seeded
from velado.release.guarantees._guarantee import Guarantee
from velado.release.methods._method import Method
from velado.text import say, say_n

# The folder of one simulation: private, gone when the run ends, and swept by the next run if the process was killed.

PREFIX = "vf-"
_LOCK = "lock"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder that only this user may look into; it is removed afterwards, and what killed runs left is removed now.

    It is locked as long as this process lives, and the kernel lets go of the lock of a process that was killed: unlike a
    process number, a lock is never somebody else's.

    >>> with scratch_folder() as folder:
    ...     oct(folder.stat().st_mode)[-3:]
    '700'
    >>> folder.exists()
    False
    """
    sweep(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    held = _locked(folder)
    try:
        yield folder
    finally:
        _remove(folder)
        if held is not None:
            os.close(held)


def sweep(place: Path) -> int:
    """How many folders of runs that live no more were removed from *place*; another user's are left alone.

    >>> Path("vf-killed").mkdir()
    >>> Path("vf-killed/lock").touch()  # nobody holds it
    >>> sweep(Path()), Path("vf-killed").exists()
    (1, False)
    """
    if sys.platform == "win32":  # no locks there: whether a run lives is not known
        return 0
    removed = 0
    for folder in place.glob(f"{PREFIX}*"):
        try:
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            handle = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
        except OSError:
            continue  # not a folder of ours, or gone by now
        try:
            if locked(handle):  # else its run lives
                _remove(folder)
                removed += 1
        finally:
            os.close(handle)
    return removed


def _locked(folder: Path) -> int | None:
    if sys.platform == "win32":
        return None
    # Locked before it has its name: nobody ever finds it unlocked while this process lives.
    unnamed = folder / f".{_LOCK}"
    handle = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    locked(handle)
    unnamed.rename(folder / _LOCK)
    return handle


def _remove(folder: Path) -> None:
    shutil.rmtree(folder / "rows", ignore_errors=True)  # true rows go first
    for _ in range(20):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.1)  # Ray's processes may still write their last line


Engine = Literal["flower", "loop"]
OnRound = Callable[[RoundRecord], None]
LONGEST_PATH = 40  # Ray adds up to 66 bytes to it


@dataclass(frozen=True, repr=False)
class Ready:
    """A simulation before its first round: terms, every client's prepared rows, and remarks about the table.

    >>> ready = small_ready()
    >>> ready.terms.encoder.classes, ready.notes
    (('no', 'yes'), ())
    """

    terms: FederationTerms
    locally: Locally
    parts: tuple[LocalRows, ...]
    notes: tuple[str, ...]


def simulate(
    table: Any,
    schema: Schema,
    method: Method | None,
    federation: Federation,
    *,
    target: str,
    encoding: EncoderSettings | None = None,
    seed: int = 0,
    features: Sequence[str] | None = None,
    k: int | None = None,
    guarantees: Sequence[Guarantee] = (),
    suppression: float = 0.0,
    undeclared: Any = "refuse",
    engine: Engine = "flower",
    on_round: OnRound | None = None,
) -> FederatedFit:
    """The fit of *federation* on *table*: each client anonymizes its part with *method* (None: original rows) and trains.

    *on_round* is called after every round. Too few clients for too long raise FederationStopped, Ctrl-C or SIGTERM
    FederationInterrupted; both keep the history in their *fit*. The same table, settings and *seed* give the same numbers with either engine.

    >>> frame = pl.DataFrame({"age": list(range(20, 80)), "ill": ["no", "yes"] * 30})
    >>> age = {"role": "quasi", "kind": "numeric"}
    >>> schema = Schema.from_dict({"columns": {"age": age, "ill": {"role": "sensitive"}}})
    >>> fit = simulate(frame, schema, None, Federation(clients=2, rounds=3), target="ill", engine="loop")
    >>> [one.replied for one in fit.rounds]
    [2, 2, 2]
    """
    locally = Locally(method, tuple(guarantees), suppression, seed, k)
    ready = make_ready(
        table,
        schema,
        locally,
        federation,
        target=target,
        encoding=encoding,
        features=features,
        undeclared=undeclared,
    )
    return run_ready(ready, engine, on_round)


def make_ready(
    table: Any,
    schema: Schema,
    locally: Locally,
    federation: Federation,
    *,
    target: str,
    encoding: EncoderSettings | None = None,
    features: Sequence[str] | None = None,
    undeclared: Any = "refuse",
) -> Ready:
    """Everything but the rounds: rows dealt out, held out, anonymized and encoded, or one clear error.

    >>> frame = pl.DataFrame({"age": list(range(20, 60)), "ill": ["no", "yes"] * 20})
    >>> schema = Schema.from_dict({"columns": {"age": {"role": "quasi"}, "ill": {"role": "sensitive"}}})
    >>> make_ready(frame, schema, Locally(), Federation(clients=4), target="ill").parts[0]
    LocalRows(client 1: 7 rows, 3 held out)
    """
    source = read_table(table, schema, undeclared)
    check_target(source, target)
    notes = []
    known = ~source.is_missing(target)
    if not bool(known.all()):
        notes.append(
            say_n(
                "{n} row without a target was left out.",
                "{n} rows without a target were left out.",
                int((~known).sum()),
            )
        )
        source = source.with_frame(source.frame.filter(known))
    texts = source.text(target)
    declared = source.schema.columns[target].values
    if declared is not None:
        # As on machines: the declared classes are the classes, in their order, also those that no row has.
        _refuse_other_classes(texts, target, declared)
    classes = declared or texts.unique().sort().to_list()
    alone = int((texts.value_counts().get_column("count") == 1).sum())
    if alone:
        notes.append(
            say_n(
                "{n} class of the target has one member: it is trained on, and never tested.",
                "{n} classes of the target have one member: it is trained on, and never tested.",
                alone,
            )
        )
    full, read_off = complete(source.schema, source, target, features)
    if declared is None:
        read_off = (*read_off, target)
    terms = make_terms(
        full,
        target,
        federation,
        local_entry(locally),
        encoding=encoding,
        features=features,
        classes=classes,
        read_off=read_off,
    )
    source = source.with_schema(terms.schema)
    parts = tuple(_prepared(source, terms, locally))
    able = sum(trains(part) for part in parts)
    if able < federation.needed:
        gaps = [part.record.gap or "" for part in parts if not trains(part)]
        raise ParameterError(
            say(
                "{able} of {clients} clients can take part; a round needs {needed}. {gaps}",
                able=able,
                clients=federation.clients,
                needed=federation.needed,
                gaps=gaps[0],
            ),
            "No round could ever be applied.",
            "Lower k or 'participation', use fewer clients, or more rows.",
        )
    refuse_no_test(list(parts))
    return Ready(terms, locally, parts, tuple(notes))


def small_ready() -> Ready:
    """A federation to try things with: two clients with thirty rows each, one round.

    >>> [part.labels.size for part in small_ready().parts]  # six of each are held out
    [24, 24]
    """
    frame = pl.DataFrame({"age": list(range(20, 80)), "ill": ["no", "yes"] * 30})
    age = {"role": "quasi", "kind": "numeric", "bounds": [0, 120]}
    schema = Schema.from_dict(
        {"columns": {"age": age, "ill": {"role": "sensitive", "values": ["no", "yes"]}}}
    )
    return make_ready(frame, schema, Locally(), Federation(clients=2, rounds=1), target="ill")


def _refuse_other_classes(texts: pl.Series, target: str, declared: Sequence[str]) -> None:
    others = int((~texts.is_in(list(declared))).sum())
    if others:
        raise TableError(
            say_n(
                "{n} row has a class of the target '{target}' that the schema does not declare.",
                "{n} rows have a class of the target '{target}' that the schema does not declare.",
                others,
                target=target,
            ),
            "A client of a real federation would refuse such rows: it could not number their class as the others do.",
            say(
                "Correct the rows, or add the class to values of [columns.{target}] in the schema.",
                target=target,
            ),
        )


def _prepared(source: Table, terms: FederationTerms, locally: Locally) -> Iterator[LocalRows]:
    labels = terms.encoder.labels(source.frame)
    person = source.schema.person
    people = None if person is None else value_codes(source, person)[0].astype(np.int64)
    for number, rows in enumerate(split_rows(labels, terms.federation, locally.seed, people), start=1):
        yield prepare(source.with_frame(source.frame[rows]), terms, locally, number)


def run_ready(ready: Ready, engine: Engine = "flower", on_round: OnRound | None = None) -> FederatedFit:
    """All rounds of a simulation that is ready.

    >>> run_ready(small_ready(), "loop").rounds[0].applied
    True
    """
    if engine not in ("flower", "loop"):
        raise ParameterError(
            say("There is no engine '{engine}'.", engine=engine),
            "It is one of flower, loop.",
            "Choose one of them.",
        )
    require_flower(engine == "flower", ready.terms.federation.model)
    if engine == "flower":
        _refuse_running_ray()
    with (
        Interruption() as stop,
        scratch_folder() as home,
        closed_network(home),
        one_thread(),
        _flower_silent(),
    ):
        ended = _run(ready, engine, home, on_round, stop)
    if ended is None:
        assert stop.number is not None
        raise FederationInterrupted(stop.number)
    records = tuple(part.record for part in ready.parts)
    learned = ended.rounds.holder.learned()
    fit = make_fit(
        ready.terms,
        ready.locally,
        ended.rounds.records,
        records,
        majority=ended.rounds.majority,
        learned=learned,
        engine=engine,
        evaluation="pooled",
        stopped=ended.stopped,
        notes=(*ready.notes, *ended.rounds.notes()),
        keys=ended.rounds.holder.keys,
        membership=_attacked(ready, learned),
    )
    if stop.number is not None:
        raise FederationInterrupted(stop.number, fit)
    if ended.stopped is not None:
        raise FederationStopped(ended.stopped.what, ended.stopped.why, ended.stopped.fix, fit)
    return fit


def _attacked(ready: Ready, learned: FederatedModel) -> MembershipAttack | None:
    """A membership attack on a logistic model of original rows; of releases the attacker has no true training rows."""
    federation = ready.terms.federation
    if ready.locally.method is not None or federation.model != "logistic":
        return None
    parts = ready.parts
    trained = np.concatenate([one.features for one in parts]), np.concatenate([one.labels for one in parts])
    held_out = (
        np.concatenate([one.test_features for one in parts]),
        np.concatenate([one.test_labels for one in parts]),
    )
    budget = None
    if federation.epsilon is not None:
        budget = float(federation.epsilon), float(federation.delta)
    random = seeded(ready.locally.seed, "federated", "membership")
    return membership_attack(learned, trained, held_out, random, budget)


def _run(ready: Ready, engine: Engine, home: Path, on_round: OnRound | None, stop: Interruption) -> Any:
    """The run as it ended; None where it was interrupted before it had begun."""
    from velado.learning.flower.client_app import from_folder, make_client_app
    from velado.learning.flower.server_app import serve

    folder = private_folder(home / "rows")
    agreed, seed = ready.terms.agreed, ready.locally.seed
    for number, part in enumerate(ready.parts, start=1):
        write_client(folder, number, agreed, part)
    clients = agreed.federation.clients
    app = make_client_app(from_folder(folder), agreed.federation.dropout, seed)
    tested = (
        np.concatenate([part.test_features for part in ready.parts]),
        np.concatenate([part.test_labels for part in ready.parts]),
    )
    if engine == "loop":
        from velado.learning.flower.client_app import LoopGrid

        grid = stop.guard(LoopGrid(cast(Any, stop.guarded(app)), clients))
        return serve(grid, agreed, seed, tested, on_round)
    return _through_flower(app, clients, home, lambda grid: serve(grid, agreed, seed, tested, on_round), stop)


def _through_flower(app: Any, clients: int, home: Path, job: Callable[[Any], Any], stop: Interruption) -> Any:
    """*job* is run by Flower's simulation engine, one actor per core."""
    if len(str(home)) > LONGEST_PATH:
        raise ParameterError(
            "The path of the folder for temporary files is too long.",
            "Ray keeps its sockets there, and a socket's path is limited to 107 bytes.",
            "Set TMPDIR to a shorter one.",
        )
    from flwr.serverapp import ServerApp
    from flwr.simulation import run_simulation

    server, ended = ServerApp(), []

    @server.main()
    def main(grid: Any, context: Any) -> None:
        # Flower looks for answers ten times a second; a round here takes less than that.
        grid.pull_interval = 0.01
        stop.guard(grid)
        ended.append(job(grid))

    ours = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    cores = max(1, min(ours, clients))
    settings: Any = {
        "init_args": {
            "num_cpus": cores,
            "include_dashboard": False,
            "log_to_driver": False,
            "logging_level": logging.CRITICAL,
            "_temp_dir": str(home / "r"),
            "_node_ip_address": "127.0.0.1",  # Ray listens here alone
            "object_store_memory": 128 * 1024 * 1024,
        },
        "client_resources": {"num_cpus": 1, "num_gpus": 0},
    }
    beside(
        lambda: run_simulation(server, app, num_supernodes=clients, backend_config=settings), stop, _end_ray
    )
    return ended[0] if ended else None


def _end_ray() -> None:
    ray = sys.modules.get("ray")
    if ray is not None and ray.is_initialized():
        ray.shutdown()


def _refuse_running_ray() -> None:
    ray = sys.modules.get("ray")
    if ray is not None and ray.is_initialized():
        raise ParameterError(
            "Ray is running in this process already.",
            "Flower would use it and stop it at the end.",
            'Stop it first with ray.shutdown(), or pass engine="loop".',
        )


@contextmanager
def _flower_silent() -> Iterator[None]:
    """Flower's own log is off, so that a progress bar is readable; what matters of it is in the records."""
    flower = logging.getLogger("flwr")
    before = flower.level
    flower.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        flower.setLevel(before)
