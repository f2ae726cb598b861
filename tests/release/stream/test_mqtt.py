"""Messages of a real broker are read in large pieces and confirmed together: confirmed ones never come again, others do."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from velado.release.stream.connectors.journal import Journal
from velado.release.stream.connectors.mqtt import MqttSource
from velado.release.stream.stream_settings import StreamSettings
from velado.settings import read_toml

from .brokers import BROKER, mosquitto

mqtt = pytest.importorskip("paho.mqtt.client")
pytestmark = pytest.mark.slow  # a broker, and waiting whether more comes

COUNT = 3000


@pytest.fixture
def asked(tmp_path: Path):
    if not Path(BROKER).exists():
        pytest.skip("there is no mosquitto on this machine")
    with mosquitto(tmp_path) as port:
        text = f'schema = "s.toml"\n[record]\nid = "n"\n[source]\nkind = "mqtt"\nport = {port}\ntopic = "ward/#"\nqueue = 200\n'
        yield read_toml(text, StreamSettings)


def sent(asked: StreamSettings, first: int) -> None:
    device = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id="device")
    device.max_inflight_messages_set(1000)
    device.connect("127.0.0.1", asked.source.port)
    device.loop_start()
    told = [device.publish("ward/1", b"%d" % (first + at), qos=1) for at in range(COUNT)]
    told[-1].wait_for_publish(30)
    device.disconnect()
    device.loop_stop()


def source_of(asked: StreamSettings, folder: Path) -> MqttSource:
    journal = Journal(folder / "journal")
    return MqttSource(asked.source, folder, journal, journal.end)


def read(source: MqttSource, least: int) -> list[int]:
    """What arrives until there are *least*, for half a minute at most, and for a second more."""
    out: list[int] = []
    until = time.time() + (30 if least else 1)
    while time.time() < until:
        arrived = source.poll(0.1)
        assert len(arrived.payloads) == len(arrived.times)
        out += [int(one) for one in arrived.payloads]
        if 0 < least <= len(out):
            until, least = time.time() + 1, 0
    return out


def test_what_is_confirmed_never_comes_again_and_what_is_not_does(asked: StreamSettings, tmp_path: Path, monkeypatch: Any) -> None:  # fmt: skip
    from velado.release.stream.connectors import mqtt as connector

    first = source_of(asked, tmp_path)
    assert read(first, 0) == []  # subscribed: the session is the broker's
    sent(asked, 0)
    assert read(first, COUNT) == list(range(COUNT))
    # Names of paho's that are not public: without them all works, and slower. A paho that has others is noticed here.
    assert first._client._ahead is not None and hasattr(first._client, "_packet_queue")
    first.close()
    again = source_of(asked, tmp_path)
    assert read(again, 0) == []
    monkeypatch.setattr(connector, "confirm", lambda client, messages: None)
    sent(asked, COUNT)
    unconfirmed = read(again, 100)
    again.close()
    monkeypatch.undo()
    last = source_of(asked, tmp_path)
    assert unconfirmed and read(last, COUNT) == list(range(COUNT, 2 * COUNT))
    last.close()


def test_a_source_whose_queue_is_full_ends_at_once(asked: StreamSettings, tmp_path: Path) -> None:
    source = source_of(asked, tmp_path)
    read(source, 0)
    sent(asked, 0)  # none of which is taken while nobody asks: the client's thread waits with the first one
    time.sleep(1)
    assert not source._waiting
    closing = threading.Thread(target=source.close, daemon=True)
    closing.start()
    closing.join(10)
    assert not closing.is_alive()
    again = source_of(asked, tmp_path)
    assert read(again, COUNT) == list(range(COUNT))  # nothing was confirmed, and nothing is lost
    again.close()


def test_a_client_whose_parts_are_named_otherwise_confirms_one_by_one(asked: StreamSettings, tmp_path: Path) -> None:  # fmt: skip
    first = source_of(asked, tmp_path)
    read(first, 0)
    client, told = first._client, []

    class Other:
        def ack(self, mid: int, qos: int) -> None:
            told.append(mid)
            client.ack(mid, qos)

    first._client = Other()
    sent(asked, 0)
    assert read(first, COUNT) == list(range(COUNT)) and len(told) == COUNT
    first._client = client
    first.close()
    again = source_of(asked, tmp_path)
    assert read(again, 0) == []
    again.close()
