"""Recognising what points at a person: by the words of a column's header and by the shape of its values.

`headers` reads a header with the words of `lexicon`; `shapes` reads a sample of values, with the rules of
`check_digits` and the lists of `names`; `judgement` brings both together, for every room that publishes or checks;
`following` finds columns that name nobody and still link the rows of a person.
"""

from velado.data.identifiers.headers import (
    Found,
    IdentifierKind,
    header_names_codes,
    header_says,
    header_says_day,
    header_words,
    read_header,
)
from velado.data.identifiers.judgement import Identifying, following_columns, identifying_columns
from velado.data.identifiers.people import person_columns, repeated_identifiers
from velado.data.identifiers.shapes import valid_cns_share, valid_cpf_share

__all__ = [
    "Found",
    "IdentifierKind",
    "Identifying",
    "following_columns",
    "header_names_codes",
    "header_says",
    "header_says_day",
    "header_words",
    "identifying_columns",
    "person_columns",
    "read_header",
    "repeated_identifiers",
    "valid_cns_share",
    "valid_cpf_share",
]
