"""What is wrong with the TOML of a file, in a sentence of ours: the parser's own words are English, and not for stewards."""

from __future__ import annotations

import re

from velado.text.sentence import Sentence, say

# What the parser says first, and what that means to whoever wrote the file; the first that fits is told.
_MEANT = (
    ("Invalid value", say("a value is missing, or is a text without quotes")),
    ("Expected '='", say("a key has no '=' after it")),
    ("Unclosed array", say("a list is not closed with ']'")),
    ("Unclosed inline table", say("a table is not closed with '}'")),
    ("Unterminated string", say("a text has no closing quote")),
    ("Illegal character", say("a text has no closing quote, or a character that must be escaped")),
    ("Unescaped", say("a backslash in a text; write it twice, or put the text in single quotes")),
    ("Cannot declare", say("a table stands there twice")),
    ("Cannot overwrite", say("a key stands there twice")),
    ("Duplicate inline table key", say("a key stands there twice")),
    ("Expected newline", say("something follows a value on its line")),
)
_PLACE = re.compile(r"\(at line (\d+), column (\d+)\)")


def toml_trouble(message: str) -> Sentence:
    """The message of a TOML parser as a sentence of ours, with the line and the column where it gives them.

    >>> toml_trouble("Invalid value (at line 3, column 5)")
    'a value is missing, or is a text without quotes (line 3, column 5)'
    >>> toml_trouble("Something new (at end of document)")
    'it cannot be read (at the end)'
    """
    what = next((ours for said, ours in _MEANT if message.startswith(said)), say("it cannot be read"))
    found = _PLACE.search(message)
    if found is None:
        return say("{what} (at the end)", what=what)
    return say("{what} (line {line}, column {column})", what=what, line=int(found[1]), column=int(found[2]))
