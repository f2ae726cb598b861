"""One published 2048-bit key for all jobs, small tables with negative values, and roles built from seeds."""

import json
from fractions import Fraction
from pathlib import Path
from random import Random

import numpy as np
import pytest

from velado.learning.crypto.fixed_point import Bounded
from velado.learning.crypto.paillier_keys import PrivateKey, keygen
from velado.learning.protocols.role import make_role
from velado.learning.regression.job import Job, Party
from velado.papers.regression.paper_masked import WITH_PAPER
from velado.randomness import Tape

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "paillier.json").read_text("utf-8"))
SEED = bytes(range(32))


@pytest.fixture(scope="session")
def job_key() -> PrivateKey:
    """The key of ISO/IEC 18033-6's example: published, so that no test waits for a key."""
    iso = VECTORS["iso_18033_6"]
    return PrivateKey(int(iso["p"], 16), int(iso["q"], 16))


@pytest.fixture(scope="session")
def foreign_key() -> PrivateKey:
    return keygen(2048, Random(7))


@pytest.fixture(scope="session")
def make_job():
    """A job with features x0, x1, ... and target y, all within the same bounds."""

    def build(protocol="delegated", width=1, bits=8, low=-8, high=8, clients=3, **more) -> Job:
        features = tuple(Bounded(f"x{i}", (Fraction(low), Fraction(high))) for i in range(width))
        keyed = WITH_PAPER[protocol].provider is not None
        parties = (
            Party("eva", "evaluator"),
            *([Party("pro", "provider")] if keyed else []),
            *(Party(f"c{i}", "client") for i in range(clients)),
        )
        settings = {
            "minimum_rows": 2,
            "least_cell": 1,
            "most_rows": 200,
            "key_bits": 2048,
            "bits": bits,
            "key_holder": "c0" if WITH_PAPER[protocol].client_holds_key else None,
            **more,
        }
        return Job(
            "test",
            WITH_PAPER[protocol],
            features,
            Bounded("y", (Fraction(low), Fraction(high))),
            parties,
            **settings,
        )

    return build


@pytest.fixture(scope="session")
def make_tables():
    """Rows for every client of a job: random within its bounds, y close to a linear function of the features."""

    def build(job: Job, rows=12, seed=1) -> dict[str, dict[str, np.ndarray]]:
        rng = np.random.default_rng(seed)
        tables = {}
        for party in job.of("client"):
            columns = {
                f.name: np.round(rng.uniform(float(f.low), float(f.high), rows), 3) for f in job.features
            }
            slope = sum((k + 1) * values for k, values in enumerate(columns.values()))
            low, high = float(job.target.low), float(job.target.high)
            columns["y"] = np.clip(slope / 4 + rng.normal(0, 0.3, rows), low, high)
            tables[party.name] = columns
        return tables

    return build


@pytest.fixture(scope="session")
def make_roles(job_key):
    """The roles of a job; the provider has the published key where it is of the job's size."""

    def build(job: Job, tables, seed=SEED, private=None):
        roles = {}
        for party in job.parties:
            own = Tape(seed, party.name).bytes(32)
            if party.role == "provider":
                key = job_key if private is None else private
                tape = Tape(own, f"{job.digest()}:{party.name}")
                roles[party.name] = job.protocol.provider(job, party.name, tape, key)
            else:
                roles[party.name] = make_role(job, party.name, own, tables.get(party.name))
        return roles

    return build
