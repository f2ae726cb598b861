"""Words: the texts of the report in one language, and numbers written as that language writes them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from velado.errors import ParameterError
from velado.report.words_en import ENGLISH
from velado.report.words_pt import PORTUGUESE

WORDS = {"en": ENGLISH, "pt": PORTUGUESE}
HTML_LANGUAGE = {"en": "en", "pt": "pt-BR"}


@dataclass(frozen=True)
class Words:
    """The report's texts in one *language*. Called with a key and the values its text names."""

    language: str

    def __post_init__(self) -> None:
        if self.language not in WORDS:
            raise ParameterError(
                f"There is no report in the language '{self.language}'.",
                "Its texts are not written.",
                f"Choose one of {', '.join(WORDS)}.",
            )

    def __call__(self, key: str, **values: Any) -> str:
        """The text of *key*; whole numbers among *values* are written with the language's separators."""
        shown = {
            name: self.count(value) if isinstance(value, int) and not isinstance(value, bool) else value
            for name, value in values.items()
        }
        return WORDS[self.language][key].format(**shown)

    def number(self, value: float, decimals: int = 1) -> str:
        """1,234.5 in English, 1.234,5 in Portuguese."""
        if not math.isfinite(value):
            return "–"
        text = f"{value:,.{decimals}f}"
        return text.translate(str.maketrans(",.", ".,")) if self.language == "pt" else text

    def count(self, value: float) -> str:
        """A whole number with the language's thousands separator."""
        return self.number(value, 0)

    def share(self, value: float, decimals: int = 1) -> str:
        """A share as a percentage. A small share that is not zero is never shown as zero."""
        least = 10.0**-decimals
        if 0 < value * 100 < least / 2:
            return f"< {self.number(least, decimals)}%"
        return f"{self.number(100 * value, decimals)}%"

    def plain(self, value: float) -> str:
        """A number without needless decimals: 5, 2.5."""
        return self.count(value) if float(value).is_integer() else self.number(value, 2)

    def listed(self, names: list[str]) -> str:
        """Names in a row, as a sentence lists them."""
        if len(names) < 2:
            return "".join(names)
        return f"{', '.join(names[:-1])} {self('and')} {names[-1]}"
