"""Operations: the elementary techniques on one column, done before a method runs.

Each is a settings class with a `column` and `apply`. Operations change what is published but promise
nothing by themselves: the promise is checked afterwards, on the published values. A recipe lists them as
``[[operations]]`` tables.
"""

from velado.release.operations._operation import Operation, apply_operations
from velado.release.operations.generalize import Generalize
from velado.release.operations.mask import Mask
from velado.release.operations.permute import Permute
from velado.release.operations.perturb import Perturb
from velado.release.operations.suppress import Suppress

AnyOperation = Generalize | Mask | Permute | Perturb | Suppress
OPERATIONS: tuple[type[AnyOperation], ...] = (Generalize, Mask, Permute, Perturb, Suppress)

__all__ = [
    "OPERATIONS",
    "AnyOperation",
    "Generalize",
    "Mask",
    "Operation",
    "Permute",
    "Perturb",
    "Suppress",
    "apply_operations",
]
