"""Obfuscators: n-th residues of the right distribution, each handed out once, whatever threads and processes do."""

import copy
import multiprocessing
import threading
from collections import Counter
from random import Random

import gmpy2
import pytest

from velado.errors import ParameterError
from velado.learning.crypto.obfuscators import FullPower, ObfuscatorPool, OwnerPower, ShortPower
from velado.learning.crypto.paillier import decrypt, encrypt, encrypt_many
from velado.learning.crypto.paillier_keys import PrivateKey
from velado.randomness import Tape

MAKERS = {
    "full": lambda private, random=None: FullPower(private.public, random),
    "owner": lambda private, random=None: OwnerPower(private, random),
    "short": lambda private, random=None: ShortPower(private.public, random, accept_short_exponents=True),
}


def counting(key):
    """A maker whose residues are 1, 2, 3, ...: any use of one twice is seen."""

    class Counting:
        def __init__(self):
            self.key = key
            self.made = 0

        def make(self, count):
            start = self.made + 1
            self.made += count
            return list(range(start, start + count))

    return Counting()


@pytest.mark.parametrize("kind", MAKERS)
def test_what_is_made_hides_a_number_and_is_new_each_time(private, kind):
    pool = ObfuscatorPool(MAKERS[kind](private))
    made = encrypt_many(private.public, [3] * 6, pool)
    assert len({int(c.value) for c in made}) == 6
    assert all(gmpy2.gcd(c.value, private.public.n) == 1 for c in made)
    assert [decrypt(private, c) for c in made] == [3] * 6


@pytest.mark.parametrize("kind", ["full", "owner"])
def test_every_residue_is_equally_likely(kind):
    private = PrivateKey(11, 17)
    n, n2 = 187, 187**2
    every = {pow(r, n, n2) for r in range(n) if gmpy2.gcd(r, n) == 1}
    assert len(every) == 160
    count = 160 * 60
    seen = Counter(int(s) for s in MAKERS[kind](private, Random(5)).make(count))
    assert set(seen) == every
    # Chi-square with 159 degrees of freedom: its 0.9999 quantile is 233.
    assert sum((k - 60) ** 2 / 60 for k in seen.values()) < 233


def test_short_exponents_are_off_unless_asked_for(private):
    with pytest.raises(ParameterError, match="Short exponents"):
        ShortPower(private.public)


def test_a_filled_pool_and_an_empty_one_hand_out_the_same_sequence(private):
    seed = bytes(32)
    ahead, bare = (ObfuscatorPool(OwnerPower(private, Tape(seed))) for _ in range(2))
    ahead.fill(5)
    assert ahead.ready == 5
    with ahead:
        ahead.keep(8)
        first = [*ahead.take(3), *ahead.take(9), *ahead.take(2)]
    assert first == [*bare.take(1), *bare.take(13)]


def test_no_residue_is_handed_out_twice_to_many_threads(private):
    maker = counting(private.public)
    taken: list[list[int]] = [[] for _ in range(8)]

    def work(mine):
        for step in range(150):
            mine.extend(pool.take(1 + step % 5))

    with ObfuscatorPool(maker) as pool:
        pool.keep(20)
        threads = [threading.Thread(target=work, args=(mine,)) for mine in taken]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    every = [value for mine in taken for value in mine]
    assert len(every) == 8 * 450
    assert len(set(every)) == len(every)


def test_the_background_fills_the_pool_and_stops_when_closed(private):
    pool = ObfuscatorPool(counting(private.public))
    pool.keep(10)
    for _ in range(500):
        if pool.ready >= 10:
            break
        threading.Event().wait(0.01)
    assert pool.ready == 10
    keeper = pool._keeper
    pool.close()
    assert not keeper.is_alive() and pool.ready == 0


def test_a_pool_cannot_be_copied_or_sent(private):
    pool = ObfuscatorPool(counting(private.public))
    for duplicate in (copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be copied"):
            duplicate(pool)


def _left_in_child(pool, answer):
    answer.put(pool.ready)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_forked_process_finds_the_pool_empty(private):
    pool = ObfuscatorPool(counting(private.public))
    pool.fill(4)
    fork = multiprocessing.get_context("fork")
    answer = fork.Queue()
    child = fork.Process(target=_left_in_child, args=(pool, answer))
    child.start()
    assert answer.get(timeout=30) == 0
    child.join()
    assert pool.ready == 4


def test_encryption_uses_as_many_as_it_makes_ciphertexts(private):
    maker = counting(private.public)
    pool = ObfuscatorPool(maker)
    pool.fill(3)
    encrypt(private.public, 1, pool)
    assert pool.ready == 2 and maker.made == 3
    encrypt_many(private.public, [1] * 4, pool)
    assert pool.ready == 0 and maker.made == 5
