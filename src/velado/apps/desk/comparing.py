"""Methods and several k on the same table, for the page that compares them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from velado.release.goal import Progress


def compared(folder: Path, asked: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    """Loss and risk of every method at every k that was asked for."""
    del folder, asked, progress
    return {}
