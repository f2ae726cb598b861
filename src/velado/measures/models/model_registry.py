"""The models, each a settings class with one verb, listed in a plain tuple; seeds are arguments, one thread each.

`estimator` builds a scikit-learn estimator or pipeline; nothing is imported before.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from velado.measures.models._model import Model, Rows, built, in_a_row, scaled_first
from velado.measures.models.linear_regression import LinearRegression
from velado.measures.models.regression_forest import RegressionForest
from velado.settings import Setting, named, settings
from velado.text import say


@settings
class Majority(Model):
    """Always the most frequent class: what a model must beat to have learned anything.

    >>> Majority().title
    'Majority class'
    """

    name: ClassVar[str] = "majority"
    title: ClassVar[str] = say("Majority class")
    pace: ClassVar[float] = 0.01

    def estimator(self, seed: int, columns: int | None = None) -> Any:
        """Knows the class frequencies and nothing else."""
        return built("sklearn.dummy", "DummyClassifier", strategy="prior")


@settings
class KNN(Model):
    """The majority among the nearest training rows.

    >>> KNN().neighbours
    15
    """

    name: ClassVar[str] = "knn"
    title: ClassVar[str] = say("k nearest neighbours")
    pace: ClassVar[float] = 0.5
    scaled: ClassVar[bool] = True
    neighbours: Annotated[Rows, Setting("training rows asked")] = 15

    def estimator(self, seed: int, columns: int | None = None) -> Any:
        """Brute force: matrix products are faster than a tree on dozens of features."""
        settings = {"n_neighbors": self.neighbours, "algorithm": "brute", "n_jobs": 1}
        return scaled_first(columns, built("sklearn.neighbors", "KNeighborsClassifier", **settings))


@settings
class RandomForest(Model):
    """Trees on bootstrap samples, each split among a random part of the features (Breiman 2001).

    >>> RandomForest(trees=10).leaf
    5
    """

    name: ClassVar[str] = "random-forest"
    title: ClassVar[str] = say("Random forest")
    pace: ClassVar[float] = 0.6
    trees: Annotated[int, Setting("trees", ge=1)] = 100
    leaf: Annotated[Rows, Setting("training rows in a leaf at least")] = 5

    def estimator(self, seed: int, columns: int | None = None) -> Any:
        """One thread: studies run cells side by side instead."""
        grown = {"n_estimators": self.trees, "min_samples_leaf": self.leaf}
        return built("sklearn.ensemble", "RandomForestClassifier", **grown, random_state=seed, n_jobs=1)


@settings
class SVM(Model):
    """A support vector machine with a Gaussian kernel, approximated by *landmarks* rows (Nyström).

    The exact machine takes time that grows with the square of the rows and more; 200 landmarks give nearly its
    accuracy in a hundredth of it. It gives scores, no probabilities: its log loss is not measured.

    >>> SVM(landmarks=50).gamma is None
    True
    """

    name: ClassVar[str] = "svm"
    title: ClassVar[str] = say("Support vector machine")
    pace: ClassVar[float] = 0.5
    scaled: ClassVar[bool] = True
    c: Annotated[float, Setting("weight of training errors", ge=1e-6)] = 1.0
    landmarks: Annotated[int, Setting("rows the kernel is approximated by", ge=2)] = 200
    gamma: Annotated[float | None, Setting("kernel width; none: 1 / columns", ge=1e-9)] = None

    def estimator(self, seed: int, columns: int | None = None) -> Any:
        """Map by the kernel, separate linearly; a tighter tolerance costs three times as long and changes no digit."""
        gamma = self.gamma if self.gamma is not None or columns is None else 1.0 / columns
        kernel = {"kernel": "rbf", "gamma": gamma, "n_components": self.landmarks, "random_state": seed}
        linear = built("sklearn.svm", "LinearSVC", C=self.c, dual=False, tol=1e-2, random_state=seed)
        return scaled_first(columns, built("sklearn.kernel_approximation", "Nystroem", **kernel), linear)


@settings
class XGBoost(Model):
    """Gradient boosting of trees over histograms (Chen and Guestrin 2016).

    >>> XGBoost().needs
    'xgboost'
    """

    name: ClassVar[str] = "xgboost"
    title: ClassVar[str] = say("XGBoost")
    pace: ClassVar[float] = 0.2
    needs: ClassVar[str] = "xgboost"
    trees: Annotated[int, Setting("boosting rounds", ge=1)] = 100
    depth: Annotated[int, Setting("depth of a tree", ge=1, le=20)] = 4
    rate: Annotated[float, Setting("learning rate", ge=1e-4, le=1)] = 0.1
    weight: Annotated[float, Setting("least weight of a leaf", ge=0)] = 5.0

    def estimator(self, seed: int, columns: int | None = None) -> Any:
        """One thread, histogram splits."""
        return built(
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
class DecisionTree(Model):
    """One tree.

    >>> DecisionTree(leaf=3).leaf
    3
    """

    name: ClassVar[str] = "decision-tree"
    title: ClassVar[str] = say("Decision tree")
    pace: ClassVar[float] = 0.2
    leaf: Annotated[Rows, Setting("training rows in a leaf at least")] = 20

    def estimator(self, seed: int, columns: int | None = None) -> Any:
        """Gini splits."""
        return built("sklearn.tree", "DecisionTreeClassifier", min_samples_leaf=self.leaf, random_state=seed)


@settings
class GaussianNB(Model):
    """Naive Bayes with a normal distribution per feature and class, on features scaled to 0..1.

    Shares of leaves are no normal numbers: without smoothing one rare category decides alone, and the model is worse
    than the majority. A tenth of the largest variance, added everywhere, keeps it from that.

    >>> GaussianNB().smoothing
    0.1
    """

    name: ClassVar[str] = "gaussian-nb"
    title: ClassVar[str] = say("Gaussian naive Bayes")
    pace: ClassVar[float] = 0.03
    scaled: ClassVar[bool] = True
    smoothing: Annotated[float, Setting("share of the largest variance added", ge=0)] = 0.1

    def estimator(self, seed: int, columns: int | None = None) -> Any:
        """A feature that is constant within a class would have variance 0; smoothing keeps it finite."""
        bayes = built("sklearn.naive_bayes", "GaussianNB", var_smoothing=self.smoothing)
        return bayes if columns is not None else in_a_row("MinMaxScaler", bayes)


@settings
class MLP(Model):
    """A neural network of one hidden layer, stopped early.

    >>> MLP(hidden=8).epochs
    60
    """

    name: ClassVar[str] = "mlp"
    title: ClassVar[str] = say("Multilayer perceptron")
    pace: ClassVar[float] = 3.0
    scaled: ClassVar[bool] = True
    hidden: Annotated[int, Setting("hidden units", ge=1)] = 32
    epochs: Annotated[int, Setting("passes over the rows at most", ge=1)] = 60

    def estimator(self, seed: int, columns: int | None = None) -> Any:
        """Adam with penalty 1e-3; it stops after *epochs* passes, converged or not."""
        network = built(
            "sklearn.neural_network",
            "MLPClassifier",
            hidden_layer_sizes=(self.hidden,),
            max_iter=self.epochs,
            alpha=1e-3,
            learning_rate_init=0.005,
            random_state=seed,
        )
        return scaled_first(columns, network)


@settings
class LogisticRegression(Model):
    """Linear log odds with an L2 penalty.

    >>> LogisticRegression().c
    1.0
    """

    name: ClassVar[str] = "logistic-regression"
    title: ClassVar[str] = say("Logistic regression")
    pace: ClassVar[float] = 0.3
    scaled: ClassVar[bool] = True
    c: Annotated[float, Setting("inverse weight of the penalty", ge=1e-6)] = 1.0

    def estimator(self, seed: int, columns: int | None = None) -> Any:
        """L-BFGS."""
        linear = built(
            "sklearn.linear_model", "LogisticRegression", C=self.c, max_iter=300, random_state=seed
        )
        return scaled_first(columns, linear)


MODELS: tuple[type[Model], ...] = (
    DecisionTree,
    GaussianNB,
    KNN,
    LinearRegression,
    LogisticRegression,
    Majority,
    MLP,
    RandomForest,
    RegressionForest,
    SVM,
    XGBoost,
)


def model_named(name: str) -> type[Model]:
    """The model registered under *name*, or an error that suggests the nearest.

    >>> model_named("knn").title
    'k nearest neighbours'
    """
    return named(MODELS, name, "model")
