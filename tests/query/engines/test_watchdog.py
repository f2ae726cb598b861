"""One thread stops whatever is late, again and again, and nothing that has ended."""

import gc
import threading
import time
import weakref
from collections.abc import Callable

from velado.query.engines._duckdb_engine import Watchdog

BOUND = 20.0


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + BOUND
    while not true():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_a_late_call_is_interrupted_until_it_ends_and_not_afterwards() -> None:
    dog, calls = Watchdog(), [0]

    def interrupt() -> None:
        calls[0] += 1

    watch = dog.watch(0.02, interrupt)
    until(lambda: calls[0] >= 3)
    dog.end(watch)
    ended = calls[0]
    assert watch.late
    time.sleep(0.1)
    assert calls[0] == ended


def test_a_call_that_ends_in_time_is_never_interrupted() -> None:
    dog, late = Watchdog(), threading.Event()
    quick = dog.watch(1.0, late.set)
    dog.end(quick)
    other = dog.watch(1.2, lambda: None)
    until(lambda: other.late)
    dog.end(other)
    assert not late.is_set() and not quick.late


def test_a_shorter_limit_that_comes_later_is_kept_too() -> None:
    dog, short, long = Watchdog(), threading.Event(), threading.Event()
    watches = [dog.watch(BOUND * 10, long.set), dog.watch(0.02, short.set)]
    assert short.wait(BOUND) and not long.is_set()
    for watch in watches:
        dog.end(watch)


def test_many_calls_share_one_thread_which_ends_when_nothing_is_watched_and_starts_again() -> None:
    before, dog = set(threading.enumerate()), Watchdog()
    watches = [dog.watch(0.2, lambda: None) for _ in range(50)]
    (own,) = (thread for thread in set(threading.enumerate()) - before if thread.name == "velado-watchdog")
    for watch in watches:
        dog.end(watch)
    until(lambda: not own.is_alive())
    again = threading.Event()
    watch = dog.watch(0.01, again.set)
    assert again.wait(BOUND)
    dog.end(watch)


def test_a_sleeping_watchdog_holds_on_to_no_call_that_has_ended() -> None:
    class Call:
        def interrupt(self) -> None:
            """Nothing to stop."""

    dog = Watchdog()
    sleeping = dog.watch(BOUND * 10, lambda: None)
    call = Call()
    gone = weakref.ref(call)
    watch = dog.watch(BOUND, call.interrupt)
    # The thread has looked at both and sleeps.
    time.sleep(0.05)
    dog.end(watch)
    del call, watch
    gc.collect()
    assert gone() is None
    dog.end(sleeping)


def test_a_shorter_limit_is_kept_although_the_thread_sleeps_for_a_longer_one() -> None:
    dog, late = Watchdog(), threading.Event()
    patient = dog.watch(10 * BOUND, lambda: None)
    time.sleep(0.1)  # the thread is asleep until the far deadline
    hurried = dog.watch(0.02, late.set)
    assert late.wait(BOUND)
    dog.end(hurried)
    dog.end(patient)
