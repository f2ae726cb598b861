"""Recoders: how a group is published once a method has chosen it.

`Cover` publishes the tight cover of the members' true values, so nothing false is said; the others are
substitutions from the source (cluster centroid, most common record, most common value) and from microaggregation (mean), which may be.
"""

from velado.release.recoders._recoder import Recoder, View, ViewColumn, plain_view
from velado.release.recoders.cover import Cover
from velado.release.recoders.substitution import Centroid, Mean, MostCommonRecord, MostCommonValue
from velado.settings import named

RECODERS: tuple[type[Recoder], ...] = (Cover, Centroid, Mean, MostCommonRecord, MostCommonValue)


def recoder_named(name: str) -> Recoder:
    """The recoder registered under *name*.

    >>> recoder_named("cover").states_cover
    True
    """
    return named(RECODERS, name, "recoder")()


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
