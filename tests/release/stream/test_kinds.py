"""Kinds of sources and sinks: each takes its own settings alone, and a sink's broker is its own."""

from pathlib import Path

import pytest

from velado.errors import VeladoError
from velado.release.stream.connectors.connector import Login
from velado.release.stream.connectors.kafka import FromKafka, ToKafka
from velado.release.stream.connectors.mqtt import FromMqtt, ToMqtt
from velado.release.stream.connectors.stdin import Stdin
from velado.release.stream.stream_settings import StreamSettings, read_stream
from velado.settings import read_toml, to_toml

FILES = '[source]\nkind = "files"\npath = "r.jsonl"\n'


def read(text: str) -> StreamSettings:
    return read_toml(f'schema = "s.toml"\n[record]\nid = "n"\n{text}', StreamSettings)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[source]\nkind = "stdin"\nhost = "10.0.0.1"\n', r"'host' .* no setting of 'stdin', but of mqtt\."),
        ('[source]\nkind = "files"\npath = "r"\nservers = "a:1"\n', r"no setting of 'files', but of kafka\."),
        ('[source]\ntopic = "ward/#"\n', r"'topic' .* of mqtt, kafka, and no 'kind' is named.*'stdin'"),
        ('[source]\nfollow = true\n', r'of files, and no .kind. is named.*kind = "files"'),
        (f'{FILES}[sink]\ntopic = "out"\n', r"of mqtt, kafka, and no 'kind' is named.*'folder'"),
        (f'{FILES}[sink]\nkind = "folder"\ntopic = "x"\n', r"no setting of 'folder'"),
        (f'{FILES}[sink]\nkind = "mqtt"\n', r"'topic' .* is missing"),
        (f'{FILES}[sink]\nkind = "kafka"\ntopic = "x"\n', r"names no 'servers', and \[source\] is of another"),
        ('[source]\nkind = "jsonl"\n', r"no kind of source 'jsonl'.*stdin, files, mqtt, kafka"),
        (f'{FILES}follows = true\n', r"Unknown key 'follows'.*Did you mean 'follow'"),
    ],
)  # fmt: skip
def test_a_setting_of_another_kind_is_refused_and_no_kind_is_guessed(text: str, said: str) -> None:
    with pytest.raises(VeladoError, match=said):
        read(text)


def test_the_kind_stands_in_the_file_that_is_written_from_settings() -> None:
    asked = read(f'{FILES}[sink]\nkind = "mqtt"\ntopic = "out"\nhost = "other.example"\n')
    again = read_toml(to_toml(asked), StreamSettings)
    assert (again.source, again.sink) == (asked.source, asked.sink)
    assert isinstance(read("").source, Stdin) and read("").sink.path == "windows"


def test_a_sink_has_a_broker_of_its_own_and_no_password_goes_to_another() -> None:
    here = FromMqtt(
        topic="ward", host="ward.example", port=8883, username="u", password_file="p", ca_file="c"
    )
    mine = ToMqtt(topic="out")
    assert mine.beside(here) == ("ward.example", 8883, Login("u", "p", "c"), "velado-out")
    assert mine.beside(Stdin()) == ("127.0.0.1", 1883, Login("", "", "", "sink"), "velado-out")
    other = ToMqtt(topic="out", host="public.example")
    assert other.beside(here)[:3] == ("public.example", 1883, Login("", "", "", "sink"))
    # A user of its own never goes with the password of another one.
    assert ToMqtt(topic="out", username="v").beside(here)[2] == Login("v", "", "c")
    kafka = FromKafka(servers="ward:9092", topic="in", username="u", password_file="p", client="ward")
    same, elsewhere = ToKafka(topic="out"), ToKafka(topic="out", servers="public:9092")
    assert same.beside(kafka)[0].login == Login("u", "p", "") and same.commits_for(kafka)
    brokers, client = elsewhere.beside(kafka)
    assert (brokers.servers, brokers.login, client) == ("public:9092", Login("", "", "", "sink"), "ward")
    assert not elsewhere.commits_for(kafka) and not same.commits_for(here)


def test_a_sinks_broker_that_does_not_answer_is_named_with_its_section(tmp_path: Path) -> None:
    pytest.importorskip("paho.mqtt.client")
    from velado.release.stream.connectors.runner import run_stream

    (tmp_path / "schema.toml").write_text('[columns.who]\nrole = "identifier"\nperson = true\n')
    (tmp_path / "owner.key").write_bytes(bytes(range(40)))
    (tmp_path / "r.jsonl").write_text("")
    sink = '[sink]\nkind = "mqtt"\ntopic = "out"\nport = 1\n'
    (tmp_path / "stream.toml").write_text(f'schema = "schema.toml"\nkey = "owner.key"\n{FILES}{sink}')
    assert read_stream(tmp_path / "stream.toml").sink.port == 1
    with pytest.raises(VeladoError, match=r"127\.0\.0\.1:1 does not answer.*port in \[sink\]"):
        run_stream(tmp_path / "stream.toml")
