"""Messages as bytes: one encoding each, and nothing but a ProtocolError for what is none."""

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from velado.errors import ProtocolError
from velado.learning.net._wire import LARGEST, VERSION, decode, encode, open_envelope, seal
from velado.learning.protocols.protocol import Message

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
printable = st.characters(categories=("L", "M", "N", "P", "S"), include_characters=" ")
names = st.text(printable, min_size=1, max_size=200)
messages = st.builds(
    Message,
    job=st.binary(min_size=32, max_size=32).map(bytes.hex),
    sender=names,
    receiver=names,
    number=st.integers(0, 2**32 - 1),
    kind=names,
    fields=st.dictionaries(names, st.binary(max_size=300), max_size=5),
)
EXAMPLE = Message("ab" * 32, "hub", "clinic é", 3, "sums", {"ciphertexts": b"\0\1", "a": b""})


@given(messages)
def test_what_was_encoded_is_decoded_the_same(message):
    assert decode(encode(message)) == message


@given(messages)
def test_the_order_in_which_fields_were_given_does_not_matter(message):
    turned = Message(
        message.job,
        message.sender,
        message.receiver,
        message.number,
        message.kind,
        dict(reversed(list(message.fields.items()))),
    )
    assert encode(turned) == encode(message)


def read(data: bytes) -> Message | None:
    try:
        return decode(data)
    except ProtocolError:
        return None


@given(st.binary(max_size=400))
def test_any_bytes_are_a_message_or_a_protocol_error(data):
    found = read(data)
    assert found is None or encode(found) == data


@given(messages, st.data())
def test_changed_bytes_are_another_message_or_a_protocol_error(message, data):
    whole = bytearray(encode(message))
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= data.draw(st.integers(1, 255))
    found = read(bytes(whole))
    assert found is None or (found != message and encode(found) == bytes(whole))


@given(messages, st.data())
def test_a_message_cut_short_or_with_more_after_it_is_refused(message, data):
    whole = encode(message)
    assert read(whole[: data.draw(st.integers(0, len(whole) - 1))]) is None
    assert read(whole + data.draw(st.binary(min_size=1, max_size=9))) is None


def test_the_layout_is_the_one_that_is_written_down():
    assert encode(EXAMPLE).hex() == (
        "564c444d" + "01" + "ab" * 32 + "00000003"
        "0003687562" + "0009636c696e696320c3a9" + "000473756d73"
        "0002" + "000161" + "00000000" + "000b63697068657274657874730000000" + "20001"
    )


def test_an_unknown_version_is_named():
    data = bytearray(encode(EXAMPLE))
    data[4] = VERSION + 1
    with pytest.raises(ProtocolError, match="version"):
        decode(bytes(data))


def test_a_message_above_the_limit_is_refused_before_it_is_read():
    with pytest.raises(ProtocolError, match="larger"):
        decode(encode(EXAMPLE), most=20)
    with pytest.raises(ProtocolError, match="larger"):
        encode(Message("ab" * 32, "a", "b", 0, "k", {"f": bytes(LARGEST)}))


@pytest.mark.parametrize(
    "wrong",
    [
        {"job": "AB" * 32},
        {"job": "ab"},
        {"sender": ""},
        {"sender": "a\n"},
        {"receiver": "x" * 201},
        {"number": -1},
        {"number": 2**32},
        {"kind": "\ud800"},
        {"fields": {"": b""}},
        {"fields": {str(i): b"" for i in range(1025)}},
    ],
    ids=str,
)
def test_what_could_not_be_read_back_is_not_written(wrong):
    with pytest.raises(ProtocolError):
        encode(Message(**{**vars(EXAMPLE), **wrong}))


def test_an_envelope_opens_with_its_senders_key_alone():
    data = seal(EXAMPLE, KEY)
    assert open_envelope(data, KEY.public_key(), 1000) == EXAMPLE
    other = Ed25519PrivateKey.from_private_bytes(bytes(32)).public_key()
    with pytest.raises(ProtocolError, match="signature"):
        open_envelope(data, other, 1000)
    with pytest.raises(ProtocolError, match="larger"):
        open_envelope(data, KEY.public_key(), 50)


def test_every_changed_byte_of_an_envelope_is_noticed():
    data = seal(EXAMPLE, KEY)
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 1
        with pytest.raises(ProtocolError):
            open_envelope(bytes(changed), KEY.public_key(), 1000)


@given(st.binary(max_size=300))
def test_any_bytes_are_no_envelope(data):
    with pytest.raises(ProtocolError):
        open_envelope(data, KEY.public_key(), 1000)


def test_errors_repeat_nothing_of_the_bytes():
    with pytest.raises(ProtocolError) as caught:
        decode(b"VLDM\x01" + b"secret word" * 20)
    assert "secret" not in str(caught.value)
