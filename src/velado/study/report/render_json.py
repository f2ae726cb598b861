"""The report as JSON: the summary itself, facts and texts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def render_json(summary: Mapping[str, Any]) -> str:
    """The summary as text. A number that is not finite would be no JSON, so there must be none."""
    return json.dumps(summary, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
