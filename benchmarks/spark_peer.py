"""Is velado faster than spark-privacy-preserver on Adult x 1, 8 and 30, at the same k, and does it lose no more?

`make bench-spark` runs it: in the environment of Spark, the peer in one of its own (its Python is VELADO_SPARK_PEER). The peer is
Mondrian in one pandas function that Spark gives all rows; it publishes sets of values and intervals of fives. Both are charged by how
many values a reader has to reckon with: a set of m of n values, or a node with m of n leaves, (m - 1) / (n - 1); an interval its width
in the domain. Charged by the lowest node of the taxonomy that covers its sets, the peer loses more, which is told beside.
`--sizes 1,8`, `--engines auto`, `--methods mondrian` (the peer's own; without it the default is run too) and `--limit 600` (CPU
seconds for each run of the peer).
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import tomli_w

from benchmarks.adult import EIGHT, schema_dict
from benchmarks.timing import Row, TreeRun, data_folder, print_head, print_lines, run_tree, velado
from velado.data.encode import encode
from velado.data.io import attach_taxonomies, read_table
from velado.data.schema import Schema

K = 10
RUN = Path(__file__).parent / "peers" / "spark_privacy_preserver_run.py"


def peer_loss(out: Path) -> tuple[float, float, int]:
    """The loss of what the peer wrote, charged by values and by the taxonomies' nodes, and its smallest group."""
    frame = pl.concat([pl.read_csv(f, infer_schema=False) for f in sorted(out.glob("part-*.csv"))])
    rows = frame["count"].cast(pl.Int64).to_numpy()
    schema = attach_taxonomies(Schema.from_dict(schema_dict()), data_folder())
    data = encode(read_table(data_folder() / "adult" / "adult_clean.csv", schema))
    by_values, by_nodes = [], []
    for column in data.columns:
        texts = frame[column.name]
        distinct = texts.unique().to_list()
        if column.tree is None:
            ends = {text: [float(end) for end in text.split("-")] for text in distinct}
            wide = {text: min((end[-1] - end[0]) / column.span, 1.0) for text, end in ends.items()}
            charged = nodes = np.array([wide[text] for text in texts])
        else:
            sets = {text: text.split(",") for text in distinct}
            leaf = {name: at for at, name in enumerate(column.tree.labels[: column.tree.leaves])}
            part = {text: (len(own) - 1) / (len(leaf) - 1) for text, own in sets.items()}
            codes = {text: [leaf[one] for one in own] for text, own in sets.items()}
            low = np.array([min(codes[text]) for text in distinct], np.int32)
            high = np.array([max(codes[text]) for text in distinct], np.int32)
            node = dict(zip(distinct, column.loss(low, high).tolist(), strict=True))
            charged = np.array([part[text] for text in texts])
            nodes = np.array([node[text] for text in texts])
        by_values.append(float(charged @ rows / rows.sum()))
        by_nodes.append(float(nodes @ rows / rows.sum()))
    groups = frame.with_columns(pl.Series("n", rows)).group_by(list(EIGHT)).agg(pl.col("n").sum())
    return float(np.mean(by_values)), float(np.mean(by_nodes)), int(groups["n"].min())  # type: ignore[arg-type]


def adult_times(times: int, folder: Path) -> Path:
    """Adult *times* over, in one CSV file."""
    path = folder / f"adult{times}.csv"
    once = pl.read_csv(data_folder() / "adult" / "adult_clean.csv", infer_schema=False)
    pl.concat([once] * times).write_csv(path)
    return path


def schema_file(folder: Path) -> Path:
    """The schema of Adult, with the full paths of its taxonomies."""
    document = schema_dict()
    for column in document["columns"].values():
        if "taxonomy" in column:
            target = folder / Path(column["taxonomy"]).name
            target.write_bytes((data_folder() / column["taxonomy"]).read_bytes())
            column["taxonomy"] = target.name
    path = folder / "schema.toml"
    path.write_text(tomli_w.dumps(document))
    return path


def ours(rows: Path, schema: Path, out: Path, engine: str, method: str) -> tuple[TreeRun, float]:
    """One release by velado, as it chooses by itself or by Spark, and its loss."""
    flags = () if engine == "auto" else ("--engine", engine, "--memory", "3GB")
    # The table many times over repeats its weights too, as a number of people would: here every row is a person.
    given = ("--schema", str(schema), "-k", str(K), "--per", "row", "--method", method, "-o", str(out))
    words = ("anonymize", str(rows), *given, *flags)
    run = run_tree(velado(*words), 1800)
    loss = json.loads((out / "release" / "manifest.json").read_text())["metrics"]["ncp"]["overall"]
    return run, float(loss)


def main(arguments: Sequence[str] = ()) -> None:
    """Print the table."""
    given = list(arguments)
    sizes = given[given.index("--sizes") + 1] if "--sizes" in given else "1,8,30"
    engines = given[given.index("--engines") + 1] if "--engines" in given else "auto,spark"
    methods = given[given.index("--methods") + 1] if "--methods" in given else "progressive,mondrian"
    limit = float(given[given.index("--limit") + 1]) if "--limit" in given else 600.0
    peer = os.environ.get("VELADO_SPARK_PEER")
    if not peer:
        raise SystemExit(
            "Set VELADO_SPARK_PEER to the Python that has spark-privacy-preserver: make bench-spark."
        )
    print_head(f"Beside spark-privacy-preserver on Adult, eight quasi-identifiers, k = {K}, whole processes")
    for times in (int(one) for one in sizes.split(",")):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            rows, schema = adult_times(times, folder), schema_file(folder)
            words = [str(K), "income", ",".join(EIGHT), ",".join(one for one in EIGHT if one != "age")]
            theirs = run_tree([peer, str(RUN), str(rows), str(folder / "peer"), *words], limit)
            told = f"the peer did not end in {limit:.0f} CPU s: the ratio is at least this"
            if theirs.ended:
                values, nodes, smallest = peer_loss(folder / "peer")
                told = f"loss of the peer {values:.4f} by values, {nodes:.4f} by nodes; its smallest group {smallest}"
            for engine, method in ((e, m) for e in engines.split(",") for m in methods.split(",")):
                run, loss = ours(rows, schema, folder / f"{engine}-{method}", engine, method)
                what = f"Adult x {times}, {engine}, {method}"
                note = f"loss {loss:.3f}; {told}; wall {run.wall:.0f} s beside {theirs.wall:.0f} s"
                print_lines([Row(what, run.cpu, "CPU s", theirs.cpu / 10, theirs.cpu, "peer", note)])


if __name__ == "__main__":
    main(sys.argv[1:])
