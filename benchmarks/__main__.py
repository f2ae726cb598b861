"""Run the benchmarks named on the command line, or all of them."""

from __future__ import annotations

import importlib
import sys

ALL = (
    "methods_on_adult",
    "methods_beside_peers",
    "losses",
    "over_time",
    "linkage",
    "identifiers",
    "million_rows",
    "whole_process",
    "lakes",
    "correlated",
    "engines",
    "desk",
    "service",
    "reply_times",
    "workloads",
    "synthetic",
    "paillier",
    "parties",
    "evaluation",
    "federated",
    "federated_privacy",
    "regression",
)


def main() -> None:
    """Run and print. What follows the name of a single benchmark from its first flag on is for that benchmark."""
    given = sys.argv[1:]
    flag = next((at for at, word in enumerate(given) if word.startswith("-")), len(given))
    if flag < len(given):
        importlib.import_module(f"benchmarks.{given[0]}").main(given[1:])
        return
    for name in given or ALL:
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
