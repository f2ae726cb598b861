"""Sections that several recipes share."""

from __future__ import annotations

from typing import Annotated

from velado.release.run_settings import UndeclaredSetting
from velado.settings import Setting, settings


@settings(section="data", kw_only=True)
class DataSection:
    """[data]: the schema, the column that models learn, the columns they may use, and what is not declared.

    >>> DataSection(schema="schema.toml", target="ill").undeclared
    'refuse'
    """

    schema: Annotated[str, Setting("the schema's file, looked for beside the recipe", items=1)]
    target: Annotated[str, Setting("the column models learn; published, and no quasi-identifier", items=1)]
    features: Annotated[
        tuple[str, ...] | None,
        Setting("the columns models may use; without it every published one but free text", items=1),
    ] = None
    undeclared: UndeclaredSetting = "refuse"
