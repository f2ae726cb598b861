"""Completion of commands, flags and their words in bash, zsh and fish; where velado knows no word, files are offered.

`velado --show-completion SHELL` prints what a shell reads once. The shell then starts velado with the words typed so far
in its environment. No heavy library is loaded for an answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

import click
from click.shell_completion import BashComplete, CompletionItem, FishComplete, ShellComplete, ZshComplete

Shell = Literal["bash", "zsh", "fish"]
SHELLS: tuple[Shell, ...] = get_args(Shell)
ASKED = "_VELADO_COMPLETE"
"""The variable in which a shell says that it wants words, and which shell it is."""


class _WithFiles(ShellComplete):
    """A shell's own way to ask, with files where nothing else is known: an argument is a table more often than not."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        found = super().get_completions(args, incomplete)
        return found or ([] if incomplete.startswith("-") else [CompletionItem(incomplete, type="file")])


class _Bash(_WithFiles, BashComplete):
    """bash."""

    @staticmethod
    def _check_version() -> None:
        """Nothing: click would start a bash to ask its version, which costs more than the answer."""


class _Zsh(_WithFiles, ZshComplete):
    """zsh."""


class _Fish(_WithFiles, FishComplete):
    """fish."""


_KNOWN: Mapping[str, type[ShellComplete]] = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}


def script(shell: Shell) -> str:
    """What *shell* reads to complete velado's words.

    >>> "complete --no-files --command velado" in script("fish")
    True
    """
    return _KNOWN[shell](click.Command("velado"), {}, "velado", ASKED).source()


def answer(group: click.Group, asked: str) -> str | None:
    """The words a shell asked for by `bash_complete`, `zsh_complete` or `fish_complete`; None for anything else.

    >>> answer(click.Group("velado"), "tcsh_complete") is None
    True
    """
    shell, _, what = asked.partition("_")
    if what != "complete" or shell not in _KNOWN:
        return None
    return _KNOWN[shell](group, {}, "velado", ASKED).complete()
