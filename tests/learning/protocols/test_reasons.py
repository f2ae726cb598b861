"""Why a job ended is told in the reader's language, in words of velado and of the job alone: nothing a sender wrote is printed."""

import json

import pytest

from velado.errors import OutOfBounds
from velado.learning.net._https import refusal_in
from velado.learning.protocols.protocol import Message
from velado.learning.protocols.reasons import (
    LONGEST_REASON,
    reason_bytes,
    reason_in,
    reason_of,
    unknown_reason,
)
from velado.learning.protocols.role import make_role
from velado.learning.regression.simulate import small_job, small_rows
from velado.text import join, say, told
from velado.text.languages import catalogue

JOB = small_job()


def test_a_reason_arrives_as_it_was_said_and_in_portuguese_too() -> None:
    reason = join(
        [
            say("What {sender} sent was refused.", sender="c1"),
            say("A message {why}.", why=say("is addressed to somebody else")),
        ]
    )
    again = reason_in(reason_bytes(reason), JOB)
    assert again == reason == "What c1 sent was refused. A message is addressed to somebody else."
    assert told(again, "pt") == told(reason, "pt") != str(reason)
    assert "c1" in told(again, "pt") and "sent" not in told(again, "pt")


@pytest.mark.parametrize("rows", [1, 7])
def test_a_reason_about_an_amount_keeps_its_amount(rows: int) -> None:
    outside = {"x": ["900"] * rows + ["1"] * 20, "y": ["1"] * (rows + 20)}
    with pytest.raises(OutOfBounds) as refused:
        make_role(JOB, "c0", bytes(32), outside)
    reason = reason_of(refused.value)
    again = reason_in(reason_bytes(reason), JOB)
    assert again == reason and told(again, "pt") == told(reason, "pt") != reason


@pytest.mark.parametrize(
    "sent",
    [
        b"Call 555-0100 and read out your passphrase.",
        b'["Call 555-0100.",{}]',
        b'["{part0}",{"part0":["Call 555-0100.",{}]}]',
        b'["{part0}{separator}{part1}",{"part0":"c0","part1":"c1","separator":" owes us money, says "}]',
        b'["What {sender} sent was refused.",{"sender":{"a":1}}]',
        b'["What {sender} sent was refused.",{}]',
        b'["What {sender} sent was refused.",{"sender":"c0"},["x"]]',
        b'["{n} row of {table}.",{"n":3},4]',
        b"[" * 600 + b"]" * 600,
        b'["Time is up after {minutes:g} minutes; a message is missing.",{"minutes":"soon"}]',
        b'["Time is up after {minutes:g} minutes; a message is missing.",{"minutes":NaN}]',
        b"\xff\xfe",
        b"",
    ],
)
def test_words_that_are_not_in_the_catalogue_are_not_repeated(sent: bytes) -> None:
    assert reason_in(sent, JOB) == unknown_reason()


@pytest.mark.parametrize(
    "word", ["nobody", "c0, mallory", "c0\x1b[2J", "x" * 300, "c0,c1", "http://a.example"]
)
def test_a_text_among_the_parts_is_a_word_of_the_job_or_left_out(word: str) -> None:
    data = json.dumps(["What {sender} sent was refused.", {"sender": word}]).encode()
    assert reason_in(data, JOB) == "What … sent was refused."
    assert reason_in(json.dumps(["What {sender} sent was refused.", {"sender": "c0, c2"}]).encode(), JOB) == (
        "What c0, c2 sent was refused."
    )


def test_a_reason_too_long_to_travel_is_told_as_unknown() -> None:
    data = reason_bytes(say("What {sender} sent was refused.", sender="c" * LONGEST_REASON))
    assert len(data) <= LONGEST_REASON and reason_in(data, JOB) == unknown_reason()


def test_a_role_tells_who_ended_the_job_in_both_languages() -> None:
    role = make_role(JOB, "c0", bytes(32), small_rows())
    reason = say("The job went on without this client.")
    role.receive(Message(JOB.digest(), "hub", "c0", 0, "abort", {"reason": reason_bytes(reason)}))
    assert role.failure == "hub ended the job: The job went on without this client."
    assert told(role.failure, "pt") == "hub encerrou o trabalho: O trabalho seguiu sem este cliente."


def test_a_role_that_aborts_is_understood_by_all_others_and_by_itself() -> None:
    hub = make_role(JOB, "hub", bytes(32))
    (first, *_) = hub.without(["c2"])
    client = make_role(JOB, first.receiver, bytes(32), small_rows())
    client.receive(first)
    assert hub.failure is not None and "Missing: c2" in hub.failure
    assert client.failure == f"hub ended the job: {hub.failure}"
    assert "Faltam: c2" in told(client.failure, "pt")


def test_an_evaluator_s_http_refusal_is_repeated_only_where_it_is_one_of_ours() -> None:
    ours = refusal_in(409, b"A message is too far ahead of its turn.")
    assert "too far ahead" in ours and "ahead" not in told(ours, "pt")
    for body in (b"Your key has leaked, send it.", b"{rows:,} rows.", b"\xff" * 600):
        assert refusal_in(400, body) == "it refused with status 400"


def test_every_plural_of_the_catalogue_keeps_its_english_form() -> None:
    found = catalogue("pt")
    assert set(found.several) == set(found.plural) and len(found.several) > 10
