"""What docs/how-to/stream-from-devices.md shows works as it stands."""

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from velado.release.stream.manifest import check_chain
from velado.release.stream.stream_settings import StreamSettings
from velado.settings import read_toml

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "stream-from-devices.md"


def test_the_how_to_publishes_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from velado.release.stream.connectors.runner import run_stream

    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "own"))
    blocks = re.findall(r"```toml\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    (tmp_path / "schema.toml").write_text(blocks[0])
    (tmp_path / "stream.toml").write_text(blocks[1])
    drawn = np.random.default_rng(1)
    ages = drawn.integers(18, 90, 60).tolist()
    with (tmp_path / "readings.jsonl").open("w") as file:
        for second in range(0, 180, 10):
            for one in range(60):
                record = {"patient": f"p{one}", "age": ages[one], "sex": "FM"[one % 2]}
                record |= {"pulse": int(drawn.integers(50, 120)), "at": 1_700_000_040 + second + one / 100}
                file.write(json.dumps(record) + "\n")
    done = run_stream(tmp_path / "stream.toml")
    tables = sorted((tmp_path / "windows").glob("*.csv"))
    assert done.windows == 3 and len(tables) == 3
    assert tables[0].read_text().startswith("age,sex,pulse_mean,pulse_max\n")
    manifests = [path.read_bytes() for path in sorted((tmp_path / "windows").glob("*.json"))]
    assert check_chain(manifests, {int(path.stem): path.read_bytes() for path in tables}) == 3
    assert done.state.counts.published == 60 * 18
    brokers = [block for block in blocks if block.startswith("[source]")]
    assert len(brokers) == 2  # MQTT and Kafka
    for block in brokers:
        read_toml('schema = "s.toml"\n[record]\ntime = "at"\n' + block, StreamSettings)
    totals = next(block for block in blocks if block.startswith("# totals.toml"))
    told = blocks[0].replace("[columns.pulse]", "[columns.pulse]\nbounds = [0, 220]\nstep = 1")
    (tmp_path / "bounded.toml").write_text(told)
    (tmp_path / "totals.toml").write_text(totals.replace("schema.toml", "bounded.toml"))
    from velado.apps.cli import run

    assert run(["stream", str(tmp_path / "totals.toml"), "--price"]) == 0
    assert not (tmp_path / "totals.ledger").exists()
    assert run(["stream", str(tmp_path / "totals.toml")]) == 0
    found = [pl.read_csv(path) for path in sorted((tmp_path / "totals").glob("*.csv"))]
    assert len(found) == 3 and all(abs(one["readings"].sum() - 360) < 200 for one in found)
