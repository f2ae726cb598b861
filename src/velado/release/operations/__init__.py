"""Operations: the elementary techniques on one column, done before a method runs or instead of one.

Each is a settings class with a `column` and `apply`; `suppress-locally` alone works on all quasi-identifiers together.
Operations change what is published but promise nothing by themselves: the promise is checked afterwards, on the
published values. A recipe lists them as ``[[operations]]`` tables; `velado transform` does nothing else.
"""

from velado.release.operations._operation import Operation, apply_operations, columns_of, refuse_unknown
from velado.release.operations.extreme_codes import BottomCode, TopCode
from velado.release.operations.generalize import Generalize
from velado.release.operations.impute import ImputationEffect, Impute, imputation_effect
from velado.release.operations.local_suppression import LocalSuppression
from velado.release.operations.mask import Mask
from velado.release.operations.permute import Permute
from velado.release.operations.perturb import Perturb
from velado.release.operations.pram import PRAM
from velado.release.operations.rank_swap import RankSwap
from velado.release.operations.round_numbers import RoundNumbers
from velado.release.operations.suppress import Suppress
from velado.release.operations.year import Year
from velado.release.operations.zip_prefix import ZipPrefix

OPERATIONS: tuple[type[Operation], ...] = (
    BottomCode,
    Generalize,
    Impute,
    LocalSuppression,
    Mask,
    Permute,
    Perturb,
    PRAM,
    RankSwap,
    RoundNumbers,
    Suppress,
    TopCode,
    Year,
    ZipPrefix,
)

__all__ = [
    "OPERATIONS",
    "PRAM",
    "BottomCode",
    "Generalize",
    "ImputationEffect",
    "Impute",
    "LocalSuppression",
    "Mask",
    "Operation",
    "Permute",
    "Perturb",
    "RankSwap",
    "RoundNumbers",
    "Suppress",
    "TopCode",
    "Year",
    "ZipPrefix",
    "apply_operations",
    "columns_of",
    "imputation_effect",
    "refuse_unknown",
]
