"""What a promise would cost, at once: the core's quick preview on the sample that the profile keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.concurrency import run_in_threadpool

from velado.apps.desk.walk import Walk
from velado.study.recipe import Recipe


def presets() -> Sequence[Any]:
    """The presets that are offered."""
    return ()


def said(walk: Walk) -> list[str]:
    """What the preset in use says about itself."""
    del walk
    return []


def with_preset(walk: Walk, recipe: Recipe, name: str) -> Recipe:
    """The recipe with a preset's settings."""
    del walk, name
    return recipe


async def on_sample(walk: Walk, recipe: Recipe) -> dict[str, Any]:
    """Loss and risk of the recipe on the sample."""
    return await run_in_threadpool(lambda: {})
