"""What a party keeps of a job: fit.json where it may know the fit, learned.json, and a report in plain words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from velado.data.staging import write_file
from velado.learning.protocols.protocol import ROLES
from velado.learning.protocols.role import Outcome
from velado.learning.protocols.who_learns_what import learned, promise
from velado.learning.regression.coefficient_table import (
    cautions,
    coefficient_rows,
    facts_of,
    path_facts,
    path_rows,
    ratio_rows,
)
from velado.learning.regression.fit import Fit
from velado.learning.regression.job import Job
from velado.text import Language, say, told


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How a party's part ended: its outcome or the failure, whom the last words did not reach, and what it cost.

    >>> Ending(failure="Time is up.").fit is None
    True
    """

    outcome: Outcome | None = None
    failure: str | None = None
    stopped: bool = False
    untold: tuple[str, ...] = ()
    cost: Mapping[str, float] = field(default_factory=dict)

    @property
    def fit(self) -> Fit | None:
        """The fit with what it cost here; None where this party does not learn it or there is none."""
        if self.failure is not None or self.outcome is None or self.outcome.fit is None:
            return None
        return replace(self.outcome.fit, cost={**self.outcome.fit.cost, **self.cost})


def write_outputs(folder: Path, job: Job, name: str, ending: Ending, language: Language = "en") -> list[str]:
    """The files of a finished or failed job stand in *folder*, readable by their owner alone; returns their names.

    >>> from velado.learning.regression.simulate import small_job
    >>> ending = Ending(failure="Time is up.", cost={"seconds": 1.0, "messages_sent": 3, "bytes_sent": 900})
    >>> write_outputs(Path("out"), small_job(), "c0", ending)
    ['learned.json', 'report.md']
    """
    summed = () if ending.outcome is None or ending.failure is not None else ending.outcome.summed
    counted = {"summed": list(summed), "not_summed": not_summed(job, summed)}
    files = {
        "learned.json": _json({**learned(job).to_dict(language), **counted}),
        "report.md": report(job, name, ending, language),
    }
    if ending.fit is not None:
        files["fit.json"] = _json(ending.fit.to_dict())
        if ending.fit.path is not None:
            files["chosen.json"] = _json(ending.fit.at_choice().to_dict())
    for file, text in files.items():
        write_file(folder / file, text.encode(), force=True, private=True)
    return sorted(files)


def not_summed(job: Job, summed: Sequence[str]) -> list[str]:
    """The clients of a job whose rows the result does not count.

    >>> from velado.learning.regression.simulate import small_job
    >>> not_summed(small_job(), ["c0", "c2"])
    ['c1']
    """
    return [party.name for party in job.of("client") if party.name not in summed]


def counted_sentences(job: Job, ending: Ending) -> list[str]:
    """Whose rows the result counts and whose it does not, where there is one.

    >>> from velado.learning.regression.simulate import small_job
    >>> counted_sentences(small_job(), Ending(outcome=Outcome(summed=("c0", "c2"))))
    ['Summed: c0, c2.', 'Not summed: c1. The result says nothing about these rows.']
    """
    if ending.failure is not None or ending.outcome is None or not ending.outcome.summed:
        return []
    summed = ending.outcome.summed
    missing = not_summed(job, summed)
    lines: list[str] = [say("Summed: {names}.", names=", ".join(summed))]
    if missing:
        names = ", ".join(missing)
        lines.append(say("Not summed: {names}. The result says nothing about these rows.", names=names))
    else:
        lines.append(say("Nobody is missing: all clients of the job are summed."))
    return lines


def report(job: Job, name: str, ending: Ending, language: Language) -> str:
    """The report in Markdown.

    >>> from velado.learning.protocols.role import Outcome
    >>> from velado.learning.regression.simulate import small_job
    >>> job = small_job()
    >>> ending = Ending(outcome=Outcome(), cost={"seconds": 1.0, "messages_sent": 3, "bytes_sent": 900})
    >>> report(job, job.of("evaluator")[0].name, ending, "en").splitlines()[0]
    '# Regression of y among 3 clients'
    """
    facts, role = learned(job), job.party(name).role
    tell = partial(told, tongue=language)
    title = say(
        "Regression of {target} among {clients} clients",
        target=job.target.name,
        clients=len(job.of("client")),
    )
    about = say(
        "Job {name}, protocol {protocol}, this party: {party} ({role}).",
        name=job.name,
        protocol=job.protocol.name,
        party=name,
        role=say("client with the key") if name == job.key_holder else ROLES.get(role, role),
    )
    digest = say("Digest of the job file, the same at all parties: `{digest}`", digest=job.digest())
    lines = [f"# {tell(title)}", "", tell(about), "", tell(digest), ""]
    if promise(job).unsafe:
        lines += [tell(say("**Not private.** {warning}", warning=facts.assumptions)), ""]
    if ending.failure is not None:
        lines += [tell(say("The job ended without a result: {failure}", failure=ending.failure)), ""]
    else:
        lines += [f"## {tell(say('Coefficients'))}", "", *_coefficients(ending.fit, language), ""]
        lines += [line for sentence in counted_sentences(job, ending) for line in (tell(sentence), "")]
    lines += [
        f"## {tell(say('What each party saw and can infer'))}",
        "",
        f"| | {tell(say('saw'))} | {tell(say('can infer'))} |",
        "|---|---|---|",
    ]
    lines += [
        f"| {tell(ROLES.get(who, who))} | {tell(seen.saw)} | {tell(seen.infers)} |"
        for who, seen in facts.parties.items()
    ]
    lines += ["", tell(facts.always), "", f"{tell(say('Assumptions'))}: {tell(facts.assumptions)}", ""]
    lines += [f"{tell(say('Coalitions'))}:", "", *(f"- {tell(text)}" for text in facts.coalitions), ""]
    spent = say(
        "{seconds:,} s from start to end here, waiting included; {messages:,} messages and {bytes:,} bytes sent.",
        seconds=ending.cost["seconds"],
        messages=int(ending.cost["messages_sent"]),
        bytes=int(ending.cost["bytes_sent"]),
    )
    lines += [f"## {tell(say('Cost'))}", "", tell(spent), ""]
    if ending.untold:
        missing = say(
            "Not told: {untold}. They did not answer before the end.", untold=", ".join(ending.untold)
        )
        lines += [tell(missing), ""]
    return "\n".join(lines)


def _coefficients(fit: Fit | None, language: Language) -> list[str]:
    if fit is None:
        return [told(say("This party does not learn the coefficients."), language)]
    said = [*facts_of(fit), *cautions(fit)]
    lines = _rows_of(*coefficient_rows(fit, language), language)
    head, rows = ratio_rows(fit, language)
    lines += ["", *_rows_of(head, rows, language)] if rows else []
    lines += [line for sentence in said for line in ("", told(sentence, language))]
    if fit.path is not None:
        lines += ["", f"## {told(say('Path of penalties'), language)}", ""]
        lines += _rows_of(*path_rows(fit, language), language)
        lines += [line for sentence in path_facts(fit) for line in ("", told(sentence, language))]
    return lines


def _rows_of(head: list[str], rows: list[list[str]], language: Language) -> list[str]:
    first = [told(cell, language).replace("|", "\\|") for cell in head[1:]]
    lines = [f"| | {' | '.join(first)} |", "|---" * len(head) + "|"]
    return lines + [
        f"| {' | '.join(told(cell, language).replace('|', chr(92) + '|') for cell in row)} |" for row in rows
    ]


def _json(document: Mapping[str, object]) -> str:
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"
