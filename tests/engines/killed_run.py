"""A release in a process that is about to be killed. Everything slow is loaded once, in the server that such processes are forked from.

No thread may run there before a fork, so that the kernels are warmed without a data frame.
"""

from pathlib import Path

import numpy as np
import pandas  # noqa: F401 (pyarrow loads it at the first array)
import scipy.linalg  # noqa: F401 (Numba loads it at the first kernel)
from tests.engines.same_table import KEY

from velado.data.encoded import EncodedColumn, EncodedTable
from velado.data.schema import Schema
from velado.randomness import seeded
from velado.release.goal import Goal, silent
from velado.release.guarantees import KAnonymity
from velado.release.methods import Mondrian
from velado.study.engine_run import publish_files

MEANING = Schema.from_dict(
    {
        "columns": {
            "age": {"role": "quasi", "kind": "numeric"},
            "sex": {"role": "quasi", "kind": "categorical"},
            "ill": {"role": "sensitive", "kind": "categorical"},
        }
    }
)


def _warmed() -> None:
    ages = EncodedColumn("age", np.arange(8, dtype=np.int32), 8, points=np.arange(8.0), span=7.0, whole=True)
    data = EncodedTable((ages,), 8, counts=np.ones(8, dtype=np.int64))
    Mondrian().anonymize(data, Goal((KAnonymity(2),)), seeded(0, "warm"), silent)


_warmed()


def publish_lake(lake: str, out: str, begun: str) -> None:
    """The release of *lake* stands in *out*; the file *begun* is there as soon as the first row is counted."""

    def told(share: float, doing: str = "") -> None:
        Path(begun).touch()

    publish_files(lake, MEANING, "mondrian", k=5, out=out, key=KEY, force=True, progress=told)
