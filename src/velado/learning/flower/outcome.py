"""The fit of a run put together, its promise in words, its report, and all of it as files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path

import numpy as np
import polars as pl

from velado.data.staging import write_file
from velado.data.table_bytes import csv_bytes, parquet_bytes
from velado.learning.flower._local_rows import Locally
from velado.learning.flower._membership import MembershipAttack
from velado.learning.flower._private_steps import plan_for
from velado.learning.flower._terms import Agreed, FederationTerms
from velado.learning.flower.aggregations import AGGREGATIONS
from velado.learning.flower.federation import Federation
from velado.learning.flower.flower_records import (
    ClientRecord,
    FederatedFit,
    FederatedHow,
    FederatedModel,
    FederatedPromise,
    FederationStopped,
    RoundRecord,
)
from velado.settings import describe
from velado.text import NOTHING, Language, number, say, told


def make_fit(
    terms: FederationTerms,
    locally: Locally,
    rounds: Sequence[RoundRecord],
    clients: Sequence[ClientRecord],
    *,
    majority: float | None,
    learned: FederatedModel | None,
    engine: str,
    evaluation: str,
    stopped: FederationStopped | None = None,
    notes: Sequence[str] = (),
    keys: str = "",
    membership: MembershipAttack | None = None,
) -> FederatedFit:
    """Everything a run gives back, as one value.

    >>> from velado.learning.flower.simulation import small_ready
    >>> one, none = small_ready(), {"majority": None, "learned": None}
    >>> make_fit(one.terms, one.locally, (), (), **none, engine="loop", evaluation="pooled").promise.type
    'measured'
    """
    federation, method = terms.federation, locally.method
    return FederatedFit(
        model=federation.model,
        split=federation.split,
        alpha=federation.alpha if federation.split == "dirichlet" else None,
        method="original" if method is None else method.name,
        k=locally.promised_k,
        seed=locally.seed,
        clients_asked=federation.clients,
        participation=federation.participation,
        majority=majority,
        rounds=tuple(rounds),
        clients=tuple(clients),
        promise=_promise_of(locally, clients, terms.agreed, evaluation),
        cost={
            name: sum(getattr(one, name) for one in rounds) for name in ("seconds", "bytes_up", "bytes_down")
        },
        how=FederatedHow(
            federation=federation.to_dict(),
            method=None if method is None else describe(method),
            guarantees=tuple(describe(one) for one in locally.guarantees),
            suppression=locally.suppression,
            target=terms.encoder.target,
            classes=len(terms.encoder.classes),
            features=tuple(column.name for column in terms.encoder.columns),
            digest=terms.digest,
            engine=engine,
            read_off_the_table=terms.read_off,
            stopped=None if stopped is None else say("{error}", error=stopped),
            notes=tuple(notes),
            aggregation=terms.agreed.aggregation,
            keys=keys,
            account=_account(terms.agreed),
            membership={} if membership is None else membership.to_dict(),
        ),
        evaluation=evaluation,
        learned=learned,
    )


def _account(agreed: Agreed) -> dict[str, object]:
    """What a run with noise costs each row, as the plan that every client keeps to counts it."""
    budget, federation = agreed.federation.noise, agreed.federation
    if budget is None:
        return {}
    plan = plan_for(agreed, federation.clients)
    return {
        "epsilon": str(federation.epsilon),
        "delta": f"{float(federation.delta):g}",
        "rho": plan.rho,
        "most_rho": str(budget.total),
        "steps": plan.steps,
        "tolerated": federation.tolerated,
    }


def _promise_of(
    locally: Locally, clients: Sequence[ClientRecord], agreed: Agreed, evaluation: str
) -> FederatedPromise:
    """What is guaranteed, what is measured, what is not promised."""
    if agreed.federation.noise is not None:
        return _private_promise(agreed, evaluation)
    method = locally.method
    kind = "measured" if method is None else method.promise
    if method is not None and locally.guarantees and method.promise != "as in the paper":
        kind = "guaranteed"
    checked = sum(bool(one.promised) for one in clients)
    if method is None:
        first = say("Nothing: clients trained on their original rows, for comparison.")
    elif kind == "guaranteed" and checked:
        goals = [] if locally.promised_k is None else [f"k = {locally.promised_k}"]
        first = say(
            "Each client's training rows come from a release that was checked at that client before training: "
            "{promised}.",
            promised=", ".join([*goals, *(one.name for one in locally.guarantees)]),
        )
    else:
        first = say("Clients' training rows were recoded as in the paper; no guarantee was checked.")
    measured = say(
        "Information loss and record linkage of every client's release, measured at that client; accuracy, AUC and "
        "loss after each round, on true rows held out before anything was anonymized."
    )
    counted = say(
        "Before any other sum all rows were counted together: of the columns that clients train on as they are, fewer than {least} people make up no sum.",
        least=agreed.federation.least_cell,
    )
    held = agreed.hidden and agreed.federation.least_cell > 1
    found = (measured, *([counted] if held else []))
    return FederatedPromise(
        type=kind,
        clients_checked=checked,
        guaranteed=(first,) if kind == "guaranteed" else (),
        measured=found if kind == "guaranteed" else (first, *found),
        not_promised=(
            say(
                "Weights and trees carry no differential privacy: they are computed from the training rows, and the "
                "split points and leaf values of a tree can repeat values of those rows."
            ),
            say(
                "Held-out true rows are not anonymized; they influence nothing but the scores, and each client's "
                "scores are exact numbers about its own rows."
            ),
            *_hidden(agreed),
        ),
        what_leaves=_what_leaves(agreed),
    )


def _private_promise(agreed: Agreed, evaluation: str) -> FederatedPromise:
    """The promise of a run with noise: for one row, whatever else is known."""
    federation = agreed.federation
    exact = say(
        "This simulation had all rows in one place: the scores after each round, the rows of each client and the "
        "membership attack are exact numbers, and not for others."
    )
    return FederatedPromise(
        type="guaranteed",
        clients_checked=0,
        guaranteed=(
            say(
                "Every single row is protected by ({epsilon}, {delta})-differential privacy: clients put the noise into "
                "the sums themselves, and it suffices when {tolerated} of them work together with the coordinator.",
                epsilon=federation.epsilon,
                delta=f"{float(federation.delta):g}",
                tolerated=federation.tolerated,
            ),
        ),
        measured=(say("Accuracy on held-out rows, and a membership attack on the model where one was run."),),
        not_promised=(
            say("Two rows of one person are two rows: the promise is for each of them."),
            *([exact] if evaluation == "pooled" else []),
            *_hidden(agreed),
        ),
        what_leaves=_what_leaves(agreed),
    )


def _hidden(agreed: Agreed) -> tuple[str, ...]:
    """What the coordinator sees of one client, and what that means for a hostile one."""
    if not agreed.hidden:
        uncounted = say(
            "Rows are not counted first: what one person of a client alone has can move the weights that this client sends."
        )
        return (
            say("The server sees each client's weights or trees one by one; nothing hides whose they are."),
            *([uncounted] if agreed.federation.model == "logistic" else []),
        )
    pointed = say(
        "The coordinator is trusted to ask for sums at the points of Newton's method alone: at others it could read single rows, "
        "held-out ones too, off two of them."
    )
    unseen = say(
        "Thresholds are kept column by column and two by two, in this run alone: what few people have in three columns together, or beside a value that "
        "most people share, is not seen."
    )
    unguarded = say(
        "No column is held back because few people move it (least_cell = 1): the exact sums over all clients show what these few have."
    )
    limits = unseen if agreed.federation.least_cell > 1 else unguarded
    return (
        *([pointed, limits] if agreed.federation.noise is None else []),
        say(
            "Nobody sees what one client puts into a secure sum, so that nobody can limit a hostile client; only sums that no "
            "rows could give are refused."
        ),
        say(
            "Clients took each other's keys by the signatures of those whom the agreement names: a sum is as hidden as their "
            "identities are kept."
        )
        if agreed.signers
        else say(
            "A coordinator who passes on keys of its own would see single clients' sums: compare the digest of the keys."
        ),
    )


def _what_leaves(agreed: Agreed) -> tuple[str, ...]:
    if agreed.federation.noise is not None:
        return (say("Nothing of one client leaves but sums with noise, under masks that cancel."),)
    if agreed.hidden:
        return (
            say(
                "No row leaves a client, and no model of its own: sums under masks that cancel do, and counts of its rows."
            ),
        )
    return (say("No row leaves a client: weights or trees, counts and sums do."),)


# The short report of a federated run, as Markdown.

_MOST = 20


def report(fit: FederatedFit, language: Language = "en") -> str:
    """The report; without any cell of a table.

    >>> from velado.learning.flower.simulation import run_ready, small_ready
    >>> fit = run_ready(small_ready(), "loop")
    >>> report(fit).splitlines()[0]
    '# Federated logistic regression on original rows'
    """
    tell = partial(told, tongue=language)
    what = say("original rows")
    if fit.method != "original":
        name = fit.method if fit.k is None else f"{fit.method}, k = {fit.k},"
        what = say("rows anonymized by {method} at each client", method=name)
    logistic = fit.model == "logistic"
    title = say("# Federated logistic regression on {what}", what=what)
    agreed = fit.how.federation or {"participation": fit.participation, "clients": fit.clients_asked}
    lead = say(
        "{clients} clients, {rounds} rounds, {applied} applied; a round needs the answers of {needed} clients.",
        clients=fit.clients_asked,
        rounds=len(fit.rounds),
        applied=sum(one.applied for one in fit.rounds),
        needed=Federation.from_dict(agreed).needed,
    )
    lines = [tell(title if logistic else say("# Federated XGBoost on {what}", what=what)), "", tell(lead)]
    if fit.how.stopped:
        lines += ["", tell(say("The run stopped early: {why}", why=fit.how.stopped))]
    unlike = len({one.test_rows for one in fit.rounds if one.test_rows is not None}) > 1
    head = [say("round"), say("accuracy"), "AUC", say("loss"), say("answered")]
    rows = [_round_cells(one, language) for one in _shown(fit.rounds)]
    if unlike:
        head.append(say("held-out rows"))
    lines += ["", f"## {tell(say('Scores on true held-out rows'))}", ""]
    lines += _table([tell(cell) for cell in head], [row[: len(head)] for row in rows])
    if fit.evaluation == "pooled":
        scored = say("The held-out rows of all clients were pooled and scored centrally.")
    else:
        scored = say(
            "Each client scored its own held-out rows; the AUC is the clients' mean weighted by rows."
        )
    lines += ["", tell(scored)]
    if unlike:
        other = say(
            "Not every round was scored on the same rows: compare only rounds with the same number of held-out rows."
        )
        lines.append(tell(other))
    if fit.majority is not None:
        often = say(
            "Always answering the most frequent class is right for {majority:.1%} of the rows.",
            majority=fit.majority,
        )
        lines.append(tell(often))
    head = [say("client"), say("training rows"), say("held out"), say("information loss (NCP)")]
    rows = [
        [
            tell(one.name),
            str(one.rows),
            str(one.test_rows),
            *(number(x, 3, language) for x in (one.ncp, one.linkage)),
        ]
        for one in fit.clients
    ]
    lines += ["", f"## {tell(say('Clients'))}", ""]
    lines += _table([tell(cell) for cell in (*head, say("record linkage"))], rows)
    lines += _protection(fit, language)
    lines += ["", f"## {tell(say('What is missing'))}", "", *_missing(fit, language)]
    headings = (say("Guaranteed"), say("Measured"), say("Not promised"), say("What leaves a client"))
    for heading, texts in zip(headings, fit.promise.parts.values(), strict=True):
        lines += ["", f"## {tell(heading)}", ""]
        lines += [f"- {tell(text)}" for text in texts] or [tell(say("Nothing."))]
    return "\n".join(lines) + "\n"


def protection_lines(fit: FederatedFit) -> list[str]:
    """How answers were put together, what a row paid, and how far a membership attack got.

    >>> from velado.learning.flower.simulation import run_ready, small_ready
    >>> "secure sums" in protection_lines(run_ready(small_ready(), "loop"))[0]
    True
    """
    way = AGGREGATIONS.get(fit.how.aggregation)  # a fit of an earlier version may say nothing of it
    said: list[str] = [] if way is None else [way.says]
    if fit.how.keys:
        said.append(say("Digest of the keys, for the clients to compare: {keys}", keys=fit.how.keys))
    account, attack = fit.how.account, fit.how.membership
    if account:
        said.append(
            say(
                "Each row paid rho {rho} of zCDP, which is epsilon {epsilon} at delta {delta}, over {steps} steps.",
                rho=number(float(str(account["rho"])), 5),
                epsilon=account["epsilon"],
                delta=account["delta"],
                steps=account["steps"],
            )
        )
    if attack:
        shown = {
            key: number(float(str(attack[name])), 3)
            for key, name in (("found", "advantage"), ("null", "null"))
        }
        said.append(
            say(
                "A membership attack by the loss told more than chance: advantage {found} (chance alone: up to {null}).",
                **shown,
            )
            if attack["found"]
            else say(
                "A membership attack by the loss told no more than chance: advantage {found} (chance alone: up to {null}).",
                **shown,
            )
        )
        if attack.get("bound") is not None:
            said.append(
                say(
                    "No attack on this model's noise can have more than {bound}.",
                    bound=number(float(str(attack["bound"])), 3),
                )
            )
    return said


def _protection(fit: FederatedFit, language: Language) -> list[str]:
    said = protection_lines(fit)
    if not said:
        return []
    heading = told(say("How clients were protected from one another"), language)
    return ["", f"## {heading}", "", *(f"- {told(text, language)}" for text in said)]


def _missing(fit: FederatedFit, language: Language) -> list[str]:
    said = [told(text, language) for text in (*fit.gaps, *fit.how.notes)]
    if fit.how.read_off_the_table:
        domains = say(
            "The domains of {columns} were read off the whole table. A real federation must declare them in the "
            "schema.",
            columns=", ".join(fit.how.read_off_the_table),
        )
        said.append(told(domains, language))
    if not said:
        none = say("Nothing: every client took part in every round it was asked for.")
        return [told(none, language)]
    if len(said) > _MOST:
        more = say("{count} more such lines stand in fit.json.", count=len(said) - _MOST)
        said = [*said[:_MOST], told(more, language)]
    return [f"- {text}" for text in said]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(f"| {' | '.join(row)} |" for row in rows)]


def _shown(rounds: tuple[RoundRecord, ...]) -> list[RoundRecord]:
    """About a dozen rounds: the first, the last, and some between."""
    step = max(1, len(rounds) // 10)
    return [one for at, one in enumerate(rounds) if at == 0 or (at + 1) % step == 0 or at == len(rounds) - 1]


def _round_cells(one: RoundRecord, language: Language) -> list[str]:
    scores = [number(part, 4, language) for part in (one.accuracy, one.auc, one.loss)]
    rows = NOTHING if one.test_rows is None else str(one.test_rows)
    return [str(one.number), *scores, f"{one.replied} / {one.asked}", rows]


# A fit as files: fit.json, rounds.csv or rounds.parquet, model.npz, and report.md in the reader's language.

ROUND_COLUMNS = {
    "round": pl.Int64,
    "accuracy": pl.Float64,
    "auc": pl.Float64,
    "loss": pl.Float64,
    "test_rows": pl.Int64,
    "asked": pl.Int64,
    "replied": pl.Int64,
    "applied": pl.Boolean,
    "gap": pl.String,
    "missing": pl.String,
    "bytes_up": pl.Int64,
    "bytes_down": pl.Int64,
    "seconds": pl.Float64,
}


def rounds_frame(fit: FederatedFit) -> pl.DataFrame:
    """One row per round; clients that did not answer are named in one text.

    >>> from velado.learning.flower.simulation import run_ready, small_ready
    >>> fit = run_ready(small_ready(), "loop")
    >>> rounds_frame(fit).select("round", "asked", "replied").rows()
    [(1, 2, 2)]
    """
    rows = [{**one.to_dict(), "missing": "; ".join(one.missing)} for one in fit.rounds]
    return pl.DataFrame([[row[name] for name in ROUND_COLUMNS] for row in rows], ROUND_COLUMNS, orient="row")


def fit_files(fit: FederatedFit, language: Language = "en", form: str = "csv") -> dict[str, bytes]:
    """The files by name.

    >>> from velado.learning.flower.simulation import run_ready, small_ready
    >>> fit = run_ready(small_ready(), "loop")
    >>> sorted(fit_files(fit))
    ['fit.json', 'model.npz', 'report.md', 'rounds.csv']
    """
    frame = rounds_frame(fit)
    files = {
        "fit.json": json.dumps(fit.to_dict(), ensure_ascii=False, indent=1).encode(),
        f"rounds.{form}": csv_bytes(frame) if form == "csv" else parquet_bytes(frame),
        "report.md": report(fit, language).encode(),
    }
    if fit.learned is not None:
        held = BytesIO()
        np.savez(held, **fit.learned.arrays())
        files["model.npz"] = held.getvalue()
    return files


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """All *files* stand in *folder*, fit.json last: who sees it finds the others.

    >>> write_files(Path("fit"), {"fit.json": b"{}", "report.md": b"# Fit"})
    >>> sorted(path.name for path in Path("fit").iterdir())
    ['fit.json', 'report.md']
    """
    for name in sorted(files, key=lambda name: name == "fit.json"):
        write_file(folder / name, files[name], force=True)
