"""A protocol's table is complete and without doubt, and a role refuses every message that no line of it allows now."""

import pytest

from velado.errors import ProtocolError
from velado.learning.protocols.protocol import START, Message
from velado.papers.regression.paper_masked import WITH_PAPER


@pytest.mark.parametrize("protocol", WITH_PAPER.values(), ids=list(WITH_PAPER))
def test_every_line_can_be_reached_and_says_one_thing(protocol) -> None:
    seen = [(step.sender, step.kind, step.receiver, step.state) for step in protocol.steps]
    assert len(set(seen)) == len(seen)
    for step in protocol.steps:
        ends = {step.sender, step.receiver}
        reached = {one.next for one in protocol.steps if {one.sender, one.receiver} == ends} | {START}
        assert step.state in reached
        # The same kind between the same two has the same fields wherever it stands.
        same = [one for one in protocol.steps if (one.sender, one.kind, one.receiver) == seen[0][:3]]
        assert all(set(one.fields) == set(same[0].fields) for one in same)


@pytest.fixture(scope="module", params=WITH_PAPER)
def waiting(request, make_job, make_tables, make_roles):
    """The roles of a protocol that have said what they say unasked, and heard nothing."""
    job = make_job(request.param, 1, bits=8)
    roles = make_roles(job, make_tables(job))
    for role in roles.values():
        role.start()
    return job, roles


def test_a_role_takes_the_kinds_its_table_sends_it_and_no_other(waiting) -> None:
    job, roles = waiting
    for role in roles.values():
        own = job.party(role.name).role
        assert set(role.takes()) == {step.kind for step in job.protocol.steps if step.receiver == own}


def test_what_no_line_allows_yet_is_refused_and_leaves_the_role_as_it_was(waiting) -> None:
    job, roles = waiting
    refused = 0
    for step in job.protocol.steps:
        same = [one for one in job.protocol.steps if (one.kind, one.sender) == (step.kind, step.sender)]
        # Where a role is once it has started: a provider has sent the key, a client of the secure sum its hello.
        now = {START, "greeted", *(["keyed"] if step.receiver == "provider" else [])}
        if any(one.state in now for one in same):
            continue
        sender, receiver = job.of(step.sender)[0].name, job.of(step.receiver)[-1].name
        message = Message(job.digest(), sender, receiver, 0, step.kind, dict.fromkeys(step.fields, b"x"))
        with pytest.raises(ProtocolError, match="out of turn"):
            roles[receiver].receive(message)
        assert not roles[receiver].done
        refused += 1
    assert refused >= 2
