"""What is printed after a run: ten lines on a release, the proposed roles, how exposed people are."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from velado.apps.cli import show
from velado.apps.cli.words import number, percent, say
from velado.text import Language, speaking, told

if TYPE_CHECKING:
    from velado.data.inspect import ColumnFinding, Inspection
    from velado.data.missing_codes import MissingCode
    from velado.study.run import Published


# What `inspect` says about a column in Portuguese: roles, kinds, identifiers and the reasons for each.
#
# The library gives its reasons as English phrases. A phrase that is not known here is shown as it is.

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
    "cnpj": "CNPJ",
    "rg": "RG",
    "ssn": "previdência",
    "document": "documento",
    "card": "cartão",
    "account": "conta",
    "record": "registro",
    "member": "beneficiário",
    "email": "e-mail",
    "phone": "telefone",
    "name": "nome",
    "address": "endereço",
    "url": "página ou perfil",
    "ip": "IP",
    "mac": "placa de rede",
    "uuid": "UUID",
    "device": "dispositivo",
    "plate": "placa de veículo",
    "coordinates": "coordenadas",
    "photo": "foto",
    "biometric": "biometria",
    "free text": "texto livre",
}
REASONS: Mapping[str, str] = {
    # what a header says
    "the header says CPF": "o cabeçalho diz CPF",
    "the header says CNS (health card number)": "o cabeçalho diz CNS (cartão de saúde)",
    "the header says CNPJ (company number)": "o cabeçalho diz CNPJ (número de empresa)",
    "the header says id": "o cabeçalho diz id",
    "the header says id; whose is not said": "o cabeçalho diz id; de quem, não diz",
    "the header says name; whose is not said": "o cabeçalho diz nome; de quem, não diz",
    "the header names a biometric feature or a signature": "o cabeçalho nomeia biometria ou assinatura",
    "the header names a card": "o cabeçalho nomeia um cartão",
    "the header names a contact": "o cabeçalho nomeia um contato",
    "the header names a device": "o cabeçalho nomeia um dispositivo",
    "the header names a member or insurance number": "o cabeçalho nomeia um número de beneficiário ou seguro",
    "the header names a network card": "o cabeçalho nomeia uma placa de rede",
    "the header names a person": "o cabeçalho nomeia uma pessoa",
    "the header names a photograph": "o cabeçalho nomeia uma fotografia",
    "the header names a picture or a part of the body": "o cabeçalho nomeia uma imagem ou uma parte do corpo",
    "the header names a professional": "o cabeçalho nomeia um profissional",
    "the header names a pseudonym": "o cabeçalho nomeia um pseudônimo",
    "the header names a relative or guardian": "o cabeçalho nomeia um parente ou responsável",
    "the header names a social security number": "o cabeçalho nomeia um número de previdência",
    "the header names a telephone": "o cabeçalho nomeia um telefone",
    "the header names a vehicle": "o cabeçalho nomeia um veículo",
    "the header names a web page or profile": "o cabeçalho nomeia uma página ou perfil na rede",
    "the header names an IP address": "o cabeçalho nomeia um endereço IP",
    "the header names an account": "o cabeçalho nomeia uma conta",
    "the header names an address": "o cabeçalho nomeia um endereço",
    "the header names an e-mail address": "o cabeçalho nomeia um e-mail",
    "the header names an identity document": "o cabeçalho nomeia um documento de identidade",
    "the header names coordinates": "o cabeçalho nomeia coordenadas",
    "the header names coordinates, and they have three decimals or more": (
        "o cabeçalho nomeia coordenadas, e elas têm três casas decimais ou mais"
    ),
    "the header names the number of a household": "o cabeçalho nomeia o número de um domicílio",
    "the header names the number of a person's record": "o cabeçalho nomeia o número do registro de uma pessoa",
    "the header names the number of a professional": "o cabeçalho nomeia o número de um profissional",
    "the header names the number of a visit or event": "o cabeçalho nomeia o número de um atendimento ou evento",
    "the header names a badge or key": "o cabeçalho nomeia um crachá ou uma chave",
    "the header names a part of a name": "o cabeçalho nomeia uma parte de um nome",
    "the header may name a professional, and names stand below": (
        "o cabeçalho pode nomear um profissional, e há nomes abaixo dele"
    ),
    "the header names a person's visit or event": "o cabeçalho nomeia um atendimento ou evento de uma pessoa",
    "the header names an entry of a civil registry": "o cabeçalho nomeia um registro de cartório",
    "the header says number twice, as that of a house": "o cabeçalho diz número duas vezes, como o de uma casa",
    # what values look like
    "values are written like a CPF": "valores escritos como CPF",
    "values have the check digits of a CPF": "valores com os dígitos verificadores de um CPF",
    "values are built like a CNS (health card number)": "valores formados como um CNS (cartão de saúde)",
    "values are written like a CNPJ (company number)": "valores escritos como CNPJ (número de empresa)",
    "values are written like an RG (identity card)": "valores escritos como RG (carteira de identidade)",
    "values are written like a social security number": "valores escritos como número de previdência (EUA)",
    "values have the check letter of a DNI or NIE": "valores com a letra verificadora de um DNI ou NIE",
    "values have the check digits of an IBAN": "valores com os dígitos verificadores de um IBAN",
    "values have the check digit of a card": "valores com o dígito verificador de um cartão",
    "values are digits of one length, as documents, cards and telephones have": (
        "valores são dígitos de mesmo comprimento, como os de documentos, cartões e telefones"
    ),
    "values are e-mail addresses": "valores são endereços de e-mail",
    "values are written like telephone numbers": "valores escritos como números de telefone",
    "values are built like telephone numbers": "valores formados como números de telefone",
    "values are web addresses": "valores são endereços da rede",
    "values are names of accounts on social networks": "valores são nomes de contas em redes sociais",
    "values are IP addresses": "valores são endereços IP",
    "values are addresses of network cards": "valores são endereços de placas de rede",
    "values are universally unique identifiers": "valores são identificadores únicos universais (UUID)",
    "values are digests, one for each record": "valores são resumos criptográficos, um por registro",
    "values are built like number plates of vehicles": "valores formados como placas de veículos",
    "values are pairs of coordinates": "valores são pares de coordenadas",
    "values are written like street addresses": "valores escritos como endereços de rua",
    "values name files of pictures or recordings": "valores nomeiam arquivos de imagens ou gravações",
    "values are names of people": "valores são nomes de pessoas",
    "values are given names": "valores são prenomes",
    "values begin with a title, as names do": "valores começam com um título, como nomes",
    "values are two words with a comma, as turned names are": (
        "valores são duas palavras com vírgula, como nomes invertidos"
    ),
    "values are joined names, as user names are": "valores são nomes unidos, como os de usuários",
    "many values are given names or surnames": "muitos valores são prenomes ou sobrenomes",
    "written in a script whose names are not known": "escritos em um alfabeto cujos nomes não são conhecidos",
    "two columns hold decimals as coordinates have them": "duas colunas têm casas decimais como as de coordenadas",
    "some values are names of people": "alguns valores são nomes de pessoas",
    "most values are two or more capitalised words": (
        "a maioria dos valores são duas ou mais palavras com maiúscula"
    ),
    "most values are two or more words, as names are": "a maioria dos valores são duas ou mais palavras, como nomes",
    "values are codes of one length, each in one row only": (
        "valores são códigos de mesmo comprimento, cada um em uma só linha"
    ),
    "values are codes, each in one row only": "valores são códigos, cada um em uma só linha",
    "values are codes of one length, as records and pseudonyms have": (
        "valores são códigos de mesmo comprimento, como os de registros e pseudônimos"
    ),
    "values number the rows, each once": "valores numeram as linhas, cada um uma vez",
    "some values hold a CPF": "alguns valores contêm um CPF",
    "some values hold a social security number": "alguns valores contêm um número de previdência (EUA)",
    "some values hold a street address": "alguns valores contêm um endereço de rua",
    "some values hold a telephone number": "alguns valores contêm um telefone",
    "some values hold a web address": "alguns valores contêm um endereço da rede",
    "some values hold an e-mail address": "alguns valores contêm um e-mail",
    "in doubt, so held back: read it, then sign for it or leave it out": (
        "em dúvida, por isso retida: leia-a e assine por ela, ou deixe-a de fora"
    ),
    "in doubt: all rows of a person share its value and hardly anybody else has it, so it links them": (
        "em dúvida: todas as linhas de uma pessoa têm o mesmo valor, que quase ninguém mais tem; ele liga as linhas"
    ),
    "in doubt: with other columns that stay the same for a person it tells people apart and links their rows": (
        "em dúvida: com outras colunas que não mudam para uma pessoa, distingue pessoas e liga as linhas delas"
    ),
    "outsiders often know the year of an event in somebody's life": (
        "pessoas de fora muitas vezes sabem o ano de um fato da vida de alguém"
    ),
    "most rows have a value that no other row has: read it before it is published": (
        "a maioria das linhas tem um valor que nenhuma outra tem: leia-a antes de publicar"
    ),
    "every row has the same value, so it tells nobody apart": (
        "todas as linhas têm o mesmo valor, que não distingue ninguém"
    ),
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


SHOWN = 5


def published(done: Published, lang: Language, as_json: bool, quiet: bool) -> None:
    """A finished release is told: as JSON the manifest and the folder, else in ten lines and its warnings."""
    if as_json:
        manifest = json.loads((done.public / "manifest.json").read_text("utf-8"))
        parts = {
            part.name: sorted(path.name for path in part.iterdir()) for part in (done.public, done.private)
        }
        # The owner sees all that was measured; the manifest, which leaves, has only what the table shows.
        facts = done.release.to_dict()
        measured = {"side_doors": facts["promise"]["side_doors"], "how": facts["how"]}
        measured["metrics"] = done.scores.to_dict()
        show.as_json({"folder": str(done.folder), "files": parts, **manifest, **measured})
        return
    if quiet:
        return
    from velado.report.terminal import ten_lines, warning_lines

    reports = sorted(path.name for path in done.private.glob("report.*"))
    report = "report.html" if "report.html" in reports else (reports[0] if reports else "")
    with speaking(lang):
        for text in warning_lines(done.facts):
            show.note(f"{say(lang, 'warning')}: {told(text)}")
        for text in ten_lines(done.facts, done.public, done.private / report):
            show.line(told(text))


def roles(inspection: Inspection, lang: str) -> None:
    """The proposed roles, one column a line, with the reasons for each."""
    show.table(
        say(lang, "roles_title"),
        [say(lang, key) for key in ("column", "role", "kind", "found", "why_column")],
        [
            [
                column.name,
                role_in(lang, column.role) + ("" if column.publish else f", {say(lang, 'kept_back')}"),
                kind_in(lang, column.kind),
                _looks_like(column, lang),
                "; ".join(reason_in(lang, why) for why in column.why),
            ]
            for column in inspection.columns
        ],
    )


def _looks_like(column: ColumnFinding, lang: str) -> str:
    if column.identifier is not None:
        return identifier_in(lang, column.identifier)
    return "" if column.suspected is None else f"{identifier_in(lang, column.suspected)}?"


def _missing_codes(inspection: Inspection, lang: str) -> list[str]:
    by_code: dict[str, list[MissingCode]] = {}
    for code in inspection.missing_codes:
        if not code.applied:
            by_code.setdefault(code.code, []).append(code)
    lines = []
    for text, codes in by_code.items():
        names = [code.column for code in codes]
        shown = ", ".join(names[:SHOWN]) + (f" (+{len(names) - SHOWN})" if len(names) > SHOWN else "")
        rows = number(sum(code.rows for code in codes), lang)
        lines.append(say(lang, "missing_code", code=text, rows=rows, columns=shown))
    return lines


def exposure(inspection: Inspection, lang: str) -> None:
    """Direct identifiers, how well columns tell rows apart, and how many are unique now."""
    found = [
        f"{c.name} ({identifier_in(lang, c.identifier)})"
        for c in inspection.columns
        if c.identifier is not None
    ]
    show.line(say(lang, "identifiers_found", columns=", ".join(found) or say(lang, "none")))
    held = [
        f"{c.name} ({identifier_in(lang, c.suspected)})"
        for c in inspection.columns
        if c.suspected is not None
    ]
    if held:
        show.line(say(lang, "held_back", columns=", ".join(held)))
    if inspection.person is not None:
        show.line(say(lang, "person_column", column=inspection.person))
        mean = inspection.rows_per_person
        if mean is not None and mean > 1:
            show.line(say(lang, "rows_per_person", column=inspection.person, mean=number(mean, lang, 1)))
    for text in _missing_codes(inspection, lang):
        show.line(text)
    by_name = {column.name: column for column in inspection.columns}
    ranked = [by_name[name] for name in inspection.ranking]
    show.table(
        say(lang, "ranking_title"),
        [say(lang, key) for key in ("columns", "distinct", "distinction", "separation")],
        [
            [
                c.name,
                number(c.distinct + (c.missing > 0), lang),
                percent(c.distinction, lang),
                percent(c.separation, lang),
            ]
            for c in ranked
        ]
        + [
            [" + ".join(best.columns), "", percent(best.distinction, lang), percent(best.separation, lang)]
            for best in inspection.sets
            if len(best.columns) > 1
        ],
    )
    # The sets grow from the column that separates best, so one that does better was not looked at.
    sets = inspection.sets
    if len(sets) > 1 and any(c.separation > sets[0].separation for c in ranked):
        show.line(say(lang, "sets_leave_out"))
    if any(c.missing for c in ranked):
        show.line(say(lang, "ranking_notes"))
    now = inspection.exposure
    if now is None:
        return
    show.line(
        say(
            lang,
            "unique_rows",
            unique=number(now.unique_rows, lang),
            rows=number(inspection.rows, lang),
            smallest=number(now.smallest, lang),
        )
    )
    if inspection.person is not None:
        show.line(
            say(
                lang,
                "unique_people",
                unique=number(now.unique_people, lang),
                people=number(now.people, lang),
            )
        )
