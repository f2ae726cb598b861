"""The words by which headers and names are known, and how much a column looks like names of people by them.

The words are read once from `lexicon.toml` and `names.toml` beside this file, which say what their lists mean; they are
lower case without accents.

    >>> "paciente" in TAGS["person"], "maria" in GIVEN, "silva" in SURNAMES
    (True, True, True)
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import polars as pl


def words(text: str) -> frozenset[str]:
    """The words of a list written as one text.

    >>> sorted(words("id ip id"))
    ['id', 'ip']
    """
    return frozenset(text.split())


_HERE = Path(__file__).parent
_HEADERS = tomllib.loads((_HERE / "lexicon.toml").read_text("utf-8"))
_NAMES = tomllib.loads((_HERE / "names.toml").read_text("utf-8"))

TOPICS: Mapping[str, frozenset[str]] = {topic: words(text) for topic, text in _HEADERS["topics"].items()}
TAGS: Mapping[str, frozenset[str]] = {tag: words(text) for tag, text in _HEADERS["tags"].items()}
CODED: Mapping[str, frozenset[str]] = {whose: words(text) for whose, text in _HEADERS["codes"].items()}
CODE_WORDS, DAY_WORDS = words(_HEADERS["code_words"]), words(_HEADERS["day_words"])
JOINTS, PLURALS_THAT_COUNT = words(_HEADERS["joints"]), words(_HEADERS["plurals_that_count"])
GIVEN, SURNAMES, COMMON_WORDS = (words(_NAMES[kind]) for kind in ("given", "surnames", "common_words"))


@cache
def _listed(which: frozenset[str]) -> pl.Series:
    """A list of words as Polars looks them up; made once, because every column of words is held against it."""
    return pl.Series(sorted(which), dtype=pl.String).implode()


PARTICLES = r"(?:d[aeo]s?|e|von|van|der|del|de la|la|di|du|y)"
TURNED = r"^\p{Lu}[\p{L}'’-]+(?: \p{L}[\p{L}'’-]+)?, ?\p{Lu}[\p{L}'’.-]*(?: \p{L}[\p{L}'’.-]*)*$"
TITLES = r"^(?:dr|dra|sr|sra|srta|mr|mrs|ms|prof|profa|don|dona|enf|sor)\b\.?\s+"
# Words that stand before a name: son of, mother, cn= of a directory.
_BEFORE = (
    r"(?i)^(?:[sdwc]\s?/\s?o\.?|(?:filh[oa]|son|daughter|wife) (?:de|of)|(?:m[aã]e|pai|madre|padre|mother|father|cn|uid|"
    r"name|nome|nombre|resp|contato|contact|m[eé]dic[oa]|tutor|parent|guardian)\s*[:=])\s*"
)
# Names of other scripts by their frequent beginnings and endings.
_HAN = "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘蒋蔡余杜叶程魏苏吕丁沈任姚卢傅钟崔谭陸張劉陳楊黃趙吳孫馬羅鄭許韓馮鄧"
SCRIPTS = "|".join(
    (
        r"^\p{Cyrillic}{2,}(?:ов|ев|ёв|ин|ын|ский|цкий|енко|чук|юк|ко|ич|ян|дзе|швили)(?:а|ая)?(?: [\p{Cyrillic}. ]+)?$",
        r"^\p{Cyrillic}+ \p{Cyrillic}+(?:ов|ев|ёв|ин|ский|енко|ович|евич|овна|евна)(?:а|ая)?$",
        rf"^[{_HAN}]\p{{Han}}{{1,2}}$",
        r"^(?:佐藤|鈴木|高橋|田中|伊藤|渡辺|渡邊|山本|中村|小林|加藤|吉田|山田|佐々木|山口|松本|井上|木村|斎藤|清水|山崎)",
        r"^[김이박최정강조윤장임한오서신권황안송류홍전]\p{Hangul}{2}$",
        r"^(?:محمد|أحمد|احمد|علي|حسن|حسين|فاطمة|سارة|عائشة|مريم|خالد|يوسف|إبراهيم|عمر|عبد|نور|زينب|ليلى|كريم|خديجة|مصطفى)(?:$| )",
        r"\p{Greek}{3,}(?:όπουλος|οπούλου|ίδης|ιδης|ίδου|άκης|ακης|άκη|άτος|έας|ιάδης|ιάδου|ντίνου|γιάννης|γεωργίου)$",
        r"(?:^| )(?:शर्मा|गुप्ता|सिंह|कुमार|कुमारी|जोशी|यादव|वर्मा|पटेल|मिश्रा|राजेश|प्रिया|अमित|सुनीता|राहुल|पूजा|देवी|रेड्डी|मुखर्जी)(?:$| )",
        r"^(?:כהן|לוי|מזרחי|פרץ|ביטון|דוד|משה|שרה|רחל|יוסף|אברהם)(?:$| )",
    )
)
_SCRIPT_HEADERS = r"(?i)фамилия|имя|отчество|фио|姓名|名前|氏名|名字|姓|الاسم|اسم|اللقب|επίθετο|επώνυμο|όνομα|ονοματεπώνυμο|नाम|이름|성명|שם"


def header_of_a_script_says_name(header: str) -> bool:
    """Whether a header says name in a script other than Latin."""
    return re.search(_SCRIPT_HEADERS, header) is not None


def login_share(texts: pl.Series) -> float:
    """The share of texts that are an initial and a frequent surname, as `jsmith` and `r.lima2`."""
    rest = texts.str.to_lowercase().str.extract(r"^[a-z][._-]?([a-z]{3,})\d*$")
    return int(rest.is_in(_listed(SURNAMES)).fill_null(False).sum()) / texts.len() if texts.len() else 0.0


def _plain_texts(texts: pl.Series) -> pl.Series:
    """Texts in lower case without accents, titles, final digits and doubled blanks; `SILVA, Maria` as `maria silva`."""
    plain = texts.str.replace(_BEFORE, "")
    if bool(plain.str.contains("[/|]").any()):
        plain = plain.str.replace(r"^(\p{L}{3,})[/|](\p{L}{2,})$", "$2 $1")
    plain = plain.str.replace(r"(?i)[\s_(#|–-]+\d{1,8}\)?(?:\s*(?:anos|years?|a[ñn]os))?$", "")
    plain = plain.str.replace(r"^[A-Z]?\d{1,8}\s*[-–:|.]*\s+", "")
    plain = plain.str.replace(r"(?i),\s*(?:ou|dc|o)=.*$", "")
    plain = plain.str.normalize("NFKD").str.replace_all(r"\p{M}", "")
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
    plain = _plain_texts(texts)
    wordy = plain.str.contains(r"^[a-z'’-]+(?: [a-z'’-]+){0,6}$")
    several = wordy & plain.str.contains(" ", literal=True)
    starts = plain.str.extract(r"^([a-z'’]+)")
    first = starts.is_in(_listed(GIVEN)).fill_null(False)
    ends = plain.str.extract(r"([a-z'’]+)$")
    last = ends.is_in(_listed(SURNAMES)).fill_null(False)
    begun = starts.is_in(_listed(SURNAMES)).fill_null(False)
    initial = plain.str.contains(r" [a-z]$") | plain.str.contains(r"^[a-z] ")
    given_end = ends.is_in(_listed(GIVEN)).fill_null(False)
    both = several & ((first & (last | given_end)) | (begun & given_end))
    one = several & (first | last | (begun & initial))
    single = wordy & ~several
    common = starts.is_in(_listed(COMMON_WORDS)).fill_null(False)
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
