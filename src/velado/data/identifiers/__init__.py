"""Recognising what points at a person: by the words of a column's header and by the shape of its values.

`headers` reads a header with the words of `_lexicon`; `_shapes` reads a sample of values, with the rules of check digits
and the lists of `_names`; `judgement` brings both together, for every room that publishes or checks; `following` finds
columns that name nobody and still link the rows of a person; `people` says which column tells who a person is.
"""

from velado.data.identifiers._shapes import valid_cns_share as valid_cns_share
from velado.data.identifiers._shapes import valid_cpf_share as valid_cpf_share
from velado.data.identifiers.headers import IdentifierKind as IdentifierKind
from velado.data.identifiers.headers import Identifying as Identifying
from velado.data.identifiers.headers import header_names_codes as header_names_codes
from velado.data.identifiers.headers import header_says as header_says
from velado.data.identifiers.headers import header_says_day as header_says_day
from velado.data.identifiers.headers import header_words as header_words
from velado.data.identifiers.headers import read_header as read_header
from velado.data.identifiers.judgement import identifying_columns as identifying_columns
from velado.data.identifiers.people import LINKING as LINKING
from velado.data.identifiers.people import linked_columns as linked_columns
from velado.data.identifiers.people import linking_columns as linking_columns
from velado.data.identifiers.people import people_may_be as people_may_be
from velado.data.identifiers.people import person_columns as person_columns
from velado.data.identifiers.people import repeated_identifiers as repeated_identifiers
from velado.data.identifiers.people import rows_are_others as rows_are_others
