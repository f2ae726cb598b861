"""The page of study files leaves no key, choice or model out."""

from dataclasses import fields
from pathlib import Path

from velado.learning.flower import Federation
from velado.measures.measure_registry import losses, risks
from velado.measures.models.model_registry import MODELS
from velado.study.evaluate.load import load
from velado.study.evaluate.protocols import PROTOCOLS
from velado.study.evaluate.study_settings import FEDERATION, FederatedAxes

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE = DOCS / "reference" / "study.md"


def test_the_page_names_every_key_and_every_choice(example) -> None:
    text = PAGE.read_text("utf-8")
    document = load(example.study).recipe.to_dict()
    keys = [key for section in document.values() for key in section]
    keys += ["features", "per", "most_risk", *FEDERATION]
    keys += [one.name for one in fields(FederatedAxes) if one.name != "federation"]
    names = [part.name for part in (*MODELS, *PROTOCOLS)]
    settings = [part.name for kind in (*MODELS, Federation) for part in fields(kind)]
    settings = [name for name in settings if name not in ("model", "split")]  # lists here: models, splits
    wanted = (*keys, *names, *losses(), *risks(), *settings)
    assert [word for word in wanted if f"`{word}`" not in text] == []


def test_the_tutorial_leads_to_the_page() -> None:
    assert "(../reference/study.md)" in (DOCS / "tutorial" / "choose-k.md").read_text("utf-8")
