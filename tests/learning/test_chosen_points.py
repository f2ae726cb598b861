"""Whoever names the points at which exact sums are made could name others than Newton's, and read one row off two of them.

That is outside what exact iterated sums protect against (parties follow the protocol), which every run says; noise covers any point.
"""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from velado.errors import ProtocolError
from velado.learning.crypto.fixed_point import Bounded
from velado.learning.protocols.protocol_registry import PROTOCOLS
from velado.learning.protocols.who_learns_what import learned, promise
from velado.learning.regression.job import Job, Party
from velado.learning.regression.newton import MOST_POINTS, point_bytes
from velado.learning.regression.rounds import ClientRounds, most_rounds
from velado.learning.regression.simulate import deliver
from velado.randomness import Tape, seeded
from velado.text import told

CLIENTS = 4
WORDS = "An evaluator that names other points than Newton's method could read single rows off two sums"


def a_job(**more: Any) -> Job:
    parties = (Party("e", "evaluator"), *(Party(f"c{k}", "client") for k in range(CLIENTS)))
    features = (Bounded("age", (Fraction(0), Fraction(120))), Bounded("dose", (Fraction(-1), Fraction(9))))
    target = Bounded("died", (Fraction(0), Fraction(1)))
    settings: dict[str, Any] = {"family": "logistic", "most_rows": 5000, **more}
    return Job(
        settings.pop("name", "g"),
        PROTOCOLS["secure-sum"],
        features,
        settings.pop("target", target),
        parties,
        **settings,
    )


@pytest.fixture(scope="module")
def tables() -> dict[str, dict[str, np.ndarray]]:
    """Eight hundred people, one of whom is 97 years old: dose 3.125, and died."""
    draw = seeded(5, "chosen points")
    age, dose = draw.integers(20, 95, 800).astype(float), np.round(draw.uniform(0, 8, 800), 3)
    died = (draw.uniform(size=800) < 0.3).astype(float)
    age[17], dose[17], died[17] = 97, 3.125, 1
    rows = {"age": age, "dose": dose, "died": died}
    return {f"c{k}": {name: values[k::CLIENTS] for name, values in rows.items()} for k in range(CLIENTS)}


def steep(age: float) -> bytes:
    """A point at which everybody older counts as a sure case, and nobody else does."""
    return point_bytes([-2000.0 * (age - 60) / 60, 2000.0, 0.0])


def difference(job: Job, tables: Any, scale: float) -> np.ndarray:
    """The pooled gradient at one steep point less that at another; between them lies who is older than 96 alone."""
    clients = [ClientRounds(rows, job, Tape(bytes([k]) * 32)) for k, rows in enumerate(tables.values())]
    where = slice(0, 3) if job.noise is not None else slice(2, 5)
    sums = [
        np.sum([client.figures(number, steep(age))[where] for client in clients], axis=0)
        for number, age in ((1, 119.0), (2, 96.0))
    ]
    return (sums[0] - sums[1]).astype(float) / scale


def test_two_points_of_its_own_choosing_show_an_evaluator_one_person(tables) -> None:
    one, age, dose = difference(a_job(), tables, 2.0**40)
    assert one == pytest.approx(1)
    assert age * 60 + 60 == pytest.approx(97) and dose * 5 + 4 == pytest.approx(3.125)


def test_every_exact_fit_in_rounds_says_so_and_no_other_does() -> None:
    for family, target in (("logistic", 1), ("poisson", 9)):
        job = a_job(family=family, target=Bounded("died", (Fraction(0), Fraction(target))))
        assert WORDS in told(learned(job).assumptions) and WORDS in told(promise(job).assumptions)
        assert WORDS not in told(learned(replace(job, epsilon=Fraction(1))).assumptions)
    assert WORDS not in told(learned(a_job(family="linear")).assumptions)


def test_with_noise_the_same_two_points_show_nobody(tables) -> None:
    """Twenty seeds of noise: what stands where the row stood is noise many times its size."""
    found = []
    for seed in range(20):
        job = a_job(epsilon=Fraction(1), name=f"g{seed}")
        clients = {
            name: ClientRounds(rows, job, Tape(bytes([seed, k] * 16)))
            for k, (name, rows) in enumerate(tables.items())
        }
        sums = [
            np.sum([one.figures(number, steep(age))[:3] for one in clients.values()], axis=0) / 2.0**24
            for number, age in ((1, 119.0), (2, 96.0))
        ]
        found.append(sums[0] - sums[1])
    # One row moves a sum by less than 1.4 after its shortening; the noise of the two rounds is far larger.
    assert np.std(found, axis=0).min() > 14


def test_a_client_answers_so_many_points_and_no_more(make_roles, tables) -> None:
    job = a_job()
    assert most_rounds(job) == 1 + MOST_POINTS
    roles = make_roles(job, tables)
    assert not deliver(roles).failures
    client = roles["c0"]
    client._number = most_rounds(job) - 1  # as after its last round
    with pytest.raises(ProtocolError, match="more rounds than the job has"):
        client._take_next(replace_next(job))


def replace_next(job: Job) -> Any:
    from velado.learning.protocols.protocol import Message

    return Message(job.digest(), "e", "c0", 99, "next", {"point": steep(96.0)})
