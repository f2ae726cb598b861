"""A setting is said once: type, default, limits, choices and help stand in a frozen dataclass, and all else follows.

`@settings` declares (`declare`), `read` and `part_of` make one from a table (`reading`), `read_toml` and `to_toml`
from and to a file (`toml`), `flags`, `form` and `reference` are its other doors (`doors`). A wrong value is told in
the same sentence through each of them (`refusal`). pydantic does the checking, and is imported when it first must.
"""

from velado.settings.declare import Setting, Spec, settings, specs
from velado.settings.doors import (
    Flag,
    Row,
    checked_argument,
    checked_flag,
    flags,
    form,
    from_flags,
    from_form,
    reference,
)
from velado.settings.reading import fraction_of, made, named, part_of, read, read_value
from velado.settings.refusal import (
    LARGEST,
    Where,
    at_flags,
    comma_hint,
    given_twice,
    nearest,
    no_file,
    shown,
    takes,
    unknown_key,
)
from velado.settings.toml import describe, entry_of, parse_toml, read_toml, table_of, to_toml, toml_trouble

__all__ = [
    "LARGEST",
    "Flag",
    "Row",
    "Setting",
    "Spec",
    "Where",
    "at_flags",
    "checked_argument",
    "checked_flag",
    "comma_hint",
    "describe",
    "entry_of",
    "flags",
    "form",
    "fraction_of",
    "from_flags",
    "from_form",
    "given_twice",
    "made",
    "named",
    "nearest",
    "no_file",
    "parse_toml",
    "part_of",
    "read",
    "read_toml",
    "read_value",
    "reference",
    "settings",
    "shown",
    "specs",
    "table_of",
    "takes",
    "to_toml",
    "toml_trouble",
    "unknown_key",
]
