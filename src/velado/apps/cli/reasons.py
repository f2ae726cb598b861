"""What `inspect` says about a column in Portuguese: roles, kinds, identifiers and the reasons for each.

The library gives its reasons as English phrases. A phrase that is not known here is shown as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

ROLES: Mapping[str, str] = {
    "identifier": "identificador",
    "quasi": "quase-identificador",
    "sensitive": "sensível",
    "other": "outra",
}
KINDS: Mapping[str, str] = {
    "numeric": "número",
    "categorical": "categoria",
    "date": "data",
    "text": "texto",
}
IDENTIFIERS: Mapping[str, str] = {
    "cpf": "CPF",
    "cns": "CNS",
    "document": "documento",
    "record": "registro",
    "email": "e-mail",
    "phone": "telefone",
    "name": "nome",
    "address": "endereço",
}
REASONS: Mapping[str, str] = {
    # direct identifiers
    "values are written like a CPF": "valores escritos como CPF",
    "values have the check digits of a CPF": "valores com os dígitos verificadores de um CPF",
    "the header says CPF and values have 11 digits": "o cabeçalho diz CPF e os valores têm 11 dígitos",
    "values are built like a CNS (health card number)": "valores formados como um CNS (cartão de saúde)",
    "values are written like a social security number": "valores escritos como número de previdência (EUA)",
    "the header names an identity document": "o cabeçalho nomeia um documento de identidade",
    "values are e-mail addresses": "valores são endereços de e-mail",
    "values are written like telephone numbers": "valores escritos como números de telefone",
    "the header names a telephone and values have its length": (
        "o cabeçalho nomeia um telefone e os valores têm esse comprimento"
    ),
    "the header names an address": "o cabeçalho nomeia um endereço",
    "the header names a person and values are words": "o cabeçalho nomeia uma pessoa e os valores são palavras",
    "most values are two or more capitalised words, and few repeat": (
        "a maioria dos valores são duas ou mais palavras com maiúscula, e poucos se repetem"
    ),
    "values are universally unique identifiers": "valores são identificadores únicos universais (UUID)",
    "the header names a record number and values hardly repeat": (
        "o cabeçalho nomeia um número de registro e os valores quase não se repetem"
    ),
    "values are codes of one length, each in one row only": (
        "valores são códigos de mesmo comprimento, cada um em uma só linha"
    ),
    "values number the rows, each once": "valores numeram as linhas, cada um uma vez",
    # kinds
    "no row has a value": "nenhuma linha tem valor",
    "dates": "datas",
    "true or false": "verdadeiro ou falso",
    "numbers": "números",
    "numbers with a decimal comma": "números com vírgula decimal",
    "numbers, but some are infinite or not a number": "números, mas alguns são infinitos ou não numéricos",
    "digits too long for a quantity": "dígitos demais para uma quantidade",
    "digits with leading zeros: codes, not quantities": "dígitos com zeros à esquerda: códigos, não quantidades",
    "digits under a header that names a code": "dígitos sob um cabeçalho que nomeia um código",
    "at most two different numbers": "no máximo dois números diferentes",
    "values look like dates, but not all in one form": "valores parecem datas, mas nem todos na mesma forma",
    "free text: long, and hardly ever repeated": "texto livre: longo e quase nunca repetido",
    "free text: words under a header of notes": "texto livre: palavras sob um cabeçalho de anotações",
    "words or codes": "palavras ou códigos",
    # roles
    "names and places hide in free text: read it before it is published": (
        "nomes e lugares se escondem em texto livre: leia-o antes de publicar"
    ),
    "outsiders often know the day of an event in somebody's life": (
        "pessoas de fora muitas vezes sabem o dia de um fato da vida de alguém"
    ),
    "the header names something private": "o cabeçalho nomeia algo privado",
    "the header names something outsiders may know": "o cabeçalho nomeia algo que pessoas de fora podem saber",
    'if outsiders may know it, set role = "quasi"': 'se pessoas de fora podem sabê-la, ponha role = "quasi"',
    "rows that share it are taken for one person": "linhas que a compartilham são tomadas como uma pessoa",
    "no header names a quasi-identifier; this one is among the columns that tell rows apart best": (
        "nenhum cabeçalho nomeia um quase-identificador; esta está entre as colunas que melhor distinguem as linhas"
    ),
}
TEMPLATES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.DOTALL), text)
    for pattern, text in (
        (r"the header says (\w+)", r"o cabeçalho diz \1"),
        (r"dates of the form (.+)", r"datas na forma \1"),
        (r"times of the form (.+)", r"data e hora na forma \1"),
        (
            r"(\d+) of (\d+) values are no numbers, the others are",
            r"\1 de \2 valores não são números, os outros são",
        ),
        (
            r"it repeats (.+) one to one, so it would undo its generalization",
            r"repete \1 um a um, e desfaria sua generalização",
        ),
    )
)


def role_in(lang: str, role: str) -> str:
    """The role of a column as the language calls it."""
    return ROLES.get(role, role) if lang == "pt" else role


def kind_in(lang: str, kind: str) -> str:
    """The kind of values a column holds."""
    return KINDS.get(kind, kind) if lang == "pt" else kind


def identifier_in(lang: str, kind: str) -> str:
    """The direct identifier a column seems to be."""
    return IDENTIFIERS.get(kind, kind) if lang == "pt" else kind


def reason_in(lang: str, reason: str) -> str:
    """One reason for a proposal."""
    if lang != "pt":
        return reason
    if reason in REASONS:
        return REASONS[reason]
    for pattern, text in TEMPLATES:
        found = pattern.fullmatch(reason)
        if found:
            return found.expand(text)
    return reason
