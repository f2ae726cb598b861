"""Every measure that is one number. A new one is its own file and one word here; all that shows measures reads this."""

from __future__ import annotations

from velado.measures.declared import Measure
from velado.measures.risk.attribute_disclosure import ATTRIBUTE_GAIN
from velado.measures.risk.record_linkage import RECORD_LINKAGE
from velado.measures.risk.reidentification import HIGHEST_RISK, REIDENTIFICATION
from velado.measures.utility.average_group_size import AVERAGE_GROUP_SIZE
from velado.measures.utility.correlation_change import CORRELATION_CHANGE
from velado.measures.utility.discernibility import DISCERNIBILITY
from velado.measures.utility.false_cells import FALSE_CELLS, SUPPRESSED
from velado.measures.utility.marginals import MARGINALS
from velado.measures.utility.minimal_distortion import MINIMAL_DISTORTION
from velado.measures.utility.ncp import NCP
from velado.measures.utility.weighted_loss import WEIGHTED_LOSS
from velado.measures.utility.within_variance import SSE

UTILITY: tuple[Measure, ...] = (
    NCP,
    SSE,
    MARGINALS,
    MINIMAL_DISTORTION,
    CORRELATION_CHANGE,
    WEIGHTED_LOSS,
    DISCERNIBILITY,
    AVERAGE_GROUP_SIZE,
)
"""What a release lost; a study may choose any of them as its loss."""

RISK: tuple[Measure, ...] = (RECORD_LINKAGE, REIDENTIFICATION, HIGHEST_RISK)
"""What an attacker can do with it; a study may choose any of them as its risk."""

BESIDE: tuple[Measure, ...] = (ATTRIBUTE_GAIN, FALSE_CELLS, SUPPRESSED)
"""Columns of a study that stand beside the loss and the risk it trades off."""


# Asked for when they are needed, not copied when a module is loaded: a test, or a user, may register one more.


def all_measures() -> tuple[Measure, ...]:
    """Every measure, in the order of a study's columns.

    >>> [one.name for one in all_measures()][:2]
    ['ncp', 'sse']
    """
    return (*UTILITY, *RISK, *BESIDE)


def losses() -> tuple[str, ...]:
    """The names a study may choose its loss from.

    >>> losses()[:4]
    ('ncp', 'sse', 'marginals', 'minimal_distortion')
    """
    return tuple(one.name for one in UTILITY)


def risks() -> tuple[str, ...]:
    """The names a study may choose its risk from.

    >>> risks()
    ('record_linkage', 'reidentification', 'highest_risk')
    """
    return tuple(one.name for one in RISK)


def further(part: tuple[Measure, ...]) -> tuple[Measure, ...]:
    """Those of *part* that nothing else tells: they have a line and a key of their own.

    >>> [one.name for one in further(UTILITY)]
    ['sse', 'marginals', 'minimal_distortion', 'correlation_change', 'weighted_loss']
    """
    return tuple(one for one in part if not one.detailed)
