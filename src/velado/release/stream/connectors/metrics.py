"""The counts of a stream as Prometheus reads them: a file replaced whole, a port of this machine alone, or both. No cell is in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from velado.data.staging import put_file
from velado.errors import MissingExtra, ParameterError
from velado.release.stream.windows import COUNTED, StreamState
from velado.text import say


class StreamMetrics:
    """Gauges of one stream, in a registry of their own. Exact counts are the owner's: the port listens on the loopback address alone, the file has mode 0600.

    >>> from velado.testing.examples import stream_of_ages
    >>> metrics = StreamMetrics("ward", None, 0)
    >>> metrics.told(stream_of_ages(people=2, windows=1)[0].begin(), None)
    >>> b'velado_stream_published{stream="ward"} 0.0' in metrics.text()
    True
    """

    def __init__(self, name: str, file: Path | None, port: int) -> None:
        try:
            import prometheus_client
        except ImportError:
            raise MissingExtra(
                "Metrics need the library prometheus-client, which is not installed.",
                "Counts cannot be written in its form without it.",
                'Install it with: pip install "velado[stream]"',
            ) from None
        self._library, self._name, self._file = prometheus_client, name, file
        self._registry = prometheus_client.CollectorRegistry()
        self._counts = {
            one: self._gauge(one, "Counted since the stream began.") for one in (*COUNTED, "unsettled")
        }
        self._refused = self._gauge("refused", "Records refused, by reason.", "reason")
        self._delay = self._gauge(
            "delay_seconds",
            "How long after its end, or after the record that filled it was read, the last window was published.",
        )
        self._served = None if not port else self._serve(port)

    def told(self, state: StreamState, delay: float | None) -> None:
        """What *state* counts is what is read from now on."""
        for one in COUNTED:
            self._counts[one].labels(self._name).set(getattr(state.counts, one))
        self._counts["unsettled"].labels(self._name).set(state.open_records + state.waiting.height)
        for reason, number in (state.counts.refused or {}).items():
            self._refused.labels(self._name, reason).set(number)
        if delay is not None:
            self._delay.labels(self._name).set(delay)
        if self._file is not None:
            put_file(self._file, self.text(), private=True)

    def text(self) -> bytes:
        """Everything in Prometheus' text format."""
        found: bytes = self._library.generate_latest(self._registry)
        return found

    def close(self) -> None:
        """The port is free again."""
        if self._served is not None:
            server, thread = self._served
            server.shutdown()
            server.server_close()
            thread.join()

    def _gauge(self, name: str, said: str, *labels: str) -> Any:
        return self._library.Gauge(
            f"velado_stream_{name}", said, ["stream", *labels], registry=self._registry
        )

    def _serve(self, port: int) -> Any:
        try:
            return self._library.start_http_server(port, addr="127.0.0.1", registry=self._registry)
        except OSError:
            raise ParameterError(
                say("The port {port} for metrics is taken.", port=port),
                "Counts could not be read there.",
                "Choose another metrics_port, or 0 for none.",
            ) from None
