"""How long does a user wait: `velado --help`, and `velado anonymize` from start to written report?"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import tomli_w

from benchmarks.adult import schema_dict
from benchmarks.timing import Row, data_folder, print_rows, run_process, velado


def main() -> None:
    """Print the table."""
    rows = []
    run_process(velado("--help"))
    rows.append(Row("velado --help", min(run_process(velado("--help"))[0] for _ in range(5)), "wall s", 0.5))
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        document = schema_dict()
        for column in document["columns"].values():
            # A schema reads its taxonomies from its own folder.
            if "taxonomy" in column:
                file = data_folder() / column["taxonomy"]
                column["taxonomy"] = shutil.copy(file, scratch / file.name).name
        (scratch / "schema.toml").write_text(tomli_w.dumps(document))
        table = str(data_folder() / "adult" / "adult_clean.csv")
        asked = (
            (("--method", "gfkmc"), 8.0),
            (("--method", "mondrian"), 8.0),
            (("--method", "progressive"), 4.0),
            (("--method", "progressive", "--effort", "fast"), 2.0),
        )
        for flags, bar in asked:
            given = ["--schema", str(scratch / "schema.toml"), "-k", "10", "-o", str(scratch / "release")]
            command = velado("anonymize", table, *given, *flags)
            runs = []
            for _ in range(3):
                shutil.rmtree(scratch / "release", ignore_errors=True)
                # An installed velado has its modules compiled, whatever the environment of the benchmark says.
                wall, cpu, peak = run_process(command, PYTHONDONTWRITEBYTECODE="")
                runs.append((cpu, wall, peak))
            cpu, wall, peak = min(runs)
            what = f"velado anonymize {' '.join(flags)} on Adult"
            rows.append(Row(what, cpu, bar=bar, note=f"{wall:.1f} s, {peak:.0f} MB"))
    print_rows("Whole processes", rows)


if __name__ == "__main__":
    main()
