"""The words by which headers and names are known, read once from `lexicon.toml` and `names.toml` beside this file.

Words are lower case without accents; both files say what their lists mean.

    >>> "paciente" in TAGS["person"], "maria" in GIVEN, "silva" in SURNAMES
    (True, True, True)
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path


def words(text: str) -> frozenset[str]:
    """The words of a list written as one text.

    >>> sorted(words("id ip id"))
    ['id', 'ip']
    """
    return frozenset(text.split())


_HERE = Path(__file__).parent
_HEADERS = tomllib.loads((_HERE / "lexicon.toml").read_text("utf-8"))
_NAMES = tomllib.loads((_HERE / "names.toml").read_text("utf-8"))

TOPICS: Mapping[str, frozenset[str]] = {topic: words(text) for topic, text in _HEADERS["topics"].items()}
TAGS: Mapping[str, frozenset[str]] = {tag: words(text) for tag, text in _HEADERS["tags"].items()}
CODED: Mapping[str, frozenset[str]] = {whose: words(text) for whose, text in _HEADERS["codes"].items()}
CODE_WORDS, DAY_WORDS = words(_HEADERS["code_words"]), words(_HEADERS["day_words"])
JOINTS, PLURALS_THAT_COUNT = words(_HEADERS["joints"]), words(_HEADERS["plurals_that_count"])
GIVEN, SURNAMES, COMMON_WORDS = (words(_NAMES[kind]) for kind in ("given", "surnames", "common_words"))
