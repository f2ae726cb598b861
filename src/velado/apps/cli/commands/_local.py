"""`velado local`: a device's report, blurred before it leaves, and the collector's estimate from many of them."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

from velado.apps.cli import show as out
from velado.apps.cli.app import argument, command, group, option
from velado.errors import InputError, ParameterError
from velado.text import say

app = group("local", help="Blur a device's reports before they leave it, or estimate shares from them.")

Categories = Annotated[
    str, option("--categories A,B,C", help="All values there are, declared before anything is collected.")
]
Once = Annotated[float, option("--once EPSILON", min=0.0, help="What one report may tell.")]
Forever = Annotated[
    float,
    option("--forever EPSILON", min=0.0, help="What all reports of a device may tell while its value stays."),
]


@command("report", app)
def report(
    value: Annotated[str, argument("VALUE", help="What is true on this device.")],
    *,
    categories: Categories,
    once: Once = 1.0,
    forever: Forever = 2.0,
    memo: Annotated[
        Path,
        option("--memo FILE", help="Where this device keeps what it drew; it must not be lost or leave."),
    ],
) -> None:
    """Say one report of this device, whose value is blurred: drawn once for all reports, and once more for this one."""
    from velado.data.staging import write_file
    from velado.query.memoized import MemoizedResponse, explained

    asked = MemoizedResponse(tuple(categories.split(",")), Fraction(str(once)), Fraction(str(forever)))
    kept = _memo(memo, asked.to_dict()["guarantee"] | {"categories": list(asked.categories)})
    told, after = asked.report(value, kept["drawn"])
    if after != kept["drawn"]:  # before the report leaves: a second draw for one value would tell more
        write_file(memo, json.dumps(kept | {"drawn": after}).encode(), force=True, private=True)
    out.result({"report": told, **asked.to_dict()}, [say("Report: {report}", report=told), *explained(asked)])


def _memo(place: Path, declared: dict[str, Any]) -> dict[str, Any]:
    if not place.exists():
        return {"declared": declared, "drawn": {}}
    try:
        found = json.loads(place.read_text("utf-8"))
        same = found["declared"] == declared and isinstance(found["drawn"], dict)
    except (ValueError, KeyError, TypeError):
        raise InputError(
            "The memo of this device cannot be read.",
            "Drawing again for a value that was reported before would tell more than was promised.",
            "Put the file back. If it is lost, the promise begins anew and adds up with what was told.",
        ) from None
    if not same:
        raise ParameterError(
            "The memo of this device is of other categories or epsilons.",
            "What was drawn for them does not keep this promise.",
            "Ask as before, or begin another memo; what was told before adds up.",
        )
    kept: dict[str, Any] = found
    return kept


@command("estimate", app)
def estimate(
    file: Annotated[Path, argument("REPORTS", help="A file with one report a line, one of each device.")],
    *,
    categories: Categories,
    once: Once = 1.0,
    forever: Forever = 2.0,
) -> None:
    """Estimate the share of each value among the devices, with its 95 % interval."""
    from velado.query.memoized import MemoizedResponse

    asked = MemoizedResponse(tuple(categories.split(",")), Fraction(str(once)), Fraction(str(forever)))
    try:
        reports = file.read_text("utf-8").split()
    except (OSError, UnicodeDecodeError):
        raise InputError(
            say("The file '{file}' cannot be read.", file=file.name),
            "There is nothing to estimate from.",
            "Correct the path: a text file with one report a line.",
        ) from None
    found = asked.estimate(reports)
    rows = [[name, f"{one.value:.3f}", f"{one.low:.3f}", f"{one.high:.3f}"] for name, one in found.items()]
    notes = [
        say(
            "For one report of each device; several of one share what it drew once, and the interval would be too narrow."
        )
    ]
    if len(reports) < 30:
        notes.append(
            say("There are fewer than 30 reports: the interval holds the share less often than 95%.")
        )
    title = say("Shares among {n:,} devices", n=len(reports))
    document = {name: one.to_dict() for name, one in found.items()}
    out.result(
        {"shares": document, **asked.to_dict()},
        [out.table(title, [say("value"), say("share"), say("low"), say("high")], rows), *notes],
    )
