"""What `velado federate` prints, in English and Portuguese, under the same keys."""

from __future__ import annotations

EN = {
    "federate_terms": "Digest of the terms: {digest}",
    "federate_plan": "{model}, {clients} clients, {rounds} rounds; a round needs {needed} answers. {features} features, {classes} classes.",
    "federate_no_table": "The recipe names no table: these are the terms that every party must have.",
    "federate_client": "client",
    "federate_rows": "training rows",
    "federate_test": "held out",
    "federate_loss": "information loss",
    "federate_linkage": "record linkage",
    "federate_clients": "Clients",
    "federate_round": "round {round} of {rounds}, accuracy {accuracy}, about {minutes} min left",
    "federate_preparing": "clients anonymize their rows",
    "federate_last": "After round {round}: accuracy {accuracy} (most frequent class {majority}), AUC {auc}, loss {loss}.",
    "federate_gaps": "Missing: {count} remark(s); the first: {first}",
    "federate_promise": "Promise ({type}): {sentence}",
    "federate_not": "Not promised: {sentence}",
    "federate_written": "Written in {folder}: {files}",
    "federate_guaranteed": "guaranteed",
    "federate_measured": "measured",
    "federate_as_in_the_paper": "as in the paper",
    "federate_interrupted": "Ended after {rounds} of {total} rounds, as you asked; what was learned until then is written in {folder}.",
    "federate_interrupted_early": "Ended before the first of {total} rounds was over, as you asked; {folder} was not written ({rounds} rounds).",
    "federate_machines": "Written in {folder}. The commands, in their order (START.md explains each):",
}

PT = {
    "federate_terms": "Resumo criptográfico dos termos: {digest}",
    "federate_plan": "{model}, {clients} clientes, {rounds} rodadas; uma rodada precisa de {needed} respostas. {features} atributos, {classes} classes.",
    "federate_no_table": "A receita não nomeia uma tabela: estes são os termos que todas as partes devem ter.",
    "federate_client": "cliente",
    "federate_rows": "linhas de treino",
    "federate_test": "separadas",
    "federate_loss": "perda de informação",
    "federate_linkage": "vinculação de registros",
    "federate_clients": "Clientes",
    "federate_round": "rodada {round} de {rounds}, acurácia {accuracy}, faltam cerca de {minutes} min",
    "federate_preparing": "os clientes anonimizam as suas linhas",
    "federate_last": "Após a rodada {round}: acurácia {accuracy} (classe mais frequente {majority}), AUC {auc}, perda {loss}.",
    "federate_gaps": "Falta: {count} observação(ões); a primeira: {first}",
    "federate_promise": "Promessa ({type}): {sentence}",
    "federate_not": "Não prometido: {sentence}",
    "federate_written": "Escrito em {folder}: {files}",
    "federate_guaranteed": "garantida",
    "federate_measured": "medida",
    "federate_as_in_the_paper": "como no artigo",
    "federate_interrupted": "Encerrado após {rounds} de {total} rodadas, como pedido; o que se aprendeu até ali está em {folder}.",
    "federate_interrupted_early": "Encerrado antes do fim da primeira de {total} rodadas, como pedido; {folder} não foi escrito ({rounds} rodadas).",
    "federate_machines": "Escrito em {folder}. Os comandos, na sua ordem (START.md explica cada um):",
}


def say(lang: str, key: str, **parts: object) -> str:
    """The text under *key* in the language *lang*, its places filled."""
    return (PT if lang == "pt" else EN)[key].format(**parts)
