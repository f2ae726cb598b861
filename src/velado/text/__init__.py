"""Sentences in two languages, and numbers, percents, dates and sizes as each language writes them.

English sentences stay where they are written, as templates with named parts: `say("{rows:,} rows.", rows=n)`.
The result is a `str`, the finished English sentence, that also remembers template and parts; `told(sentence,
"pt")` looks the template up in the catalogue (`locale/pt_BR.po`, the English template is the key) and fills
in the parts as Portuguese writes them. A plain string is a template without parts, so a literal in an error
needs no wrapper. What is not in the catalogue is told in English.

`docs/make_catalogue.py` gathers the templates of the package into the catalogue, and checks it.
"""

from velado.text.languages import LANGUAGES, Language, choose, language, speaking
from velado.text.sentence import Sentence, join, listed, say, say_n, told, told_error, told_sentences
from velado.text.writing import (
    NOTHING,
    count,
    day,
    duration,
    few_digits,
    moment,
    number,
    percent,
    plain,
    points,
    read_number,
    share,
    size,
    written,
)

__all__ = [
    "LANGUAGES",
    "NOTHING",
    "Language",
    "Sentence",
    "choose",
    "count",
    "day",
    "duration",
    "few_digits",
    "join",
    "language",
    "listed",
    "moment",
    "number",
    "percent",
    "plain",
    "points",
    "read_number",
    "say",
    "say_n",
    "share",
    "size",
    "speaking",
    "told",
    "told_error",
    "told_sentences",
    "written",
]
