"""One small study, run once: two methods, a k that no release can keep, three seeds, two protocols."""

from pathlib import Path

import polars as pl
import pytest

from velado.study.evaluate.study_outcome import Study, StudyFacts
from velado.study.evaluate.study_run import evaluate

from ..conftest import SCHEMA, STUDY, people

CHANGED = (
    STUDY.replace("k = [3, 6]", "k = [3, 6, 500]").replace("seeds = [0, 1]", "seeds = [0, 1, 2]")
    + '[metrics]\nquality = ["accuracy", "auc", "log_loss"]\n'
    + '[analyses]\nprotocols = ["split-first", "paper-gfkmc"]\n'
)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the finished study."""
    place = tmp_path_factory.mktemp("page")
    people().write_csv(place / "people.csv")
    (place / "schema.toml").write_text(SCHEMA, "utf-8")
    (place / "city.csv").write_text(
        "Aldenia;North;*\nBrumosa;North;*\nCantaro;South;*\nDorvelha;South;*\n", "utf-8"
    )
    (place / "study.toml").write_text(CHANGED, "utf-8")
    return place


@pytest.fixture(scope="session")
def study(folder: Path) -> Study:
    """The finished study."""
    found = evaluate(folder / "study.toml", folder / "out", jobs=1)
    assert found.gaps.filter(pl.col("k") == 500).height
    return found


@pytest.fixture(scope="session")
def facts(study: Study) -> StudyFacts:
    """What the study found."""
    return study.facts()
