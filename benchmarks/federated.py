"""How long do 100 rounds of 10 clients take on Adult, do late rounds cost more than early ones, and what does k cost the model?

Wall seconds count, from the prepared rows to the fit, Ray's start included; CPU seconds stand beside them, because a busy
machine changes the one and not the other.
"""

from __future__ import annotations

import resource
import time
from statistics import median

from benchmarks.adult import adult_joined
from benchmarks.timing import Row, print_rows
from velado.learning.flower import FederatedFit, Federation
from velado.learning.flower._local_rows import Locally
from velado.learning.flower.simulation import Engine, make_ready, run_ready
from velado.release.methods import Mondrian
from velado.release.methods._method import Method

BARS = {"logistic": 90.0, "xgboost": 180.0}


def cpu_seconds() -> float:
    """CPU seconds of this process and of those that have ended below it."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def run(model: str, method: Method | None, engine: Engine) -> tuple[FederatedFit, float, float, float]:
    """The fit, wall and CPU seconds of its rounds, and wall seconds of anonymizing and measuring at the clients."""
    table = adult_joined()
    start = time.perf_counter()
    ready = make_ready(table, table.schema, Locally(method), Federation(model=model), target="income")
    prepared = time.perf_counter()
    cpu = cpu_seconds()
    fit = run_ready(ready, engine)
    return fit, time.perf_counter() - prepared, cpu_seconds() - cpu, prepared - start


def rows(model: str) -> list[Row]:
    """One model: with and without anonymization through Flower, and in the loop."""
    out = []
    runs: list[tuple[Method | None, Engine]] = [(None, "flower"), (Mondrian(), "flower"), (None, "loop")]
    for method, engine in runs:
        fit, wall, cpu, before = run(model, method, engine)
        name = "original rows" if method is None else f"{method.name}, k = 5"
        last = fit.rounds[-1]
        out.append(
            Row(
                f"{model}, {name}, {engine}",
                wall,
                "s",
                BARS[model],
                note=f"CPU {cpu:.0f} s, before {before:.1f} s; accuracy {last.accuracy:.4f}, AUC {last.auc:.4f}",
            )
        )
        early, late = fit.rounds[5:15], fit.rounds[-10:]
        out.append(
            Row(
                "  a late round costs, of an early one, in bytes down",
                sum(one.bytes_down for one in late) / sum(one.bytes_down for one in early),
                "x",
                1.5,
                note=f"up x{sum(o.bytes_up for o in late) / sum(o.bytes_up for o in early):.2f}, median "
                f"seconds {median(o.seconds for o in early):.3f} and {median(o.seconds for o in late):.3f}",
            )
        )
    return out


def main() -> None:
    """Run and print."""
    for model in BARS:
        print_rows(f"100 rounds x 10 clients on Adult: {model}", rows(model))


if __name__ == "__main__":
    main()
