"""Why no setting can be recommended: the true reason, found in the results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from velado.study.evaluate.grid import ORIGINAL
from velado.study.evaluate.words import percent, quality_name, say

if TYPE_CHECKING:
    from velado.study.evaluate.analysis import Study


def no_choice(study: Study, language: str) -> str:
    """The sentence that says why there is no recommendation. O(settings)."""
    recipe = study.material.recipe
    quality, risk = quality_name(study.main, language), say(language, f"name_{recipe.risk}")
    table = study.tradeoff.filter(pl.col("method") != ORIGINAL)
    drop, risks = pl.col("drop").is_not_null(), pl.col("risk").is_not_null()
    if not table.height:
        return say(language, "none_released")
    if not table.filter(drop).height:
        missing = study.models_left_out
        if not study.models_asked:
            return say(language, "none_modelled")
        if missing == study.models_asked:
            return say(language, "none_measured", names=", ".join(missing), quality=quality)
        return say(language, "none_lost", quality=quality)
    if not table.filter(risks).height:
        return say(language, "none_risk", risk=risk)
    if not table.filter(drop & risks).height:
        return say(language, "none_both", quality=quality, risk=risk)
    return say(language, "none_below", limit=percent(recipe.most_risk, language))
