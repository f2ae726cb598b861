"""kill -9 of any party, right after any message it took or sent: started again, the job ends with the same numbers.

A point is (party, i): the party is killed as soon as its audit log shows its i-th message received, processed or sent,
or, for i = 0, as soon as it listens.
"""

import time
from pathlib import Path

import pytest

from velado.learning.protocols.protocol_registry import PROTOCOLS

from .parties import Consortium, consortium

pytestmark = pytest.mark.slow  # it starts processes

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


FEW = [
    ("delegated", "hub", 7),
    ("delegated", "vault", 7),
    ("delegated", "clinic-1", 2),
    ("masked", "hub", 10),
]
ALL = [
    (protocol, name, point)
    for protocol in ("delegated", "masked")
    for name, role in (("hub", "evaluator"), ("vault", "provider"), ("clinic-1", "client"))
    for point in range(last_point(protocol, role) + 1)
]


def steps(group: Consortium, name: str) -> int:
    return sum(line["event"] in STEPS for line in group.audit(name))


def kill_at(group: Consortium, name: str, point: int) -> None:
    """The party is killed when it has come so far; one that has ended by then is not."""
    end = time.monotonic() + 60
    while not group.audit(name) or steps(group, name) < point:
        assert time.monotonic() < end, f"{name} did not come to step {point}: {group.audit(name)}"
        if group.running[name].poll() is not None:
            break
        time.sleep(0.002)
    if group.running[name].poll() is None:
        group.kill(name)


def killed_once(folder: Path, protocol: str, name: str, point: int) -> None:
    with consortium(folder, protocol=protocol, minutes=2) as group:
        group.start()
        kill_at(group, name, point)
        assert steps(group, name) >= point
        group.start(name)
        codes = group.wait(seconds=110)
        assert set(codes.values()) == {0}, "\n".join(f"{n}: {group.log(n)}" for n in group.running)
        knowing = [p.name for p in group.job.parties if protocol == "delegated" or p.role != "provider"]
        assert all(group.fit(party) == group.expected for party in knowing)


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "name", "point"), FEW)
def test_a_party_killed_at_a_boundary_comes_back(
    tmp_path: Path, protocol: str, name: str, point: int
) -> None:
    killed_once(tmp_path, protocol, name, point)


@pytest.mark.parametrize(("protocol", "name", "point"), [point for point in ALL if point not in FEW])
def test_a_party_killed_at_any_boundary_comes_back(
    tmp_path: Path, protocol: str, name: str, point: int
) -> None:
    killed_once(tmp_path, protocol, name, point)


def test_all_parties_killed_one_after_the_other_come_back(tmp_path: Path) -> None:
    with consortium(tmp_path, minutes=3) as group:
        group.start()
        for name, point in (("vault", 2), ("hub", 3), ("clinic-0", 3), ("clinic-1", 2), ("vault", 4)):
            kill_at(group, name, point)
            group.start(name)
        assert set(group.wait(seconds=150).values()) == {0}
        assert all(group.fit(name) == group.expected for name in group.running)
