"""How long does exact record linkage of an Adult release take?"""

from __future__ import annotations

from benchmarks.adult import adult
from benchmarks.timing import Row, cpu_seconds, print_rows
from velado.measures.risk.record_linkage import record_linkage
from velado.release.anonymize import anonymize
from velado.release.methods import GFKMC, Mondrian


def main() -> None:
    """Print the table."""
    table = adult()
    rows = []
    for method in (Mondrian(), GFKMC()):
        release = anonymize(table, table.schema, method, k=10)
        for direction in ("released-to-original", "original-to-released"):
            result = record_linkage(release.data, release.recoded, direction=direction)
            seconds = cpu_seconds(
                lambda r=release, d=direction: record_linkage(r.data, r.recoded, direction=d), repeat=2
            )
            rows.append(
                Row(
                    f"{method.name} k = 10, {direction}",
                    seconds,
                    bar=2.0,
                    note=f"{result.correct:.1f} of {result.rows} linked ({result.ties})",
                )
            )
    print_rows("Exact record linkage on Adult", rows)


if __name__ == "__main__":
    main()
