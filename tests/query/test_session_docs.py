"""The examples on the page about correlated rows run as they are written."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "correlated-privacy.md"


def test_the_examples_run_one_after_another() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.M | re.S)
    assert len(blocks) >= 2
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)


def test_the_page_says_what_the_modes_promise() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for words in (
        "rows that tell nothing of one another",
        "any correlation inside a group, none across groups",
    ):
        assert words in text
