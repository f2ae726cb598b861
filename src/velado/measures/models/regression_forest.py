"""RegressionForest: a number as the mean of many trees."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from velado.measures.models._model import Model, Predicts, Rows, built
from velado.settings import Setting, settings
from velado.text import say


@settings
class RegressionForest(Model):
    """A number as the mean of trees on bootstrap samples (Breiman 2001).

    >>> RegressionForest(trees=10).leaf
    5
    """

    name: ClassVar[str] = "regression-forest"
    title: ClassVar[str] = say("Regression forest")
    pace: ClassVar[float] = 1.5
    predicts: ClassVar[Predicts] = "number"
    trees: Annotated[int, Setting("trees", ge=1)] = 100
    leaf: Annotated[Rows, Setting("training rows in a leaf at least")] = 5

    def estimator(self, seed: int, columns: int | None = None) -> Any:
        """A third of the features at each split, as Breiman has it for numbers; one thread."""
        grown = {"n_estimators": self.trees, "min_samples_leaf": self.leaf, "max_features": 1 / 3}
        return built("sklearn.ensemble", "RandomForestRegressor", **grown, random_state=seed, n_jobs=1)
