"""Recoders: how a group is published once a method has chosen it.

`Cover` publishes the tight cover of the members' true values, so nothing false is said; the others are
substitutions from the source (cluster centroid, most common record, most common value) and from microaggregation (mean), which may be.
"""

from velado.release.recoders._recoder import Recoder, View, ViewColumn, plain_view
from velado.release.recoders.cover import Cover
from velado.release.recoders.substitution import Centroid, Mean, MostCommonRecord, MostCommonValue

RECODERS: tuple[type[Recoder], ...] = (Cover, Centroid, Mean, MostCommonRecord, MostCommonValue)


def recoder_named(name: str) -> Recoder:
    """The recoder registered under *name*."""
    from velado.errors import ParameterError

    for kind in RECODERS:
        if kind.name == name:
            return kind()
    raise ParameterError(
        f"There is no recoder '{name}'.",
        "A group must be published in a known way.",
        f"Choose one of {', '.join(kind.name for kind in RECODERS)}.",
    )


__all__ = [
    "RECODERS",
    "Centroid",
    "Cover",
    "Mean",
    "MostCommonRecord",
    "MostCommonValue",
    "Recoder",
    "View",
    "ViewColumn",
    "plain_view",
    "recoder_named",
]
