"""How many records a second does `velado stream` take over MQTT, end to end, on how much of a core, and how late are its windows?

    python benchmarks/streams_mqtt.py [records] [method] [records in a message] [records a second at most]

A real Mosquitto, a device process that sends as fast as it is let (or no faster than is said), windows of two seconds by the clock of this machine, the journal written through to the disk.
Records a second *a core* are records over CPU seconds of the stream's process; sender and broker are not counted.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.release.stream.brokers import mosquitto

PEOPLE = 5000
SCHEMA = """
[columns.who]
role = "identifier"
person = true
[columns.age]
role = "quasi"
kind = "numeric"
bounds = [0, 120]
[columns.sex]
role = "quasi"
values = ["F", "M"]
[columns.ward]
role = "quasi"
[columns.pulse]
role = "sensitive"
kind = "numeric"
"""
DEVICE = """
import sys, time
import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion
port, path, each, most = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
device = mqtt.Client(CallbackAPIVersion.VERSION2, client_id="device")
device.max_inflight_messages_set(1000)
device.connect("127.0.0.1", port)
device.loop_start()
lines = open(path, "rb").read().splitlines()
begun = time.time()
for at in range(0, len(lines), each):
    if most and at // each % 20 == 0:
        time.sleep(max(0, begun + at / most - time.time()))
    told = device.publish("ward/1", b"\\n".join(lines[at : at + each]), qos=1)
    if at // each % 500 == 499:
        told.wait_for_publish(60)
told.wait_for_publish(60)
device.disconnect()
"""


def cpu(process: int) -> float:
    """CPU seconds of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def told(folder: Path) -> dict[str, int]:
    """What the stream has counted so far, as it says itself; those refused for any reason together."""
    out: dict[str, int] = {}
    file = folder / "metrics.prom"
    for line in file.read_text().splitlines() if file.exists() else ():
        if not line.startswith("#"):
            name = line.split("{")[0].removeprefix("velado_stream_")
            out[name] = out.get(name, 0) + int(float(line.split()[-1]))
    return out


def write_records(path: Path, count: int) -> None:
    drawn = np.random.default_rng(0)
    ages, wards = drawn.integers(18, 90, PEOPLE).tolist(), drawn.integers(0, 8, PEOPLE).tolist()
    pulses = drawn.integers(50, 120, count).tolist()
    with path.open("w") as file:
        for at in range(count):
            one = at % PEOPLE
            cells = {"who": f"p{one}", "age": ages[one], "sex": "FM"[one % 2], "ward": "ABCDEFGH"[wards[one]]}
            file.write(json.dumps(cells | {"pulse": pulses[at], "n": at}) + "\n")


def measured(folder: Path, count: int, method: str, each: int, most_a_second: float) -> str:
    (folder / "schema.toml").write_text(SCHEMA)
    (folder / "owner.key").write_bytes(bytes(range(40)))
    write_records(folder / "records.jsonl", count)
    with mosquitto(folder) as port:
        (folder / "stream.toml").write_text(
            f'schema = "schema.toml"\nkey = "owner.key"\nmethod = "{method}"\nmetrics = "metrics.prom"\n'
            "[window]\nsize = 2\n[people]\nk = 5\n"
            f'[record]\nid = "n"\n[source]\nkind = "mqtt"\nport = {port}\ntopic = "ward/#"\n'
        )
        stream = subprocess.Popen(
            [sys.executable, "-m", "velado", "stream", str(folder / "stream.toml")], stdout=subprocess.DEVNULL
        )
        while not (folder / "private" / "journal").exists():
            time.sleep(0.05)
        time.sleep(1.5)
        before, began = cpu(stream.pid), time.time()
        device = subprocess.Popen(
            [
                sys.executable,
                "-c",
                DEVICE,
                str(port),
                str(folder / "records.jsonl"),
                str(each),
                str(most_a_second),
            ]
        )
        most, settled, last = 0, 0, began
        # Until every record is published or counted as held back, and no further window comes.
        while time.time() - began < 300 and not (settled == count and time.time() - last > 3):
            time.sleep(0.2)
            pages = int(Path(f"/proc/{stream.pid}/statm").read_text().split()[1])
            most = max(most, pages * 4096)
            counts = told(folder)
            now = sum(
                counts.get(one, 0)
                for one in ("published", "given_up", "expired", "withheld", "unsettled", "refused")
            )
            if now != settled:
                settled, last = now, time.time()
                spent = cpu(stream.pid) - before
        clock, taken = last - began, told(folder)["published"]
        stream.terminate()
        stream.wait()
        device.wait()
    facts = [json.loads(line) for line in (folder / "private" / "windows.jsonl").read_text().splitlines()]
    delays = sorted(one["delay"] for one in facts if one["records"])
    return (
        f"{method}, {each} records a message: of {count:,} {settled:,} read, {taken:,} published and the others reported in {clock:.1f} s, "
        f"{spent:.1f} CPU s: {settled / spent:,.0f} records/s a core; {len(delays)} windows, half of them {np.median(delays):.2f} s after "
        f"their end at most, 99 of 100 {np.quantile(delays, 0.99):.2f}, the latest {delays[-1]:.2f}; "
        f"most memory {most / 2**20:.0f} MB"
    )


if __name__ == "__main__":
    asked = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    for method in [sys.argv[2]] if len(sys.argv) > 2 else ["mondrian", "progressive"]:
        for each in [int(sys.argv[3])] if len(sys.argv) > 3 else [1, 50]:
            with tempfile.TemporaryDirectory() as place:
                print(
                    measured(
                        Path(place), asked, method, each, float(sys.argv[4]) if len(sys.argv) > 4 else 0
                    ),
                    flush=True,
                )
