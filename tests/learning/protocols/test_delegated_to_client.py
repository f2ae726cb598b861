"""The roles of the source's Method 2: clients and an evaluator, a client opens the total; and what keeps that sound."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from velado.errors import InputError, ParameterError, ProtocolError
from velado.learning.crypto.fixed_point import Bounded
from velado.learning.crypto.paillier import ciphertexts_from_bytes, decrypt_many, key_to_bytes
from velado.learning.crypto.paillier_keys import PublicKey
from velado.learning.protocols.delegated_regression import packing_for
from velado.learning.protocols.delegated_to_client import DELEGATED_TO_CLIENT
from velado.learning.protocols.parts import EarlierJob
from velado.learning.protocols.protocol import Message
from velado.learning.protocols.role import Role, make_role
from velado.learning.regression.design_matrix import flatten, moments_of, total
from velado.learning.regression.exact_solution import solve_exact
from velado.learning.regression.job import Job, Party
from velado.learning.regression.simulate import Transcript, deliver
from velado.randomness import Tape

CLIENTS = 4
HOLDER = "c1"


def a_job(**more: Any) -> Job:
    parties = (Party("hub", "evaluator"), *(Party(f"c{i}", "client") for i in range(CLIENTS)))
    features = (Bounded("age", (Fraction(0), Fraction(120))), Bounded("rare", (Fraction(0), Fraction(1))))
    target = Bounded("stay", (Fraction(-50), Fraction(50)))
    given = {"bits": 12, "key_bits": 2048, "most_rows": 1000, "key_holder": HOLDER, **more}
    return Job("t", DELEGATED_TO_CLIENT, features, target, parties, **given)


def tables_of(members: dict[str, int], rows: int = 40) -> dict[str, dict[str, Any]]:
    draw = np.random.default_rng(5)
    out = {}
    for place in range(CLIENTS):
        age = draw.integers(20, 90, rows)
        rare = (np.arange(rows) < members.get(f"c{place}", 0)).astype(int)
        stay = np.round(age / 4 - 3 * rare - 20 + draw.normal(0, 1, rows), 2)
        out[f"c{place}"] = {"age": age, "rare": rare, "stay": stay}
    return out


TABLES = tables_of(dict.fromkeys(("c0", "c1", "c2", "c3"), 9))


def roles_of(job: Job, tables: dict[str, dict[str, Any]] = TABLES) -> dict[str, Role]:
    return {
        one.name: make_role(job, one.name, Tape(b"s" * 32, one.name).bytes(32), tables.get(one.name))
        for one in job.parties
    }


@pytest.fixture(scope="module")
def run() -> tuple[Job, Transcript]:
    job = a_job(moments=True)
    transcript = deliver(roles_of(job))
    assert not transcript.failures
    return job, transcript


def test_everybody_has_exact_least_squares_and_no_third_party_took_part(run: tuple[Job, Transcript]) -> None:
    job, transcript = run
    expected = [
        float(one) for one in solve_exact(total([moments_of(one, job) for one in TABLES.values()]), job)[0]
    ]
    assert {party.role for party in job.parties} == {"evaluator", "client"}
    for role in transcript.roles.values():
        assert role.outcome is not None and role.outcome.fit is not None
        assert list(role.outcome.fit.coefficients) == expected
        assert role.outcome.fit.standard_errors and role.outcome.fit.how["rows"] == 160


def test_the_holder_is_sent_one_total_alone_and_it_is_not_the_product_of_what_was_sent(
    run: tuple[Job, Transcript],
) -> None:
    job, transcript = run
    to_holder = [m for m in transcript.messages if m.receiver == HOLDER]
    assert [(m.sender, m.kind) for m in to_holder] == [("hub", "total")]
    private = transcript.roles[HOLDER]._private  # type: ignore[attr-defined]
    packing = packing_for(job, private.public)

    def values(message: Message) -> list[Any]:
        return ciphertexts_from_bytes(private.public, message.fields["ciphertexts"], packing.plaintexts)

    sent = [values(m) for m in transcript.messages if m.kind == "sums"]
    assert len(sent) == CLIENTS
    opened = packing.unpack(decrypt_many(private, values(to_holder[0])))
    figures = [flatten(moments_of(one, job)) for one in TABLES.values()]
    assert opened[: len(figures[0])] == [sum(column) for column in zip(*figures, strict=True)]
    # Re-randomised: the ciphertext of the total is not what adding the clients' ciphertexts gives.
    product = 1
    for one in sent:
        product = product * int(one[0].value) % int(private.public.n) ** 2
    assert int(values(to_holder[0])[0].value) != product


def test_key_and_result_of_another_client_are_refused_and_change_nothing() -> None:
    job = a_job()
    roles = roles_of(job)
    foreign = key_to_bytes(PublicKey((1 << 2047) + 1))
    for receiver in ("hub", "c2", HOLDER):
        with pytest.raises(ProtocolError, match="does not hold the key"):
            roles[receiver].receive(Message(job.digest(), "c0", receiver, 0, "key", {"key": foreign}))
    swapped: list[str] = []

    def twist(message: Message) -> list[Message]:
        """A client answers in the holder's place as soon as it has a result of its own to copy."""
        if message.kind == "result" and message.receiver == "c2" and not swapped:
            swapped.append("c2")
            false = replace(message, sender="c0", number=0)
            with pytest.raises(ProtocolError):
                roles["c2"].receive(false)
        return [message]

    transcript = deliver(roles, twist)
    assert swapped and not transcript.failures
    assert len({role.outcome.fit.coefficients for role in roles.values()}) == 1  # type: ignore[union-attr]


def test_a_total_goes_to_the_holder_alone() -> None:
    job = a_job()
    roles = roles_of(job)
    seen: list[Message] = []
    deliver(roles, lambda m: seen.append(m) or ([] if m.kind == "total" else [m]))  # type: ignore[func-returns-value]
    stolen = next(m for m in seen if m.kind == "total")
    with pytest.raises(ProtocolError, match="for the client that holds the key"):
        roles["c2"].receive(replace(stolen, receiver="c2", number=0))


@pytest.mark.parametrize("client", ["c0", HOLDER])
def test_thresholds_hold_for_the_others_rows_since_the_holder_can_take_its_own_away(client: str) -> None:
    """Ten members are enough for the pooled sums; nine of them at the holder would leave it one person's value."""
    with pytest.raises(InputError, match="In rare fewer than 10"):
        roles_of(a_job(), tables_of({HOLDER: 9, client: 1} if client != HOLDER else {HOLDER: 1, "c0": 9}))
    # Four at each of three others are twelve without the holder's.
    assert not deliver(roles_of(a_job(), tables_of(dict.fromkeys(("c0", "c1", "c2", "c3"), 4)))).failures
    with pytest.raises(InputError, match="In rare fewer than 10"):
        roles_of(a_job(), tables_of(dict.fromkeys(("c0", "c1", "c2", "c3"), 3)))


@pytest.mark.parametrize("refusing", ["c0", HOLDER])
def test_a_client_that_an_earlier_job_would_give_away_ends_it(refusing: str) -> None:
    job = a_job()
    roles = roles_of(job)
    before = EarlierJob(job="0a", roster=("c0", "c1", "c2"), columns={"age": "77"})
    roles[refusing].earlier = [before]  # type: ignore[attr-defined]
    roles[refusing].own_columns = {"age": "77"}  # type: ignore[attr-defined]
    transcript = deliver(roles)
    assert all(
        "an earlier job over the same rows had 1 client" in why for why in transcript.failures.values()
    )
    assert set(transcript.failures) == set(roles)
    # Nothing of the refusing client left it.
    assert not [m for m in transcript.messages if m.sender == refusing and m.kind == "sums"]


def test_the_job_says_which_client_and_no_other_protocol_has_one() -> None:
    with pytest.raises(ParameterError, match="needs a key_holder"):
        a_job(key_holder=None)
    with pytest.raises(ParameterError, match="no client of the job"):
        a_job(key_holder="hub")
    from velado.learning.protocols.secure_sum import SECURE_SUM

    with pytest.raises(ParameterError, match="has no key_holder"):
        replace(a_job(), protocol=SECURE_SUM)
    assert replace(a_job(), protocol=SECURE_SUM, key_holder=None).digest() != a_job().digest()
