"""The key of the standard's example: 2048 bits, published, so that no test waits for a key of its own."""

import json
from pathlib import Path
from random import Random

import pytest

from velado.learning.crypto.obfuscators import ObfuscatorPool, OwnerPower
from velado.learning.crypto.paillier_keys import PrivateKey, keygen

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "paillier.json").read_text("utf-8"))


@pytest.fixture(scope="session")
def iso() -> dict[str, int]:
    return {name: int(text, 16) for name, text in VECTORS["iso_18033_6"].items()}


@pytest.fixture(scope="session")
def small_cases() -> list[dict[str, int]]:
    return VECTORS["small"]


@pytest.fixture(scope="session")
def private(iso) -> PrivateKey:
    return PrivateKey(iso["p"], iso["q"])


@pytest.fixture(scope="session")
def other() -> PrivateKey:
    return keygen(2048, Random(7))


@pytest.fixture
def pool(private) -> ObfuscatorPool:
    return ObfuscatorPool(OwnerPower(private))
