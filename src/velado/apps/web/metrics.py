"""Counts of what was asked and how it ended, as Prometheus reads them. Nothing here comes from a row."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any

from velado.query.budget import LedgerState

BOUNDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Upper edges of the latency histogram, in seconds."""


class Metrics:
    """Counters that any thread may raise."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str]] = Counter()
        self._answers: Counter[tuple[str, str]] = Counter()
        self._refusals: Counter[str] = Counter()
        self._times = [0] * (len(BOUNDS) + 1)
        self._seconds = 0.0

    def request(self, route: str, status: int, seconds: float) -> None:
        """One request of a known route ended."""
        with self._lock:
            self._requests[route, str(status)] += 1
            self._times[sum(seconds > bound for bound in BOUNDS)] += 1
            self._seconds += seconds

    def refusal(self, code: str) -> None:
        """One request was refused for this reason."""
        with self._lock:
            self._refusals[code] += 1

    def answer(self, dataset: str, stored: bool) -> None:
        """One question was answered, anew or from the ledger."""
        with self._lock:
            self._answers[dataset, "stored" if stored else "fresh"] += 1

    def snapshot(self) -> dict[str, Any]:
        """The counts as JSON has them, for the other processes of the service."""
        with self._lock:
            return {
                "requests": [[*key, count] for key, count in self._requests.items()],
                "answers": [[*key, count] for key, count in self._answers.items()],
                "refusals": dict(self._refusals),
                "times": list(self._times),
                "seconds": self._seconds,
            }

    def add(self, other: Mapping[str, Any]) -> None:
        """Another process's snapshot is counted in."""
        with self._lock:
            for route, status, count in other["requests"]:
                self._requests[route, status] += count
            for dataset, kind, count in other["answers"]:
                self._answers[dataset, kind] += count
            self._refusals.update(other["refusals"])
            self._times = [a + b for a, b in zip(self._times, other["times"], strict=True)]
            self._seconds += other["seconds"]

    def text(self, states: Mapping[str, LedgerState]) -> str:
        """Everything in Prometheus' text format, version 0.0.4; of the data sets, only those of *states*."""
        with self._lock:
            lines = _family("velado_requests_total", "counter", "Requests by route and status.")
            lines += [
                f'velado_requests_total{{route="{_label(route)}",status="{status}"}} {count}'
                for (route, status), count in sorted(self._requests.items())
            ]
            lines += _family("velado_refusals_total", "counter", "Refused requests by reason.")
            lines += [
                f'velado_refusals_total{{code="{_label(code)}"}} {count}'
                for code, count in sorted(self._refusals.items())
            ]
            lines += _family("velado_answers_total", "counter", "Answers by data set, fresh or stored.")
            lines += [
                f'velado_answers_total{{dataset="{_label(name)}",kind="{kind}"}} {count}'
                for (name, kind), count in sorted(self._answers.items())
                if name in states
            ]
            lines += _family("velado_request_seconds", "histogram", "Time from request to reply.")
            below = 0
            for bound, count in zip(BOUNDS, self._times, strict=False):
                below += count
                lines.append(f'velado_request_seconds_bucket{{le="{bound:g}"}} {below}')
            total = sum(self._times)
            lines.append(f'velado_request_seconds_bucket{{le="+Inf"}} {total}')
            lines.append(f"velado_request_seconds_sum {self._seconds:.6f}")
            lines.append(f"velado_request_seconds_count {total}")
        for name, text in (("left", "Budget not spent."), ("spent", "Budget spent.")):
            lines += _family(f"velado_budget_{name}", "gauge", text)
            for dataset, state in sorted(states.items()):
                value = float(state.left if name == "left" else state.spent)
                labels = f'dataset="{_label(dataset)}",measure="{state.budget.measure}"'
                lines.append(f"velado_budget_{name}{{{labels}}} {value!r}")
        return "\n".join(lines) + "\n"


def _family(name: str, kind: str, text: str) -> list[str]:
    return [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]


def _label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
