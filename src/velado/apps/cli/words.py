"""Every text the command line prints of its own, in English and Portuguese, under the same keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from velado.apps.cli import words_data, words_ledger, words_query, words_regress

EXIT_CODES: Mapping[int, Mapping[str, str]] = {
    0: {"en": "done, and every promise holds", "pt": "feito, e toda promessa é cumprida"},
    1: {"en": "an unexpected error", "pt": "um erro inesperado"},
    2: {"en": "a flag or parameter is wrong", "pt": "uma opção ou um parâmetro está errado"},
    3: {
        "en": "the table, schema, taxonomy or recipe cannot be used as it is",
        "pt": "a tabela, o esquema, a taxonomia ou a receita não pode ser usada como está",
    },
    4: {
        "en": "a promise does not hold, or could not be kept within the suppression limit",
        "pt": "uma promessa não é cumprida, ou não coube no limite de supressão",
    },
    5: {
        "en": "the output exists already, cannot be written, or was refused",
        "pt": "a saída já existe, não pode ser escrita ou foi recusada",
    },
    6: {"en": "an optional library is not installed", "pt": "uma biblioteca opcional não está instalada"},
    7: {"en": "the answer would cost more than is left", "pt": "a resposta custaria mais do que resta"},
    8: {
        "en": "the ledger is missing, was edited or rolled back, or cannot be written",
        "pt": "o livro-razão falta, foi alterado ou restaurado, ou não pode ser escrito",
    },
    9: {"en": "the engine did not answer", "pt": "o motor de consultas não respondeu"},
    10: {
        "en": "a key, ciphertext or message was refused, or an encrypted job failed",
        "pt": "uma chave, cifra ou mensagem foi recusada, ou um trabalho cifrado falhou",
    },
    130: {"en": "interrupted by the user", "pt": "interrompido pelo usuário"},
    143: {"en": "ended by a signal of the system", "pt": "encerrado por um sinal do sistema"},
}

_EN = {
    # errors
    "why": "Why",
    "what_to_do": "What to do",
    "usage_why": "The command line cannot be understood as it stands.",
    "usage_fix": "{hint}See `{command} --help`.",
    "did_you_mean": "Did you mean '{word}'?",
    "unexpected_what": "An unexpected {kind} stopped the run.",
    "unexpected_why": "Its message is not shown because it may hold values of the table.",
    "unexpected_fix": "Run the command again with --debug to see where it happened.",
    "values_written": "{count} value(s) written to {path}, readable by you alone. They are cells: delete the file afterwards.",
    "warning": "Warning",
    # progress
    "working": "working",
    "compiling": "compiling once, about 10 s",
    # summaries of a release
    "line_table": "Table: {source}, {rows} rows, {columns} columns",
    "line_table_people": "Table: {source}, {rows} rows of {people} people, {columns} columns",
    "line_method": "Method: {title}; {settings}",
    "line_promise": "Promise ({type}): {sentences}",
    "no_guarantee": "no guarantee, only measured",
    "line_groups": "Groups: {groups}, mean size {mean}, smallest {smallest}; blanks as wildcards: smallest {wild}",
    "line_unique": "Unique on the quasi-identifiers: {before} {unit} before, {after} after",
    "line_risk": "Highest risk of being found: {before} before, {after} after",
    "line_loss": "Information loss (NCP, {variant}): {loss}; most in {column}: {most}",
    "above_best": "(at most {above}% above the best possible)",
    "best_possible": "(the best possible)",
    "line_rows": "Rows published: {rows}; suppressed: {suppressed}; side doors named: {doors}",
    "line_release": "May leave: {path}",
    "line_report": "For you alone: {path}",
    "none": "none",
    "roles_inferred": "No schema was given: the roles below were inferred. Review them; they are saved in {path}.",
    "minimality": (
        "Groups were chosen with the sensitive values in view: who knows the method may infer more than the "
        "promise says (minimality)."
    ),
    "formulas": (
        "{count} cell(s) begin like a spreadsheet formula and were kept; --formulas escape puts an apostrophe "
        "before them."
    ),
    "guarantee_holds": "{guarantee}: needs {needed} {unit}, the weakest group has {achieved}; holds.",
    "guarantee_broken": (
        "{guarantee}: needs {needed} {unit}, the weakest group has {achieved}; broken in {groups} group(s), "
        "{rows} row(s)."
    ),
    "guaranteed": "guaranteed",
    "measured": "measured",
    "as in the paper": "as in the paper",
    # inspect
    "column": "column",
    "role": "role",
    "kind": "kind",
    "found": "looks like",
    "kept_back": "not published",
    "why_column": "why",
    "distinct": "distinct",
    "separation": "separation",
    "distinction": "distinction",
    "columns": "columns",
    "roles_title": "Roles proposed",
    "ranking_title": "How well columns tell rows apart",
    "ranking_notes": "A blank counts as one value.",
    "sets_leave_out": "Sets of several columns: columns in which most values are distinct are left out.",
    "identifiers_found": "Direct identifiers: {columns}.",
    "person_column": "Rows that share '{column}' are taken for one person.",
    "rows_per_person": "'{column}' repeats: {mean} rows a person in the mean.",
    "held_back": "In doubt, so held back until somebody has read them: {columns}.",
    "missing_code": "'{code}' may mean no value, in {rows} cells of {columns}; if so, add it to missing_values.",
    "unique_rows": "{unique} of {rows} rows are unique on the proposed quasi-identifiers; smallest group: {smallest}.",
    "unique_people": "{unique} of {people} people are unique on the proposed quasi-identifiers.",
    "schema_written": "Schema written to {path}. Review it before anything is published.",
    "schema_hint": "Write the proposal to a file with --write schema.toml, then review it.",
    # verify
    "verify_title": "What the file itself shows ({rows} rows, {quasi} quasi-identifiers, {groups} groups)",
    "guarantee": "guarantee",
    "needed": "needed",
    "achieved": "found",
    "verdict": "verdict",
    "holds": "holds",
    "broken": "BROKEN",
    "failing": "failing rows",
    "readings_title": "Both readings of blanks",
    "reading": "reading",
    "smallest": "smallest group",
    "mean": "mean group",
    "a blank is a value of its own": "a blank is a value of its own",
    "a blank matches anything": "a blank matches anything",
    "person_absent": (
        "The person column '{column}' is not in this file, so k per person cannot be checked from it; "
        "rows are counted."
    ),
    "column_unchecked": (
        "Not checked: the sensitive column '{column}' is not in this file; the promise about it cannot be read from it."
    ),
    "column_unread": (
        "The values of '{column}' could not be read as intervals: what other columns give away of it was not fully checked."
    ),
    "side_doors_title": "Side doors in this file",
    "verify_smallest": "Smallest group: {smallest}.",
    "verify_smallest_behind": "Smallest group: {smallest}; {behind} for who also reads {columns}.",
    "every_promise_holds": "Every promise that was asked for holds in this file.",
    "every_promise_holds_in_rows": "Every promise that was asked for holds in this file, counted in rows, not in people.",
    "promise_fails": "A promise does not hold in this file.",
    # measure
    "measure_title": "What the release cost and bought",
    "measure_metric": "measure",
    "before": "original",
    "after": "release",
    "false_cells": "false cells",
    "discernibility": "discernibility",
    "prosecutor_highest": "risk of being found, highest",
    "prosecutor_mean": "risk of being found, mean",
    "journalist_highest": "journalist's risk, highest",
    "marketer": "share a marketer finds",
    "unique": "unique",
    "linkage": "linkage",
    "not_measured": "Not measured",
    # methods
    "guessed": "'{column}' guessed right: from the whole table, from the release",
    "partial": "sets of up to 3 columns that single somebody out (of {subsets})",
    "special_uniques": "rows with a special unique (SUDA)",
    "population_uniques": "unique in the population (estimate)",
    "compare_title": "Methods at k = {k} on {rows} rows, the least loss first",
    "compare_loss": "loss (NCP)",
    "compare_groups": "groups",
    "compare_suppressed": "suppressed",
    "compare_linked": "linked",
    "compare_seconds": "CPU s",
    "compare_reason": "why not",
    "methods_title": "Methods",
    "name": "name",
    "promise": "promise",
    "cost": "cost",
    "source": "source",
    "flag": "flag",
    "takes": "takes",
    "default": "default",
    "meaning": "meaning",
    "methods_hint": "Parameters of one method: velado methods NAME",
    # pseudonymize, joined
    "key_written": "Key {fingerprint} written to {path}, readable by you alone. Keep it apart from the tables, and back it up.",
    "pseudonyms_written": (
        "{path}: {rows} rows; {identifiers} identifiers in {columns} replaced with the key {fingerprint}."
    ),
    "pseudonyms_are_personal": (
        "Pseudonyms are not anonymity: the other columns can still tell who is who. To publish, use velado anonymize."
    ),
    "mapping_written": "{path} names every person behind a pseudonym: store it apart, and never send it along.",
    "joined_table": "Table {name}: {rows} rows published, {suppressed} suppressed",
    "joined_people": "Joined: {people} people in {groups} groups; left out: {suppressed}; information loss (NCP): {loss}",
}

_PT = {
    "why": "Por quê",
    "what_to_do": "O que fazer",
    "usage_why": "A linha de comando não pode ser entendida como está.",
    "usage_fix": "{hint}Veja `{command} --help`.",
    "did_you_mean": "Seria '{word}'?",
    "unexpected_what": "Um {kind} inesperado interrompeu a execução.",
    "unexpected_why": "A mensagem não é mostrada porque pode conter valores da tabela.",
    "unexpected_fix": "Execute de novo com --debug para ver onde aconteceu.",
    "values_written": "{count} valor(es) escritos em {path}, legível só por você. São células: apague o arquivo depois.",
    "warning": "Aviso",
    "working": "trabalhando",
    "compiling": "compilando uma única vez, cerca de 10 s",
    "line_table": "Tabela: {source}, {rows} linhas, {columns} colunas",
    "line_table_people": "Tabela: {source}, {rows} linhas de {people} pessoas, {columns} colunas",
    "line_method": "Método: {title}; {settings}",
    "line_promise": "Promessa ({type}): {sentences}",
    "no_guarantee": "sem garantia, apenas medida",
    "line_groups": "Grupos: {groups}, tamanho médio {mean}, menor {smallest}; brancos como curingas: menor {wild}",
    "line_unique": "Únicos nos quase-identificadores: {before} {unit} antes, {after} depois",
    "line_risk": "Maior risco de ser encontrado: {before} antes, {after} depois",
    "line_loss": "Perda de informação (NCP, {variant}): {loss}; maior em {column}: {most}",
    "above_best": "(no máximo {above}% acima do melhor possível)",
    "best_possible": "(o melhor possível)",
    "line_rows": "Linhas publicadas: {rows}; suprimidas: {suppressed}; portas laterais apontadas: {doors}",
    "line_release": "Pode sair: {path}",
    "line_report": "Só para você: {path}",
    "none": "nenhuma",
    "roles_inferred": "Nenhum esquema foi dado: os papéis abaixo foram inferidos. Revise-os; estão salvos em {path}.",
    "minimality": (
        "Os grupos foram escolhidos à vista dos valores sensíveis: quem conhece o método pode inferir mais do que a "
        "promessa diz (minimalidade)."
    ),
    "formulas": (
        "{count} célula(s) começam como fórmula de planilha e foram mantidas; --formulas escape põe um apóstrofo "
        "antes delas."
    ),
    "guarantee_holds": "{guarantee}: precisa de {needed} {unit}, o grupo mais fraco tem {achieved}; cumprida.",
    "guarantee_broken": (
        "{guarantee}: precisa de {needed} {unit}, o grupo mais fraco tem {achieved}; violada em {groups} grupo(s), "
        "{rows} linha(s)."
    ),
    "guaranteed": "garantida",
    "measured": "medida",
    "as in the paper": "como no artigo",
    "column": "coluna",
    "role": "papel",
    "kind": "tipo",
    "found": "parece ser",
    "kept_back": "não publicada",
    "why_column": "motivo",
    "distinct": "distintos",
    "separation": "separação",
    "distinction": "distinção",
    "columns": "colunas",
    "roles_title": "Papéis propostos",
    "ranking_title": "Quanto as colunas distinguem as linhas",
    "ranking_notes": "Um branco conta como um valor.",
    "sets_leave_out": "Conjuntos de várias colunas: ficam de fora as colunas em que a maioria dos valores é distinta.",
    "identifiers_found": "Identificadores diretos: {columns}.",
    "person_column": "Linhas com o mesmo '{column}' são tomadas como uma pessoa.",
    "rows_per_person": "'{column}' se repete: em média {mean} linhas por pessoa.",
    "held_back": "Em dúvida, por isso retidas até que alguém as leia: {columns}.",
    "missing_code": "'{code}' pode significar sem valor, em {rows} células de {columns}; se for, ponha em missing_values.",
    "unique_rows": "{unique} de {rows} linhas são únicas nos quase-identificadores propostos; menor grupo: {smallest}.",
    "unique_people": "{unique} de {people} pessoas são únicas nos quase-identificadores propostos.",
    "schema_written": "Esquema escrito em {path}. Revise-o antes de publicar qualquer coisa.",
    "schema_hint": "Escreva a proposta em um arquivo com --write schema.toml e revise-a.",
    "verify_title": "O que o próprio arquivo mostra ({rows} linhas, {quasi} quase-identificadores, {groups} grupos)",
    "guarantee": "promessa",
    "needed": "exigido",
    "achieved": "encontrado",
    "verdict": "veredito",
    "holds": "cumprida",
    "broken": "VIOLADA",
    "failing": "linhas que falham",
    "readings_title": "As duas leituras dos brancos",
    "reading": "leitura",
    "smallest": "menor grupo",
    "mean": "grupo médio",
    "a blank is a value of its own": "um branco é um valor próprio",
    "a blank matches anything": "um branco combina com qualquer valor",
    "person_absent": (
        "A coluna de pessoa '{column}' não está neste arquivo, então k por pessoa não pode ser conferido nele; "
        "contam-se linhas."
    ),
    "column_unchecked": (
        "Não conferida: a coluna sensível '{column}' não está neste arquivo; a promessa sobre ela não pode ser lida nele."
    ),
    "column_unread": (
        "Os valores de '{column}' não puderam ser lidos como intervalos: o que outras colunas entregam dela não foi "
        "conferido por inteiro."
    ),
    "side_doors_title": "Portas laterais neste arquivo",
    "verify_smallest": "Menor grupo: {smallest}.",
    "verify_smallest_behind": "Menor grupo: {smallest}; {behind} para quem também lê {columns}.",
    "every_promise_holds": "Toda promessa pedida é cumprida neste arquivo.",
    "every_promise_holds_in_rows": "Toda promessa pedida é cumprida neste arquivo, contada em linhas, não em pessoas.",
    "promise_fails": "Uma promessa não é cumprida neste arquivo.",
    "measure_title": "O que a publicação custou e o que trouxe",
    "measure_metric": "medida",
    "before": "original",
    "after": "publicação",
    "false_cells": "células falsas",
    "discernibility": "discernibilidade",
    "prosecutor_highest": "risco de ser encontrado, maior",
    "prosecutor_mean": "risco de ser encontrado, médio",
    "journalist_highest": "risco do jornalista, maior",
    "marketer": "parcela que um atacante em massa (marketer) encontra",
    "unique": "únicos",
    "linkage": "ligação de registros",
    "not_measured": "Não medido",
    "guessed": "'{column}' adivinhado: pela tabela toda, pela publicação",
    "partial": "conjuntos de até 3 colunas que isolam alguém (de {subsets})",
    "special_uniques": "linhas com um único especial (SUDA)",
    "population_uniques": "únicos na população (estimativa)",
    "compare_title": "Métodos com k = {k} em {rows} linhas, a menor perda primeiro",
    "compare_loss": "perda (NCP)",
    "compare_groups": "grupos",
    "compare_suppressed": "suprimidas",
    "compare_linked": "ligadas",
    "compare_seconds": "s de CPU",
    "compare_reason": "por que não",
    "methods_title": "Métodos",
    "name": "nome",
    "promise": "promessa",
    "cost": "custo",
    "source": "fonte",
    "flag": "opção",
    "takes": "aceita",
    "default": "padrão",
    "meaning": "significado",
    "methods_hint": "Parâmetros de um método: velado methods NOME",
    "key_written": (
        "Chave {fingerprint} escrita em {path}, que só você pode ler. Guarde-a longe das tabelas e faça uma cópia."
    ),
    "pseudonyms_written": (
        "{path}: {rows} linhas; {identifiers} identificadores em {columns} trocados com a chave {fingerprint}."
    ),
    "pseudonyms_are_personal": (
        "Pseudônimo não é anonimato: as outras colunas ainda podem dizer quem é quem. Para publicar, use velado anonymize."
    ),
    "mapping_written": "{path} dá o nome por trás de cada pseudônimo: guarde-o à parte e nunca o envie junto.",
    "joined_table": "Tabela {name}: {rows} linhas publicadas, {suppressed} suprimidas",
    "joined_people": (
        "Juntas: {people} pessoas em {groups} grupos; deixadas de fora: {suppressed}; perda de informação (NCP): {loss}"
    ),
}

WORDS: Mapping[str, Mapping[str, str]] = {
    "en": {**_EN, **words_data.EN, **words_query.EN, **words_ledger.EN, **words_regress.EN},
    "pt": {**_PT, **words_data.PT, **words_query.PT, **words_ledger.PT, **words_regress.PT},
}

# How records were linked; English has the words of the flags.
_LINKAGE_PT = {
    "released-to-original": "da publicada para a original",
    "original-to-released": "da original para a publicada",
    "expected": "empates pelo valor esperado",
    "first": "empates pelo primeiro",
    "any": "empates contam como acerto",
    "range": "escala pela amplitude",
    "standard": "escala pelo desvio padrão",
    "none": "sem escala",
    "manhattan": "distância de Manhattan",
    "euclidean": "distância euclidiana",
}


def say(lang: str, key: str, **parts: Any) -> str:
    """The text under *key* in the language *lang*, its places filled."""
    text = WORDS[lang][key]
    return text.format(**parts) if parts else text


def linkage_in(lang: str, rule: str) -> str:
    """One rule of the linkage attack (direction, ties, scaling, metric) in the language *lang*."""
    return _LINKAGE_PT.get(rule, rule) if lang == "pt" else rule


def number(value: float, lang: str, digits: int | None = None) -> str:
    """A number as the language writes it: 1,234.5 or 1.234,5."""
    if digits is None:
        digits = 0 if float(value).is_integer() else 4
    text = f"{value:,.{digits}f}"
    return text if lang == "en" else text.translate(str.maketrans(",.", ".,"))


def percent(share: float, lang: str) -> str:
    """A share in percent, one digit after the point."""
    return number(100 * share, lang, 1) + "%"
