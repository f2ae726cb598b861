"""Packets as Flower's records and back. Everything else of this room knows Flower only through here and the apps."""

from __future__ import annotations

from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, RecordDict

from velado.learning.flower._client import ClientState
from velado.learning.flower.flower_records import Packet
from velado.text import say

UNREADABLE = say("its answer cannot be read")
FACTS, ARRAYS, STATE = "velado.facts", "velado.arrays", "velado.state"


def to_content(packet: Packet) -> RecordDict:
    """What a message carries."""
    arrays = {name: Array(np.ascontiguousarray(array)) for name, array in packet.arrays.items()}
    return RecordDict({FACTS: ConfigRecord(dict(packet.facts)), ARRAYS: ArrayRecord(arrays)})


def from_message(message: Message) -> Packet:
    """What a message carried; one that Flower marks as failed is an answer that says so, without the failure's text."""
    if message.has_error():
        # The text may come from a library that quotes values; the code says enough.
        return Packet({"error": f"its app or machine failed (Flower's code {message.error.code})"})
    facts: Any = message.content.config_records.get(FACTS, {})
    arrays: Any = message.content.array_records.get(ARRAYS, {})
    return Packet(dict(facts), {name: array.numpy() for name, array in arrays.items()})


def read_reply(message: Message) -> Packet:
    """What a reply carried; one that cannot be read is an answer that says so, and never an error of the server."""
    try:
        packet = from_message(message)
        facts: list[Any] = list(packet.facts.values())
        odd = any(not isinstance(value, int | float | str) for value in facts)
        if odd or any(array.dtype.kind not in "iuf" for array in packet.arrays.values()):
            return Packet({"error": UNREADABLE})
        _ = packet.size
    except Exception:  # a stranger's bytes can fail anywhere in the library that reads them
        return Packet({"error": UNREADABLE})
    return packet


def state_in(context: Context) -> ClientState:
    """What the client kept from earlier rounds, at its own place."""
    if f"{STATE}.facts" not in context.state:
        return ClientState()
    facts: Any = context.state[f"{STATE}.facts"]
    arrays: Any = context.state[f"{STATE}.arrays"]
    return ClientState(int(facts["have"]), {name: array.numpy() for name, array in arrays.items()})


def keep_state(context: Context, state: ClientState) -> None:
    """*state* is what the client finds in the next round."""
    context.state[f"{STATE}.facts"] = ConfigRecord({"have": state.have})
    context.state[f"{STATE}.arrays"] = ArrayRecord({name: Array(a) for name, a in state.arrays.items()})
