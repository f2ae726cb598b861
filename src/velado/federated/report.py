"""The short report of a federated run, as Markdown, in English or Portuguese."""

from __future__ import annotations

from collections.abc import Mapping

from velado.federated.federation import Federation
from velado.federated.records import FederatedFit, RoundRecord
from velado.federated.sentences import translated

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
