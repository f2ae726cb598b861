"""Marginals by messages are those of the whole distribution, written out cell by cell."""

from itertools import combinations

import numpy as np
import pytest

from velado.query.synthetic.fit import Measured, fit, total_of
from velado.query.synthetic.junction_tree import JunctionTree, cells, cliques_of, marginal
from velado.randomness import seeded

GRAPHS = [
    [],
    [(0, 1), (1, 2), (2, 3)],
    [(0, 1), (1, 2), (2, 3), (3, 0)],
    [(0, 1), (0, 2), (1, 2), (2, 4)],
    [(0, 1), (2, 3)],
    [(0, 1, 2), (2, 3), (3, 4), (4, 1)],
]
SIZES = (2, 3, 2, 4, 3)


def whole(tree: JunctionTree, potentials) -> np.ndarray:
    """Every cell of the distribution, by multiplying all potentials: slow and plain."""
    out = np.zeros(tree.sizes)
    for clique, part in zip(tree.cliques, potentials, strict=True):
        shape = [tree.sizes[at] if at in clique else 1 for at in range(len(tree.sizes))]
        out = out + part.reshape(shape)
    out = np.exp(out - out.max())
    return out / out.sum()


@pytest.mark.parametrize("edges", GRAPHS)
def test_marginals_and_pairs_are_those_of_the_whole_distribution(edges):
    random = seeded(1, "junction tree")
    tree = JunctionTree.of(SIZES, edges)
    potentials = [random.normal(size=tree.shape(clique)) * 2 for clique in tree.cliques]
    joint = whole(tree, potentials) * 100
    counts = tree.marginals(potentials, 100.0)
    for clique, part in zip(tree.cliques, counts, strict=True):
        assert np.allclose(part, marginal(joint, tuple(range(5)), clique))
    pairs = dict(tree.pairs(counts))
    assert sorted(pairs) == list(combinations(range(5), 2))
    for pair, part in pairs.items():
        assert np.allclose(part, marginal(joint, tuple(range(5)), pair)), pair


@pytest.mark.parametrize("edges", GRAPHS)
def test_every_column_hangs_together_in_the_tree(edges):
    tree = JunctionTree.of(SIZES, edges)
    for edge in edges:
        assert tree.home(tuple(sorted(edge))) >= 0
    for column in range(5):
        holding = [at for at, clique in enumerate(tree.cliques) if column in clique]
        # All but one of the cliques that hold it share it with their parent.
        assert sum(column in tree.separators[at] for at in holding) == len(holding) - 1


def test_a_product_beyond_64_bits_is_counted():
    sizes = [10_000] * 40
    assert cells(sizes, cliques_of(40, [tuple(range(40))])) == 10_000**40


def test_a_fit_is_not_negative_agrees_and_finds_exact_counts_again():
    random = seeded(2, "fit")
    rows = random.integers(0, 3, size=(4, 500))
    rows[1] = (rows[0] + (random.random(500) < 0.2)) % 3
    exact = {pair: np.zeros((3, 3), dtype=np.int64) for pair in ((0, 1), (1, 2), (0, 2), (2, 3))}
    for (a, b), counts in exact.items():
        np.add.at(counts, (rows[a], rows[b]), 1)
    measured = [Measured(pair, counts, 1.0) for pair, counts in exact.items()]
    fitted = fit((3, 3, 3, 3), measured, total_of(measured), rounds=2000)
    for pair, counts in exact.items():
        assert np.abs(fitted.of(pair) - counts).max() < 1.0
    noisy = [Measured(pair, counts - 40, 30.0) for pair, counts in exact.items()]
    fitted = fit((3, 3, 3, 3), noisy, total_of(noisy))
    assert all((part >= 0).all() for part in fitted.counts)
    for a, b in combinations(range(len(fitted.tree.cliques)), 2):
        shared = tuple(sorted(set(fitted.tree.cliques[a]) & set(fitted.tree.cliques[b])))
        one, other = (marginal(fitted.counts[at], fitted.tree.cliques[at], shared) for at in (a, b))
        assert np.allclose(one, other)
