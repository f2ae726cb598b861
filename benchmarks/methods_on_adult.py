"""How fast are the methods themselves on Adult (30,162 rows, 8 quasi-identifiers, k = 10), beside peers?"""

from __future__ import annotations

import numpy as np

from benchmarks.adult import EIGHT, adult
from benchmarks.timing import Row, cpu_seconds, data_folder, print_rows
from velado.data.encode import encode
from velado.randomness import seeded
from velado.release.anonymize import anonymize
from velado.release.goal import Goal, silent
from velado.release.guarantees import KAnonymity
from velado.release.methods import DAS, GFKMC, Mondrian
from velado.release.methods.das import elbow


def peers() -> tuple[float, float]:
    """CPU seconds of anjana's k-anonymity (k = 10, 5 % suppression) and of pycanon's check, on the same table."""
    import anjana.anonymity as anjana
    import pandas as pd
    import pycanon.anonymity as pycanon

    folder = data_folder() / "adult"
    frame = pd.read_csv(folder / "adult_clean.csv")[[*EIGHT, "income"]]
    hierarchies = {}
    for name, file in EIGHT.items():
        levels = pd.read_csv(folder / "hierarchies" / f"adult_hierarchy_{file}.csv", sep=";", header=None)
        if name == "age":
            levels[0] = levels[0].astype(int)
        hierarchies[name] = {level: levels[level].values for level in range(levels.shape[1])}
    made = cpu_seconds(
        lambda: anjana.k_anonymity(frame.copy(), [], list(EIGHT), 10, 5, hierarchies), repeat=1, warm=False
    )
    checked = cpu_seconds(lambda: pycanon.k_anonymity(frame, list(EIGHT)), repeat=3)
    return made, checked


def main() -> None:
    """Print the table."""
    table = adult()
    data = encode(table)
    goal = Goal((KAnonymity(10),))
    rows = []
    try:
        anjana, pycanon = peers()
    except ImportError:
        anjana = pycanon = None
    for method, bar in ((GFKMC(), 1.0), (Mondrian(), 0.03), (Mondrian(cut="relaxed"), None)):
        seconds = cpu_seconds(lambda method=method: method.anonymize(data, goal, seeded(0, "bench"), silent))
        release = anonymize(table, table.schema, method, k=10)
        name = f"{method.name} {getattr(method, 'cut', '')}".strip()
        rows.append(
            Row(
                f"{name}, k = 10",
                seconds,
                bar=bar,
                peer=anjana,
                peer_name="anjana (full-domain, 5 % suppressed)",
                note=f"NCP {release.loss:.4f}, smallest class {release.verdicts[0].achieved:g}",
            )
        )
    rows[1:2] = [
        rows[1],
        Row(
            "mondrian strict, k = 10, beside k-AnonML",
            rows[1].measured,
            bar=0.03,
            peer=1.4,
            peer_name="k-AnonML (published figure)",
        ),
    ]
    numeric = [np.asarray(table.frame.get_column(c).cast(float)) for c in ("age",)] + [
        np.asarray(table.frame.get_column(c).cast(float)) for c in ("education_num", "hours_per_week")
    ]
    rows.append(
        Row(
            "DAS elbow, three numeric columns",
            cpu_seconds(lambda: [elbow(np.unique(c)) for c in numeric]),
            bar=0.05,
            peer=37.8,
            peer_name="the authors' (published figure)",
            note=f"k = {[elbow(np.unique(c)) for c in numeric]}",
        )
    )
    from velado.release.goal import check_published

    frame = anonymize(table, table.schema, Mondrian(), k=10).frame
    rows.append(
        Row(
            "check of the release (regroup, count, verdict)",
            cpu_seconds(lambda: check_published(frame, list(EIGHT), goal.guarantees, wildcards=False)),
            peer=pycanon,
            peer_name="pycanon k-anonymity",
        )
    )
    das = cpu_seconds(lambda: DAS().anonymize(data, Goal(()), seeded(0, "bench"), silent))
    rows.append(Row("DAS, whole method", das))
    print_rows("Methods on Adult", rows)


if __name__ == "__main__":
    main()
