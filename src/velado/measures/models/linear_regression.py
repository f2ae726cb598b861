"""LinearRegression: a number as a weighted sum of the features."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from velado.measures.models._model import Model, Predicts, built, scaled_first
from velado.settings import Setting, settings
from velado.text import say


@settings
class LinearRegression(Model):
    """A number as a weighted sum of the features, least squares with an L2 penalty (ridge).

    >>> LinearRegression().penalty
    1.0
    """

    name: ClassVar[str] = "linear-regression"
    title: ClassVar[str] = say("Linear regression")
    pace: ClassVar[float] = 0.05
    scaled: ClassVar[bool] = True
    predicts: ClassVar[Predicts] = "number"
    penalty: Annotated[float, Setting("weight of the squared coefficients", ge=0)] = 1.0

    def estimator(self, seed: int, columns: int | None = None) -> Any:
        """Solved exactly; the penalty keeps shares of leaves, which sum to one, from standing for one another."""
        return scaled_first(
            columns, built("sklearn.linear_model", "Ridge", alpha=self.penalty, random_state=seed)
        )
