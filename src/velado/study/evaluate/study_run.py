"""evaluate(): the grid computed on all cores, resumed where it was left, and summed up.

    load -> plan -> what is missing -> workers -> results.parquet, study.json, study.md, study.html

Cells are stored one by one as they are known. Starting again computes what is missing and nothing else: a gap whose
reason was the data stays a gap, one whose process died is tried again.

Each job runs in a process of its own; one that dies takes one job with it, not the study. Workers are started afresh (not
forked: Polars' threads do not survive a fork) and write each cell as soon as it is known, so that whatever is killed, at
most the cells in hand are lost. A worker whose parent dies ends itself.
"""

from __future__ import annotations

import json
import multiprocessing
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from velado.data.cells import CellStore
from velado.data.table_bytes import parquet_bytes
from velado.release.goal import Progress, silent
from velado.settings import Setting, checked_argument
from velado.study.evaluate._study_grid import GridJob, cells_of, estimate, in_turn, plan
from velado.study.evaluate._work import carry_out, columns, lost
from velado.study.evaluate.load import Material, load
from velado.study.evaluate.page import to_html, to_markdown
from velado.study.evaluate.study_outcome import Study
from velado.text import Language, duration, say, say_n, speaking, told

GRACE = 5.0
"""Seconds a worker has to clean up after the process that started it has died."""


def compute(job: GridJob, material: Material, store: CellStore) -> int:
    """The cells of *job* computed and stored; how many are gaps.

    >>> compute(GridJob("train", None, None, (), 0, ()), None, None)
    0
    """
    gaps = 0
    for row in carry_out(job, material):
        store.put(row.to_row())
        gaps += row.status == "gap"
    return gaps


def compute_all(
    jobs: Sequence[GridJob], material: Material, store: CellStore, workers: int
) -> Iterator[tuple[GridJob, int]]:
    """Each job with its number of gaps, in the order in which they are finished.

    >>> list(compute_all([], None, None, workers=1))
    []
    """
    if workers == 1 or len(jobs) == 1:
        for job in jobs:
            yield job, compute(job, material, store)
        return
    alone = [job for job in jobs if takes_all_cores(job, material)]
    together = [job for job in jobs if not takes_all_cores(job, material)]
    for waiting, side_by_side in ((together, workers), (alone, 1)):
        yield from _through(waiting, material, store, side_by_side)


def takes_all_cores(job: GridJob, material: Material) -> bool:
    """Whether the job must run when nothing else does.

    >>> takes_all_cores(GridJob("train", None, None, (), 0, ()), None)
    False
    """
    return job.federation is not None and in_turn(material)


def _through(
    waiting: list[GridJob], material: Material, store: CellStore, workers: int
) -> Iterator[tuple[GridJob, int]]:
    """Takes every job off *waiting*, through processes that may die."""
    while waiting:
        broken: list[GridJob] = []
        yield from _with_pool(waiting, broken, material, store, workers)
        for job in broken:
            # One of these brought its process down, the others were bystanders. Alone, each shows which it is.
            yield from _by_itself(job, material, store)


def _with_pool(
    waiting: list[GridJob], broken: list[GridJob], material: Material, store: CellStore, workers: int
) -> Iterator[tuple[GridJob, int]]:
    """Takes jobs off *waiting*; stops when a process dies, with the jobs in hand put into *broken*."""
    running: dict[Future[int], GridJob] = {}
    with _pool(min(workers, len(waiting))) as pool:
        try:
            while waiting or running:
                while waiting and len(running) < workers:
                    job = waiting.pop(0)
                    running[pool.submit(compute, job, material, store)] = job
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    job = running[future]
                    gaps = future.result()
                    del running[future]
                    yield job, gaps
        except BrokenProcessPool:
            broken += running.values()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _by_itself(job: GridJob, material: Material, store: CellStore) -> Iterator[tuple[GridJob, int]]:
    ids = {cell.id for cell in job.cells}
    left = job.only(ids - store.settled(ids))
    if not left.cells:
        yield job, 0
        return
    with _pool(1) as pool:
        try:
            yield job, pool.submit(compute, left, material, store).result()
        except BrokenProcessPool:
            settled = store.settled(ids)
            rows = [row for row in lost(left) if row.cell not in settled]
            for row in rows:
                store.put(row.to_row())
            yield job, len(rows)


def _pool(workers: int) -> ProcessPoolExecutor:
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, mp_context=context, initializer=_follow_parent)


def _follow_parent() -> None:
    """This process ends when the one that started it does, even if that was killed."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it at once and without a traceback
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def follow(wait_for: Callable[[], object]) -> None:
        wait_for()
        signal.raise_signal(signal.SIGTERM)
        # Whoever is still here has a library that took the signal for itself (Ray does) and has had time to clean up.
        time.sleep(GRACE)
        signal.raise_signal(getattr(signal, "SIGKILL", signal.SIGTERM))

    threading.Thread(target=follow, args=(parent.join,), daemon=True).start()


START_UP = 8.0
"""Seconds until every process has loaded its libraries and its compiled kernels."""

RESULTS = ("results.parquet", "study.json", "study.md", "study.html")
"""What a finished study leaves beside its cells."""


@dataclass(frozen=True, kw_only=True)
class MethodCount:
    """What the grid holds of one method.

    >>> MethodCount(releases=2, cells=6).federated
    0
    """

    releases: int = 0
    federated: int = 0
    cells: int = 0


@dataclass(frozen=True, kw_only=True)
class StudyPlan:
    """What a study will do: its jobs, how many cells are there already, and the seconds the rest may take.

    *damaged* cells have a file that is not what was written; they are among the missing ones.

    >>> StudyPlan(jobs=(), todo=(), workers=2, seconds=0.0).cells
    0
    """

    jobs: tuple[GridJob, ...]
    todo: tuple[GridJob, ...]
    workers: int
    seconds: float
    damaged: int = 0

    @property
    def cells(self) -> int:
        """All cells of the grid."""
        return sum(len(job.cells) for job in self.jobs)

    @property
    def missing(self) -> int:
        """The cells that are to be computed."""
        return sum(len(job.cells) for job in self.todo)

    @property
    def methods(self) -> Mapping[str, MethodCount]:
        """Releases, runs across clients and cells of the grid by method."""
        labels = dict.fromkeys(job.label for job in self.jobs)
        by_method = {label: [job for job in self.jobs if job.label == label] for label in labels}
        return {
            label: MethodCount(
                releases=_count(own, federated=False),
                federated=_count(own, federated=True),
                cells=sum(len(job.cells) for job in own),
            )
            for label, own in by_method.items()
        }

    def facts(self) -> Mapping[str, object]:
        """As plain values, for JSON."""
        return {
            "cells": self.cells,
            "done": self.cells - self.missing,
            "missing": self.missing,
            "damaged": self.damaged,
            "releases": _count(self.jobs, federated=False),
            "releases_to_make": _count(self.todo, federated=False),
            "federated_runs": _count(self.jobs, federated=True),
            "federated_to_run": _count(self.todo, federated=True),
            "methods": {name: asdict(one) for name, one in self.methods.items()},
            "workers": self.workers,
            "estimated_seconds": round(self.seconds, 1),
        }


def _count(jobs: Sequence[GridJob], *, federated: bool) -> int:
    return sum((job.federation is not None) == federated for job in jobs)


def make_plan(material: Material, out: str | Path, jobs: int | None = None) -> StudyPlan:
    """The grid and its cost, nothing computed and nothing written. A folder that could not be used is refused.

    >>> make_plan(load("nowhere.toml"), "out")
    Traceback (most recent call last):
    velado.errors.SchemaError: There is no file 'nowhere.toml'. Nothing was read. Check the path and the spelling.
    """
    workers = _workers(jobs)
    grid = plan(material)
    store = CellStore(Path(out), columns())
    store.check()
    found = store.look([cell.id for _, cell in cells_of(grid)])
    settled = found.settled
    todo = tuple(
        job.only({cell.id for cell in job.cells} - settled)
        for job in grid
        if any(cell.id not in settled for cell in job.cells)
    )
    seconds = sum(_clock(todo, material, workers)) + (START_UP if todo else 0.0)
    return StudyPlan(jobs=grid, todo=todo, workers=workers, seconds=seconds, damaged=found.damaged)


def _clock(todo: Sequence[GridJob], material: Material, workers: int) -> tuple[float, float]:
    """Seconds of the clock: for what runs side by side, and for what takes all cores, one after the other."""
    together = [estimate(job, material) for job in todo if not takes_all_cores(job, material)]
    alone = [estimate(job, material) for job in todo if takes_all_cores(job, material)]
    return max([sum(together) / workers, *together], default=0.0), sum(alone)


def _workers(jobs: int | None) -> int:
    asked: int | None = checked_argument("jobs", jobs, Annotated[int | None, Setting(ge=1)])
    return asked or multiprocessing.cpu_count()


def evaluate(
    study: Material | str | Path,
    out: str | Path,
    *,
    jobs: int | None = None,
    language: Language = "en",
    progress: Progress = silent,
    planned: Callable[[StudyPlan], object] | None = None,
) -> Study:
    """The study computed in folder *out*: what is missing, on *jobs* processes (all cores by default).

    *study* is the path of a study file, or `load`ed material. The folder then holds `results.parquet`, `study.json`,
    `study.md` and `study.html` in *language*; the cells under `cells/` serve the next run. *planned* is told what will
    be done, before anything is.

    >>> evaluate("nowhere.toml", "out")
    Traceback (most recent call last):
    velado.errors.SchemaError: There is no file 'nowhere.toml'. Nothing was read. Check the path and the spelling.
    """
    material = study if isinstance(study, Material) else load(study)
    store = CellStore(Path(out), columns())
    _workers(jobs)
    store.begin()
    with store.alone():
        made = make_plan(material, out, jobs)
        if planned is not None:
            planned(made)
        with speaking(language):
            _compute(made, material, store, progress)
        ids = [cell.id for _, cell in cells_of(made.jobs)]
        found = Study(material, store.read(ids), len(ids))
        store.write(files_of(found, language))
    progress(1.0, told("done", language))
    return found


def _compute(made: StudyPlan, material: Material, store: CellStore, progress: Progress) -> None:
    # In seconds of the clock: what runs side by side counts for its share of the cores.
    cost = {
        id(job): estimate(job, material) / (1 if takes_all_cores(job, material) else made.workers)
        for job in made.todo
    }
    total = sum(cost.values())
    passed, start = 0.0, time.monotonic()
    releases, runs = (_count(made.todo, federated=which) for which in (False, True))
    also = say_n(", {n} run across clients", ", {n} runs across clients", runs) if runs else ""
    words = say(
        "{releases} releases to make{also}, about {time}",
        releases=releases,
        also=also,
        time=duration(made.seconds),
    )
    progress(0.0, told(words))
    done = {False: 0, True: 0}
    for job, _ in compute_all(made.todo, material, store, made.workers):
        passed += cost[id(job)]
        done[job.federation is not None] += 1
        # What is left takes as long as what was done, in proportion to the first estimate of both; the first cells say
        # more about how long processes take to start.
        pace = (time.monotonic() - start) / passed if passed > 0.05 * total else 1.0
        also = say(", {done} of {all} runs across clients", done=done[True], all=runs) if runs else ""
        words = say(
            "{done} of {all} releases{also}, about {time} left",
            done=done[False],
            all=releases,
            also=also,
            time=duration(pace * (total - passed)),
        )
        progress(min(passed / total, 1.0), told(words))


def files_of(study: Study, language: Language) -> Mapping[str, bytes]:
    """The files of a finished study by name.

    >>> sorted(RESULTS)
    ['results.parquet', 'study.html', 'study.json', 'study.md']
    """
    facts = study.facts()
    return {
        "results.parquet": parquet_bytes(study.results),
        "study.json": (
            json.dumps(facts.to_dict(language), ensure_ascii=False, indent=2, allow_nan=False) + "\n"
        ).encode(),
        "study.md": to_markdown(facts, language).encode(),
        "study.html": to_html(facts, language).encode(),
    }
