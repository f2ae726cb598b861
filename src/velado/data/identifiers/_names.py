"""How much a column looks like names of people: by the lists of frequent given names and surnames, and by its form."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from velado.data.identifiers._lexicon import COMMON_WORDS, GIVEN, SURNAMES

PARTICLES = r"(?:d[aeo]s?|e|von|van|der|del|de la|la|di|du|y)"
TURNED = r"^\p{Lu}[\p{L}'’-]+(?: \p{L}[\p{L}'’-]+)?, ?\p{Lu}[\p{L}'’.-]*(?: \p{L}[\p{L}'’.-]*)*$"
TITLES = r"^(?:dr|dra|sr|sra|srta|mr|mrs|ms|prof|profa|don|dona|enf|sor)\b\.?\s+"


def plain_texts(texts: pl.Series) -> pl.Series:
    """Texts in lower case without accents, titles, final digits and doubled blanks; `SILVA, Maria` as `maria silva`."""
    plain = texts.str.normalize("NFKD").str.replace_all(r"\p{M}", "")
    plain = plain.str.replace(
        r"^(\p{Lu}\p{Ll}+)(\p{Lu}(?:['’]\p{Lu}|c\p{Lu})?\p{Ll}+)$", "$1 $2"
    ).str.to_lowercase()
    plain = plain.str.replace_all(r"[._\s]+", " ").str.replace_all("’", "'", literal=True).str.strip_chars()
    plain = plain.str.replace(r"^mc ", "mc").str.replace(r";", ",", literal=True)
    plain = plain.str.replace(TITLES, "").str.replace(r"\d+$", "")
    return plain.str.replace(r"^([^,]+),\s*([^,]+)$", "$2 $1")


class NameShares(NamedTuple):
    """Shares of texts that are full names by both lists, by one of them, a given name alone, a surname alone."""

    both: float = 0.0
    one: float = 0.0
    given: float = 0.0
    family: float = 0.0


def name_shares(texts: pl.Series) -> NameShares:
    """How many of *texts* are names, as shares.

    A full name has two to seven words of letters. The texts should be distinct, so that one that repeats counts once.
    """
    if not texts.len():
        return NameShares()
    plain = plain_texts(texts)
    wordy = plain.str.contains(r"^[a-z'’-]+(?: [a-z'’-]+){0,6}$")
    several = wordy & plain.str.contains(" ", literal=True)
    starts = plain.str.extract(r"^([a-z'’]+)")
    first = starts.is_in(list(GIVEN)).fill_null(False)
    ends = plain.str.extract(r"([a-z'’]+)$")
    last = ends.is_in(list(SURNAMES)).fill_null(False)
    begun = starts.is_in(list(SURNAMES)).fill_null(False)
    initial = plain.str.contains(r" [a-z]$") | plain.str.contains(r"^[a-z] ")
    given_end = ends.is_in(list(GIVEN)).fill_null(False)
    both = several & ((first & (last | given_end)) | (begun & given_end))
    one = several & (first | last | (begun & initial))
    single = wordy & ~several
    common = starts.is_in(list(COMMON_WORDS)).fill_null(False)
    counts = (both, one, single & first, single & begun & ~first & ~common)
    return NameShares(*(int(found.sum()) / texts.len() for found in counts))


def like_names(texts: pl.Series) -> bool:
    """Whether distinct *texts* read like names of people: titles, `Surname, Given`, or words of the lists."""
    if not texts.len():
        return False
    titled = texts.str.to_lowercase().str.contains(TITLES + r"\p{L}")
    turned = texts.str.contains(TURNED)
    both, one, _, _ = name_shares(texts)
    return max(int(titled.sum()), int(turned.sum())) >= 0.5 * texts.len() or both >= 0.2 or one >= 0.4
