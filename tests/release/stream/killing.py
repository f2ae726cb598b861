"""Runs of a stream that are killed at a point of one's choice: `python killing.py STREAM_FILE [FILE]`, one order a line on standard input.

"events 17" kills the run at its 17th touch of the world after the start (an open, rename, mkdir, connect …, as Python's audit hooks
see them), "seconds 0.25" so long after its start, "end" lets it end. Each run is a fork of this process, which has imported
everything and done nothing, so that a run costs what it does and no start. FILE is what all runs have as standard input, one after
another: a run goes on where the one before had read to.
"""

import os
import signal
import sys
import time


def die_at(events: int) -> None:
    """This process kills itself at that event."""
    left = events

    def count(name: str, args: object) -> None:
        nonlocal left
        if name.startswith(("open", "os.", "socket.connect", "shutil.")):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)


def one_run(config: str, order: str, records: int | None) -> str:
    """How the run ended: "killed", "ended", or "failed"; *records* is an open file for standard input."""
    from velado.release.stream.connectors.runner import run_stream
    from velado.release.stream.stream_settings import read_stream
    from velado.study.stream_totals import run_totals

    kind, _, amount = order.partition(" ")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            if records is not None:
                sys.stdin = os.fdopen(records)
            if kind == "events":
                die_at(int(amount))
            idle = 0.0

            def told(window: object, delay: float) -> None:
                nonlocal idle
                idle = time.time()

            def stop() -> bool:
                nonlocal idle
                idle = idle or time.time()  # asked for the first time: the run has begun
                return time.time() - idle > (4 if kind == "end" else 20)

            asked = read_stream(config)
            if asked.totals.ask:
                run_totals(config, asked, tell=told, stop=stop)
            else:
                run_stream(config, tell=told, stop=stop)
            code = 0
        finally:
            os._exit(code)
    if kind == "seconds":
        time.sleep(float(amount))
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return (
        "killed"
        if os.WIFSIGNALED(status)
        else "ended"
        if os.WEXITSTATUS(status) == 0
        else f"failed {os.WEXITSTATUS(status)}"
    )


if __name__ == "__main__":
    import confluent_kafka  # noqa: F401
    import paho.mqtt.client  # noqa: F401

    import velado.release.methods.mondrian
    import velado.release.stream.connectors.runner
    import velado.study.stream_totals  # noqa: F401

    given = os.open(sys.argv[2], os.O_RDONLY) if len(sys.argv) > 2 else None
    for told in sys.stdin:
        print(one_run(sys.argv[1], told.strip(), given), flush=True)
