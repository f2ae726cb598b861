"""`velado history`: the private record of what earlier releases showed, created, shown, checked and sealed; people forgotten."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from velado.apps.cli import options as flags
from velado.apps.cli import show as out
from velado.apps.cli.app import argument, command, group, option
from velado.text import say

app = group(
    "history",
    help="Create, show, check or seal the record of what earlier releases showed, or forget a person.",
)

Where = Annotated[Path, argument("HISTORY", help="The file of the history.")]


@command("create", app)
def create(file: Where, *, key: flags.OwnerKey = None) -> None:
    """Begin a history; it stays private (mode 0600) and is sealed in your state folder."""
    from velado.data.history_file import create_history
    from velado.data.keys import owner_key

    create_history(file, owner_key(key))
    out.result(
        {"history": str(file), "releases": 0},
        [say("A history begins at {file}. Give it to every release: --history {file}", file=file)],
    )


@command("show", app)
def show(
    file: Where,
    *,
    k: Annotated[int, option("-k --k", min=1, help="Count people with fewer candidates than this.")] = 5,
    key: flags.OwnerKey = None,
) -> None:
    """Show what all releases of a history tell together."""
    from velado.data.history_file import history_held
    from velado.data.keys import owner_key
    from velado.release.history.record import Record, told_by

    with history_held(file, owner_key(key)) as held:
        record = Record.of(held.entries)
        told = told_by(record, k, held.trouble, record.pending)
    out.result(
        {
            "releases": told.releases,
            "k": k,
            "in": {"least": told.inside.least, "below": told.inside.below, "people": told.inside.people},
            "exactly": {"least": told.exactly.least, "below": told.exactly.below},
            "certain_values_at_least": told.certain,
            "trouble": str(told.trouble),
        },
        list(told.sentences()),
    )


@command("check", app)
def check(file: Where, *, key: flags.OwnerKey = None) -> None:
    """Recompute every hash of a history and compare it with its seal."""
    from velado.data.history_file import history_held
    from velado.data.keys import owner_key
    from velado.errors import HistoryError

    with history_held(file, owner_key(key)) as held:
        count, trouble = len(held.entries), held.trouble
    if trouble:
        raise HistoryError(
            say("The history may not be the newest one ({trouble}).", trouble=trouble),
            "Releases it does not know of are not counted: figures made with it may be too good.",
            "Put its newest copy back where it was made. Where copies went two ways, begin a new history: none of them knows all releases.",
        )
    out.result(
        {"entries": count, "holds": True},
        [say("All {entries:,} entries hold, and the seal agrees.", entries=count)],
    )


@command("seal", app)
def seal(
    file: Where,
    *,
    releases: Annotated[
        int, option("--releases N", min=0, help="How many releases you know of; the history must have them.")
    ],
    reason: Annotated[str, option("--reason TEXT", help="Why it is sealed anew; kept in the history.")],
    key: flags.OwnerKey = None,
) -> None:
    """Seal a history anew that was moved to another place, machine or account.

    Every later release says so. Where a seal stands that knows of a newer copy, it is refused.
    """
    from velado.data.history_file import history_held
    from velado.data.keys import owner_key
    from velado.errors import HistoryError
    from velado.release.history.record import Record

    with history_held(file, owner_key(key)) as held:
        known = Record.of(held.entries).releases
        if known != releases:
            raise HistoryError(
                say(
                    "Releases in the history and releases you know of are not as many: {known:,} and {releases:,}.",
                    known=known,
                    releases=releases,
                ),
                "It is not the newest copy, or releases were made without it.",
                "Count the published folders, and put the newest copy here.",
            )
        held.seal_anew(reason)
    out.result(
        {"history": str(file), "releases": known, "sealed_anew": True},
        [
            out.warning(
                say(
                    "Sealed anew, on your word that this is the newest copy: every later release says so. Destroy all other copies: "
                    "a release made with one of them would not be known here."
                )
            )
        ],
    )


@command("forget", app)
def forget(
    file: Where,
    person: Annotated[str, argument("PERSON", help="As the person column has it.")],
    *,
    key: flags.OwnerKey = None,
) -> None:
    """Erase a person: where people are held together, the whole class is not shown again; counts of groups of values stay."""
    from velado.data.history_file import history_held
    from velado.data.keys import owner_key
    from velado.study.held_people import forget as forget_person

    owner = owner_key(key)
    with history_held(file, owner) as held:
        forget_person(held, person, owner)
    out.result(
        {"history": str(file), "forgotten": 1},
        [
            say(
                "Forgotten: where people are held together, the class of that person is not shown again. Where values are held in groups, the counts of "
                "the person's group stay as they are, in every later release too: with one less they would tell the value. Take the row out of the "
                "next file too; a hash under your key stays, and what was published cannot be called back."
            )
        ],
    )
