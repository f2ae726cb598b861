"""Run by a test in a process of its own: both models through Flower's simulation, watched for sockets and files."""

import json
import os
import sys
import threading
import time
from pathlib import Path


def _family(root: int) -> set[int]:
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                parents[int(entry)] = int(
                    Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[1]
                )
            except (OSError, IndexError):
                continue
    family = {root}
    while True:
        more = {child for child, parent in parents.items() if parent in family} - family
        if not more:
            return family
        family |= more


def _sockets(found: set[str]) -> None:
    """Local and remote addresses of every internet socket of this process and all below it, as the kernel writes them."""
    own = set()
    for number in _family(os.getpid()):
        try:
            links = [os.readlink(f"/proc/{number}/fd/{name}") for name in os.listdir(f"/proc/{number}/fd")]
        except OSError:
            continue
        own |= {link[8:-1] for link in links if link.startswith("socket:[")}
    for name in ("tcp", "tcp6", "udp", "udp6"):
        try:
            lines = Path(f"/proc/net/{name}").read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            parts = line.split()
            if parts[9] in own:
                listening = parts[3] == "0A"
                found.add(parts[1].split(":")[0])
                if not listening:
                    found.add(parts[2].split(":")[0])


def main() -> None:
    folder = Path(sys.argv[1])
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
    from tests.learning.flower.conftest import make_people

    from velado.learning.flower import Federation, simulate
    from velado.release.methods import Mondrian

    people = make_people(folder / "people", 300)
    found: set[str] = set()
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            _sockets(found)
            time.sleep(0.2)

    watcher = threading.Thread(target=watch)
    watcher.start()
    fits = {}
    for model in ("logistic", "xgboost"):
        federation = Federation(model=model, clients=4, rounds=3, participation=0.5, dropout=0.2)
        said: list[int] = []
        fit = simulate(
            people.csv,
            people.schema,
            Mondrian(),
            federation,
            target="outcome",
            on_round=lambda one, said=said: said.append(one.number),
            k=3,
        )
        fits[model] = {"fit": fit.to_dict(), "told": said}
    over.set()
    watcher.join()
    variables = {name: os.environ.get(name) for name in ("FLWR_TELEMETRY_ENABLED", "PYTHONPATH", "FLWR_HOME")}
    import flwr.supercore.telemetry as telemetry

    print(
        json.dumps(
            {
                "fits": fits,
                "sockets": sorted(found),
                "home": os.listdir(os.environ["HOME"]),
                "variables": variables,
                "telemetry": [telemetry.FLWR_TELEMETRY_ENABLED, telemetry.state["source"]],
                "temporary": os.listdir(os.environ["TMPDIR"]),
            }
        )
    )


if __name__ == "__main__":
    main()
