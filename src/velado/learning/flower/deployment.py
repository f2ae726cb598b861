"""What several machines need, as one folder: the agreement, the Flower app, Flower's settings, and the exact commands.

    agreement/     federation.toml, schema.toml, taxonomies/    every party has its own copy and reads it
    app/           the Flower app: three lines that name velado's client and server app
    flower/        Flower's own folder on the coordinator's machine, with the address of the SuperLink
    certificates/  empty: the consortium puts its certificates here
    environment.sh variables every command is started with
    START.md       the commands

The agreement holds no row and names no table; a machine's table is named on that machine alone, by --node-config.
"""

from __future__ import annotations

import csv
import io
import os
import re
import shlex
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import tomli_w

from velado.data.schema import Column, Schema
from velado.data.staging import write_file
from velado.errors import MissingExtra, OutputError, ParameterError
from velado.learning.flower._parties import refuse_unnamed
from velado.learning.flower.agreement import Agreement, agree, read_recipe
from velado.learning.flower.flower_records import FederatedFit, FederationStopped
from velado.text import say

# A closed network stays closed: Flower and Ray report nothing, look for no updates, install nothing, open no dashboard.
#
# Their switches are environment variables that are read when the libraries are imported, so that everything here sets
# them first. What was imported earlier, with reporting on, is switched off as well.

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
    """Flower (for a simulation Ray, for trees XGBoost) is installed, or MissingExtra says which extra brings it.

    >>> require_flower(simulation=True) is None  # all is installed
    True
    """
    for library in ("flwr", *(["ray"] if simulation else []), *(["xgboost"] if model == "xgboost" else [])):
        if find_spec(library) is None:
            raise MissingExtra(
                say("The library '{library}' is not installed.", library=library),
                "Federated training is carried by Flower, whose simulation runs on Ray, and trees are grown by XGBoost.",
                'Install them with pip install "velado[federated]".',
            )


@contextmanager
def closed_network(home: Path) -> Iterator[None]:
    """Within it nothing is reported and *home* is Flower's and Ray's folder; afterwards the environment is as before.

    >>> with closed_network(Path("home")):
    ...     os.environ["FLWR_TELEMETRY_ENABLED"], os.environ["https_proxy"]
    ('0', 'http://127.0.0.1:9')
    """
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
    """Matrix products use one thread: a client's are small, and threads that wait for each other cost five times more.

    >>> with one_thread():
    ...     {pool["num_threads"] for pool in import_module("threadpoolctl").threadpool_info()}
    {1}
    """
    if find_spec("threadpoolctl") is None:
        yield
        return
    with import_module("threadpoolctl").threadpool_limits(limits=1):
        yield


# A run that somebody ends: the signal is noted, the round is cut, and what was learned until then is kept.
#
# Python runs a signal's handler in the main thread only, and Flower's simulation would keep that thread waiting until all
# rounds are over. So the engine runs in a thread beside it, the main thread only waits, and whatever asks a grid or a
# client looks at `Interruption` first.

GRACE = 15.0
"""Seconds an engine that was told to stop has, before Ray is ended under it."""


class FederationInterrupted(KeyboardInterrupt):
    """Somebody ended the run with the signal *number*; *fit* keeps the history up to there.

    It is a KeyboardInterrupt, so that a loop over many runs which goes on after a failed one ends as well.

    >>> FederationInterrupted(signal.SIGINT).exit_code
    130
    """

    def __init__(self, number: int, fit: FederatedFit | None = None) -> None:
        super().__init__(f"The run was ended by {signal.Signals(number).name}.")
        self.number = number
        self.fit = fit

    @property
    def exit_code(self) -> int:
        """130 after Ctrl-C, 143 after SIGTERM, as shells count."""
        return 128 + self.number


class _Cut(FederationStopped):
    """How an interruption leaves the rounds: like any other reason to stop, with the records kept."""


class Interruption:
    """While it is entered, SIGINT and SIGTERM are noted in *number* instead of ending the process.

    Only in the main thread, and only where Python's own handlers are in place: a program with handlers of its own, or
    a process that was started with a signal ignored, keeps them.

    >>> with Interruption() as stop:
    ...     stop.ask(signal.SIGTERM)
    >>> stop.number == signal.SIGTERM
    True
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            for number, usual in (
                (signal.SIGINT, signal.default_int_handler),
                (signal.SIGTERM, signal.SIG_DFL),
            ):
                if signal.getsignal(number) is usual:
                    self._before[number] = usual
            self.arm()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, usual in self._before.items():
            signal.signal(number, usual)

    def arm(self) -> None:
        """The handlers are in place, also after Ray's library has put its own, which abort, over them."""
        for number in self._before:
            signal.signal(number, self._note)

    def ask(self, number: int = signal.SIGINT) -> None:
        """The run ends at its next look."""
        self.number = self.number or number

    def check(self) -> None:
        """Nothing, or an error once the run was told to end."""
        if self.number is not None:
            raise _Cut(
                "The run was ended from outside.",
                "The rounds that were over by then are kept.",
                "Start it again for the rest.",
            )

    def guarded(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """*work*, which looks first whether the run was told to end."""

        def looked(*arguments: Any, **named: Any) -> Any:
            self.check()
            return work(*arguments, **named)

        return looked

    def guard(self, grid: Any) -> Any:
        """*grid*, at which whoever waits for nodes or answers looks as well."""
        for name in ("get_node_ids", "pull_messages"):
            setattr(grid, name, self.guarded(getattr(grid, name)))
        return grid

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.ask(number)


def beside(work: Callable[[], None], stop: Interruption, end: Callable[[], None]) -> None:
    """*work* is done in a thread of its own while this one stays free for signals; its error is raised here.

    Once *stop* was told to, the work has GRACE seconds; then *end* takes away what it waits for.

    >>> done = []
    >>> with Interruption() as stop:
    ...     beside(lambda: done.append("work"), stop, end=lambda: None)
    >>> done
    ['work']
    """
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # raised again below, in the thread of whoever called
            failed.append(error)

    thread = threading.Thread(target=run, name="velado simulation", daemon=True)
    thread.start()
    try:
        while thread.is_alive() and stop.number is None:
            thread.join(0.2)
            stop.arm()
    except BaseException:
        stop.ask()  # a handler of the program's own raised: the engine must not outlive it
        raise
    finally:
        if thread.is_alive():
            thread.join(GRACE)
        if thread.is_alive():
            end()
            thread.join(GRACE)
    if failed and stop.number is None:
        raise failed[0]


CONNECTION = "velado"
APP_PROJECT = """\
[project]
name = "velado-app"
version = "1.0.0"
description = "Federated training over locally anonymized rows."
license = "Apache-2.0"
dependencies = []

[tool.flwr.app]
publisher = "velado"
components = {serverapp = "velado_app.server_app:app", clientapp = "velado_app.client_app:app"}
config = {agreement = "", output = ""}
"""
APP_FILES = {
    "velado_app/__init__.py": '"""velado\'s Flower app."""\n',
    "velado_app/client_app.py": "from velado.learning.flower.client_app import app\n\n__all__ = ['app']\n",
    "velado_app/server_app.py": "from velado.learning.flower.server_app import app\n\n__all__ = ['app']\n",
}
"""All the code of the app: names of what is installed. A SuperNode of ours runs no other (`supernode`)."""
_ADDRESS = re.compile(r"[A-Za-z0-9.\-]+:[0-9]{1,5}")


def write_deployment(recipe_file: Path, folder: Path, address: str) -> Agreement:
    """*folder* holds everything several machines need; what the schema leaves open, or an existing folder, is an error.

    >>> write_deployment(Path("federation.toml"), Path("out"), "hub")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.ParameterError: The address of the SuperLink is not HOST:PORT...
    """
    if not _ADDRESS.fullmatch(address) or not 1 <= int(address.rpartition(":")[2]) <= 65_535:
        raise ParameterError(
            "The address of the SuperLink is not HOST:PORT, with a port from 1 to 65535.",
            "Clients must know where to connect.",
            "Write for example --address hub.example.org:9443.",
        )
    recipe, schema = read_recipe(recipe_file)
    agreement = agree(recipe, schema)
    refuse_unnamed(agreement.terms)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputError(
            say("'{folder}' exists already and is not empty.", folder=folder.name),
            "Two federations would be mixed.",
            "Choose another folder.",
        )
    plain, trees = _schema_files(schema)
    written = replace(recipe, data=replace(recipe.data, schema="schema.toml"))
    files = {
        "agreement/federation.toml": tomli_w.dumps(written.to_dict()),
        "agreement/schema.toml": tomli_w.dumps(plain.to_dict()),
        **{f"agreement/{name}": text for name, text in trees.items()},
        "app/pyproject.toml": APP_PROJECT,
        **{f"app/{name}": text for name, text in APP_FILES.items()},
        "flower/config.toml": tomli_w.dumps(_connection(folder, address)),
        "certificates/README.md": "Put ca.crt on every machine; server.crt and server.key on the SuperLink's alone.\n",
        "environment.sh": _exports(folder) + "\n",
        "START.md": _start_page(folder, address, agreement),
    }
    for name, text in files.items():
        write_file(folder / name, text.encode())
    return agreement


def superlink_command(folder: Path, address: str, host: str = "0.0.0.0") -> list[str]:
    """Start of the SuperLink: TLS, only registered SuperNodes, nothing installed at run time.

    >>> superlink_command(Path("/f"), "hub.example:9443")[:5]
    ['flower-superlink', '--host', '0.0.0.0', '--port', '9443']
    """
    held = folder.absolute() / "certificates"
    return [
        "flower-superlink",
        *("--host", host, "--port", address.rpartition(":")[2]),
        *("--ssl-ca-certfile", str(held / "ca.crt")),
        *("--ssl-certfile", str(held / "server.crt"), "--ssl-keyfile", str(held / "server.key")),
        "--enable-supernode-auth",
        "--disable-runtime-dependency-installation",
    ]


def supernode_command(
    folder: Path,
    address: str,
    client: int,
    table: str,
    work: str,
    key: str,
    port: int = 8020,
    identity: tuple[str, str] | None = None,
) -> list[str]:
    """Start of one client's SuperNode: its number, table, private folder, keys and passphrase file are its own.

    >>> supernode_command(Path("/f"), "hub.example:9443", 1, "t.csv", "work", "key")[:5]
    ['python', '-m', 'velado.learning.flower.supernode', '--superlink', 'hub.example:9443']
    """
    whole = folder.absolute()
    node = f"client={client} agreement={_quoted(str(whole / 'agreement'))} table={_quoted(table)} work={_quoted(work)}"
    if identity is not None:
        node += f" identity={_quoted(identity[0])} passphrase_file={_quoted(identity[1])}"
    return [
        *("python", "-m", "velado.learning.flower.supernode"),
        *("--superlink", address, "--root-certificates", str(whole / "certificates" / "ca.crt")),
        *("--auth-supernode-private-key", key),
        # Between the SuperNode and its own client app: this machine only.
        *("--host", "127.0.0.1", "--port", str(port)),
        *("--node-config", node),
    ]


def register_command(public_key: str) -> list[str]:
    """The coordinator lets one SuperNode in, by its public key.

    >>> register_command("key.pub")
    ['flwr', 'supernode', 'register', 'key.pub', 'velado']
    """
    return ["flwr", "supernode", "register", public_key, CONNECTION]


def run_command(folder: Path, output: str) -> list[str]:
    """The coordinator starts the rounds.

    >>> run_command(Path("/f"), "out")[:2]
    ['flwr', 'run']
    """
    whole = folder.absolute()
    settings = f"agreement={_quoted(str(whole / 'agreement'))} output={_quoted(output)}"
    return ["flwr", "run", str(whole / "app"), CONNECTION, "--run-config", settings, "--stream"]


def environment(folder: Path) -> dict[str, str]:
    """Variables every command of a deployment is started with: nothing is reported, Flower keeps to its folder.

    >>> environment(Path("/f"))["FLWR_HOME"]
    '/f/flower'
    """
    # A client's matrix products are small: threads that wait for each other would only cost time.
    return {**SILENT, "OMP_NUM_THREADS": "1", "FLWR_HOME": str(folder.absolute() / "flower")}


def _start_page(folder: Path, address: str, agreement: Agreement) -> str:
    """START.md: the commands in the order they are run."""
    federation = agreement.terms.federation
    keys = ("/path/to/identity", "/path/to/passphrase") if agreement.terms.parties else None
    nodes = supernode_command(
        folder, address, 1, "/path/to/own-table.csv", "/path/to/private", "supernode.key", identity=keys
    )
    host = address.rpartition(":")[0]
    return f"""# Start the federation

Digest of the terms: `{agreement.terms.digest}`. Every party compares it before it starts
(`velado federate agreement/federation.toml --dry-run` prints it).

On every machine, before each command (the same lines stand in `environment.sh`). Each hospital sets `FLWR_HOME` to a
folder of its own machine, and the paths in the commands to where it keeps its copy of this folder:

```sh
{_exports(folder)}
```

1. Certificates. `certificates/` needs `ca.crt` on every machine; `server.crt` and `server.key`, for `{host}` and
   127.0.0.1 (the SuperLink's own helper process uses that), on the SuperLink's machine only.
2. The coordinator starts the SuperLink:

   ```sh
   {shlex.join(superlink_command(folder, address))}
   ```
3. Each of the {federation.clients} clients makes a key, keeps `supernode.key` and sends `supernode.key.pub` to the
   coordinator:

   ```sh
   ssh-keygen -t ecdsa -b 384 -N '' -f supernode.key
   ```
4. The coordinator registers each:

   ```sh
   {shlex.join(register_command("supernode.key.pub"))}
   ```
5. Each client starts its SuperNode, with its own number from 1 to {federation.clients}, which is its place among the
   `[[parties]]` of the agreement. It is Flower's SuperNode, held to the app that this velado has written: a coordinator
   cannot send it other code.

   ```sh
   {shlex.join(nodes)}
   ```
   Rows are anonymized when the first message comes, and the first round waits for that, longer for a larger
   `patience` (here {federation.patience:g} seconds). A SuperNode that was killed may be refused until the SuperLink has
   noticed that it is gone: wait a minute and start it again.
6. The coordinator starts the rounds; fit.json, rounds.csv, model.npz and report.md are written to the output folder:

   ```sh
   {shlex.join(run_command(folder, "/path/to/output"))}
   ```
"""


def _exports(folder: Path) -> str:
    return "\n".join(f"export {name}={shlex.quote(value)}" for name, value in environment(folder).items())


def _quoted(text: str) -> str:
    if '"' in text or "\\" in text or "\n" in text:
        raise ParameterError(
            "A path has a quote, a backslash or a line break in it.",
            "Flower's configuration cannot carry it.",
            "Choose another path.",
        )
    return f'"{text}"'


def _connection(folder: Path, address: str) -> Mapping[str, object]:
    authority = str(folder.absolute() / "certificates" / "ca.crt")
    return {
        "superlink": {"default": CONNECTION, CONNECTION: {"address": address, "root-certificates": authority}}
    }


def _schema_files(schema: Schema) -> tuple[Schema, dict[str, str]]:
    """The schema with its taxonomy files beside it, whatever folder they were read from."""
    files: dict[str, str] = {}
    columns: list[Column] = []
    for number, column in enumerate(schema.columns.values(), start=1):
        spec = column.taxonomy
        if spec is not None and spec.paths is not None:
            name = f"taxonomies/{number}.csv"  # a column's name may hold what a file's may not
            held = io.StringIO()
            csv.writer(held, delimiter=";", lineterminator="\n").writerows(spec.paths)
            files[name] = held.getvalue()
            column = replace(column, taxonomy=replace(spec, file=name, separator=";", paths=None))
        elif spec is not None and spec.tree is not None:
            column = replace(column, taxonomy=replace(spec, file=None))
        columns.append(column)
    return schema.with_columns(columns), files
