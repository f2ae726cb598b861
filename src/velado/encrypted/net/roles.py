"""A party's role in a job, from its seed and, for a client, the rows of its table."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from velado.encrypted.crypto.keys import PrivateKey
from velado.encrypted.design import flatten, moments_of
from velado.encrypted.job import Job
from velado.encrypted.net.files import read_private
from velado.encrypted.net.identity import PAILLIER, Identity
from velado.encrypted.protocols.role import Role
from velado.encrypted.simulate import make_role
from velado.errors import KeyRefused
from velado.randomness import Tape


def read_columns(path: Path, job: Job) -> dict[str, Any]:
    """The job's columns of a table; cells of a CSV stay text, so that 0.1 is the decimal it says."""
    from velado.data.io import read_table

    frame = read_table(path).frame
    wanted = [column.name for column in (*job.features, job.target)]
    return {name: frame[name].to_numpy() for name in wanted if name in frame.columns}


def rows_mark(columns: Mapping[str, Any] | None, job: Job, identity: Identity) -> bytes:
    """32 bytes that show whether a resumed client has the rows it began with, and tell others nothing of them."""
    if columns is None:
        return bytes(32)
    text = ",".join(map(str, flatten(moments_of(columns, job))))
    return hmac.new(identity.journal_key, text.encode(), hashlib.sha256).digest()


def read_paillier(identity: Identity, passphrase: str, job: Job) -> PrivateKey | None:
    """The provider's stored key, if its identity holds one; one of another size than the job's is refused."""
    path = identity.folder / PAILLIER
    if not path.exists():
        return None
    from velado.encrypted.crypto.keyfile import open_sealed

    private = open_sealed(read_private(path), passphrase)
    if private.public.bits != job.key_bits:
        raise KeyRefused(
            f"The stored key has {private.public.bits} bits and the job says {job.key_bits}.",
            "The others would refuse it.",
            f"Remove {PAILLIER} to have a fresh key made for the job, or make one of that size.",
        )
    return private


def build_role(
    job: Job,
    name: str,
    seed: bytes,
    columns: Mapping[str, Any] | None = None,
    private: PrivateKey | None = None,
) -> Role:
    """The role, the same again for the same seed and rows; a provider may bring its key."""
    if private is None or job.party(name).role != "provider":
        return make_role(job, name, seed, columns)
    from velado.encrypted.protocols import delegated_regression, masked_regression

    providers: dict[str, Any] = {
        "delegated": delegated_regression.Provider,
        "masked": masked_regression.Provider,
    }
    if job.protocol not in providers:
        raise KeyRefused(
            f"The protocol {job.protocol} does not take a stored key.",
            "Its key is made for the run.",
            f"Remove {PAILLIER} from the identity.",
        )
    role: Role = providers[job.protocol](job, name, Tape(seed, f"{job.digest()}:{name}"), private)
    return role
