"""Jobs on several cores, each in a process of its own; a process that dies takes one job with it, not the study.

Workers are started afresh (not forked: Polars' threads do not survive a fork) and write each cell as soon as it is known,
so that whatever is killed, at most the cells in hand are lost. A worker whose parent dies ends itself.
"""

from __future__ import annotations

import multiprocessing
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from velado.data.cells import CellStore
from velado.study.evaluate.grid import Job, in_turn
from velado.study.evaluate.load import Material
from velado.study.evaluate.work import carry_out, lost

GRACE = 5.0
"""Seconds a worker has to clean up after the process that started it has died."""


def cores() -> int:
    """How many cores this machine has."""
    return multiprocessing.cpu_count()


def compute(job: Job, material: Material, store: CellStore) -> int:
    """The cells of *job* computed and stored; how many are gaps."""
    gaps = 0
    for row in carry_out(job, material):
        store.put(row)
        gaps += row["status"] == "gap"
    return gaps


def compute_all(
    jobs: Sequence[Job], material: Material, store: CellStore, workers: int
) -> Iterator[tuple[Job, int]]:
    """Each job with its number of gaps, in the order in which they are finished."""
    if workers == 1 or len(jobs) == 1:
        for job in jobs:
            yield job, compute(job, material, store)
        return
    alone = [job for job in jobs if takes_all_cores(job, material)]
    together = [job for job in jobs if not takes_all_cores(job, material)]
    for waiting, side_by_side in ((together, workers), (alone, 1)):
        yield from _through(waiting, material, store, side_by_side)


def takes_all_cores(job: Job, material: Material) -> bool:
    """Whether the job must run when nothing else does."""
    return job.federation is not None and in_turn(material)


def _through(
    waiting: list[Job], material: Material, store: CellStore, workers: int
) -> Iterator[tuple[Job, int]]:
    """Takes every job off *waiting*, through processes that may die."""
    while waiting:
        broken: list[Job] = []
        yield from _with_pool(waiting, broken, material, store, workers)
        for job in broken:
            # One of these brought its process down, the others were bystanders. Alone, each shows which it is.
            yield from _by_itself(job, material, store)


def _with_pool(
    waiting: list[Job], broken: list[Job], material: Material, store: CellStore, workers: int
) -> Iterator[tuple[Job, int]]:
    """Takes jobs off *waiting*; stops when a process dies, with the jobs in hand put into *broken*."""
    running: dict[Future[int], Job] = {}
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


def _by_itself(job: Job, material: Material, store: CellStore) -> Iterator[tuple[Job, int]]:
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
            rows = [row for row in lost(left) if row["cell"] not in settled]
            for row in rows:
                store.put(row)
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
