"""A closed network stays closed: Flower and Ray report nothing, look for no updates, install nothing, open no dashboard.

Their switches are environment variables that are read when the libraries are imported, so that everything here sets
them first. What was imported earlier, with reporting on, is switched off as well.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from velado.errors import MissingExtra

SILENT = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # Ray warns otherwise
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # on every system: no cluster, so that Ray keeps to loopback
}
"""Set for every process of a simulation, and in the scripts for several machines."""

NOWHERE = "http://127.0.0.1:9"  # nothing listens there
CLOSED = {
    **{name: NOWHERE for name in ("http_proxy", "https_proxy", "all_proxy")},
    **{name.upper(): NOWHERE for name in ("http_proxy", "https_proxy", "all_proxy")},
    **{name: "127.0.0.1,localhost,::1" for name in ("no_proxy", "NO_PROXY")},
}
"""Set for every process of a simulation: even with reporting off, a helper process of Ray asks the addresses by which
clouds describe a machine, and looks up a name for it. It asks by HTTP, and is sent to a port where nobody answers."""


def require_flower(simulation: bool = False, model: str = "logistic") -> None:
    """Flower (for a simulation Ray, for trees XGBoost) is installed, or MissingExtra says which extra brings it."""
    for library in ("flwr", *(["ray"] if simulation else []), *(["xgboost"] if model == "xgboost" else [])):
        if find_spec(library) is None:
            raise MissingExtra(
                f"The library '{library}' is not installed.",
                "Federated training is carried by Flower, whose simulation runs on Ray, and trees are grown by XGBoost.",
                'Install them with pip install "velado[federated]".',
            )


@contextmanager
def closed_network(home: Path) -> Iterator[None]:
    """Within it nothing is reported and *home* is Flower's and Ray's folder; afterwards the environment is as before."""
    # Ray measures its sockets' paths, which must stay short; a folder below the system's own is.
    ours = {**SILENT, **CLOSED, "FLWR_HOME": str(home / "flwr")}
    before = {name: os.environ.get(name) for name in (*ours, "PYTHONPATH", "RAY_ADDRESS")}
    os.environ.update(ours)
    os.environ.pop("RAY_ADDRESS", None)  # a cluster elsewhere must not be given the rows
    telemetry = import_module("flwr.supercore.telemetry")
    vars(telemetry)["FLWR_TELEMETRY_ENABLED"] = "0"
    # Even when it reports nothing Flower writes an identity into the user's home, unless it has one already.
    telemetry.state["source"] = telemetry.state["source"] or "unavailable"
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def one_thread() -> Iterator[None]:
    """Matrix products use one thread: a client's are small, and threads that wait for each other cost five times more."""
    if find_spec("threadpoolctl") is None:
        yield
        return
    with import_module("threadpoolctl").threadpool_limits(limits=1):
        yield
