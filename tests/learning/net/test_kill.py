"""kill -9 of any party, right after any message it took or sent: started again, the job ends with the same numbers.

A point is (party, i): the party is killed as soon as its audit log shows its i-th message received, processed or sent,
or, for i = 0, as soon as it runs.
"""

import random
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from velado.learning.protocols.protocol_registry import PROTOCOLS

from .parties import Consortium, consortium

pytestmark = pytest.mark.slow  # it starts processes

PATIENCE = 120.0
STEPS = {"received", "processed", "sent"}
PARTIES = {"evaluator": 1, "provider": 1, "client": 3}


def last_point(protocol: str, role: str) -> int:
    """How many steps a party's log shows at the end: what it takes is received and processed, what it says is sent."""
    number = 0
    for step in PROTOCOLS[protocol].steps:
        among_themselves = step.sender == step.receiver
        if step.receiver == role:
            number += 2 * (PARTIES[step.sender] - among_themselves)
        if step.sender == role:
            number += PARTIES[step.receiver] - among_themselves
    return number


PROTOCOLS_KILLED = ("delegated", "masked")
ROLES = {"hub": "evaluator", "vault": "provider", "clinic-1": "client"}


def jobs() -> list[Any]:
    """Jobs in which each of three parties is killed once: all their points, each in one job.

    The others' points are drawn, so that parties die at the same time, one after the other, and while one is away.
    """
    out = []
    for protocol in PROTOCOLS_KILLED:
        draw = random.Random(protocol)
        lists = {}
        for name, role in ROLES.items():
            points = list(range(last_point(protocol, role) + 1))
            draw.shuffle(points)
            lists[name] = points
        for at in range(max(map(len, lists.values()))):
            killed = {name: points[at] for name, points in lists.items() if at < len(points)}
            called = "-".join(f"{name}@{point}" for name, point in killed.items())
            out.append(pytest.param(protocol, killed, id=f"{protocol}-{called}"))
    return out


def steps(group: Consortium, name: str) -> int:
    return sum(line["event"] in STEPS for line in group.audit(name))


def kill_at(group: Consortium, points: Mapping[str, int]) -> None:
    """Each party is killed when it has come so far, and started again; one that has ended by then is only started."""
    end, left = time.monotonic() + PATIENCE, dict(points)
    while left:
        for name, point in list(left.items()):
            ended = group.running[name].poll() is not None
            if ended or (group.audit(name) and steps(group, name) >= point):
                if not ended:
                    group.kill(name)
                assert steps(group, name) >= point
                group.start(name)
                del left[name]
        assert time.monotonic() < end, f"{left} did not come so far: {[group.audit(name) for name in left]}"
        time.sleep(0.002)


@pytest.mark.parametrize(("protocol", "killed"), jobs())
def test_parties_killed_at_any_boundary_come_back(
    tmp_path: Path, protocol: str, killed: dict[str, int]
) -> None:
    with consortium(tmp_path, protocol=protocol, minutes=3) as group:
        group.start()
        kill_at(group, killed)
        codes = group.wait(seconds=170)
        assert set(codes.values()) == {0}, "\n".join(f"{n}: {group.log(n)}" for n in group.running)
        knowing = [p.name for p in group.job.parties if protocol == "delegated" or p.role != "provider"]
        assert all(group.fit(party) == group.expected for party in knowing)


def test_every_boundary_of_every_party_is_in_one_job() -> None:
    for protocol in PROTOCOLS_KILLED:
        killed = [param.values[1] for param in jobs() if param.values[0] == protocol]
        for name, role in ROLES.items():
            points = [one[name] for one in killed if name in one]
            assert sorted(points) == list(range(last_point(protocol, role) + 1))


def test_all_parties_killed_one_after_the_other_come_back(tmp_path: Path) -> None:
    with consortium(tmp_path, minutes=3) as group:
        group.start()
        for name, point in (("vault", 2), ("hub", 3), ("clinic-0", 3), ("clinic-1", 2), ("vault", 4)):
            kill_at(group, {name: point})
        assert set(group.wait(seconds=150).values()) == {0}
        assert all(group.fit(name) == group.expected for name in group.running)
