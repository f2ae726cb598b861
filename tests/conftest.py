"""What every test shares: where reference data is, and how Hypothesis searches.

Numba's on-disk cache is left as users have it, so the kernels that are tested are the kernels that run.
"""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

# A first call may compile a kernel for seconds, so no profile has a deadline.
settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


# No test reads or makes the key and the notes of whoever runs it; processes that tests start inherit this.
os.environ["VELADO_STATE"] = tempfile.mkdtemp(prefix="velado-state-")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of reference tables named by VELADO_DATA; the test is skipped where there is none."""
    named = os.environ.get("VELADO_DATA")
    if not named:
        pytest.skip("VELADO_DATA is not set: this test needs the folder of reference tables.")
    folder = Path(named)
    if not folder.is_dir():
        pytest.skip("VELADO_DATA does not name a folder: this test needs the folder of reference tables.")
    return folder
