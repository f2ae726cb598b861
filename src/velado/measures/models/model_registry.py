"""The models, each a frozen dataclass with one verb, listed in a plain tuple; seeds are arguments, one thread each.

Fields are the model's parameters (type, default, limits, help), so that a recipe can set them. `estimator` builds a
scikit-learn estimator or pipeline; nothing is imported before.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any, ClassVar, Protocol, runtime_checkable

from velado.errors import MissingExtra
from velado.settings import Setting, named, settings


@runtime_checkable
class Model(Protocol):
    """A frozen dataclass with one verb. *pace* is roughly its seconds for 10,000 rows of 100 features.

    *scaled*: it compares features with one another, so that they must be of one size.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    needs: ClassVar[str]
    pace: ClassVar[float]
    scaled: ClassVar[bool]

    def estimator(self, seed: int, columns: int | None = None) -> Any:
        """An estimator that has not seen any row, all of whose random choices follow from *seed*.

        With *columns* the features are between 0 and 1 already and stand for so many columns; without, a model that
        needs it standardizes them by the rows it is taught.
        """
        ...


@settings
class Majority:
    """Always the most frequent class: what a model must beat to have learned anything."""

    name: ClassVar[str] = "majority"
    title: ClassVar[str] = "Majority class"
    needs: ClassVar[str] = "sklearn"
    pace: ClassVar[float] = 0.01
    scaled: ClassVar[bool] = False

    def estimator(self, seed: int, columns: int | None = None) -> Any:
        """Knows the class frequencies and nothing else."""
        return _of("sklearn.dummy", "DummyClassifier", strategy="prior")


@settings
class KNN:
    """The majority among the nearest training rows."""

    name: ClassVar[str] = "knn"
    title: ClassVar[str] = "k nearest neighbours"
    needs: ClassVar[str] = "sklearn"
    pace: ClassVar[float] = 0.5
    scaled: ClassVar[bool] = True
    neighbours: Annotated[int, Setting("training rows asked", ge=1)] = 15

    def estimator(self, seed: int, columns: int | None = None) -> Any:
        """Brute force: matrix products are faster than a tree on dozens of features."""
        knn = _of(
            "sklearn.neighbors",
            "KNeighborsClassifier",
            n_neighbors=self.neighbours,
            algorithm="brute",
            n_jobs=1,
        )
        return _scaled(columns, knn)


@settings
class RandomForest:
    """Trees on bootstrap samples, each split among a random part of the features (Breiman 2001)."""

    name: ClassVar[str] = "random-forest"
    title: ClassVar[str] = "Random forest"
    needs: ClassVar[str] = "sklearn"
    pace: ClassVar[float] = 0.6
    scaled: ClassVar[bool] = False
    trees: Annotated[int, Setting("trees", ge=1)] = 100
    leaf: Annotated[int, Setting("training rows in a leaf at least", ge=1)] = 5

    def estimator(self, seed: int, columns: int | None = None) -> Any:
        """One thread: studies run cells side by side instead."""
        return _of(
            "sklearn.ensemble",
            "RandomForestClassifier",
            n_estimators=self.trees,
            min_samples_leaf=self.leaf,
            random_state=seed,
            n_jobs=1,
        )


@settings
class SVM:
    """A support vector machine with a Gaussian kernel, approximated by *landmarks* rows (Nyström).

    The exact machine takes time that grows with the square of the rows and more; 200 landmarks give nearly its
    accuracy in a hundredth of it. It gives scores, no probabilities: its log loss is not measured.
    """

    name: ClassVar[str] = "svm"
    title: ClassVar[str] = "Support vector machine"
    needs: ClassVar[str] = "sklearn"
    pace: ClassVar[float] = 0.5
    scaled: ClassVar[bool] = True
    c: Annotated[float, Setting("weight of training errors", ge=1e-6)] = 1.0
    landmarks: Annotated[int, Setting("rows the kernel is approximated by", ge=2)] = 200
    gamma: Annotated[float | None, Setting("kernel width; none: 1 / columns", ge=1e-9)] = None

    def estimator(self, seed: int, columns: int | None = None) -> Any:
        """Map by the kernel, separate linearly; a tighter tolerance costs three times as long and changes no digit."""
        gamma = self.gamma if self.gamma is not None or columns is None else 1.0 / columns
        kernel = _Landmarks(self.landmarks, gamma, seed)
        linear = _of("sklearn.svm", "LinearSVC", C=self.c, dual=False, tol=1e-2, random_state=seed)
        return _scaled(columns, kernel.transformer(), linear)


@settings
class XGBoost:
    """Gradient boosting of trees over histograms (Chen and Guestrin 2016)."""

    name: ClassVar[str] = "xgboost"
    title: ClassVar[str] = "XGBoost"
    needs: ClassVar[str] = "xgboost"
    pace: ClassVar[float] = 0.2
    scaled: ClassVar[bool] = False
    trees: Annotated[int, Setting("boosting rounds", ge=1)] = 100
    depth: Annotated[int, Setting("depth of a tree", ge=1, le=20)] = 4
    rate: Annotated[float, Setting("learning rate", ge=1e-4, le=1)] = 0.1
    weight: Annotated[float, Setting("least weight of a leaf", ge=0)] = 5.0

    def estimator(self, seed: int, columns: int | None = None) -> Any:
        """One thread, histogram splits."""
        return _of(
            "xgboost",
            "XGBClassifier",
            n_estimators=self.trees,
            max_depth=self.depth,
            learning_rate=self.rate,
            min_child_weight=self.weight,
            tree_method="hist",
            random_state=seed,
            n_jobs=1,
        )


@settings
class DecisionTree:
    """One tree."""

    name: ClassVar[str] = "decision-tree"
    title: ClassVar[str] = "Decision tree"
    needs: ClassVar[str] = "sklearn"
    pace: ClassVar[float] = 0.2
    scaled: ClassVar[bool] = False
    leaf: Annotated[int, Setting("training rows in a leaf at least", ge=1)] = 20

    def estimator(self, seed: int, columns: int | None = None) -> Any:
        """Gini splits."""
        return _of("sklearn.tree", "DecisionTreeClassifier", min_samples_leaf=self.leaf, random_state=seed)


@settings
class GaussianNB:
    """Naive Bayes with a normal distribution per feature and class, on features scaled to 0..1.

    Shares of leaves are no normal numbers: without smoothing one rare category decides alone, and the model is worse
    than the majority. A tenth of the largest variance, added everywhere, keeps it from that.
    """

    name: ClassVar[str] = "gaussian-nb"
    title: ClassVar[str] = "Gaussian naive Bayes"
    needs: ClassVar[str] = "sklearn"
    pace: ClassVar[float] = 0.03
    scaled: ClassVar[bool] = True
    smoothing: Annotated[float, Setting("share of the largest variance added", ge=0)] = 0.1

    def estimator(self, seed: int, columns: int | None = None) -> Any:
        """A feature that is constant within a class would have variance 0; smoothing keeps it finite."""
        bayes = _of("sklearn.naive_bayes", "GaussianNB", var_smoothing=self.smoothing)
        if columns is not None:
            return bayes
        return import_module("sklearn.pipeline").make_pipeline(
            _of("sklearn.preprocessing", "MinMaxScaler"), bayes
        )


@settings
class MLP:
    """A neural network of one hidden layer, stopped early."""

    name: ClassVar[str] = "mlp"
    title: ClassVar[str] = "Multilayer perceptron"
    needs: ClassVar[str] = "sklearn"
    pace: ClassVar[float] = 3.0
    scaled: ClassVar[bool] = True
    hidden: Annotated[int, Setting("hidden units", ge=1)] = 32
    epochs: Annotated[int, Setting("passes over the rows at most", ge=1)] = 60

    def estimator(self, seed: int, columns: int | None = None) -> Any:
        """Adam with penalty 1e-3; it stops after *epochs* passes, converged or not."""
        network = _of(
            "sklearn.neural_network",
            "MLPClassifier",
            hidden_layer_sizes=(self.hidden,),
            max_iter=self.epochs,
            alpha=1e-3,
            learning_rate_init=0.005,
            random_state=seed,
        )
        return _scaled(columns, network)


@settings
class LogisticRegression:
    """Linear log odds with an L2 penalty."""

    name: ClassVar[str] = "logistic-regression"
    title: ClassVar[str] = "Logistic regression"
    needs: ClassVar[str] = "sklearn"
    pace: ClassVar[float] = 0.3
    scaled: ClassVar[bool] = True
    c: Annotated[float, Setting("inverse weight of the penalty", ge=1e-6)] = 1.0

    def estimator(self, seed: int, columns: int | None = None) -> Any:
        """L-BFGS."""
        linear = _of("sklearn.linear_model", "LogisticRegression", C=self.c, max_iter=300, random_state=seed)
        return _scaled(columns, linear)


MODELS: tuple[type[Model], ...] = (
    DecisionTree,
    GaussianNB,
    KNN,
    LogisticRegression,
    Majority,
    MLP,
    RandomForest,
    SVM,
    XGBoost,
)


def model_named(name: str) -> type[Model]:
    """The model registered under *name*, or an error that suggests the nearest."""
    return named(MODELS, name, "model")


def require(model: Model | type[Model]) -> None:
    """The library *model* needs is installed, or MissingExtra says which extra brings it."""
    if find_spec(model.needs) is None:
        library = {"sklearn": "scikit-learn"}.get(model.needs, model.needs)
        raise MissingExtra(
            f"The model '{model.name}' needs {library}, which is not installed.",
            "Models are an extra, so that publishing tables stays light.",
            'Install it with pip install "velado[ml]", or leave the model out.',
        )


def parameters(model: Model) -> dict[str, Any]:
    """The model's name and every parameter, as a recipe or a result names them."""
    return {"name": model.name} | {part.name: getattr(model, part.name) for part in fields(model)}  # type: ignore[arg-type]


def _of(module: str, name: str, **settings: Any) -> Any:
    library = module.split(".")[0]
    if find_spec(library) is None:
        raise MissingExtra(
            f"{ {'sklearn': 'scikit-learn'}.get(library, library) } is not installed.",
            "The model is made by it.",
            'Install it with pip install "velado[ml]".',
        )
    return getattr(import_module(module), name)(**settings)


def _scaled(columns: int | None, *steps: Any) -> Any:
    """The steps in a row; before them the features are standardized, unless they are of one size already."""
    scaler = [] if columns is not None else [_of("sklearn.preprocessing", "StandardScaler")]
    return import_module("sklearn.pipeline").make_pipeline(*scaler, *steps)


@dataclass(frozen=True)
class _Landmarks:
    count: int
    gamma: float | None
    seed: int

    def transformer(self) -> Any:
        return _of(
            "sklearn.kernel_approximation",
            "Nystroem",
            kernel="rbf",
            gamma=self.gamma,
            n_components=self.count,
            random_state=self.seed,
        )
