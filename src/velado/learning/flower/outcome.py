"""The fit of a run put together, and its promise in words, English and Portuguese."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from velado.data.staging import csv_bytes, parquet_bytes
from velado.errors import OutputError
from velado.learning.flower.federation import Federation
from velado.learning.flower.flower_records import (
    ClientRecord,
    FederatedFit,
    FederationStopped,
    Learned,
    RoundRecord,
)
from velado.learning.flower.flower_server import PORTUGUESE
from velado.learning.flower.local_rows import Locally
from velado.learning.flower.terms import Terms
from velado.release.release import describe
from velado.text import say

# The sentences of records in Portuguese: a record is written once, in English, and read in either language.
#
# A sentence that no pattern knows, such as a library's kind of error, stays as it is.

_PATTERNS = tuple(
    (re.compile(pattern), said)
    for pattern, said in (
        (r"\bRound (\d+): ", r"Rodada \1: "),
        (
            r"(\d+) of (\d+) replied, (\d+) are needed; the round was not applied\.",
            r"\1 de \2 responderam, são necessários \3; a rodada não foi aplicada.",
        ),
        (r"\bMissing: ", "Faltam: "),
        (r"clients that were not there to ask", "clientes que não estavam presentes"),
        (r"\bWithout (?=client )", "Sem "),
        (
            r"No client scored the model after this round\.",
            "Nenhum cliente avaliou o modelo após esta rodada.",
        ),
        (r"\(no answer\)", "(sem resposta)"),
        (r"\(it dropped out of the round\)", "(saiu da rodada)"),
        (r"\(not there, or greeted, no answer yet\)", "(ausente, ou chamado e ainda sem resposta)"),
        (r"\(greeted, no answer yet\)", "(chamado, ainda sem resposta)"),
        (r"\(not there\)", "(ausente)"),
        (r"\(its model does not fit\)", "(o seu modelo não serve)"),
        (r"has no rows with a target; it sits out\.", "não tem linhas com a classe a prever; fica de fora."),
        (
            r"has (\d+) training row\(s\), fewer than k = (\d+); it sits out\.",
            r"tem \1 linha(s) de treino, menos que k = \2; fica de fora.",
        ),
        (r"\bsits out: ", "fica de fora: "),
        (
            r"no quasi-identifier, so loss and linkage are not measured\.",
            "nenhum quase-identificador; perda e vinculação não são medidas.",
        ),
        (r"\bwas refused: ", "foi recusado: "),
        (r"\bnever answered", "nunca respondeu"),
        (r"It was turned away\.", "Ela foi recusada."),
        (
            r"(\d+) row\(s\) without a target were left out\.",
            r"\1 linha(s) sem a classe a prever ficaram de fora.",
        ),
        (
            r"(\d+) class\(es\) of the target have one member: it is trained on, and never tested\.",
            r"\1 classe(s) a prever têm um só membro: ele entra no treino e nunca é testado.",
        ),
        (r"The federation stopped in round (\d+): ", r"A federação parou na rodada \1: "),
        (r"(\d+) rounds in a row were not applied", r"\1 rodadas seguidas não foram aplicadas"),
        (r"(\d+) of (\d+) clients can take part", r"\1 de \2 clientes podem participar"),
        (r"A round needs (\d+) of (\d+) clients\.", r"Uma rodada precisa de \1 de \2 clientes."),
        (
            r"Bring the clients back, lower 'participation', or give clients more rows\.",
            "Traga os clientes de volta, baixe 'participation' ou dê mais linhas aos clientes.",
        ),
        (r"The run was ended from outside\.", "A execução foi encerrada de fora."),
        (r"The rounds that were over by then are kept\.", "As rodadas terminadas até ali foram guardadas."),
        (r"Start it again for the rest\.", "Inicie-a de novo para o resto."),
        (r"\bclient (\d+)", r"cliente \1"),
    )
)


def translated(text: str, language: str) -> str:
    """*text* of a record in *language*; English is what it is in already."""
    if language != "pt":
        return text
    for english, portuguese in PORTUGUESE.items():
        text = text.replace(english, portuguese)
    for pattern, said in _PATTERNS:
        text = pattern.sub(said, text)
    return text


WORDS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "keeps": "Each client's training rows come from a release that was checked at that client before training: {promised}.",
        "paper": "Clients' training rows were recoded as in the paper; no guarantee was checked.",
        "raw": "Nothing: clients trained on their original rows, for comparison.",
        "measured": "Information loss and record linkage of every client's release, measured at that client; "
        "accuracy, AUC and loss after each round, on true rows held out before anything was anonymized.",
        "rows": "No row leaves a client: weights or trees, counts and sums do.",
        "no_dp": "Weights and trees carry no differential privacy: they are computed from the training rows, and the "
        "split points and leaf values of a tree can repeat values of those rows.",
        "test": "Held-out true rows are not anonymized; they influence nothing but the scores, and each client's scores "
        "are exact numbers about its own rows.",
        "server": "The server sees each client's weights or trees one by one; nothing hides whose they are.",
    },
    "pt": {
        "keeps": "As linhas de treino de cada cliente vêm de uma publicação verificada nesse cliente antes do treino: {promised}.",
        "paper": "As linhas de treino dos clientes foram recodificadas como no artigo; nenhuma garantia foi verificada.",
        "raw": "Nada: os clientes treinaram com as suas linhas originais, para comparação.",
        "measured": "Perda de informação e vinculação de registros da publicação de cada cliente, medidas nesse cliente; "
        "acurácia, AUC e perda após cada rodada, em linhas verdadeiras separadas antes de qualquer anonimização.",
        "rows": "Nenhuma linha sai de um cliente: saem pesos ou árvores, contagens e somas.",
        "no_dp": "Pesos e árvores não têm privacidade diferencial: são calculados a partir das linhas de treino, e os "
        "pontos de corte e valores das folhas de uma árvore podem repetir valores dessas linhas.",
        "test": "As linhas verdadeiras separadas não são anonimizadas; só influenciam as notas, e as notas de cada "
        "cliente são números exatos sobre as suas próprias linhas.",
        "server": "O servidor vê os pesos ou árvores de cada cliente um a um; nada esconde de quem são.",
    },
}


def make_fit(
    terms: Terms,
    locally: Locally,
    rounds: Sequence[RoundRecord],
    clients: Sequence[ClientRecord],
    *,
    majority: float | None,
    learned: Learned | None,
    engine: str,
    evaluation: str,
    stopped: FederationStopped | None = None,
    notes: Sequence[str] = (),
) -> FederatedFit:
    """Everything a run gives back, as one value."""
    federation = terms.federation
    method = locally.method
    return FederatedFit(
        federation.model,
        federation.split,
        federation.alpha if federation.split == "dirichlet" else None,
        "original" if method is None else method.name,
        getattr(method, "k", None),
        locally.seed,
        federation.clients,
        federation.participation,
        majority,
        tuple(rounds),
        tuple(clients),
        promise_of(locally, clients),
        {
            "seconds": sum(one.seconds for one in rounds),
            "bytes_up": sum(one.bytes_up for one in rounds),
            "bytes_down": sum(one.bytes_down for one in rounds),
        },
        {
            "federation": federation.to_dict(),
            "method": None if method is None else describe(method),
            "guarantees": [describe(one) for one in locally.guarantees],
            "suppression": locally.suppression,
            "target": terms.encoder.target,
            "classes": len(terms.encoder.classes),
            "features": [column.name for column in terms.encoder.columns],
            "digest": terms.digest,
            "engine": engine,
            "read_off_the_table": list(terms.read_off),
            "stopped": None if stopped is None else str(stopped),
            "notes": list(notes),
        },
        evaluation,
        learned,
    )


def promise_of(locally: Locally, clients: Sequence[ClientRecord]) -> dict[str, Any]:
    """What is guaranteed, what is measured, what is not promised: the type, and sentences in both languages."""
    method = locally.method
    kind = "measured" if method is None else method.promise
    if method is not None and locally.guarantees and method.promise != "as in the paper":
        kind = "guaranteed"
    promised = sorted({name for one in clients if one.promised for name in [one.promised]})
    goals = [f"k = {method.k}"] if hasattr(method, "k") else []  # type: ignore[union-attr]
    goals += [one.name for one in locally.guarantees]
    out: dict[str, Any] = {"type": kind, "clients_checked": sum(bool(one.promised) for one in clients)}
    for language, words in WORDS.items():
        if kind == "guaranteed" and promised:
            first = words["keeps"].format(promised=", ".join(goals))
        else:
            first = words["raw"] if method is None else words["paper"]
        out[language] = {
            "guaranteed": [first] if kind == "guaranteed" else [],
            "measured": [*([] if kind == "guaranteed" else [first]), words["measured"]],
            "not_promised": [words[key] for key in ("no_dp", "test", "server")],
            "what_leaves": [words["rows"]],
        }
    return out


# The short report of a federated run, as Markdown, in English or Portuguese.

_EN = {
    "title": "# Federated {model} on {what}",
    "what_original": "original rows",
    "what_method": "rows anonymized by {method} at each client",
    "lead": "{clients} clients, {rounds} rounds, {applied} applied; a round needs the answers of {needed} clients.",
    "scores": "## Scores on true held-out rows",
    "logistic": "logistic regression",
    "xgboost": "XGBoost",
    "head": "| round | accuracy | AUC | loss | answered |",
    "scored": " held-out rows |",
    "unlike": "Not every round was scored on the same rows: compare only rounds with the same number of held-out rows.",
    "majority": "Always answering the most frequent class is right for {majority} of the rows.",
    "pooled": "The held-out rows of all clients were pooled and scored centrally.",
    "own": "Each client scored its own held-out rows; the AUC is the clients' mean weighted by rows.",
    "clients": "## Clients",
    "client_head": "| client | training rows | held out | information loss (NCP) | record linkage |\n|---|---|---|---|---|",
    "gaps": "## What is missing",
    "none": "Nothing: every client took part in every round it was asked for.",
    "guaranteed": "## Guaranteed",
    "measured": "## Measured",
    "not_promised": "## Not promised",
    "what_leaves": "## What leaves a client",
    "nothing": "Nothing.",
    "read_off": "The domains of {columns} were read off the whole table. A real federation must declare them in the schema.",
    "more": "{count} more such lines stand in fit.json.",
    "stopped": "The run stopped early: {why}",
}
_PT = {
    "title": "# {model} com {what}",
    "what_original": "linhas originais",
    "what_method": "linhas anonimizadas por {method} em cada cliente",
    "lead": "{clients} clientes, {rounds} rodadas, {applied} aplicadas; uma rodada precisa das respostas de {needed} clientes.",
    "scores": "## Notas em linhas verdadeiras separadas",
    "logistic": "Regressão logística federada",
    "xgboost": "XGBoost federado",
    "head": "| rodada | acurácia | AUC | perda | responderam |",
    "scored": " linhas separadas |",
    "unlike": "Nem toda rodada foi avaliada nas mesmas linhas: compare só rodadas com o mesmo número de linhas separadas.",
    "majority": "Responder sempre a classe mais frequente acerta {majority} das linhas.",
    "pooled": "As linhas separadas de todos os clientes foram reunidas e avaliadas centralmente.",
    "own": "Cada cliente avaliou as suas próprias linhas separadas; a AUC é a média dos clientes ponderada pelas linhas.",
    "clients": "## Clientes",
    "client_head": "| cliente | linhas de treino | separadas | perda de informação (NCP) | vinculação de registros |\n|---|---|---|---|---|",
    "gaps": "## O que falta",
    "none": "Nada: todos os clientes participaram de todas as rodadas em que foram chamados.",
    "guaranteed": "## Garantido",
    "measured": "## Medido",
    "not_promised": "## Não prometido",
    "what_leaves": "## O que sai de um cliente",
    "nothing": "Nada.",
    "read_off": "Os domínios de {columns} foram lidos da tabela inteira. Uma federação real deve declará-los no esquema.",
    "more": "Mais {count} linhas como estas estão em fit.json.",
    "stopped": "A execução parou antes do fim: {why}",
}
_MOST = 20


def report(fit: FederatedFit, language: str = "en") -> str:
    """The report; without any cell of a table."""
    words: Mapping[str, str] = _PT if language == "pt" else _EN
    what = words["what_original"]
    if fit.method != "original":
        name = fit.method if fit.k is None else f"{fit.method}, k = {fit.k},"
        what = words["what_method"].format(method=name)
    agreed = fit.how.get("federation") or {"participation": fit.participation, "clients": fit.clients_asked}
    scored = {one.test_rows for one in fit.rounds if one.test_rows is not None}
    unlike = len(scored) > 1
    lines = [
        words["title"].format(model=words[fit.model], what=what),
        "",
        words["lead"].format(
            clients=fit.clients_asked,
            rounds=len(fit.rounds),
            applied=sum(one.applied for one in fit.rounds),
            needed=Federation.from_dict(agreed).needed,
        ),
    ]
    if fit.how.get("stopped"):
        lines += ["", words["stopped"].format(why=translated(fit.how["stopped"], language))]
    head = words["head"] + (words["scored"] if unlike else "")
    lines += ["", words["scores"], "", head, "|---" * (head.count("|") - 1) + "|"]
    lines += [_round_line(one, language, unlike) for one in _shown(fit.rounds)]
    lines += ["", words["pooled" if fit.evaluation == "pooled" else "own"]]
    if unlike:
        lines.append(words["unlike"])
    if fit.majority is not None:
        lines.append(words["majority"].format(majority=_number(100 * fit.majority, language, 1) + " %"))
    lines += ["", words["clients"], "", words["client_head"]]
    for one in fit.clients:
        numbers = [_number(part, language, 3) for part in (one.ncp, one.linkage)]
        lines.append(
            f"| {translated(one.name, language)} | {one.rows} | {one.test_rows} | {' | '.join(numbers)} |"
        )
    lines += ["", words["gaps"], ""]
    said = [translated(text, language) for text in (*fit.gaps, *fit.how.get("notes", []))]
    if fit.how.get("read_off_the_table"):
        said.append(words["read_off"].format(columns=", ".join(fit.how["read_off_the_table"])))
    lines += [f"- {text}" for text in said[:_MOST]] or [words["none"]]
    if len(said) > _MOST:
        lines.append(f"- {words['more'].format(count=len(said) - _MOST)}")
    promise = fit.promise["pt" if language == "pt" else "en"]
    for part in ("guaranteed", "measured", "not_promised", "what_leaves"):
        lines += ["", words[part], ""]
        lines += [f"- {text}" for text in promise[part]] or [words["nothing"]]
    return "\n".join(lines) + "\n"


def _shown(rounds: tuple[RoundRecord, ...]) -> list[RoundRecord]:
    """About a dozen rounds: the first, the last, and some between."""
    step = max(1, len(rounds) // 10)
    return [one for at, one in enumerate(rounds) if at == 0 or (at + 1) % step == 0 or at == len(rounds) - 1]


def _round_line(one: RoundRecord, language: str, with_rows: bool) -> str:
    numbers = " | ".join(_number(part, language, 4) for part in (one.accuracy, one.auc, one.loss))
    rows = f" {'–' if one.test_rows is None else one.test_rows} |" if with_rows else ""
    return f"| {one.number} | {numbers} | {one.replied} / {one.asked} |{rows}"


def _number(value: float | None, language: str, places: int) -> str:
    if value is None:
        return "–"
    text = f"{value:.{places}f}"
    return text.replace(".", ",") if language == "pt" else text


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
    """One row per round; clients that did not answer are named in one text."""
    rows = [{**one.to_dict(), "missing": "; ".join(one.missing)} for one in fit.rounds]
    return pl.DataFrame([[row[name] for name in ROUND_COLUMNS] for row in rows], ROUND_COLUMNS, orient="row")


def fit_files(fit: FederatedFit, language: str = "en", form: str = "csv") -> dict[str, bytes]:
    """The files by name."""
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
    """All *files* stand in *folder*, fit.json last: who sees it finds the others."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in sorted(files, key=lambda name: name == "fit.json"):
            scratch = folder / f".{name}"
            scratch.write_bytes(files[name])
            scratch.replace(folder / name)
    except OSError as error:
        raise OutputError(
            say(
                "The folder '{folder}' cannot be written ({strerror}).",
                folder=folder.name,
                strerror=error.strerror or "system error",
            ),
            "The fit is not kept.",
            "Check the path, the permissions and the space left.",
        ) from None
