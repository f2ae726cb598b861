"""The service is run: a socket, TLS if asked, one process or several, and an orderly end.

On SIGTERM or Ctrl+C no new connection is taken, running questions end, and only then are the ledgers closed.
This takes at most a query's time limit and a few seconds; then the process ends whatever still runs. A
question that is cut off has been paid and its answer is lost: budget is lost, never privacy.

Several processes answer on one socket, for machines with several cores; the ledger is what they share. The
leader starts the workers, passes signals on, and ends all when one ends: half a service is harder to notice
than none. Each worker keeps its part of the limits, so that together they allow what the service file says.
"""

from __future__ import annotations

import gc
import ipaddress
import json
import logging
import math
import os
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Annotated

from velado.apps.service.connection_guard import HEADER_BYTES, guarded_protocol
from velado.apps.service.service_settings import ServiceSettings, read_settings
from velado.errors import EngineError, MissingExtra, ParameterError, VeladoError
from velado.settings import Setting, settings
from velado.text import say

HEADER_SECONDS = 10.0
_SHARED = "PROMETHEUS_MULTIPROC_DIR"
"""Where prometheus-client looks for the folder of several processes' counts, when it is first imported."""
_WORKER = "import sys; from velado.apps.service.web_server import _work; _work(sys.argv[1])"


@settings
class Listening:
    """Where and how to listen.

    >>> Listening().secured, Listening(certificate=Path("a.pem"), key=Path("b.pem")).secured
    (False, True)
    """

    host: str = "127.0.0.1"
    port: Annotated[int, Setting("the port; 0 takes any free one", ge=0, le=65_535)] = 8443
    certificate: Path | None = None
    key: Path | None = None
    plain_http: bool = False
    workers: Annotated[
        int,
        Setting(
            "processes that answer", ge=1, le=64, why=say("Each is a process that holds every data set.")
        ),
    ] = 1

    @property
    def secured(self) -> bool:
        """Whether TLS is on; tokens cross a network in the clear only where a proxy is said to see to it."""
        if (self.certificate is None) != (self.key is None):
            raise ParameterError(
                "A certificate and its key belong together.",
                "One without the other gives no TLS.",
                "Give both --tls-cert and --tls-key.",
            )
        if self.certificate is None and not self.plain_http and not _is_loopback(self.host):
            raise ParameterError(
                "The service would be reachable from other machines without TLS.",
                "Tokens and answers could be read on the way.",
                "Give --tls-cert and --tls-key; or --plain-http, if a proxy in front of it does the TLS.",
            )
        return self.certificate is not None


def run(file: Path, where: Listening, ready: Callable[[str], None]) -> None:
    """Serve until told to stop; *ready* is called with the address once connections are taken.

    >>> run(Path("service.toml"), Listening(host="0.0.0.0"), print)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.ParameterError: The service would be reachable from other machines without TLS. ...
    """
    # A folder that is somebody else's would mix their counts with ours.
    os.environ.pop(_SHARED, None)
    try:
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise MissingExtra(
            "The service needs FastAPI, Uvicorn and prometheus-client, of which one is not installed.",
            "They are optional, so that velado itself stays small.",
            "Install them with: pip install 'velado[web,query]'.",
        ) from None
    secured = where.secured
    settings = replace(read_settings(file), secure_transport=secured)
    taken = _socket(where.host, where.port)
    host, port = taken.getsockname()[:2]
    address = f"{'https' if secured else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"
    if where.workers == 1:
        _serve(settings, taken, where, lambda: ready(address))
    else:
        _lead(file, taken, where, lambda: ready(address))


def _serve(
    settings: ServiceSettings, taken: socket.socket, where: Listening, ready: Callable[[], None]
) -> None:
    """This process answers on the socket until told to stop."""
    import uvicorn

    from velado.apps.service.analyst_service import GRACE
    from velado.apps.service.web_app import create_app

    _log_privately()
    app = create_app(settings)
    service = app.state.service
    protocol = guarded_protocol(
        HEADER_SECONDS,
        settings.limits.half_open_connections,
        lambda: service.metrics.refusal("half-open"),
    )
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        # Otherwise a client could name any address as its own in a header.
        proxy_headers=False,
        limit_concurrency=settings.limits.connections,
        h11_max_incomplete_event_size=HEADER_BYTES,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=math.ceil(settings.limits.query_seconds + GRACE) + 1,
        ssl_certfile=where.certificate,
        ssl_keyfile=where.key,
    )
    try:
        config.load()
    except (OSError, ssl.SSLError):
        service.give_back()
        raise ParameterError(
            "The certificate or its key cannot be used.",
            "Without them there is no TLS.",
            "Name two PEM files that belong together with --tls-cert and --tls-key.",
        ) from None
    if config.ssl is not None:
        config.ssl.minimum_version = ssl.TLSVersion.TLSv1_2
        # The protocol carries the handshakes, because it counts who has not finished one.
        protocol.tls, config.ssl = config.ssl, None
    # Uvicorn ends gracefully and then raises the signal again; this process is to end with code 0.
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda number, frame: None)

    class Server(uvicorn.Server):  # type: ignore[misc, unused-ignore]  # Any where uvicorn is not installed
        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            service.stop()
            super().handle_exit(sig, frame)

    # What is loaded by now stays to the end; looking through it for garbage again and again is for nothing.
    gc.collect()
    gc.freeze()
    ready()
    Server(config).run(sockets=[taken])
    # At Python's own end everything is looked through once more; native libraries complain of what is not.
    gc.unfreeze()
    # The application's own end has closed it; asked again, it says whether a thread is left behind.
    if not service.give_back():
        sys.stdout.flush()
        sys.stderr.flush()
        # Python's own end would wait for threads that still compute.
        os._exit(0)


def _lead(file: Path, taken: socket.socket, where: Listening, ready: Callable[[], None]) -> None:
    """Start the workers, call *ready* when all have opened their data sets, and wait for their end."""
    told, telling = os.pipe()
    with tempfile.TemporaryDirectory(prefix="velado-") as shared:
        order = [str(file), shared, where.workers, taken.fileno(), telling]
        order += [None if path is None else str(path) for path in (where.certificate, where.key)]
        processes: list[subprocess.Popen[bytes]] = []

        def pass_on(number: int, frame: FrameType | None) -> None:
            for process in processes:
                process.terminate()

        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, pass_on)
        for _ in range(where.workers):
            processes.append(
                subprocess.Popen(
                    [sys.executable, "-c", _WORKER, json.dumps(order)],
                    pass_fds=(taken.fileno(), telling),
                    start_new_session=True,
                    env={**os.environ, _SHARED: shared},
                )
            )
        os.close(telling)
        try:
            # A worker says one byte when it is ready; one that ends before says none, and then neither do we.
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
    # A worker that hears the signal while Python shuts down is ended by it, with everything closed already.
    if any(code not in (0, -signal.SIGTERM) for code in codes):
        raise EngineError(
            "A worker of the service ended.",
            "The service stops as a whole rather than go on by halves; its reason stands above.",
            "Mend it and start again.",
        )


def _work(order: str) -> None:
    """One worker: serves on the leader's socket with its part of the limits."""
    file, shared, workers, taken, telling, *pair = json.loads(order)
    certificate, key = (None if path is None else Path(path) for path in pair)

    def ready() -> None:
        os.write(telling, b"+")
        os.close(telling)

    try:
        whole = read_settings(Path(file))
        settings = replace(
            whole,
            limits=whole.limits.part(workers),
            secure_transport=certificate is not None,
            shared=Path(shared),
        )
        _serve(settings, socket.socket(fileno=taken), Listening(certificate=certificate, key=key), ready)
    except VeladoError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _socket(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        taken = socket.socket(family, socket.SOCK_STREAM)
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((host, port))
        # From here on clients may connect; they wait until the first request is read.
        taken.listen(1024)
        return taken
    except OSError:
        raise ParameterError(
            "The address cannot be listened on.",
            "Another program uses the port, or the machine has no such address.",
            "Choose another --port; 0 takes any free one.",
        ) from None


def _log_privately() -> None:
    """Our own sentences go to standard error; of other libraries' records, unknown to us, only the place."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_WithoutValues("%(asctime)s %(levelname)s %(name)s %(message)s"))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)


class _WithoutValues(logging.Formatter):
    """Of a foreign error, the class and nothing of its message."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, without a traceback's texts."""
        if record.exc_info:
            kind = record.exc_info[0]
            record.msg, record.args = f"{kind.__name__ if kind else 'error'} in {record.module}", ()
            record.exc_info, record.exc_text = None, None
        return super().format(record)
