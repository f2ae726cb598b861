"""velado inside scikit-learn: an estimator that anonymizes the rows a model is trained on.

`Anonymizer` stands in a `Pipeline` before the model. Its training rows go through `release()`, the one door; new rows
are placed in what was learned of them. scikit-learn is an extra: without it, importing this room says how to get it.
"""

from importlib.util import find_spec

from velado.errors import MissingExtra

if find_spec("sklearn") is None:
    raise MissingExtra(
        "velado.sklearn needs scikit-learn, which is not installed.",
        "Models are an extra, so that publishing tables stays light.",
        'Install it with pip install "velado[ml]".',
    )

from velado.sklearn.anonymizer import Anonymizer, LearnedPromise, NewRows

__all__ = ["Anonymizer", "LearnedPromise", "NewRows"]
