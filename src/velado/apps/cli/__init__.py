"""The command line: read flags, call the library, show what it found.

`app` lists the commands and turns every error into three sentences and an exit code; `commands` holds one
file per command; `method_flags` reads a method's flags off its fields; `options` the flags that commands
share; `show` prints tables and summaries; `waiting` the progress bar; `words` the English and Portuguese
texts; `reference` writes the page of the manual. Heavy libraries are imported inside command bodies only.
"""

from velado.apps.cli.main import main, run

__all__ = ["main", "run"]
