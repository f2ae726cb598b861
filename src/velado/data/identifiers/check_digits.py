"""Numbers with check digits: which share of texts keeps the rule of a CPF, CNS, CNPJ, card, IBAN or Spanish DNI."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

_DNI_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"


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


def valid_cnpj_share(digits: pl.Series) -> float:
    """The share of texts that are CNPJs: fourteen digits, the last two modulo 11 with weights 2 to 9."""
    matrix = _digit_matrix(digits, 14)
    if not matrix.size:
        return 0.0
    good = ~(matrix == matrix[:, :1]).all(axis=1)
    for place in (12, 13):
        weights = 2 + np.arange(place)[::-1] % 8
        rest = matrix[:, :place] @ weights % 11
        good &= matrix[:, place] == np.where(rest < 2, 0, 11 - rest)
    return float(good.sum()) / digits.len()


def valid_luhn_share(digits: pl.Series) -> float:
    """The share of texts that are card numbers: 13 to 19 digits that begin with 2 to 6 and keep Luhn's rule."""
    good = 0
    for length in range(13, 20):
        matrix = _digit_matrix(digits, length)
        if matrix.size:
            doubled = matrix.copy()
            doubled[:, -2::-2] *= 2
            doubled -= 9 * (doubled > 9)
            right = (doubled.sum(axis=1) % 10 == 0) & (matrix[:, 0] >= 2) & (matrix[:, 0] <= 6)
            good += int((right & ~(matrix == matrix[:, :1]).all(axis=1)).sum())
    return good / digits.len() if digits.len() else 0.0


def valid_iban_share(texts: pl.Series) -> float:
    """The share of texts that are IBANs: letters read as 10 to 35, first four moved to the end, 1 modulo 97."""
    plain = texts.str.replace_all(r"\s", "").str.to_uppercase()
    fits = plain.filter(plain.str.contains(r"^[A-Z]{2}\d{2}[A-Z0-9]{11,30}$")).unique()
    share = plain.is_in(fits.implode()).sum() / texts.len() if texts.len() else 0.0
    if not fits.len():
        return 0.0
    moved = [text[4:] + text[:4] for text in fits.to_list()]
    good = sum(int("".join(str(int(c, 36)) for c in text)) % 97 == 1 for text in moved)
    return float(share) * good / fits.len()


def valid_dni_share(texts: pl.Series) -> float:
    """The share of texts that are Spanish DNIs or NIEs: the letter is the number modulo 23 in the official order."""
    parts = texts.str.to_uppercase().str.extract_groups(r"^([XYZ]?)-?(\d{7,8})-?([A-Z])$")
    first, number, letter = (parts.struct.field(str(i)) for i in (1, 2, 3))
    size = number.str.len_chars() + first.str.len_chars()
    whole = pl.select(
        pl.lit(first).replace({"X": "0", "Y": "1", "Z": "2"}).add(pl.lit(number)).cast(pl.Int64, strict=False)
    ).to_series()
    wanted = (whole % 23).replace_strict(dict(enumerate(_DNI_LETTERS)), default=None, return_dtype=pl.String)
    good = ((wanted == letter) & (size == 8)).fill_null(False)
    return int(good.sum()) / texts.len() if texts.len() else 0.0


def _digit_matrix(digits: pl.Series, length: int) -> npt.NDArray[np.int64]:
    exact = digits.filter(digits.str.contains(rf"^[0-9]{{{length}}}$"))
    joined = "".join(exact.to_list()).encode("ascii")
    return (np.frombuffer(joined, dtype=np.uint8).astype(np.int64) - 48).reshape(-1, length)
