"""The sentences of records in Portuguese: a record is written once, in English, and read in either language.

A sentence that no pattern knows, such as a library's kind of error, stays as it is.
"""

from __future__ import annotations

import re

from velado.federated.replies import PORTUGUESE

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
        (
            r"has no rows with a target; it sits out\.",
            "não tem linhas com a classe a prever; fica de fora.",
        ),
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
        (
            r"The rounds that were over by then are kept\.",
            "As rodadas terminadas até ali foram guardadas.",
        ),
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
