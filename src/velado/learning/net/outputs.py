"""What a party keeps of a job: fit.json where it may know the fit, learned.json, and a report in plain words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from velado.learning.net.identity import write_private
from velado.learning.net.runner import Ending
from velado.learning.protocols.who_learns_what import Language, learned, promise
from velado.learning.regression.job import Job

_WORDS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "title": "Regression of {target} among {clients} clients",
        "job": "Job {name}, protocol {protocol}, this party: {party} ({role}).",
        "digest": "Digest of the job file, the same at all parties: `{digest}`",
        "unsafe": "**Not private.** {warning}",
        "failed": "The job ended without a result: {failure}",
        "coefficients": "Coefficients",
        "coefficient": "coefficient",
        "error": "standard error",
        "unknown": "This party does not learn the coefficients.",
        "learned": "What each party saw and can infer",
        "saw": "saw",
        "infers": "can infer",
        "assumptions": "Assumptions",
        "coalitions": "Coalitions",
        "cost": "Cost",
        "spent": "{seconds} s from start to end here, waiting included; {messages} messages and {bytes} bytes sent.",
        "untold": "Not told: {untold}. They did not answer before the end.",
    },
    "pt": {
        "title": "Regressão de {target} entre {clients} clientes",
        "job": "Trabalho {name}, protocolo {protocol}, esta parte: {party} ({role}).",
        "digest": "Resumo do arquivo do trabalho, igual em todas as partes: `{digest}`",
        "unsafe": "**Não é privado.** {warning}",
        "failed": "O trabalho terminou sem resultado: {failure}",
        "coefficients": "Coeficientes",
        "coefficient": "coeficiente",
        "error": "erro padrão",
        "unknown": "Esta parte não fica sabendo os coeficientes.",
        "learned": "O que cada parte viu e pode inferir",
        "saw": "viu",
        "infers": "pode inferir",
        "assumptions": "Pressupostos",
        "coalitions": "Conluios",
        "cost": "Custo",
        "spent": "{seconds} s do início ao fim aqui, com as esperas; {messages} mensagens e {bytes} bytes enviados.",
        "untold": "Não avisados: {untold}. Não responderam antes do fim.",
    },
}


def write_outputs(folder: Path, job: Job, name: str, ending: Ending, lang: Language = "en") -> list[str]:
    """The files of a finished or failed job stand in *folder*, readable by their owner alone; returns their names."""
    fit = fit_of_ending(ending)
    files = {"learned.json": _json(learned(job, lang)), "report.md": report(job, name, ending, lang)}
    if fit is not None:
        files["fit.json"] = _json(fit)
    for file, text in files.items():
        write_private(folder / file, text.encode())
    return sorted(files)


def fit_of_ending(ending: Ending) -> dict[str, Any] | None:
    """The fit with what it cost here, or None where this party does not learn it or there is none."""
    if ending.failure is not None or not ending.outcome or "fit" not in ending.outcome:
        return None
    fit = dict(ending.outcome["fit"])
    fit["cost"] = {**fit.get("cost", {}), **ending.cost}
    return fit


def report(job: Job, name: str, ending: Ending, lang: Language) -> str:
    """The report in Markdown."""
    words, facts, fit = _WORDS[lang], learned(job, lang), fit_of_ending(ending)
    title = words["title"].format(target=job.target.name, clients=len(job.of("client")))
    role = job.party(name).role
    lines = [f"# {title}", ""]
    lines += [words["job"].format(name=job.name, protocol=job.protocol.name, party=name, role=role), ""]
    lines += [words["digest"].format(digest=job.digest()), ""]
    if promise(job)["type"] == "none":
        lines += [words["unsafe"].format(warning=facts["assumptions"]), ""]
    if ending.failure is not None:
        lines += [words["failed"].format(failure=ending.failure), ""]
    else:
        lines += [f"## {words['coefficients']}", "", *_coefficients(fit, words), ""]
    lines += [f"## {words['learned']}", "", f"| | {words['saw']} | {words['infers']} |", "|---|---|---|"]
    lines += [f"| {who} | {said['saw']} | {said['infers']} |" for who, said in facts["parties"].items()]
    lines += ["", facts["always"], "", f"{words['assumptions']}: {facts['assumptions']}", ""]
    lines += [f"{words['coalitions']}:", "", *(f"- {text}" for text in facts["coalitions"]), ""]
    cost = ending.cost
    spent = words["spent"].format(
        seconds=cost["seconds"], messages=int(cost["messages_sent"]), bytes=int(cost["bytes_sent"])
    )
    lines += [f"## {words['cost']}", "", spent, ""]
    if ending.untold:
        lines += [words["untold"].format(untold=", ".join(ending.untold)), ""]
    return "\n".join(lines)


def _coefficients(fit: Mapping[str, Any] | None, words: Mapping[str, str]) -> list[str]:
    if fit is None:
        return [words["unknown"]]
    errors = fit.get("standard_errors")
    lines = [f"| | {words['coefficient']} |" + (f" {words['error']} |" if errors else "")]
    lines.append("|---|---|" + ("---|" if errors else ""))
    for column, value in fit["coefficients"].items():
        cell = column.replace("|", "\\|")
        lines.append(f"| {cell} | {value:.10g} |" + (f" {errors[column]:.3g} |" if errors else ""))
    return lines


def _json(document: Mapping[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"
