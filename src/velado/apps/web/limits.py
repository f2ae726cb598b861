"""How often: a bucket of permits for each token and each address, kept in this process's memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

_MOST_KEYS = 10_000


@dataclass
class _Bucket:
    permits: float
    at: float


class Buckets:
    """Permits that refill at *per_minute* up to *burst*, one bucket for each key.

    At most 10,000 keys are kept; beyond that full buckets, which say nothing, are dropped first and then the oldest.
    Each service process counts for itself, so k processes allow k times as much.
    """

    def __init__(self, per_minute: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = per_minute / 60
        self._burst = burst
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: dict[str, _Bucket] = {}

    def take(self, key: str) -> float:
        """0 when a permit was there and is taken, else the seconds until there will be one."""
        with self._lock:
            bucket = self._refilled(key)
            if bucket.permits >= 1:
                bucket.permits -= 1
                return 0.0
            return (1 - bucket.permits) / self._rate

    def _refilled(self, key: str) -> _Bucket:
        now = self._clock()
        bucket = self._buckets.get(key)
        if bucket is None:
            if len(self._buckets) >= _MOST_KEYS:
                self._forget(now)
            bucket = self._buckets[key] = _Bucket(float(self._burst), now)
        bucket.permits = min(float(self._burst), bucket.permits + (now - bucket.at) * self._rate)
        bucket.at = now
        return bucket

    def _forget(self, now: float) -> None:
        full = [k for k, b in self._buckets.items() if b.permits + (now - b.at) * self._rate >= self._burst]
        # A tenth at once, so that a flood of new keys does not cost a look at all of them each time.
        for key in full or list(islice(self._buckets, _MOST_KEYS // 10)):
            del self._buckets[key]
