"""The fit of a run put together, and its promise in words, English and Portuguese."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from velado.anonymize.release import describe
from velado.federated.learned import Learned
from velado.federated.prepare import Locally
from velado.federated.records import ClientRecord, FederatedFit, FederationStopped, RoundRecord
from velado.federated.terms import Terms

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
