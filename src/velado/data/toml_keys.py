"""A column's name as a TOML file has it, so that advice can be copied."""

from __future__ import annotations

import json
import re

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_key(name: str) -> str:
    """The name as a key: as it stands, or quoted where it holds more than plain letters, digits and dashes.

    >>> toml_key("age"), toml_key("monthly income")
    ('age', '"monthly income"')
    """
    return name if _BARE.fullmatch(name) else json.dumps(name, ensure_ascii=False).replace("\x7f", "\\u007f")
