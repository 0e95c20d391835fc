"""The list's filter by who acted: a person's name as it is now, or the id of any actor."""

from typing import Any, Final

from django.contrib.auth import get_user_model
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from unfold.contrib.filters.admin import TextFilter

from auditlog.vocabulary import PERSON

MOST_PEOPLE: Final = 1000
MOST_NAMES: Final = 5
CONSOLE: Final = "console:"
"""The beginning of people's ids in entries from before people had lasting ones."""
_NAMES: Final = ("username", "first_name", "last_name", "email")


class ActorFilter(TextFilter):
    """Finds the actor with an id, and the people whose name, user name or address begins as given."""

    title = "person or actor ID"
    parameter_name = "actor"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        text = (self.value() or "").strip()
        if not text or "\x00" in text:
            return queryset
        return queryset.filter(actor_id__in=[text, *actors_named(text)])


def actors_named(text: str) -> list[str]:
    """Return the actor ids, past ones included, of the people who are called so."""
    users: Any = get_user_model()._default_manager
    for word in text.split()[:MOST_NAMES]:
        users = users.filter(Q.create([(f"{name}__istartswith", word) for name in _NAMES], Q.OR))
    found = users.select_related("person").order_by("pk")[:MOST_PEOPLE]
    return [
        actor_id for user in found for actor_id in (f"{PERSON}{user.person.id}", f"{CONSOLE}{user.username}")
    ]
