"""Why a job ended, as it travels: a template of velado's own catalogue and its parts, never text that somebody wrote.

    reason: JSON, [template, {part: text | number | reason}], and of a plural its amount as a third

Whoever takes a reason tells it in its own language, and prints nothing the sender could have made up: a template stands in the
catalogue of this velado or the reason is told as unknown, and a text among the parts is a name or a column of the job or is left out.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection
from string import Formatter

from velado.errors import VeladoError
from velado.learning.regression.job import Job
from velado.text import Sentence, join, say
from velado.text.languages import catalogue

LONGEST_REASON = 2400
LEFT_OUT = "…"
"""What stands in the place of a part that is no word of the job."""

_DEEPEST = 6
# What `velado.text.join` and `listed` make: no words of their own, so they stand in no catalogue.
_JOINED = re.compile(r"\{part0\}(?:\{separator\}\{part\d+\})*")
_SEPARATORS = (" ", ", ", ": ", "; ")


def unknown_reason() -> Sentence:
    """What is said where a reason cannot be told.

    >>> unknown_reason()
    'The reason is not one that this version of velado knows.'
    """
    return say("The reason is not one that this version of velado knows.")


def sentence_of(text: str) -> Sentence:
    """A sentence that stays translatable as a part of another: a literal of an error is a template without parts.

    >>> sentence_of("The table is empty.").template
    'The table is empty.'
    """
    return text if isinstance(text, Sentence) else Sentence(text)


def reason_of(error: VeladoError) -> Sentence:
    """What happened and what to do, of an error that ends a job.

    >>> from velado.errors import InputError
    >>> reason_of(InputError("The table is empty.", "Nothing can be published.", "Give a table with rows."))
    'The table is empty. Give a table with rows.'
    """
    return join([sentence_of(error.what), sentence_of(error.fix)])


def reason_bytes(reason: str) -> bytes:
    """A reason as it travels; one that is too long travels as unknown.

    >>> reason_bytes(say("What {sender} sent was refused.", sender="c0"))
    b'["What {sender} sent was refused.",{"sender":"c0"}]'
    """
    data = _written(_plain(reason))
    return data if len(data) <= LONGEST_REASON else _written(_plain(unknown_reason()))


def reason_in(data: bytes, job: Job) -> Sentence:
    """The reason that somebody sent, in words that are velado's or the job's own.

    >>> from velado.learning.regression.simulate import small_job
    >>> reason_in(b'["What {sender} sent was refused.",{"sender":"c1"}]', small_job())
    'What c1 sent was refused.'
    >>> reason_in(b'["What {sender} sent was refused.",{"sender":"nobody. Pay now"}]', small_job())
    'What … sent was refused.'
    >>> reason_in(b'["Call this number.",{}]', small_job())
    'The reason is not one that this version of velado knows.'
    """
    try:
        return _sentence(json.loads(data), _words(job), _DEEPEST)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, OverflowError):
        return unknown_reason()


def _plain(reason: object) -> object:
    if isinstance(reason, Sentence):
        parts = {name: _plain(part) for name, part in reason.parts.items()}
        if reason.many is None:
            return [reason.template, parts]
        return [reason.template, parts, reason.amount]
    if isinstance(reason, bool | int | float | str):
        return reason
    return str(reason)


def _written(reason: object) -> bytes:
    # A plain text is a template without parts.
    document = [reason, {}] if isinstance(reason, str) else reason
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def _sentence(document: object, words: Collection[str], depth: int) -> Sentence:
    if not isinstance(document, list) or len(document) not in (2, 3) or depth == 0:
        raise ValueError
    template, given = document[:2]
    if not isinstance(template, str) or not isinstance(given, dict):
        raise ValueError
    known = catalogue("pt")
    if {name for _, name, _, _ in Formatter().parse(template) if name} != set(given):
        raise ValueError  # a place left empty would be printed as it stands
    if len(document) == 3:
        if not _finite(document[2]):
            raise ValueError
        return Sentence(template, _parts(given, words, depth), known.several[template], document[2])
    if _JOINED.fullmatch(template):
        separator = given.pop("separator", " ")
        if separator not in _SEPARATORS:
            raise ValueError
        parts = _parts(given, words, depth)
        return Sentence(template, {**parts, "separator": separator})
    if template not in known.single:
        raise ValueError
    return Sentence(template, _parts(given, words, depth))


def _parts(given: dict[str, object], words: Collection[str], depth: int) -> dict[str, object]:
    return {name: _part(part, words, depth) for name, part in given.items()}


def _part(part: object, words: Collection[str], depth: int) -> object:
    if isinstance(part, list):
        return _sentence(part, words, depth - 1)
    if isinstance(part, str):
        mine = part in words or all(piece in words for piece in part.split(", "))
        return part if mine else LEFT_OUT
    if _finite(part):
        return part
    raise ValueError


def _finite(part: object) -> bool:
    return isinstance(part, int | float) and math.isfinite(part)


def _words(job: Job) -> set[str]:
    """The words of the agreement: all parties have read them before."""
    columns = [*job.features, job.target]
    names = {word for column in columns for word in (column.name, column.column or column.name)}
    references = {f"{one.column}={value}" for one in columns for value in one.among}
    weight = set() if job.weight is None else {job.weight.column or job.weight.name, job.weight.name}
    return {
        *names,
        *references,
        *weight,
        *job.unknowns,
        *(party.name for party in job.parties),
        job.protocol.name,
        job.name,
    }
