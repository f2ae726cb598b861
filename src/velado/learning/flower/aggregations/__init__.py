"""The ways of putting clients' answers together, by name: each one file. Tests run over all of them."""

from collections.abc import Mapping

from velado.learning.flower.aggregations._aggregation import Aggregation
from velado.learning.flower.aggregations.mean import Mean
from velado.learning.flower.aggregations.median import Median
from velado.learning.flower.aggregations.secure_sum import SecureSum
from velado.learning.flower.aggregations.trimmed_mean import TrimmedMean

AGGREGATIONS: Mapping[str, Aggregation] = {
    one.name: one for one in (SecureSum(), Mean(), Median(), TrimmedMean())
}
