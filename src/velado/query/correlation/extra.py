"""The one place that says what to install where scikit-learn is missing."""

from __future__ import annotations

from importlib.util import find_spec

from velado.errors import MissingExtra


def scikit_learn(what: str) -> None:
    """Raise unless scikit-learn can be imported."""
    if find_spec("sklearn") is None:
        raise MissingExtra(
            f"{what} needs scikit-learn, which is not installed.",
            "The source's clustering, mixtures and choice of columns are scikit-learn's.",
            "Install velado with its extra: velado[ml].",
        )
