"""Counted operations add up, and measured costs are of the right order."""

import pytest
from benchmarks.paillier_cost import (
    Operations,
    UnitCost,
    decryptions,
    encryptions,
    matrix_product,
    measure,
    packed_sum,
)


def test_method_2_counts_one_power_a_ciphertext_and_one_decryption_a_sum():
    work = packed_sum(clients=10, ciphertexts=4, pooled=False)
    assert work == Operations(full_powers=44, crt_powers=4, multiplications=36 + 88)
    assert packed_sum(10, 4).full_powers == 0
    assert encryptions(3) * 2 + decryptions(1) == Operations(6, 1, 12)


def test_seconds_are_counts_times_costs_shared_over_cores():
    cost = UnitCost(bits=2048, full_power=2.0, crt_power=0.5, multiplication=0.001)
    assert Operations(3, 4, 1000).seconds(cost) == pytest.approx(9.0)
    assert Operations(3, 4, 1000).seconds(cost, cores=2) == pytest.approx(4.5)


def test_shared_squarings_need_fewer_products_than_separate_powers():
    assert matrix_product(13, 13, 13, 3072).multiplications < 13**3 * 3072 / 4


def test_measured_costs_order_themselves(private):
    cost = measure(private, repeat=3)
    assert cost.bits == 2048
    assert 0 < cost.multiplication * 100 < cost.crt_power < cost.full_power < 5
