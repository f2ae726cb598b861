"""Any threshold of shares gives the secret back, fewer fit every secret, and pairwise masks cancel."""

import itertools

import gmpy2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from velado.learning.crypto import _sharing as pairwise
from velado.learning.crypto._sharing import PRIME, SHARE_BYTES, join, split, well_formed
from velado.randomness import Tape


def test_the_modulus_is_the_first_prime_above_two_to_the_256() -> None:
    assert gmpy2.next_prime(1 << 256) == PRIME


@given(st.binary(min_size=32, max_size=32), st.integers(1, 6), st.binary(min_size=32, max_size=32))
def test_any_threshold_of_the_shares_gives_the_secret_back(
    secret: bytes, threshold: int, seed: bytes
) -> None:
    shares = split(secret, threshold, range(1, 8), Tape(seed))
    for chosen in itertools.islice(itertools.combinations(shares, threshold), 12):
        assert join({x: shares[x] for x in chosen}) == secret
    assert all(map(well_formed, shares.values()))


def test_fewer_shares_fit_every_other_secret_as_well() -> None:
    shares = split(b"a" * 32, 3, [1, 2, 3, 4], Tape(b"t" * 32))
    two = {1: shares[1], 2: shares[2]}
    for other in (bytes(32), b"b" * 32, b"\xff" * 32):
        # The polynomial of degree 2 through both shares and another secret exists: its third share completes them.
        y0, y1, y2 = (int.from_bytes(v, "big") for v in (other, two[1], two[2]))
        third = (y0 - 3 * y1 + 3 * y2) % PRIME
        assert join({**two, 3: third.to_bytes(SHARE_BYTES, "big")}) == other


def test_a_false_share_does_not_give_the_secret() -> None:
    shares = split(b"a" * 32, 2, [1, 2], Tape(b"t" * 32))
    shares[2] = (int.from_bytes(shares[2], "big") ^ 1).to_bytes(SHARE_BYTES, "big")
    assert join(shares) != b"a" * 32


def test_shares_of_impossible_holders_are_refused() -> None:
    for holders in ([0, 1], [1, 1]):
        with pytest.raises(ValueError, match="holders"):
            split(bytes(32), 2, holders, Tape(bytes(32)))
    assert not well_formed(b"\xff" * SHARE_BYTES)
    assert not well_formed(bytes(SHARE_BYTES - 1))


def test_two_sides_agree_and_uses_differ() -> None:
    alice, bob = bytes(range(32)), bytes(range(32, 64))
    there = pairwise.agreed(alice, pairwise.public_of(bob), "job", "mask", "a", "b")
    back = pairwise.agreed(bob, pairwise.public_of(alice), "job", "mask", "a", "b")
    assert there == back is not None
    others = [("job", "letter", "a", "b"), ("other", "mask", "a", "b"), ("job", "mask", "ab", "")]
    assert there not in [pairwise.agreed(alice, pairwise.public_of(bob), *use) for use in others]
    assert pairwise.agreed(alice, bytes(32), "job", "mask") is None


def test_masks_cancel_in_the_sum() -> None:
    numbers = pairwise.mask(b"k" * 32, 5, 9)
    one = pairwise.masked([1, -2, 3, 0, 7], [(1, numbers)], 9)
    other = pairwise.masked([10, 20, -3, 0, 0], [(-1, numbers)], 9)
    assert pairwise.masked(one, [(1, other)], 9) == [11, 18, 0, 0, 7]
    assert one != [1, (1 << 72) - 2, 3, 0, 7]


def test_a_letter_opens_only_as_it_was_sealed() -> None:
    sealed = pairwise.seal(b"k" * 32, b"letter", b"job")
    assert pairwise.unseal(b"k" * 32, sealed, b"job") == b"letter"
    assert pairwise.unseal(b"x" * 32, sealed, b"job") is None
    assert pairwise.unseal(b"k" * 32, sealed, b"other") is None
    for at in range(len(sealed)):
        assert (
            pairwise.unseal(b"k" * 32, sealed[:at] + bytes([sealed[at] ^ 1]) + sealed[at + 1 :], b"job")
            is None
        )
