"""Several processes on one socket, for machines with several cores; the ledger is what they share.

The leader starts the workers, passes signals on, and ends all when one ends: half a service is harder to notice than none.
Each worker keeps its part of the limits, so that together they allow what the service file says.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from velado.apps.web.server import Listening, serve
from velado.apps.web.settings import read_settings
from velado.errors import EngineError, VeladoError

_WORKER = "import sys; from velado.apps.web.workers import work; work(sys.argv[1])"


def lead(file: Path, taken: socket.socket, where: Listening, ready: Callable[[], None]) -> None:
    """Start the workers, call *ready* when all have opened their data sets, and wait for their end."""
    told, telling = os.pipe()
    with tempfile.TemporaryDirectory(prefix="velado-") as shared:
        order = {
            "file": str(file),
            "socket": taken.fileno(),
            "ready": telling,
            "shared": shared,
            "workers": where.workers,
            "certificate": None if where.certificate is None else str(where.certificate),
            "key": None if where.key is None else str(where.key),
        }
        processes: list[subprocess.Popen[bytes]] = []

        def pass_on(number: int, frame: Any) -> None:
            for process in processes:
                process.terminate()

        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, pass_on)
        command = [sys.executable, "-c", _WORKER, json.dumps(order)]
        for _ in range(where.workers):
            processes.append(
                subprocess.Popen(command, pass_fds=(taken.fileno(), telling), start_new_session=True)
            )
        os.close(telling)
        try:
            # A worker says one byte when it is ready; one that ends before says nothing, and then neither do we.
            if all(os.read(told, 1) == b"+" for _ in processes):
                ready()
            _wait(processes)
        finally:
            os.close(told)
            taken.close()


def _wait(processes: list[subprocess.Popen[bytes]]) -> None:
    """All workers have ended; the first to end takes the others along."""
    os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
    for process in processes:
        process.terminate()
    codes = [process.wait() for process in processes]
    # A worker that hears the signal while Python is shutting down is ended by it, with everything closed already.
    if any(code not in (0, -signal.SIGTERM) for code in codes):
        raise EngineError(
            "A worker of the service ended.",
            "The service stops as a whole rather than go on by halves; its reason stands above.",
            "Mend it and start again.",
        )


def work(order: str) -> None:
    """One worker: serves on the leader's socket with its part of the limits."""
    said = json.loads(order)
    where = Listening(
        certificate=None if said["certificate"] is None else Path(said["certificate"]),
        key=None if said["key"] is None else Path(said["key"]),
    )

    def ready() -> None:
        os.write(said["ready"], b"+")
        os.close(said["ready"])

    try:
        settings = replace(
            read_settings(Path(said["file"])).part(said["workers"]),
            secure_transport=where.certificate is not None,
            shared=Path(said["shared"]),
        )
        serve(settings, socket.socket(fileno=said["socket"]), where, ready)
    except VeladoError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)
