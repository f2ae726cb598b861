"""`velado ledger`: the account of a data set's budget, opened, shown, checked, capped and raised."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from velado.apps.cli import options as flags
from velado.apps.cli import show as answers
from velado.apps.cli import show as out
from velado.apps.cli.words import number, say
from velado.errors import LedgerError, ParameterError

if TYPE_CHECKING:
    from velado.query.budget import Budget, LedgerState
    from velado.query.store import ChainedLedger, Entry

app = typer.Typer(
    name="ledger",
    help="Open, show, check, cap or raise the budget of a data set.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

Where = Annotated[
    str,
    typer.Argument(
        metavar="LEDGER",
        help="The ledger: a file, or postgresql://host/base?ledger=NAME.",
        show_default=False,
    ),
]
SealFile = Annotated[
    Path | None,
    typer.Option(
        "--seal",
        metavar="FILE",
        help="The ledger's seal; default: in VELADO_STATE, else in the user's state folder.",
        show_default=False,
    ),
]
_HASH = re.compile(r"[0-9a-f]{64}")


@app.command("show", cls=flags.Command)
def show(
    ledger: Where,
    entries: Annotated[
        int, typer.Option("--entries", min=0, help="How many of the newest entries to list.")
    ] = 0,
    seal: SealFile = None,
    as_json: flags.AsJson = False,
    lang: flags.Lang = None,
    debug: flags.Debug = False,
    quiet: flags.Quiet = False,
) -> None:
    """Show what is spent and what is left, in all and by analyst."""
    from velado.query.store import people_state

    tongue = flags.language(lang)
    with _opened(ledger, seal) as account:
        state = people_state(account, account.state())
        newest = (
            [_row(entry) for entry in account.entries(max(0, state.entries - entries))] if entries else []
        )
    if as_json:
        out.as_json({"ledger": _plain(ledger), **state.to_dict(), **({"newest": newest} if entries else {})})
    elif not quiet:
        _show_state(tongue, state, _seal_path(ledger, seal))
        if newest:
            head = ("number", "kind", "at", "analyst", "cost", "receipt")
            out.table(
                say(tongue, "ledger_entries"),
                [say(tongue, f"ledger_{name}") for name in head],
                [[_told(row, name, tongue) for name in head] for row in newest],
            )


@app.command("verify", cls=flags.Command)
def verify(
    ledger: Where,
    receipt: Annotated[
        list[str] | None,
        typer.Option(
            "--receipt",
            metavar="HASH",
            help="Also say whether this receipt is in it; repeatable.",
            show_default=False,
        ),
    ] = None,
    seal: SealFile = None,
    as_json: flags.AsJson = False,
    lang: flags.Lang = None,
    debug: flags.Debug = False,
    quiet: flags.Quiet = False,
) -> None:
    """Recompute every hash and sum, and compare with the seal.

    A receipt is the hash that came with an answer. A ledger that lacks one was restored from before that answer,
    together with its seal; exit code 8.
    """
    from velado.query.store import people_state

    tongue = flags.language(lang)
    wanted = [text.strip().lower() for text in receipt or []]
    if not all(_HASH.fullmatch(text) for text in wanted):
        raise ParameterError(
            "A receipt is not 64 hexadecimal digits.",
            "It is the hash that came with an answer.",
            "Copy the whole of it from the answer.",
        )
    found: dict[str, tuple[int, str]] = {}
    with _opened(ledger, seal) as account:
        state = people_state(account, account.verify())
        if wanted:
            found = {
                entry.hash: (entry.number, entry.kind) for entry in account.entries() if entry.hash in wanted
            }
    lost = [text for text in wanted if text not in found]
    if as_json:
        receipts = {text: found[text][0] if text in found else None for text in wanted}
        out.as_json({"ledger": _plain(ledger), "holds": True, **state.to_dict(), "receipts": receipts})
    elif not quiet:
        out.line(say(tongue, "ledger_holds", entries=number(state.entries, tongue)))
        out.line(say(tongue, "ledger_head", head=state.head))
        for text in wanted:
            if text in found:
                entry, kind = found[text]
                out.line(
                    say(
                        tongue,
                        "ledger_receipt_in",
                        receipt=text,
                        entry=entry,
                        kind=say(tongue, f"ledger_kind_{kind}"),
                    )
                )
            else:
                out.line(say(tongue, "ledger_receipt_not_in", receipt=text))
    if lost:
        if as_json:
            # The JSON above says which are missing; a second object would make the output unreadable.
            raise typer.Exit(LedgerError.exit_code)
        raise LedgerError(
            f"{len(lost)} of {len(wanted)} receipt(s) are not in this ledger.",
            "It is another ledger, or it was restored together with its seal from before those answers.",
            "Put the newest copies of ledger and seal back, or treat the whole budget as spent.",
        )


@app.command("open", cls=flags.Command)
def open_(
    ledger: Where,
    dataset: Annotated[
        str, typer.Option("--dataset", metavar="NAME", help="Whose budget this is.", show_default=False)
    ],
    epsilon: Annotated[
        str | None,
        typer.Option(
            "--epsilon", metavar="E", help="Total epsilon; with --delta held as zCDP.", show_default=False
        ),
    ] = None,
    rho: Annotated[
        str | None,
        typer.Option(
            "--rho", metavar="R", help="Total rho of zCDP, instead of --epsilon.", show_default=False
        ),
    ] = None,
    delta: Annotated[
        str | None,
        typer.Option("--delta", metavar="D", help="The delta of the promise, e.g. 1e-9.", show_default=False),
    ] = None,
    seal: SealFile = None,
    as_json: flags.AsJson = False,
    lang: flags.Lang = None,
    debug: flags.Debug = False,
    quiet: flags.Quiet = False,
) -> None:
    """Make a new ledger with its budget, and its seal."""
    from velado.query.store import create_ledger

    tongue = flags.language(lang)
    account = create_ledger(ledger, dataset, _budget(epsilon, rho, delta), seal)
    try:
        state = account.state()
    finally:
        account.close()
    path = _seal_path(ledger, seal)
    if as_json:
        out.as_json({"ledger": _plain(ledger), "seal": str(path), **state.to_dict()})
    elif not quiet:
        parts = {"measure": state.budget.measure, "total": answers.amount(state.budget.total, tongue)}
        out.line(say(tongue, "ledger_opened", path=_plain(ledger), dataset=dataset, **parts))
        out.line(say(tongue, "ledger_seal", path=path))


@app.command("cap", cls=flags.Command)
def cap(
    ledger: Where,
    analyst: Annotated[str, typer.Argument(metavar="ANALYST", help="Who asks.", show_default=False)],
    amount: Annotated[
        str, typer.Argument(metavar="AMOUNT", help="An amount, such as 0.5 or 1/3.", show_default=False)
    ],
    seal: SealFile = None,
    as_json: flags.AsJson = False,
    lang: flags.Lang = None,
    debug: flags.Debug = False,
    quiet: flags.Quiet = False,
) -> None:
    """Set the most that one analyst may spend in all."""
    from velado.query.budget import exact

    tongue = flags.language(lang)
    most = exact(amount)
    with _opened(ledger, seal) as account:
        account.set_cap(analyst, most)
        state = account.state()
    if as_json:
        out.as_json({"ledger": _plain(ledger), **state.to_dict()})
    elif not quiet:
        spent = state.by_analyst.get(analyst, Fraction(0))
        told = {"cap": answers.amount(most, tongue), "spent": answers.amount(spent, tongue)}
        out.line(say(tongue, "ledger_capped", analyst=analyst, **told))


@app.command("raise", cls=flags.Command)
def raise_(
    ledger: Where,
    amount: Annotated[str, typer.Argument(metavar="AMOUNT", help="The new total.", show_default=False)],
    reason: Annotated[
        str,
        typer.Option(
            "--reason", metavar="TEXT", help="Why more is allowed; kept in the ledger.", show_default=False
        ),
    ],
    seal: SealFile = None,
    as_json: flags.AsJson = False,
    lang: flags.Lang = None,
    debug: flags.Debug = False,
    quiet: flags.Quiet = False,
) -> None:
    """Raise the total of the budget; it is never lowered."""
    from velado.query.budget import exact

    tongue = flags.language(lang)
    with _opened(ledger, seal) as account:
        account.raise_budget(exact(amount), reason)
        state = account.state()
    if as_json:
        out.as_json({"ledger": _plain(ledger), **state.to_dict()})
    elif not quiet:
        total, left = (answers.amount(amount, tongue) for amount in (state.budget.total, state.left))
        out.line(say(tongue, "ledger_raised", total=total, left=left))


@contextmanager
def _opened(where: str, seal: Path | None) -> Iterator[ChainedLedger]:
    from velado.query.store import open_ledger

    account = open_ledger(where, seal)
    try:
        yield account
    finally:
        account.close()


def _budget(epsilon: str | None, rho: str | None, delta: str | None) -> Budget:
    from velado.query.budget import Budget

    if (epsilon is None) == (rho is None):
        raise ParameterError(
            "Exactly one of --epsilon and --rho must be given.",
            "The budget is counted in one of them.",
            "Write for example --epsilon 1, or --epsilon 1 --delta 1e-9 for many small questions.",
        )
    if rho is not None:
        return Budget.rho(rho, delta)
    assert epsilon is not None
    return Budget.epsilon(epsilon) if delta is None else Budget.approximate(epsilon, delta)


def _seal_path(where: str, seal: Path | None) -> Path:
    from velado.query.store import seal_of

    return seal_of(where, seal)


def _plain(where: str) -> str:
    """The address without user and password."""
    return re.sub(r"//[^/@]*@", "//", where)


def _row(entry: Entry) -> dict[str, Any]:
    """An entry without its question and its answer; the one about the unit is nobody's question."""
    from velado.query.store import QUESTION

    said = entry.fields()
    unit = said.get("question") == QUESTION
    amount = "" if unit else said.get("cost") or said.get("cap") or said.get("total") or ""
    return {
        "number": entry.number,
        "kind": "unit" if unit else entry.kind,
        "at": said.get("at", ""),
        "analyst": "" if unit else said.get("analyst", ""),
        "cost": amount,
        "receipt": entry.hash,
    }


def _told(row: dict[str, Any], name: str, tongue: str) -> Any:
    """One cell of the list of entries, in the person's language."""
    if name == "kind":
        return say(tongue, f"ledger_kind_{row[name]}")
    return answers.amount(row[name], tongue) if name == "cost" and row[name] else row[name]


def _show_state(tongue: str, state: LedgerState, seal: Path) -> None:
    def row(name: str, value: Fraction) -> list[str]:
        return [name, answers.amount(value, tongue)]

    total = say(tongue, "ledger_total", measure=state.budget.measure)
    out.table(
        say(tongue, "ledger_title", dataset=state.dataset, entries=state.entries, answers=state.answers),
        [say(tongue, key) for key in ("ledger_what", "ledger_amount")],
        [
            row(total, state.budget.total),
            row(say(tongue, "ledger_spent"), state.spent),
            row(say(tongue, "ledger_left"), state.left),
        ],
    )
    implied = state.budget.to_dict().get("implies")
    if implied:
        epsilon, delta = number(implied["epsilon"], tongue, 6), f"{implied['delta']:g}"
        out.line(say(tongue, "ledger_implies", epsilon=epsilon, delta=delta))
    names = sorted({*state.by_analyst, *state.caps})
    if names:
        out.table(
            say(tongue, "ledger_analysts"),
            [say(tongue, key) for key in ("ledger_analyst", "ledger_spent", "ledger_cap")],
            [
                [
                    name,
                    answers.amount(state.by_analyst.get(name, Fraction(0)), tongue),
                    answers.amount(state.caps[name], tongue) if name in state.caps else "",
                ]
                for name in names
            ],
        )
    out.line(say(tongue, "ledger_head", head=state.head))
    out.line(say(tongue, "ledger_seal", path=seal))
