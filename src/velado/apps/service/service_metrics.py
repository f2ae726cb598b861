"""Counts of what was asked and how it ended, as Prometheus reads them. Nothing here comes from a row.

Several processes of one service add up by prometheus-client's own way: the leader names a folder in the
environment variable PROMETHEUS_MULTIPROC_DIR, each worker keeps its counts in a file of it, and whoever is
asked reads them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Histogram, Metric, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from velado.query.budget import LedgerState

BOUNDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Upper edges of the latency histogram, in seconds."""


class ServiceMetrics:
    """Counters that any thread may raise; with *shared*, the folder of all processes, `text` adds them up.

    >>> metrics = ServiceMetrics()
    >>> metrics.refusal("busy")
    >>> 'velado_refusals_total{code="busy"} 1.0' in metrics.text({})
    True
    """

    def __init__(self, shared: Path | None = None) -> None:
        # A registry of its own: two services in one process (tests) must not count together.
        own = CollectorRegistry()
        self._requests = Counter(
            "velado_requests", "Requests by route and status.", ["route", "status"], registry=own
        )
        self._refusals = Counter("velado_refusals", "Refused requests by reason.", ["code"], registry=own)
        self._answers = Counter(
            "velado_answers", "Answers by data set, fresh or stored.", ["dataset", "kind"], registry=own
        )
        self._seconds = Histogram(
            "velado_request_seconds", "Time from request to reply.", buckets=BOUNDS, registry=own
        )
        self._counted: Collector = own
        if shared is not None:
            self._counted = MultiProcessCollector(None, str(shared))  # type: ignore[no-untyped-call]

    def request(self, route: str, status: int, seconds: float) -> None:
        """One request of a known route ended."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.observe(seconds)

    def refusal(self, code: str) -> None:
        """One request was refused for this reason."""
        self._refusals.labels(code).inc()

    def answer(self, dataset: str, stored: bool) -> None:
        """One question was answered, anew or from the ledger."""
        self._answers.labels(dataset, "stored" if stored else "fresh").inc()

    def text(self, states: Mapping[str, LedgerState]) -> str:
        """Everything in Prometheus' text format, version 0.0.4; of the data sets, only those of *states*."""
        return generate_latest(_Shown(list(self._families(states)))).decode()

    def _families(self, states: Mapping[str, LedgerState]) -> Iterator[Metric]:
        for family in self._counted.collect():
            family.samples = [
                sample
                for sample in family.samples
                # When a counter was born is nobody's question here.
                if not sample.name.endswith("_created") and sample.labels.get("dataset") in (None, *states)
            ]
            yield family
        for name, text in (("left", "Budget not spent."), ("spent", "Budget spent.")):
            gauge = GaugeMetricFamily(f"velado_budget_{name}", text, labels=["dataset", "measure"])
            for dataset, state in sorted(states.items()):
                gauge.add_metric([dataset, state.budget.measure], float(getattr(state, name)))
            yield gauge


@dataclass(frozen=True)
class _Shown:
    """What one caller may see, as prometheus-client's writer takes it."""

    families: list[Metric]

    def collect(self) -> list[Metric]:
        return self.families
