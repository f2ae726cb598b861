"""Recognising what points at a person: by the words of a column's header and by the shape of its values.

Shapes are judged on a sample of values, never shown. Every finding is a proposal that a person reviews; where
in doubt a column is named rather than passed over.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

IdentifierKind = Literal["cpf", "cns", "document", "record", "email", "phone", "name", "address"]

LEAST_SHARE = 0.8
"""A column has a shape when at least this share of its sampled values has it."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


HEADER_WORDS: Mapping[str, frozenset[str]] = {
    "cpf": _words("cpf"),
    "cns": _words("cns cartaosus numerosus numsus cnsusuario"),
    "document": _words("rg cnh pis nis pasep passaporte passport ssn documento nif dni titulo"),
    "email": _words("email mail"),
    "phone": _words("telefone fone tel celular phone mobile cell whatsapp telephone"),
    "name": _words(
        "nome nomes name names paciente patient sobrenome surname firstname lastname fullname mae pai mother "
        "father responsavel"
    ),
    "address": _words("endereco logradouro rua street address"),
    "record": _words(
        "id uuid guid prontuario registro matricula mrn record chart aih inscricao identificador identifier "
        "protocolo paciente patient pessoa person participante participant subject usuario user"
    ),
    "quasi": _words(
        "sexo sex gender genero idade age etaria nascimento nasc dtnasc birth birthdate birthday dob cep zip "
        "zipcode postal postcode municipio munic codmunres munres cidade city town bairro neighborhood district "
        "distrito estado uf state county regiao region pais country nacionalidade nationality naturalidade "
        "residencia residence latitude longitude raca race racacor cor etnia ethnicity ethnic civil marital "
        "estciv conjugal escolaridade education schooling instrucao ocupacao ocup occupation profissao profession "
        "cbo workclass empregador employer filhos children parentesco relationship religiao religion"
    ),
    "sensitive": _words(
        "diagnostico diagnosis diag cid cid10 icd icd10 doenca disease hiv aids exame resultado result desfecho "
        "outcome renda income salario salary wage condicao condition medicamento medication tratamento treatment "
        "procedimento procedure obito death cancer severity gravidade divida debt alergia allergy"
    ),
    "free text": _words(
        "observacao observacoes obs nota notas note notes comentario comentarios comment comments texto "
        "description descricao anotacao evolucao anamnese laudo remarks"
    ),
}
_PLACE_WORDS = _words("municipio cidade city hospital unidade unit product produto file arquivo bairro")
_CODE_WORDS = _words(
    "cep zip zipcode postal postcode cbo cid cid10 icd icd10 codmunres munres municipio munic uf sexo sex gender "
    "genero raca race racacor cor etnia ethnicity civil estciv marital religiao religion codigo code"
)
_LONG_WORD = 8  # shorter words also stand inside unrelated ones ("cidade" in "velocidade")


@dataclass(frozen=True)
class Found:
    """What a column seems to identify by, why, and, for numbers with check digits, how many are valid."""

    kind: IdentifierKind
    why: str
    valid: float | None = None


def header_words(name: str) -> frozenset[str]:
    """The words of a header in lower case without accents: `dataNascimento` is {data, nascimento}."""
    spaced = re.sub(r"(?<=[a-zà-ÿ])(?=[A-ZÀ-Þ])", " ", name)
    plain = unicodedata.normalize("NFKD", spaced).encode("ascii", "ignore").decode().lower()
    return frozenset(re.findall(r"[a-z]+[0-9]*", plain))


def header_says(name: str, topic: str) -> bool:
    """Whether a header has a word of *topic*; long words also count within longer ones."""
    words = header_words(name)
    known = HEADER_WORDS[topic]
    return bool(words & known) or any(
        long in word for word in words for long in known if len(long) >= _LONG_WORD
    )


def header_names_codes(name: str) -> bool:
    """Whether the header speaks of codes written in digits that are no quantities."""
    return bool(header_words(name) & _CODE_WORDS)


def find_identifier(name: str, sample: pl.Series, rows: int, filled: int, distinct: int) -> Found | None:
    """The direct identifier that a column seems to be, or None.

    *sample* holds texts of the column without blanks; *filled* of its *rows* have a value, *distinct* of
    them different. Numbers with check digits: CPF (11 digits, two check digits modulo 11) and CNS (15 digits,
    weighted sum divisible by 11); written with their punctuation they are recognised whatever the digits.
    """
    if filled == 0 or sample.len() == 0:
        return None
    spread = distinct / filled
    return (
        _numbered(name, sample)
        or _contact(name, sample)
        or _named(name, sample, spread, distinct)
        or _recorded(name, sample, spread, rows, filled, distinct)
    )


def _numbered(name: str, sample: pl.Series) -> Found | None:
    digits = sample.str.replace_all(r"[.\-\s/]", "")
    if _share(digits, r"^\d{11}$") >= LEAST_SHARE:
        valid = valid_cpf_share(digits)
        if _share(sample, r"^\d{3}\.\d{3}\.\d{3}-\d{2}$") >= LEAST_SHARE:
            return Found("cpf", "values are written like a CPF", valid)
        if valid >= LEAST_SHARE:
            return Found("cpf", "values have the check digits of a CPF", valid)
        if header_says(name, "cpf"):
            return Found("cpf", "the header says CPF and values have 11 digits", valid)
    if _share(digits, r"^\d{15}$") >= LEAST_SHARE:
        valid = valid_cns_share(digits)
        if valid >= LEAST_SHARE or header_says(name, "cns"):
            return Found("cns", "values are built like a CNS (health card number)", valid)
    for kind in ("cpf", "cns"):
        if header_says(name, kind) and _share(digits, r"\d") >= LEAST_SHARE:
            return Found("cpf" if kind == "cpf" else "cns", f"the header says {kind.upper()}")
    if _share(sample, r"^\d{3}-\d{2}-\d{4}$") >= LEAST_SHARE:
        return Found("document", "values are written like a social security number")
    if header_says(name, "document") and _share(sample, r"\d") >= LEAST_SHARE:
        return Found("document", "the header names an identity document")
    return None


def _contact(name: str, sample: pl.Series) -> Found | None:
    if _share(sample, r"^[^@\s]+@[^@\s]+\.[A-Za-z]{2,}$") >= LEAST_SHARE:
        return Found("email", "values are e-mail addresses")
    brazilian = r"^(\+?55[\s-]?)?\(\d{2}\)\s?9?\s?\d{4}[\s-]?\d{4}$|^(\+?55[\s-]?)?\d{2}\s9?\d{4}-?\d{4}$"
    international = r"^\+\d[\d\s().-]{7,17}$|^\(\d{3}\)\s?\d{3}-\d{4}$|^\d{3}-\d{3}-\d{4}$"
    if _share(sample, f"{brazilian}|{international}") >= LEAST_SHARE:
        return Found("phone", "values are written like telephone numbers")
    if header_says(name, "phone") and _share(sample, r"^[+(]?\d[\d\s().-]{6,18}$") >= LEAST_SHARE:
        return Found("phone", "the header names a telephone and values have its length")
    return None


def _named(name: str, sample: pl.Series, spread: float, distinct: int) -> Found | None:
    particle = r"(?:d[aeo]s?|e|von|van|der|del|la|di|du)"
    word = r"\p{Lu}[\p{L}'’.-]*"
    full = _share(sample, rf"^{word}(?:\s+(?:{word}|{particle}))*\s+{word}$")
    letters = _share(sample, r"^\p{L}[\p{L}\s'’.,-]*$")
    about_things = bool(header_words(name) & _PLACE_WORDS)
    if header_says(name, "address") and spread >= 0.1 and distinct > 10:
        return Found("address", "the header names an address")
    if header_says(name, "name") and not about_things and letters >= LEAST_SHARE and spread >= 0.1:
        return Found("name", "the header names a person and values are words")
    if full >= LEAST_SHARE and spread >= 0.5 and distinct >= 20 and not about_things:
        return Found("name", "most values are two or more capitalised words, and few repeat")
    return None


def _recorded(
    name: str, sample: pl.Series, spread: float, rows: int, filled: int, distinct: int
) -> Found | None:
    code = _share(sample, r"^[A-Za-z]{0,6}[-_/.]?\d[\dA-Za-z./_-]*$")
    decimals = _share(sample, r"^[+-]?\d*[.,]\d+$")
    if _share(sample, r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$") >= LEAST_SHARE:
        return Found("record", "values are universally unique identifiers")
    if header_says(name, "record") and code >= LEAST_SHARE and decimals < 0.5 and spread >= 0.3:
        return Found("record", "the header names a record number and values hardly repeat")
    if header_says(name, "quasi") or header_says(name, "sensitive"):
        return None
    if distinct == filled == rows and rows >= 20 and code >= LEAST_SHARE and decimals == 0:
        numbers = sample.cast(pl.Int64, strict=False).drop_nulls()
        lengths = sample.str.len_chars().n_unique()
        if numbers.len() < sample.len() and lengths == 1:
            return Found("record", "values are codes of one length, each in one row only")
        low, high = numbers.min(), numbers.max()
        if isinstance(low, int) and isinstance(high, int) and high - low < 2 * rows:
            return Found("record", "values number the rows, each once")
    return None


def valid_cpf_share(digits: pl.Series) -> float:
    """The share of texts that are CPFs with right check digits; eleven equal digits are none."""
    matrix = _digit_matrix(digits, 11)
    if not matrix.size:
        return 0.0
    good = ~(matrix == matrix[:, :1]).all(axis=1)
    for place in (9, 10):
        rest = matrix[:, :place] @ np.arange(place + 1, 1, -1) % 11
        good &= matrix[:, place] == np.where(rest < 2, 0, 11 - rest)
    return float(good.sum()) / digits.len()


def valid_cns_share(digits: pl.Series) -> float:
    """The share of texts that are CNS numbers: first digit 1, 2, 7, 8 or 9, weighted sum divisible by 11."""
    matrix = _digit_matrix(digits, 15)
    if not matrix.size:
        return 0.0
    good = (matrix @ np.arange(15, 0, -1) % 11 == 0) & np.isin(matrix[:, 0], (1, 2, 7, 8, 9))
    return float(good.sum()) / digits.len()


def _digit_matrix(digits: pl.Series, length: int) -> npt.NDArray[np.int64]:
    exact = digits.filter(digits.str.contains(rf"^[0-9]{{{length}}}$"))
    joined = "".join(exact.to_list()).encode("ascii")
    return (np.frombuffer(joined, dtype=np.uint8).astype(np.int64) - 48).reshape(-1, length)


def _share(sample: pl.Series, pattern: str) -> float:
    return int(sample.str.contains(pattern).sum()) / sample.len()
