"""Full-text search over descriptions, reasons, notes and comments, answered by one index (migration 0010).

The index holds each entry's tenant as a word: a search within tenants reads nothing of others.
"""

import re
import sys
from collections.abc import Collection
from typing import Any, Final
from uuid import UUID

from django.contrib.postgres.search import SearchVectorField
from django.db.models import BooleanField, Func, QuerySet, Value

MOST_WORDS: Final = 10
LONGEST_WORD: Final = 100
COMMON: Final = 20_000
"""With more matches, reading entries by time until a page is full is the quickest."""
# With fewer it is the slowest: a limit makes the planner read the matches first.
_ALL: Final = sys.maxsize
_WORD: Final = re.compile(r"[^\W_]+")


class EntryWords(Func):
    """The words of an entry, and its tenant: the expression that the index has.

    What joins words (addresses, dates, compounds) separates them, in the search as here.
    """

    output_field = SearchVectorField()
    template = """(array_to_tsvector(ARRAY[tenant_id::text]) || to_tsvector('simple', translate(
        coalesce(description, '')
            || ' ' || coalesce(metadata ->> 'reason', '')
            || ' ' || coalesce(metadata ->> 'note', '')
            || ' ' || coalesce(metadata ->> 'comment', ''),
        '-_./:@', '      ')))"""


class _Matches(Func):
    output_field = BooleanField()
    template = "%(expressions)s"
    arg_joiner = " @@ "


def saying(entries: QuerySet[Any], text: str, *, tenants: Collection[UUID] | None) -> QuerySet[Any]:
    """Return the entries that have, for each word of `text`, a word that begins so; none without a word.

    All of the entries must be of these `tenants`; None: of any.
    """
    words = [word[:LONGEST_WORD] for word in _WORD.findall(text)][:MOST_WORDS]
    if not words or tenants == []:
        return entries.none()
    beginnings = " & ".join(f"'{word}':*" for word in words)
    wanted: Func = Func(Value(beginnings), template="to_tsquery('simple', %(expressions)s)")
    if tenants is not None:
        within = Func(
            Value(" | ".join(f"'{tenant}'" for tenant in tenants)), template="%(expressions)s::tsquery"
        )
        wanted = Func(within, wanted, template="(%(expressions)s)", arg_joiner=" && ")
    matches = _Matches(EntryWords(), wanted)
    matching = entries.model._default_manager.filter(matches).values("pk")
    if matching.using(entries.db)[COMMON : COMMON + 1].exists():
        return entries.filter(matches)
    # A subquery runs where the query around it does: it names no database.
    return entries.filter(pk__in=matching.using(None)[:_ALL])
