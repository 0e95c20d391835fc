"""Full-text search in one index; it has each entry's tenant as a word, so that others' are not read."""

import re
import sys
from collections.abc import Collection, Iterable
from typing import Any, Final
from uuid import UUID

from django.contrib.auth import get_user_model
from django.contrib.postgres.search import SearchVectorField
from django.db.models import BooleanField, Func, Q, QuerySet, Subquery, Value
from django.http import HttpRequest
from unfold.contrib.filters.admin import TextFilter

from auditlog.models import Leaf, SignedHead
from auditlog.vocabulary import PERSON
from compliance.core import environments

MOST_WORDS: Final = 10
LONGEST_WORD: Final = 100
COMMON: Final = 20_000
"""With more matches, reading entries by time until a page is full is the quickest."""
# With fewer it is the slowest: a limit makes the planner read the matches first.
_ALL: Final = sys.maxsize
_WORD: Final = re.compile(r"[^\W_]+")


class EntryWords(Func):
    """The expression of the index: an entry's tenant and words, split where punctuation joins them."""

    output_field = SearchVectorField()
    template = """(array_to_tsvector(ARRAY[tenant_id::text]) || to_tsvector('simple', translate(
        coalesce(description, '')
            || ' ' || coalesce(metadata ->> 'reason', '')
            || ' ' || coalesce(metadata ->> 'note', '')
            || ' ' || coalesce(metadata ->> 'comment', ''),
        '-_./:@', '      ')))"""


def saying(entries: QuerySet[Any], text: str, *, tenants: Collection[UUID] | None) -> QuerySet[Any]:
    """Return the entries that have, for each word of `text`, a word that begins so; none without a word.

    All of the entries must be of these `tenants`; None: of any.
    """
    words = [word[:LONGEST_WORD] for word in _WORD.findall(text)][:MOST_WORDS]
    if not words or (tenants is not None and not tenants):
        return entries.none()
    beginnings = " & ".join(f"'{word}':*" for word in words)
    wanted: Func = Func(Value(beginnings), template="to_tsquery('simple', %(expressions)s)")
    if tenants is not None:
        within = Func(
            Value(" | ".join(f"'{tenant}'" for tenant in tenants)), template="%(expressions)s::tsquery"
        )
        wanted = Func(within, wanted, template="(%(expressions)s)", arg_joiner=" && ")
    matches = Func(
        EntryWords(), wanted, template="%(expressions)s", arg_joiner=" @@ ", output_field=BooleanField()
    )
    matching = entries.model._default_manager.filter(matches).values("pk")
    if matching.using(entries.db)[COMMON : COMMON + 1].exists():
        return entries.filter(matches)
    # A subquery runs where the query around it does: it names no database.
    return entries.filter(pk__in=matching.using(None)[:_ALL])


def add_places(entries: Iterable[Any]) -> None:
    """Give entries `leaf_index` (None: waits), `erased`, and both checkpoint sizes (0: waits)."""
    entries = list(entries)
    alias = environments.current().auditor_alias
    found: QuerySet[Any] = Leaf.objects.using(alias).filter(entry_id__in=[entry.pk for entry in entries])
    sizes = SignedHead.objects.order_by("-size").values("size")
    placed = found.annotate(
        signed_size=Subquery(sizes[:1]), witnessed_size=Subquery(sizes.filter(has_quorum=True)[:1])
    )
    leaves = {leaf.entry_id: leaf for leaf in placed.only("index", "entry_id", "erased")}
    for entry in entries:
        leaf = leaves.get(entry.pk)
        entry.leaf_index, entry.erased = (leaf.index, leaf.erased) if leaf else (None, None)
        entry.signed_size = (leaf and leaf.signed_size) or 0
        entry.witnessed_size = (leaf and leaf.witnessed_size) or 0


MOST_PEOPLE: Final = 1000
MOST_NAMES: Final = 5
CONSOLE: Final = "console:"
"""The beginning of people's ids in entries from before people had lasting ones."""
_NAMES: Final = ("username", "first_name", "last_name", "email")


class ActorFilter(TextFilter):
    """Finds the actor with an id, and the people whose name, user name or address begins as given.

    People are found by the ids that they had in the past, too.
    """

    title = "person or actor ID"
    parameter_name = "actor"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        text = (self.value() or "").strip()
        if not text or "\x00" in text:
            return queryset
        users: Any = get_user_model()._default_manager
        for word in text.split()[:MOST_NAMES]:
            users = users.filter(Q.create([(f"{name}__istartswith", word) for name in _NAMES], Q.OR))
        actors = [text]
        for user in users.select_related("person").order_by("pk")[:MOST_PEOPLE]:
            actors += [f"{PERSON}{user.person.id}", f"{CONSOLE}{user.username}"]
        return queryset.filter(actor_id__in=actors)
