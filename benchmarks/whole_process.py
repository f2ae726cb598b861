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
        for method, bar in (("gfkmc", 8.0), ("mondrian", 8.0)):
            command = velado(
                "anonymize",
                table,
                "--schema",
                str(scratch / "schema.toml"),
                "--method",
                method,
                "-k",
                "10",
                "-o",
                str(scratch / "release"),
            )
            walls = []
            for _ in range(3):
                shutil.rmtree(scratch / "release", ignore_errors=True)
                walls.append(run_process(command))
            wall, cpu, peak = min(walls)
            rows.append(
                Row(
                    f"velado anonymize --method {method} on Adult",
                    wall,
                    "wall s",
                    bar,
                    note=f"{cpu:.1f} CPU s, {peak:.0f} MB",
                )
            )
    print_rows("Whole processes", rows)


if __name__ == "__main__":
    main()
