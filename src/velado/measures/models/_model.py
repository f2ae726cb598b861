"""What a model is, and what models share: how a library's estimator is built, and its features scaled.

A model may be a file of its own: a `@settings` class on `Model`, and a line in `model_registry.MODELS`.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any, ClassVar, Literal

from velado.errors import MissingExtra
from velado.settings import Setting
from velado.text import say

Rows = Annotated[int, Setting(ge=1)]
Predicts = Literal["class", "number"]


class Model:
    """Settings with one verb. *pace* is roughly its seconds for 10,000 rows of 100 features, *needs* its library.

    *scaled*: it compares features with one another, so that they must be of one size. *predicts*: it tells classes apart, or
    answers with a number.

    >>> from velado.measures.models.model_registry import KNN, Majority
    >>> KNN(neighbours=3).name, KNN.scaled, Majority.needs
    ('knn', True, 'sklearn')
    """

    name: ClassVar[str]
    title: ClassVar[str]
    pace: ClassVar[float]
    needs: ClassVar[str] = "sklearn"
    scaled: ClassVar[bool] = False
    predicts: ClassVar[Predicts] = "class"

    def estimator(self, seed: int, columns: int | None = None) -> Any:
        """An estimator that has not seen any row, all of whose random choices follow from *seed*.

        With *columns* the features are between 0 and 1 already and stand for so many columns; without, a model that
        needs it standardizes them by the rows it is taught.
        """
        raise NotImplementedError


def require(model: Model | type[Model]) -> None:
    """The library *model* needs is installed, or MissingExtra says which extra brings it.

    >>> from velado.measures.models.model_registry import KNN
    >>> require(KNN)
    """
    _installed(model.needs, say("The model '{name}'", name=model.name))


def _installed(library: str, who: str) -> None:
    if find_spec(library) is None:
        called = {"sklearn": "scikit-learn"}.get(library, library)
        raise MissingExtra(
            say("{who} needs {library}, which is not installed.", who=who, library=called),
            "Models are an extra, so that publishing tables stays light.",
            'Install it with pip install "velado[ml]", or leave the model out.',
        )


def built(module: str, name: str, **settings: Any) -> Any:
    """The estimator *name* of a library's *module*, which is imported only now, or MissingExtra.

    >>> built("sklearn.dummy", "DummyClassifier", strategy="prior").strategy
    'prior'
    """
    _installed(module.partition(".")[0], name)
    return getattr(import_module(module), name)(**settings)


def scaled_first(columns: int | None, *steps: Any) -> Any:
    """The steps in a row; before them the features are standardized, unless they are of one size already.

    >>> [name for name, _ in scaled_first(None, built("sklearn.dummy", "DummyClassifier")).steps]
    ['standardscaler', 'dummyclassifier']
    """
    return in_a_row("StandardScaler" if columns is None else "", *steps)


def in_a_row(scaler: str, *steps: Any) -> Any:
    """The steps one after another, behind the *scaler* of that name if it is not empty.

    >>> len(in_a_row("MinMaxScaler", built("sklearn.dummy", "DummyClassifier")))
    2
    """
    first = [built("sklearn.preprocessing", scaler)] if scaler else []
    return import_module("sklearn.pipeline").make_pipeline(*first, *steps)
