"""The command line: read flags, call the library, show what it found.

`app` makes commands of functions and option groups; `options` holds the flags they share; `commands` one file per
command; `show` prints results and progress; `error_display` turns every error into three sentences and an exit code;
`reference` writes the page of the manual. Heavy libraries are imported inside command bodies only.
"""

from velado.apps.cli.main import main, run

__all__ = ["main", "run"]
