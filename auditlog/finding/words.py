"""Full-text search over descriptions, reasons, notes and comments, answered by one index (migration 0010).

The index holds each entry's tenant as a word: a search within tenants reads nothing of others.
"""

import re
from collections.abc import Collection
from typing import Any, Final
from uuid import UUID

from django.contrib.postgres.search import SearchVectorField
from django.db.models import BooleanField, Func, QuerySet, Value

MOST_WORDS: Final = 10
LONGEST_WORD: Final = 100
_WORD: Final = re.compile(r"\w")


class EntryWords(Func):
    """The words of an entry, and its tenant: the expression that the index has."""

    output_field = SearchVectorField()
    template = """(array_to_tsvector(ARRAY[tenant_id::text])
        || to_tsvector('simple', coalesce(description, ''))
        || to_tsvector('simple', coalesce(metadata ->> 'reason', ''))
        || to_tsvector('simple', coalesce(metadata ->> 'note', ''))
        || to_tsvector('simple', coalesce(metadata ->> 'comment', '')))"""


class _Matches(Func):
    output_field = BooleanField()
    template = "%(expressions)s"
    arg_joiner = " @@ "


class _Query(Func):
    template = "(%(expressions)s)"
    arg_joiner = " && "


def saying(entries: QuerySet[Any], text: str, *, tenants: Collection[UUID] | None) -> QuerySet[Any]:
    """Return the entries that have, for each word of `text`, a word that begins so; none without a word.

    All of the entries must be of these `tenants`; None: of any.
    """
    words = [word[:LONGEST_WORD] for word in text.split() if _WORD.search(word)][:MOST_WORDS]
    if not words:
        return entries.none()
    parts = [
        Func(Value(_beginning(word)), template="to_tsquery('simple', %(expressions)s)") for word in words
    ]
    if tenants is not None:
        parts.append(Func(Value(_any_of(map(str, tenants))), template="%(expressions)s::tsquery"))
    return entries.filter(_Matches(EntryWords(), _Query(*parts)))


def _beginning(word: str) -> str:
    return f"{_quoted(word)}:*"


def _any_of(words: Any) -> str:
    return " | ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    """Quote a word as tsquery's syntax wants it."""
    doubled = word.replace("\\", "\\\\").replace("'", "''")
    return f"'{doubled}'"
