"""The present names of people for the console; actor ids stay what they are when a name changes."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from django.contrib.auth import get_user_model
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from auditlog.vocabulary import PERSON
from compliance.console.display import code, short_code, visible
from compliance.core.identifiers import parse_id

if TYPE_CHECKING:  # Unfold carries no types; its classes extend Django's.
    from django.contrib.admin import ModelAdmin
else:
    from unfold.admin import ModelAdmin


def names_of(actor_ids: Iterable[str]) -> Mapping[str, str]:
    """Return the present name of each of these actors that is a person, in at most one query."""
    people = {
        parse_id(actor_id.removeprefix(PERSON)) for actor_id in actor_ids if actor_id.startswith(PERSON)
    }
    people.discard(None)
    if not people:
        return {}
    users: Any = get_user_model()._default_manager.filter(person__in=people).select_related("person")
    return {f"{PERSON}{user.person.id}": name_of(user) for user in users}


def name_of(user: Any) -> str:
    full, username = user.get_full_name(), user.get_username()
    return f"{full} ({username})" if full else str(username)


def actor_shown(actor_id: str, name: str | None = None, *, is_short: bool = False) -> SafeString | str:
    """Return an actor's id, with the present name before it if it is a person's."""
    shown = short_code(actor_id) if is_short else code(actor_id)
    return format_html("{} {}", visible(name), shown) if name else shown


class NamesActors(ModelAdmin):
    """Gives each row that a page shows `actor_name`: one query a page."""

    actor_field = "actor_id"

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> Any:
        page = self

        class NamedChangeList(super().get_changelist(request, **kwargs)):  # type: ignore[misc]
            result_list: Any

            def get_results(self, request: HttpRequest) -> None:
                super().get_results(request)
                self.result_list = page.named(list(self.result_list))

        return NamedChangeList

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        row = super().get_object(request, object_id, from_field)
        return row and self.named([row])[0]

    def named(self, rows: list[Any]) -> list[Any]:
        names = names_of(getattr(row, self.actor_field) for row in rows)
        for row in rows:
            row.actor_name = names.get(getattr(row, self.actor_field))
        return rows
