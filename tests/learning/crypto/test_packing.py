"""Packing: sums come back exactly, no slot reaches another, and a party that breaks its bound is seen."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from velado.errors import ParameterError, PlaintextOverflow
from velado.learning.crypto.obfuscators import ObfuscatorPool, OwnerPower
from velado.learning.crypto.paillier import Packing, decrypt_many, encrypt_many, sum_ciphertexts
from velado.learning.crypto.paillier_keys import keygen

bounds = st.lists(st.integers(0, 2**80), min_size=1, max_size=30)


@st.composite
def parties(draw):
    limits = draw(bounds)
    terms = draw(st.integers(1, 12))
    count = draw(st.integers(1, terms))
    rows = [[draw(st.sampled_from([-b, b, b // 2, 0, -(b // 3)])) for b in limits] for _ in range(count)]
    return limits, terms, draw(st.integers(0, 2)), rows


@given(parties(), st.integers(90, 400))
def test_sums_come_back_exactly(case, size):
    limits, terms, guard, rows = case
    packing = Packing(tuple(limits), terms, size, guard)
    packed = [packing.pack(row) for row in rows]
    summed = [sum(column) for column in zip(*packed, strict=True)]
    assert all(abs(total) < 2 ** (size - 1) for total in summed)
    assert packing.unpack(summed, len(rows)) == [sum(column) for column in zip(*rows, strict=True)]


@given(bounds, st.integers(1, 20), st.integers(90, 400))
def test_slots_do_not_overlap_and_stay_within_the_plaintext(limits, terms, size):
    packing = Packing(tuple(limits), terms, size)
    for index in range(packing.plaintexts):
        slots = sorted(slot for slot in packing.slots if slot.plaintext == index)
        assert slots, "no plaintext is empty"
        ends = [0]
        for slot in slots:
            assert slot.offset >= ends[-1]
            ends.append(slot.offset + slot.width)
        assert ends[-1] <= size
    for slot, bound in zip(packing.slots, limits, strict=True):
        assert 2 ** (slot.width - 1) > terms * bound
    least = -(-sum(slot.width for slot in packing.slots) // size)
    assert least <= packing.plaintexts <= 2 * least


@settings(max_examples=10)
@given(st.lists(st.lists(st.integers(-(2**130), 2**130), min_size=44, max_size=44), min_size=1, max_size=10))
def test_packed_sums_survive_encryption(rows):
    private = keygen(1024, Random(4), least_bits=1024)
    packing = Packing.for_key(private.public, [2**130] * 44, terms=10)
    pool = ObfuscatorPool(OwnerPower(private, Random(5)))
    sent = [encrypt_many(private.public, packing.pack(row), pool) for row in rows]
    summed = [sum_ciphertexts(column) for column in zip(*sent, strict=True)]
    assert packing.plaintexts == 7
    assert packing.unpack(decrypt_many(private, summed)) == [
        sum(column) for column in zip(*rows, strict=True)
    ]


def test_a_value_beyond_its_bound_is_not_packed_and_is_not_told():
    packing = Packing((10, 1000), 3, 64)
    with pytest.raises(PlaintextOverflow, match="Value 0 of 2") as caught:
        packing.pack([-4321, 0])
    assert "4321" not in str(caught.value)


def test_a_party_that_breaks_its_bound_is_seen_when_unpacking():
    packing = Packing((10, 1000), 3, 64)
    slot = packing.slots[0]
    honest = [packing.pack([10, 1000])[0] for _ in range(2)]
    with pytest.raises(PlaintextOverflow, match="Value 0"):
        packing.unpack([sum(honest) + (11 << slot.offset)])
    with pytest.raises(PlaintextOverflow):
        packing.unpack([1 << 63])
    with pytest.raises(PlaintextOverflow):
        packing.unpack([-(1 << 63)])
    with pytest.raises(PlaintextOverflow):
        packing.unpack([sum(honest)], terms=1)
    assert packing.unpack([sum(honest)], terms=2) == [20, 2000]


def test_a_value_that_fits_no_plaintext_says_which_key_would_do():
    with pytest.raises(PlaintextOverflow, match="key of 105 bits"):
        Packing((2**97,), 8, 100, guard=1)
    assert Packing((2**97,), 8, 103, guard=1).plaintexts == 1


@pytest.mark.parametrize(("limits", "terms"), [((), 1), ((-1,), 1), ((1,), 0)])
def test_a_packing_of_nothing_is_refused(limits, terms):
    with pytest.raises(ParameterError):
        Packing(limits, terms, 64)


def test_wrong_counts_are_programming_errors():
    packing = Packing((1, 1), 2, 64)
    for work in (
        lambda: packing.pack([1]),
        lambda: packing.unpack([1, 2]),
        lambda: packing.unpack([1], terms=3),
    ):
        with pytest.raises(ValueError, match=r"packing|terms"):
            work()
