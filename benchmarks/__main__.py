"""Run the benchmarks named on the command line, or all of them."""

from __future__ import annotations

import importlib
import sys

ALL = (
    "methods_on_adult",
    "methods_beside_peers",
    "losses",
    "linkage",
    "identifiers",
    "million_rows",
    "whole_process",
    "correlated",
    "engines",
    "service",
    "paillier",
    "parties",
    "evaluation",
    "federated",
    "regression",
)


def main() -> None:
    """Run and print."""
    for name in [name for name in sys.argv[1:] if not name.startswith("--")] or ALL:
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
