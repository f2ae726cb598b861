"""Approach 3's choice of columns: recursive feature elimination by a random forest on the target (Guyon et al. 2002).

Column after column the least important is dropped and the forest grown anew, until *keep* are left. Forests of ten
trees are what scikit-learn 0.18, which the source names, grew by default; we grow more, so that the choice hangs
less on the seed. What is kept depends on the private records and leaks with them.
"""

from __future__ import annotations

import numpy as np

from velado.errors import ParameterError
from velado.query.correlation.extra import scikit_learn
from velado.query.correlation.records import Records

TREES = 50


def chosen_columns(
    records: Records, keep: int, rng: np.random.Generator, trees: int = TREES
) -> tuple[int, ...]:
    """The positions of the *keep* columns that are left, in the order of the table."""
    if records.target is None:
        raise ParameterError(
            "Recursive feature elimination needs a target column.",
            "Columns are kept by how well they predict it.",
            "Name the target, for example income.",
        )
    if not 1 <= keep <= len(records.features):
        raise ParameterError(
            f"{keep} column(s) cannot be kept of {len(records.features)}.",
            "Elimination keeps at least one column and at most all of them.",
            "Lower the number of columns to keep.",
        )
    scikit_learn("Recursive feature elimination")
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.feature_selection import RFE

    forest = RandomForestClassifier(n_estimators=trees, random_state=int(rng.integers(2**31)))
    positions = np.array(records.features)
    found = RFE(forest, n_features_to_select=keep, step=1).fit(records.values[:, positions], records.target)
    return tuple(int(at) for at in positions[found.support_])
