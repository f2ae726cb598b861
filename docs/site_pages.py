"""What the site's list of pages holds: every page of the shelves, so that a new one is in it without being named.

MkDocs calls `on_config` before it builds (see mkdocs.yml).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

SHELVES = {
    "Tutorial": "tutorial",
    "How to": "how-to",
    "Reference": "reference",
    "Explanation": "explanation",
    "Decisions": "decisions",
}


def shelves(docs: Path) -> list[dict[str, Any]]:
    """The shelves with their pages: what gathers a shelf first, the others by name."""
    found: list[dict[str, Any]] = [{"Home": "index.md"}]
    for title, folder in SHELVES.items():
        pages = sorted((docs / folder).glob("*.md"), key=lambda page: (page.stem != "README", page.stem))
        found.append({title: [page.relative_to(docs).as_posix() for page in pages]})
    found.append({"Architecture": "architecture.md"})
    return found


def on_config(config: Any) -> Any:
    """MkDocs' settings with the list of pages."""
    config["nav"] = shelves(Path(config["docs_dir"]))
    return config
