"""Masked sums add up to the pooled sums, whoever leaves and whenever; one client's masked sums say nothing."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from velado.errors import ProtocolError
from velado.learning.crypto._sharing import SHARE_BYTES
from velado.learning.crypto.fixed_point import Bounded
from velado.learning.protocols.delegated_regression import DELEGATED
from velado.learning.protocols.protocol import Message
from velado.learning.protocols.role import make_role
from velado.learning.protocols.secure_sum import (
    SECURE_SUM,
    SumClient,
    SumEvaluator,
    number_bytes,
    sealed_bytes,
    threshold_of,
)
from velado.learning.regression.design_matrix import moments_of, total
from velado.learning.regression.fit import solve
from velado.learning.regression.job import Job, Party
from velado.learning.regression.simulate import simulate
from velado.randomness import Tape, seeded

STAGES = ("hello", "shares", "masked", "opened")
# Which of a client's words of that kind is meant: the census comes first, then the sums.
WORDS = {"opened": ("opened", 2), "sums": ("masked", 2), "counted": ("opened", 1)}
# Rows; every two of twelve points, four of each column, and each with itself; every two columns.
CENSUS = 1 + 12 * 13 // 2 + 3


def a_job(clients: int = 5, **more: Any) -> Job:
    parties = (
        Party("e", "evaluator"),
        *(Party(f"c{i}", "client") for i in range(clients)),
    )
    features = (Bounded("a", (Fraction(-10), Fraction(10))), Bounded("b", (Fraction(-3), Fraction(3))))
    return Job(
        "sum", SECURE_SUM, features, Bounded("y", (Fraction(-100), Fraction(100))), parties, bits=16, most_rows=1000, **more
    )  # fmt: skip


def tables_of(job: Job, rows: int = 12) -> dict[str, dict[str, Any]]:
    draw = seeded(7, "secure-sum")
    tables = {}
    for party in job.of("client"):
        a, b = draw.uniform(-10, 10, rows), draw.uniform(-3, 3, rows)
        tables[party.name] = {"a": a, "b": b, "y": 3 * a - 2 * b + 1 + draw.normal(0, 0.5, rows).clip(-5, 5)}
    return tables


def roles_of(job: Job, tables: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {
        party.name: make_role(job, party.name, Tape(b"s" * 32, party.name).bytes(32), tables.get(party.name))
        for party in job.parties
    }


def run(
    roles: Mapping[str, Any],
    silent: Mapping[str, str] | None = None,
    change: Callable[[Message], Iterable[Message]] = lambda message: [message],
) -> list[Message]:
    """Deliver all; a *silent* client never says the word given for it, nor any after. Then the evaluator goes on without it.

    "opened" and "sums" are words of the last round; "masked" is one of the first.
    """
    silent = silent or {}
    quiet: set[str] = set()
    said: Counter[tuple[str, str]] = Counter()
    seen: list[Message] = []
    waiting = deque(message for role in roles.values() for message in role.start())
    while True:
        while waiting:
            message = waiting.popleft()
            said[message.sender, message.kind] += 1
            word, times = WORDS.get(wanted := silent.get(message.sender, ""), (wanted, 1))
            if word == message.kind and said[message.sender, message.kind] == times:
                quiet.add(message.sender)
            if message.sender in quiet:
                continue
            for arriving in change(message):
                seen.append(arriving)
                waiting.extend(roles[arriving.receiver].receive(arriving))
        late = [name for name in roles["e"].awaited if name in quiet]
        if not late:
            return seen
        waiting.extend(roles["e"].without(late))


def expected(job: Job, tables: Mapping[str, Mapping[str, Any]], names: Iterable[str]) -> list[float]:
    return [float(x) for x in solve(total([moments_of(tables[name], job) for name in names]), job)]


def test_the_sum_gives_the_same_coefficients_as_the_pooled_rows() -> None:
    job = a_job()
    tables = tables_of(job)
    fit, transcript = simulate(job, tables)
    assert list(fit.coefficients) == expected(job, tables, tables)
    assert all(role.outcome is not None for role in transcript.roles.values())
    assert fit.promise.type == "guaranteed-if"


def test_the_result_is_that_of_the_delegated_protocol() -> None:
    job = a_job(3, moments=True)
    tables = tables_of(job)
    other = replace(job, protocol=DELEGATED, key_bits=2048, parties=(*job.parties, Party("p", "provider")))
    fit, _ = simulate(job, tables)
    same, _ = simulate(other, tables)
    assert fit.coefficients == same.coefficients
    assert fit.standard_errors == same.standard_errors


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("leavers", [("c0",), ("c4",), ("c1", "c3")])
def test_clients_that_leave_at_any_stage_are_recovered_from(stage: str, leavers: Sequence[str]) -> None:
    job = a_job(5)
    tables = tables_of(job)
    roles = roles_of(job, tables)
    run(roles, dict.fromkeys(leavers, stage))
    # Whose masked sums arrived counts, even if it left after that.
    counted = [name for name in tables if stage == "opened" or name not in leavers]
    assert roles["e"].outcome is not None, roles["e"].failure
    assert list(roles["e"].outcome.fit.coefficients) == expected(job, tables, counted)
    assert list(roles["e"].outcome.summed) == counted
    for name in tables:
        assert (roles[name].outcome is not None) == (name not in leavers)
        assert (roles[name].failure is not None) == (name in leavers)


@pytest.mark.parametrize("stage", ["counted", "sums"])
def test_exact_sums_end_where_somebody_leaves_after_the_count(stage: str) -> None:
    """Counts with a client and sums without it would tell that client's counts."""
    job = a_job(5)
    roles = roles_of(job, tables_of(job))
    run(roles, {"c1": stage})
    assert "c1 left after all were counted" in roles["e"].failure
    assert all(role.outcome is None and role.failure for role in roles.values())


def test_a_client_opens_no_sums_over_others_than_were_counted() -> None:
    job = a_job(5)
    roles = roles_of(job, tables_of(job))
    unmasks: list[Message] = []

    def fewer(message: Message) -> list[Message]:
        if (message.kind, message.receiver) != ("unmask", "c0"):
            return [message]
        unmasks.append(message)
        return [message if len(unmasks) == 1 else replace(message, fields={"members": places(1, 2, 3, 4)})]

    with pytest.raises(ProtocolError, match="other clients than were counted"):
        run(roles, change=fewer)


def test_clients_that_leave_one_after_another_are_recovered_from() -> None:
    job = a_job(9)
    tables = tables_of(job)
    roles = roles_of(job, tables)
    run(roles, {"c0": "hello", "c2": "shares", "c5": "masked", "c8": "opened"})
    counted = [name for name in tables if name not in ("c0", "c2", "c5")]
    assert list(roles["e"].outcome.fit.coefficients) == expected(job, tables, counted)


@pytest.mark.parametrize("stage", STAGES)
def test_below_the_threshold_the_job_ends_everywhere_with_a_reason(stage: str) -> None:
    job = a_job(5)
    assert threshold_of(job) == 3
    roles = roles_of(job, tables_of(job))
    run(roles, dict.fromkeys(("c0", "c1", "c2"), stage))
    assert "2 clients are left, and 3 are needed" in roles["e"].failure
    assert all(role.failure and role.outcome is None for role in roles.values())


def test_the_threshold_is_a_majority_and_not_under_the_minimum() -> None:
    assert [threshold_of(a_job(n)) for n in (3, 4, 5, 10)] == [3, 3, 3, 6]
    assert threshold_of(a_job(5, minimum_clients=5)) == 5


def test_a_late_word_of_a_client_that_was_left_behind_changes_nothing() -> None:
    job = a_job(5)
    tables = tables_of(job)
    roles = roles_of(job, tables)
    kept: list[Message] = []

    def keep_masked(message: Message) -> list[Message]:
        if message.sender == "c1" and message.kind == "masked":
            kept.append(message)
            return []
        return [message]

    run(roles, change=keep_masked)
    evaluator = roles["e"]
    assert evaluator.awaited == ("c1",)
    later = deque(evaluator.without(["c1"]))
    assert list(evaluator.receive(kept[0])) == []
    while later:
        message = later.popleft()
        later.extend(roles[message.receiver].receive(message))
    assert list(evaluator.outcome.fit.coefficients) == expected(job, tables, ["c0", "c2", "c3", "c4"])


@pytest.mark.slow
def test_one_masked_vector_alone_is_uniform_even_of_zeros() -> None:
    job = a_job(3)
    tables = {name: {"a": np.zeros(12), "b": np.zeros(12), "y": np.zeros(12)} for name in ("c0", "c1", "c2")}
    size, seen = number_bytes(job, 0), bytearray()
    for trial in range(120):
        roles = {
            party.name: make_role(
                job, party.name, Tape(bytes([trial]) * 32, party.name).bytes(32), tables.get(party.name)
            )
            for party in job.parties
        }
        masked = [m for m in run(roles) if m.kind == "masked"]
        seen += masked[0].fields["numbers"]
    counts = np.bincount(np.frombuffer(bytes(seen), dtype=np.uint8), minlength=256)
    assert len(seen) == 120 * size * CENSUS
    assert chisquare(counts).pvalue > 1e-4


def test_no_sum_of_a_client_stands_in_the_transcript() -> None:
    job = a_job(4)
    tables = tables_of(job)
    seen = run(roles_of(job, tables))
    text = b"".join(value for message in seen for value in message.fields.values())
    for table in tables.values():
        for number in moments_of(table, job).vector:
            for order in ("little", "big"):
                assert (number % (1 << 64)).to_bytes(8, order) not in text  # type: ignore[arg-type]


def test_every_round_has_keys_and_masks_of_its_own() -> None:
    """Under one mask the difference of two rounds would be the client's own figures, in the clear for the evaluator."""
    job = a_job()
    roles = roles_of(job, tables_of(job))
    said = [message for message in run(roles) if message.kind == "hello" and message.receiver == "e"]
    for field in ("keys", "commitment"):
        each = [
            message.fields[field][at : at + 32]
            for message in said
            for at in range(0, len(message.fields[field]), 32)
        ]
        assert len(each) == len(said) * (3 if field == "keys" else 2) == len(set(each))


def test_a_client_never_gives_both_kinds_of_share_of_one_client() -> None:
    job = a_job(5)
    roles = roles_of(job, tables_of(job))
    asked: list[Message] = []

    def note(message: Message) -> list[Message]:
        if message.kind == "unmask" and message.receiver == "c0":
            asked.append(message)
        return [message]

    run(roles, {"c4": "masked"}, note)
    first, *_ = asked  # of the census; the sums follow
    # The evaluator asks again for the other kind: a new number, or the same number with another list.
    others = first.fields["members"][:-2]
    roles = roles_of(job, tables_of(job))
    run(roles, {"c4": "masked"}, lambda m: [] if m.kind == "opened" else [m])
    client = roles["c0"]
    for number in (first.number, first.number + 1):
        with pytest.raises(ProtocolError):
            client.receive(replace(first, number=number, fields={"members": others}))


def test_too_few_survivors_are_not_unmasked_by_a_client() -> None:
    job = a_job(5)
    roles = roles_of(job, tables_of(job))
    run(roles, change=lambda m: [] if m.kind == "unmask" else [m])
    number = 2
    two = b"\x00\x01\x00\x02"
    with pytest.raises(ProtocolError):
        roles["c0"].receive(Message(job.digest(), "e", "c0", number, "unmask", {"members": two}))
    nonsense = (
        b"",
        b"\x00",
        b"\x00\x00",
        b"\x00\x02\x00\x01",
        b"\x00\x01\x00\x01",
        b"\x00\x01\x00\x09",
        b"\x00\x02\x00\x03\x00\x04",
    )
    for members in nonsense:
        with pytest.raises(ProtocolError):
            roles["c0"].receive(Message(job.digest(), "e", "c0", number, "unmask", {"members": members}))


@pytest.mark.parametrize("kind", ["hello", "shares", "delivered", "masked", "opened"])
def test_an_altered_word_gives_a_refusal_or_a_failure_and_never_a_wrong_result(kind: str) -> None:
    job = a_job(4)
    tables = tables_of(job)
    right = expected(job, tables, tables)
    chance = random.Random(3)
    for _ in range(12):
        roles = roles_of(job, tables)
        done = False

        def alter(message: Message) -> list[Message]:
            nonlocal done
            if message.kind != kind or done:
                return [message]
            done = True
            name = chance.choice(sorted(message.fields))
            data = bytearray(message.fields[name])
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            return [replace(message, fields={**message.fields, name: bytes(data)})]

        try:
            run(roles, change=alter)
        except ProtocolError:
            continue
        outcome = roles["e"].outcome
        if kind == "masked":
            # Masked numbers are not authenticated against their own sender; the transport signs them.
            continue
        assert outcome is None or list(outcome.fit.coefficients) == right


def test_a_false_share_is_found_by_what_its_client_announced() -> None:
    job = a_job(4)
    roles = roles_of(job, tables_of(job))

    def forge(message: Message) -> list[Message]:
        if message.kind != "opened" or message.sender != "c0":
            return [message]
        data = bytearray(message.fields["shares"])
        data[20] ^= 1
        return [replace(message, fields={"shares": bytes(data)})]

    run(roles, change=forge)
    assert "do not fit what it announced" in roles["e"].failure
    assert all(role.failure for role in roles.values())


def test_a_false_share_of_a_client_that_left_is_found_by_its_public_key() -> None:
    job = a_job(5)
    roles = roles_of(job, tables_of(job))

    def forge(message: Message) -> list[Message]:
        if message.kind != "opened" or message.sender != "c0":
            return [message]
        data = bytearray(message.fields["shares"])
        data[-5] ^= 1  # of c4, who stands last: a share of the key of its pairwise masks
        return [replace(message, fields={"shares": bytes(data)})]

    run(roles, {"c4": "masked"}, forge)
    assert "shares of c4's mask do not fit" in roles["e"].failure


SEALED = sealed_bytes(a_job(5))


def places(*clients: int) -> bytes:
    return b"".join(place.to_bytes(2, "big") for place in clients)


@pytest.mark.parametrize(
    ("kind", "receiver", "change"),
    [
        ("roster", "c0", {"members": places(2, 3, 4)}),  # enough, but not this client
        ("roster", "c0", {"members": places(1, 2)}),  # this client, but too few
        ("delivered", "c0", {"members": places(2, 3, 4), "shares": bytes(3 * SEALED)}),
        ("delivered", "c0", {"members": places(1, 2), "shares": bytes(SEALED)}),
        ("hello", "e", {"keys": bytes(63)}),
        ("hello", "e", {"commitment": bytes(31)}),
        ("shares", "e", {"shares": bytes(4 * SEALED - 1)}),
        ("masked", "e", {"numbers": b""}),
        ("opened", "e", {"shares": b"\xff" * 5 * SHARE_BYTES}),  # as long as it must be, and no shares
    ],
)
def test_each_thing_wrong_with_a_word_is_enough_to_refuse_it(
    kind: str, receiver: str, change: dict[str, bytes]
) -> None:
    job = a_job(5)
    roles = roles_of(job, tables_of(job))
    with pytest.raises(ProtocolError):
        run(
            roles,
            change=lambda m: [replace(m, fields={**m.fields, **change}) if (m.kind, m.receiver) == (kind, receiver) else m],
        )  # fmt: skip


def test_a_roster_that_all_agree_on_still_cannot_be_widened_afterwards() -> None:
    job = a_job(5)
    roles = roles_of(job, tables_of(job))
    wider: list[Message] = []

    def widen(message: Message) -> list[Message]:
        if (message.kind, message.receiver) == ("delivered", "c0"):
            wider.append(message)
            return []
        return [message]

    run(roles, {"c4": "hello"}, widen)
    # c4 stands on no roster: who counts on it is refused, although c0 is there and they are many.
    fields = {"members": places(1, 2, 3, 4, 5), "shares": bytes(4 * SEALED)}
    with pytest.raises(ProtocolError, match="cannot be counted on"):
        roles["c0"].receive(replace(wider[0], fields=fields))


def test_shares_a_second_time_are_refused() -> None:
    job = a_job(4)
    roles = roles_of(job, tables_of(job))
    refusals = []

    def repeat(message: Message) -> list[Message]:
        if message.sender == "c1" and message.kind in ("shares", "masked", "opened"):
            again = replace(message, number=message.number + 1)
            try:
                roles["e"].receive(message)
                roles["e"].receive(again)
            except ProtocolError as error:
                refusals.append(error)
            return []
        return [message]

    run(roles, change=repeat)
    assert len(refusals) == 5  # the last two words of each round


def test_a_key_that_agrees_on_nothing_ends_the_job() -> None:
    job = a_job(3)
    roles = roles_of(job, tables_of(job))
    run(roles, change=lambda m: [replace(m, fields={**m.fields, "keys": bytes(96)})] if m.sender == "c2" and m.kind == "hello" else [m])  # fmt: skip
    assert all(role.failure for role in roles.values())


def test_a_role_brought_back_from_seed_and_messages_says_the_same_again() -> None:
    job = a_job(4)
    tables = tables_of(job)
    seen = run(roles_of(job, tables))
    for name in ("e", "c0", "c3"):
        said = [m for m in seen if m.sender == name]
        role = roles_of(job, tables)[name]
        again = list(role.start())
        for message in seen:
            if message.receiver == name:
                again.extend(role.receive(message))
        assert sorted(again, key=lambda m: (m.receiver, m.number)) == sorted(
            said, key=lambda m: (m.receiver, m.number)
        )


def test_words_in_any_order_give_the_same_result() -> None:
    job = a_job(5)
    tables = tables_of(job)
    for seed in range(5):
        chance = random.Random(seed)
        roles = roles_of(job, tables)
        waiting = [message for role in roles.values() for message in role.start()]
        while waiting:
            message = waiting.pop(chance.randrange(len(waiting)))
            waiting.extend(roles[message.receiver].receive(message))
        assert list(roles["e"].outcome.fit.coefficients) == expected(job, tables, tables)


def test_the_roles_are_of_the_kinds_their_module_names() -> None:
    roles = roles_of(a_job(3), tables_of(a_job(3)))
    assert isinstance(roles["e"], SumEvaluator) and isinstance(roles["c0"], SumClient)
