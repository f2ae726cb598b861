"""A membership attack on a finished model: who was trained on, told from the loss alone, and what chance alone would tell.

The attacker (Yeom et al. 2018) has true rows, says "trained on" where the model's loss on a row is below a threshold, and takes the
best threshold there is. Its advantage is the largest difference of the shares of trained and held-out rows below one (0: nothing is
told, 1: everything). Even where nothing is told the largest difference is above 0: the null is its 95th percentile over
random labels "trained on". Measured, not guaranteed: another attack may find more, but under (epsilon, delta) none more than
(e^epsilon - 1 + 2 delta) / (e^epsilon + 1).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from velado.learning.flower.flower_records import FederatedModel, FloatMatrix

IntVector = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
MOST = 5000
"""Rows of either kind that are tried."""
_NULLS = 200


@dataclass(frozen=True, kw_only=True)
class MembershipAttack:
    """How far the attack got, what chance alone would have given, and how far noise lets any attack get."""

    advantage: float
    null: float
    trained: int
    held_out: int
    bound: float | None = None

    @property
    def found(self) -> bool:
        """Whether it told more than chance."""
        return self.advantage > self.null

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {**asdict(self), "found": self.found}


def membership_attack(
    model: FederatedModel,
    trained: tuple[FloatMatrix, IntVector],
    held_out: tuple[FloatMatrix, IntVector],
    random: np.random.Generator,
    budget: tuple[float, float] | None = None,
) -> MembershipAttack:
    """The attack on *model*; *budget* is (epsilon, delta) of a private one."""
    losses = [_losses(model, *part, random) for part in (trained, held_out)]
    pooled = np.concatenate(losses)
    order, member = np.argsort(pooled, kind="stable"), np.arange(pooled.size) < losses[0].size
    chance = [_advantage(pooled, order, random.permutation(member)) for _ in range(_NULLS)]
    bound = None
    if budget is not None:
        epsilon, delta = budget
        bound = min(1.0, math.tanh(epsilon / 2) + 2 * delta / (math.exp(min(epsilon, 700)) + 1))
    return MembershipAttack(
        advantage=_advantage(pooled, order, member),
        null=float(np.quantile(chance, 0.95)),
        trained=losses[0].size,
        held_out=losses[1].size,
        bound=bound,
    )


def _losses(
    model: FederatedModel, features: FloatMatrix, labels: IntVector, random: np.random.Generator
) -> Floats:
    rows = np.sort(random.permutation(labels.size)[:MOST])
    chances = model.probabilities(features[rows])
    return np.asarray(-np.log(np.clip(chances[np.arange(rows.size), labels[rows]], 1e-15, None)))


def _advantage(pooled: Floats, order: IntVector, member: npt.NDArray[np.bool_]) -> float:
    """The largest share of trained rows below a threshold less that of held-out rows; equal losses fall together."""
    inside = member[order]
    least = np.flatnonzero(np.append(np.diff(pooled[order]) > 0, True))
    gap = np.cumsum(inside)[least] / inside.sum() - np.cumsum(~inside)[least] / (~inside).sum()
    return float(max(gap.max(), 0.0))
