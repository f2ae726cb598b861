"""What a study says, in English and Portuguese, under the same keys."""

from __future__ import annotations

from collections.abc import Mapping

_EN = {
    "starting": "{releases} releases to make, about {minutes}",
    "progress": "{done} of {all} releases, about {minutes} left",
    "finished": "done",
    "title": "Evaluation of {source}",
    "intro": "{rows} rows, target {target} ({classes} classes), {features} columns as features, protocol {protocol}. "
    "Intervals are {confidence} % over {seeds} seed(s).",
    "intro_one": "{rows} rows, target {target} ({classes} classes), {features} columns as features, protocol {protocol}. "
    "A single seed: the interval of accuracy is over its test rows, other intervals cannot be given.",
    "h_recommendation": "Recommendation",
    "h_tradeoff": "Loss against risk",
    "h_quality": "Model quality",
    "h_best": "Which method keeps most, model by model",
    "h_protocols": "What the protocol alone does",
    "h_gaps": "What could not be computed",
    "h_not_tested": "What was not tested",
    "method": "method",
    "k": "k",
    "guarantees": "further promises",
    "loss": "{name}",
    "risk": "risk: {name}",
    "drop": "points of {name} lost",
    "model": "model",
    "protocol": "protocol",
    "gain": "points more than the second",
    "second": "second",
    "between": "points between two methods",
    "due": "moved by the protocol alone",
    "reversed": "comparisons turned round",
    "reason": "reason",
    "cells": "cells",
    "majority_line": "Always saying the commonest class is right for {rate} of the test rows.",
    "choice": "Use {setting}: it loses {drop} points of {quality} on average over the models{range}, with a risk ({risk_name}) of {risk} "
    "(original: {before}); {loss_name}: {loss}.",
    "range": " ({low} to {high})",
    "why_risk": "Of all settings that lose at most {most} points it leaves the least risk.",
    "not_sure": "Its interval reaches beyond that limit: more seeds could decide otherwise.",
    "why_none": "No setting loses at most {most} points; this one loses least.",
    "why_risk_limit": "Only settings with a risk of at most {limit} were considered.",
    "no_choice": "No setting can be recommended: none was computed, or none keeps the risk below the limit.",
    "risk_unknown": 'The risk ({risk}) was not measured for any setting: very large tables are not compared row by row. Set risk = "reidentification" in [metrics].',
    "same_risk": "about the same risk (k = {first} and k = {second})",
    "compare_better": "At {same}, {first} loses {gain} points less than {second} ({low} to {high}), at a risk of {risk} against {other}.",
    "compare_worse": "At {same}, {second} loses {gain} points less than {first} ({low} to {high}), at a risk of {other} against {risk}.",
    "compare_even": "At {same}, these seeds tell no difference between {first} and {second} ({low} to {high} points), at a risk of {risk} against {other}.",
    "compare_one": "At {same}, {first} and {second} differ by {gain} points in one seed, which decides nothing; the risk is {risk} against {other}.",
    "over_majority": "With it the best model, {model}, is right for {value} of the test rows; always saying the commonest class for {majority}.",
    "near_majority": "With it no model is surely right more often ({model}: {value}) than always saying the commonest class ({majority}).",
    "protocol_drop": "Under {protocol} releases seem to lose {drop} points of {quality}; asked about true rows, as the default protocol does, {honest}.",
    "protocol_pairs": "Under {protocol} two methods lie {between} points apart on average; the protocol alone moves that difference by {due} points, and {reversed} of {pairs} comparisons turn round.",
    "nothing_to_learn": "Even on the original rows no model is surely right more often than always saying the commonest class ({majority}): accuracy cannot tell methods apart here. Put auc or balanced_accuracy first in [metrics] quality.",
    "name_ncp": "information loss (NCP)",
    "name_discernibility": "discernibility",
    "name_average_group_size": "mean class size",
    "name_record_linkage": "record linkage",
    "name_reidentification": "mean re-identification",
    "name_highest_risk": "highest re-identification",
    "name_accuracy": "accuracy",
    "name_balanced_accuracy": "balanced accuracy",
    "name_precision": "precision",
    "name_recall": "recall",
    "name_f1": "F1",
    "name_auc": "AUC",
    "name_log_loss": "log loss",
    "gaps_note": "{gaps} of {cells} cells could not be computed; their reasons stand below, and no average holds them.",
    "nt_methods": "Methods not run: {names}.",
    "nt_models": "Models not trained: {names}.",
    "nt_k": "Only k = {ks}; what lies between or beyond was not run.",
    "nt_guarantees": "No promise beyond k: what a release says about the sensitive values of a whole class is measured, not bounded.",
    "nt_tuning": "Model settings are fixed, not tuned; a tuned model may rank methods differently.",
    "nt_table": "One table and one target: another target may need other columns and another k.",
    "nt_attack": "The attacker of the risk figures knows all quasi-identifiers of everybody and nothing else.",
    "nt_seed": "One seed: chance cannot be told from difference.",
    "nt_protocols": "Protocols not run: {names}.",
    "nt_part": "Loss and risk are those of releases of the training part, {share} of the rows; a release of all rows loses a little less.",
    "nt_federated": "Rows were all in one place; training across sites is not part of this study.",
    "nt_dropped": "{count} rows without a target were left out.",
    "nothing": "Nothing.",
}

_PT = {
    "starting": "{releases} publicações a fazer, cerca de {minutes}",
    "progress": "{done} de {all} publicações, faltam cerca de {minutes}",
    "finished": "pronto",
    "title": "Avaliação de {source}",
    "intro": "{rows} linhas, alvo {target} ({classes} classes), {features} colunas como atributos, protocolo {protocol}. "
    "Os intervalos são de {confidence} % sobre {seeds} semente(s).",
    "intro_one": "{rows} linhas, alvo {target} ({classes} classes), {features} colunas como atributos, protocolo {protocol}. "
    "Uma só semente: o intervalo da acurácia é sobre as linhas de teste, outros não há.",
    "h_recommendation": "Recomendação",
    "h_tradeoff": "Perda contra risco",
    "h_quality": "Qualidade dos modelos",
    "h_best": "Qual método conserva mais, modelo a modelo",
    "h_protocols": "O que o protocolo sozinho faz",
    "h_gaps": "O que não pôde ser calculado",
    "h_not_tested": "O que não foi testado",
    "method": "método",
    "k": "k",
    "guarantees": "outras promessas",
    "loss": "{name}",
    "risk": "risco: {name}",
    "drop": "pontos de {name} perdidos",
    "model": "modelo",
    "protocol": "protocolo",
    "gain": "pontos a mais que o segundo",
    "second": "segundo",
    "between": "pontos entre dois métodos",
    "due": "movidos só pelo protocolo",
    "reversed": "comparações invertidas",
    "reason": "motivo",
    "cells": "células",
    "majority_line": "Dizer sempre a classe mais comum acerta {rate} das linhas de teste.",
    "choice": "Use {setting}: perde {drop} pontos de {quality} em média sobre os modelos{range}, com risco ({risk_name}) de {risk} "
    "(original: {before}); {loss_name}: {loss}.",
    "range": " ({low} a {high})",
    "why_risk": "De todas as configurações que perdem no máximo {most} pontos, é a que deixa menos risco.",
    "not_sure": "O intervalo passa desse limite: mais sementes poderiam decidir de outro modo.",
    "why_none": "Nenhuma configuração perde no máximo {most} pontos; esta é a que perde menos.",
    "why_risk_limit": "Só foram consideradas configurações com risco de no máximo {limit}.",
    "no_choice": "Nenhuma configuração pode ser recomendada: nenhuma foi calculada, ou nenhuma fica abaixo do limite de risco.",
    "risk_unknown": 'O risco ({risk}) não foi medido em nenhuma configuração: tabelas muito grandes não são comparadas linha a linha. Ponha risk = "reidentification" em [metrics].',
    "same_risk": "risco parecido (k = {first} e k = {second})",
    "compare_better": "Com {same}, {first} perde {gain} pontos a menos que {second} ({low} a {high}), com risco de {risk} contra {other}.",
    "compare_worse": "Com {same}, {second} perde {gain} pontos a menos que {first} ({low} a {high}), com risco de {other} contra {risk}.",
    "compare_even": "Com {same}, estas sementes não mostram diferença entre {first} e {second} ({low} a {high} pontos), com risco de {risk} contra {other}.",
    "compare_one": "Com {same}, {first} e {second} diferem em {gain} pontos em uma semente, o que nada decide; o risco é {risk} contra {other}.",
    "over_majority": "Com ela o melhor modelo, {model}, acerta {value} das linhas de teste; dizer sempre a classe mais comum, {majority}.",
    "near_majority": "Com ela nenhum modelo acerta com certeza mais ({model}: {value}) do que dizer sempre a classe mais comum ({majority}).",
    "protocol_drop": "Sob {protocol} as publicações parecem perder {drop} pontos de {quality}; perguntando por linhas verdadeiras, como faz o protocolo padrão, {honest}.",
    "protocol_pairs": "Sob {protocol} dois métodos distam em média {between} pontos; o protocolo sozinho move essa diferença em {due} pontos, e {reversed} de {pairs} comparações se invertem.",
    "nothing_to_learn": "Mesmo nas linhas originais nenhum modelo acerta com certeza mais do que dizer sempre a classe mais comum ({majority}): a acurácia não distingue métodos aqui. Ponha auc ou balanced_accuracy primeiro em quality de [metrics].",
    "name_ncp": "perda de informação (NCP)",
    "name_discernibility": "discernibilidade",
    "name_average_group_size": "tamanho médio das classes",
    "name_record_linkage": "ligação de registros",
    "name_reidentification": "reidentificação média",
    "name_highest_risk": "reidentificação máxima",
    "name_accuracy": "acurácia",
    "name_balanced_accuracy": "acurácia balanceada",
    "name_precision": "precisão",
    "name_recall": "revocação",
    "name_f1": "F1",
    "name_auc": "AUC",
    "name_log_loss": "perda logarítmica",
    "gaps_note": "{gaps} de {cells} células não puderam ser calculadas; os motivos estão abaixo, e nenhuma média as contém.",
    "nt_methods": "Métodos não executados: {names}.",
    "nt_models": "Modelos não treinados: {names}.",
    "nt_k": "Só k = {ks}; o que está entre eles ou além não foi executado.",
    "nt_guarantees": "Nenhuma promessa além de k: o que uma publicação diz dos valores sensíveis de uma classe inteira é medido, não limitado.",
    "nt_tuning": "Os modelos têm parâmetros fixos, não ajustados; um modelo ajustado pode ordenar os métodos de outro modo.",
    "nt_table": "Uma tabela e um alvo: outro alvo pode precisar de outras colunas e de outro k.",
    "nt_attack": "O atacante dos números de risco conhece todos os quase-identificadores de todos e nada mais.",
    "nt_seed": "Uma semente: não se distingue acaso de diferença.",
    "nt_protocols": "Protocolos não executados: {names}.",
    "nt_part": "Perda e risco são os de publicações da parte de treino, {share} das linhas; uma publicação de todas perde um pouco menos.",
    "nt_federated": "As linhas estavam todas em um lugar; treinar entre instituições não faz parte deste estudo.",
    "nt_dropped": "{count} linhas sem alvo ficaram de fora.",
    "nothing": "Nada.",
}

WORDS: Mapping[str, Mapping[str, str]] = {"en": _EN, "pt": _PT}


def say(language: str, key: str, **values: object) -> str:
    """The text of *key* in *language* with its places filled."""
    return WORDS[language][key].format(**values)


def number(value: float | None, language: str, digits: int = 1) -> str:
    """A number as the language writes it; a dash where there is none."""
    if value is None:
        return "–"
    text = f"{value:,.{digits}f}"
    if language == "pt":
        text = text.replace(",", " ").replace(".", ",").replace(" ", ".")
    return text if float(f"{value:.{digits}f}") != 0 else text.lstrip("-")


def percent(value: float | None, language: str, digits: int = 1) -> str:
    """A share as a percentage."""
    return "–" if value is None else f"{number(100 * value, language, digits)} %"


def points(value: float | None, language: str, digits: int = 1) -> str:
    """A difference of shares in percentage points, without a unit."""
    return "–" if value is None else number(100 * value, language, digits)


def quality_name(name: str, language: str) -> str:
    """A quality as a person calls it."""
    return say(language, f"name_{name}")


def loss_text(value: float | None, name: str, language: str) -> str:
    """A loss with its unit: a share in percent, a class size as a number."""
    return number(value, language) if name == "average_group_size" else percent(value, language)
