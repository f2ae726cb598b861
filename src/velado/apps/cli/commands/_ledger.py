"""`velado ledger`: the account of a data set's budget, opened, shown, checked, capped and raised."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from velado.apps.cli import options as flags
from velado.apps.cli import show as out
from velado.apps.cli.app import argument, command, group, option
from velado.errors import LedgerError, ParameterError
from velado.text import say, say_n

if TYPE_CHECKING:
    from velado.query.budget import Budget
    from velado.query.store import ChainedLedger

app = group("ledger", help="Open, show, check, cap or raise the budget of a data set.")

Where = Annotated[str, argument("LEDGER", help="The ledger: a file, or postgresql://host/base?ledger=NAME.")]
Amount = Annotated[str, argument("AMOUNT", help="An epsilon or rho, as a decimal or a fraction.")]
_HASH = re.compile(r"[0-9a-f]{64}")


@command("show", app)
def show(
    ledger: Where,
    *,
    entries: Annotated[int, option("--entries", min=0, help="How many of the newest entries to list.")] = 0,
    seal: flags.SealFile = None,
) -> None:
    """Show what is spent and what is left, in all and by analyst."""
    from velado.query.store import people_state
    from velado.report.query_lines import ShownEntry, ledger_lines

    with _opened(ledger, seal) as account:
        state = people_state(account, account.state())
        listed = account.entries(max(0, state.entries - entries)) if entries else ()
        newest = [ShownEntry.of(entry) for entry in listed]
    more = {"newest": [asdict(entry) for entry in newest]} if entries else {}
    out.result(
        {"ledger": _plain(ledger), **state.to_dict(), **more},
        ledger_lines(state, _seal_path(ledger, seal), newest),
    )


@command("verify", app)
def verify(
    ledger: Where,
    *,
    receipt: Annotated[
        list[str] | None, option("--receipt HASH", help="Also say whether this receipt is in it; repeatable.")
    ] = None,
    seal: flags.SealFile = None,
) -> None:
    """Recompute every hash and sum, and compare with the seal.

    A receipt is the hash that came with an answer. A ledger that lacks one was restored from before that answer,
    together with its seal; exit code 8.
    """
    from velado.query.store import people_state
    from velado.report.query_lines import entry_kind

    wanted = [text.strip().lower() for text in receipt or []]
    if not all(_HASH.fullmatch(text) for text in wanted):
        raise ParameterError(
            "A receipt is not 64 hexadecimal digits.",
            "It is the hash that came with an answer.",
            "Copy the whole of it from the answer.",
        )
    with _opened(ledger, seal) as account:
        state = people_state(account, account.verify())
        found = {entry.hash: entry for entry in account.entries() if entry.hash in wanted} if wanted else {}
    receipts = {text: found[text].number if text in found else None for text in wanted}
    view = [
        say("All {entries:,} entries hold, the sums are right, and the seal agrees.", entries=state.entries),
        say("Newest hash: {head}", head=state.head),
        *(
            say(
                "Receipt {receipt}: this ledger has it, as entry {entry} ({kind}).",
                receipt=text,
                entry=found[text].number,
                kind=entry_kind(found[text].kind),
            )
            if text in found
            else say("Receipt {receipt}: this ledger does not have it.", receipt=text)
            for text in wanted
        ),
    ]
    out.result({"ledger": _plain(ledger), "holds": True, **state.to_dict(), "receipts": receipts}, view)
    lost = sum(text not in found for text in wanted)
    if lost and out.manner().as_json:
        # The JSON above says which are missing; a second object would make the output unreadable.
        raise typer.Exit(LedgerError.exit_code)
    if lost:
        raise LedgerError(
            say_n(
                "{n} of {wanted} receipts is not in this ledger.",
                "{n} of {wanted} receipts are not in this ledger.",
                lost,
                wanted=len(wanted),
            ),
            "It is another ledger, or it was restored together with its seal from before those answers.",
            "Put the newest copies of ledger and seal back, or treat the whole budget as spent.",
        )


@command("open", app)
def open_(
    ledger: Where,
    *,
    dataset: Annotated[str, option("--dataset NAME", help="Whose budget this is.")],
    epsilon: Annotated[
        str | None, option("--epsilon E", help="Total epsilon; with --delta held as zCDP.")
    ] = None,
    rho: flags.Rho = None,
    delta: flags.Delta = None,
    seal: flags.SealFile = None,
) -> None:
    """Make a new ledger with its budget, and its seal."""
    from velado.query.budget import measure_word
    from velado.query.store import create_ledger
    from velado.report.query_lines import amount, keep_apart

    account = create_ledger(ledger, dataset, _budget(epsilon, rho, delta), seal)
    try:
        state = account.state()
    finally:
        account.close()
    path = _seal_path(ledger, seal)
    opened = say(
        "Ledger opened at {path} for '{dataset}': {measure} {total} in all.",
        path=_plain(ledger),
        dataset=dataset,
        measure=measure_word(state.budget.measure),
        total=amount(state.budget.total),
    )
    document = {"ledger": _plain(ledger), "seal": str(path), **state.to_dict()}
    out.result(document, [opened, keep_apart(path)])


@command("cap", app)
def cap(
    ledger: Where,
    analyst: Annotated[str, argument("ANALYST", help="Who asks, as the ledger writes it down.")],
    most: Amount,
    *,
    seal: flags.SealFile = None,
) -> None:
    """Set the most that one analyst may spend in all."""
    from velado.query.budget import CapAmount
    from velado.report.query_lines import amount
    from velado.settings import Where, read_value

    limit = read_value(CapAmount, most, "AMOUNT", Where("form", say("the command line")))
    with _opened(ledger, seal) as account:
        account.set_cap(analyst, limit)
        state = account.state()
    told = say(
        "'{analyst}' may spend {cap} in all from now on; spent so far: {spent}.",
        analyst=analyst,
        cap=amount(limit),
        spent=amount(state.by_analyst.get(analyst, Fraction(0))),
    )
    out.result({"ledger": _plain(ledger), **state.to_dict()}, [told])


@command("raise", app)
def raise_(
    ledger: Where,
    total: Amount,
    *,
    reason: Annotated[str, option("--reason TEXT", help="Why more is allowed; kept in the ledger.")],
    seal: flags.SealFile = None,
) -> None:
    """Raise the total of the budget; it is never lowered."""
    from velado.query.budget import spend_of
    from velado.report.query_lines import amount
    from velado.settings import Where

    more = spend_of(total, "AMOUNT", Where("form", say("the command line")))
    with _opened(ledger, seal) as account:
        account.raise_budget(more, reason)
        state = account.state()
    told = say(
        "The budget is {total} from now on; left: {left}.",
        total=amount(state.budget.total),
        left=amount(state.left),
    )
    out.result({"ledger": _plain(ledger), **state.to_dict()}, [told])


@contextmanager
def _opened(where: str, seal: Path | None) -> Iterator[ChainedLedger]:
    from velado.query.store import open_ledger

    account = open_ledger(where, seal)
    try:
        yield account
    finally:
        account.close()


def _budget(epsilon: str | None, rho: str | None, delta: str | None) -> Budget:
    from velado.query.budget import Budget, spend_of
    from velado.settings import Where

    if (epsilon is None) == (rho is None):
        raise ParameterError(
            "Exactly one of --epsilon and --rho must be given.",
            "The budget is counted in one of them.",
            "Write for example --epsilon 1, or --epsilon 1 --delta 1e-9 for many small questions.",
        )
    if rho is not None:
        return Budget.rho(spend_of(rho, "rho", Where("flag")), delta)
    if delta is None:
        return Budget.epsilon(spend_of(epsilon, "epsilon", Where("flag")))
    assert epsilon is not None
    return Budget.approximate(epsilon, delta)


def _seal_path(where: str, seal: Path | None) -> Path:
    from velado.query.store import seal_of

    return seal_of(where, seal)


def _plain(where: str) -> str:
    """The address without user and password."""
    return re.sub(r"//[^/@]*@", "//", where)
