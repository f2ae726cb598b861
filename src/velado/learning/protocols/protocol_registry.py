"""The protocols a job may name, by name; a job is read with these unless a larger table is handed in."""

from collections.abc import Mapping

from velado.learning.protocols.delegated_regression import DELEGATED
from velado.learning.protocols.delegated_to_client import DELEGATED_TO_CLIENT
from velado.learning.protocols.masked_regression import MASKED
from velado.learning.protocols.protocol import RegressionProtocol
from velado.learning.protocols.secure_sum import SECURE_SUM

PROTOCOLS: Mapping[str, RegressionProtocol] = {
    one.name: one for one in (SECURE_SUM, MASKED, DELEGATED, DELEGATED_TO_CLIENT)
}
