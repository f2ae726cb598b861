"""The service is run: a socket, TLS if asked, time limits for slow clients, and an orderly end.

On SIGTERM or Ctrl+C no new connection is taken, running questions end, and only then are the ledgers closed. This takes at most a
query's time limit and a few seconds; then the process ends whatever still runs. A question that is cut off has been paid and its
answer is lost: budget is lost, never privacy.
"""

from __future__ import annotations

import gc
import ipaddress
import logging
import math
import os
import signal
import socket
import ssl
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

from velado.apps.web.gate import HEADER_BYTES
from velado.apps.web.patience import patient_protocol
from velado.apps.web.settings import Settings, read_settings
from velado.errors import MissingExtra, ParameterError

HEADER_SECONDS = 10.0


@dataclass(frozen=True)
class Listening:
    """Where and how to listen."""

    host: str = "127.0.0.1"
    port: int = 8443
    certificate: Path | None = None
    key: Path | None = None
    plain_http: bool = False
    workers: int = 1


def run(file: Path, where: Listening, ready: Callable[[str], None]) -> None:
    """Serve until told to stop; *ready* is called with the address once connections are taken."""
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise MissingExtra(
            "The service needs FastAPI and Uvicorn, which are not installed.",
            "They are optional, so that velado itself stays small.",
            "Install them with: pip install 'velado[web,query]'.",
        ) from None
    if not 1 <= where.workers <= 64:
        raise ParameterError(
            "The number of workers must lie from 1 to 64.",
            "Each is a process that holds every data set.",
            "Choose the number of processor cores.",
        )
    secured = check_transport(where.host, where.certificate, where.key, where.plain_http)
    settings = replace(read_settings(file), secure_transport=secured)
    taken = _socket(where.host, where.port)
    host, port = taken.getsockname()[:2]
    address = f"{'https' if secured else 'http'}://{_shown(host)}:{port}"
    if where.workers == 1:
        serve(settings, taken, where, lambda: ready(address))
    else:
        from velado.apps.web.workers import lead

        lead(file, taken, where, lambda: ready(address))


def serve(settings: Settings, taken: socket.socket, where: Listening, ready: Callable[[], None]) -> None:
    """This process answers on the socket until told to stop."""
    import uvicorn

    from velado.apps.web.app import create_app
    from velado.apps.web.service import GRACE

    _log_privately()
    app = create_app(settings)
    service = app.state.service
    protocol = patient_protocol(
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
        service.close()
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
        signal.signal(name, _ignore)

    class Server(uvicorn.Server):  # type: ignore[misc, unused-ignore]  # Any where uvicorn is not installed
        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            service.stop()
            super().handle_exit(sig, frame)

    # What is loaded by now stays to the end, so looking through it for garbage again and again would be for nothing.
    gc.collect()
    gc.freeze()
    ready()
    Server(config).run(sockets=[taken])
    # At Python's own end everything is looked through once more; native libraries complain of what was left out.
    gc.unfreeze()
    # The application's own end has closed it; asked again, it says whether a thread is left behind.
    if not service.close():
        sys.stdout.flush()
        sys.stderr.flush()
        # Python's own end could wait for libraries whose threads still compute.
        os._exit(0)


def check_transport(host: str, certificate: Path | None, key: Path | None, plain_http: bool) -> bool:
    """Whether TLS is on; tokens must not cross a network in the clear unless somebody says that a proxy sees to it."""
    if (certificate is None) != (key is None):
        raise ParameterError(
            "A certificate and its key belong together.",
            "One without the other gives no TLS.",
            "Give both --tls-cert and --tls-key.",
        )
    if certificate is None and not plain_http and not _is_loopback(host):
        raise ParameterError(
            "The service would be reachable from other machines without TLS.",
            "Tokens and answers could be read on the way.",
            "Give --tls-cert and --tls-key; or --plain-http, if a proxy in front of it does the TLS.",
        )
    return certificate is not None


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


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _ignore(number: int, frame: Any) -> None:
    """Nothing: the end is under way."""


def _log_privately() -> None:
    """Our own sentences go to standard error; other libraries' records, whose texts we do not know, only by their place."""
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
