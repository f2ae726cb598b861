"""What a release with a history can be told on the command line."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from velado.apps.cli.app import OfSetting, OneOf, option
from velado.errors import ParameterError
from velado.text import say

History = Annotated[
    Path | None,
    option(
        "--history FILE",
        help="Measure what this release and earlier ones tell together; see `velado history create`.",
    ),
]
"""The private file of a series of releases."""

_TOGETHER = "velado.release.history.together.Together"


@dataclass(frozen=True, kw_only=True)
class TogetherFlags:
    """What is held together over all releases of a history.

    >>> TogetherFlags().asked() is None
    True
    """

    together: Annotated[
        Literal["people", "values"] | None,
        option(
            "--together",
            click_type=OneOf("people", "values"),
            help="Promise it of all releases of --history: classes of people, or groups of values, for life.",
        ),
    ] = None
    readers: Annotated[
        Literal["in", "exactly"] | None,
        option(
            "--readers",
            click_type=OneOf("in", "exactly"),
            help="With --together people: from whom; exactly: who also knows who was in which release.",
        ),
    ] = None
    leavers: Annotated[
        Literal["drop", "keep"] | None,
        option(
            "--leavers",
            click_type=OneOf("drop", "keep"),
            help="With --together people: rows of people who left; default: drop, and keep for --readers exactly.",
        ),
    ] = None
    start: Annotated[
        int | None,
        option(
            "--start",
            click_type=OfSetting(f"{_TOGETHER}.start", "INTEGER"),
            help="With --together people: how many people a class begins with; default: 2k.",
        ),
    ] = None
    most: Annotated[
        str | None,
        option("--most SHARE", help="With --together values: largest share of a value; default: 1/2."),
    ] = None
    group: Annotated[
        int | None,
        option(
            "--group",
            click_type=OfSetting(f"{_TOGETHER}.group", "INTEGER"),
            help="With --together values: people in a group; default: 20.",
        ),
    ] = None
    merge: Annotated[
        bool,
        option(
            "--merge",
            help="With --together values: merge groups that break --most instead of withholding them; measured only.",
        ),
    ] = False

    def asked(self) -> Any:
        """The settings, or None where nothing is held together."""
        from velado.release.history.together import Together

        given = {name: value for name, value in asdict(self).items() if name != "together"}
        named: dict[str, Any] = {
            name: value for name, value in given.items() if value is not None and value is not False
        }
        people, values = {"start", "readers", "leavers"}, {"most", "group", "merge"}
        mine = {"people": people, "values": values, None: set[str]()}[self.together]
        for name in named:
            if name not in mine:
                raise ParameterError(
                    say("--{flag} was given, and --together does not ask for it.", flag=name),
                    "It would change nothing.",
                    "--readers, --leavers and --start belong to --together people, --most, --group and --merge to --together values.",
                )
        return None if self.together is None else Together(what=self.together, **named)
