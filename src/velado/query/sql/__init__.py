"""The subset of SQL we answer: read, every clause checked, every refusal with its reason."""

from velado.query.sql._by_hand import checked
from velado.query.sql._parse import parse
from velado.query.sql._tree import queryable

__all__ = ["checked", "parse", "queryable"]
