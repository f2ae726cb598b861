"""Variance inside groups: how much of what tells rows apart is lost to whoever knows each group's mean only."""

from __future__ import annotations

from velado.errors import ParameterError
from velado.measures.declared import Measure
from velado.measures.recoded_columns import PublishedTable
from velado.measures.utility.marginals import shown_groups
from velado.release.methods.progressive.objectives.least_variance import LeastVariance


def within_variance(published: PublishedTable) -> float:
    """SSE / SST of the published classes on the true values, standardized; categories by their indicators. O(n d).

    On numbers the information loss of microaggregation, as sdcMicro gives it, over 100: 0 where the rows of each class
    are equal, 1 where classes say nothing of them. A suppressed row counts as lost with the table's mean square.

    >>> from velado.testing.examples import four_published
    >>> within_variance(four_published())
    0.0
    """
    if published.true_rows is None:
        raise ParameterError(*published.unpaired)
    return LeastVariance.value(shown_groups(published))


SSE = Measure(name="sse", title=LeastVariance.title, of=lambda published, scores: within_variance(published))
