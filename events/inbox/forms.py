"""What officers send to the inbox: its filters in the address, and the form of a decision."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django import forms
from django.http import HttpRequest, QueryDict

from auditlog.actors.names import name_of
from auditlog.actors.requests import actor_of
from auditlog.vocabulary import Actor
from compliance.console.access import OFFICERS
from compliance.console.display import visible
from compliance.core.identifiers import parse_id
from tenancy.models import Membership

BANDS = (("", "High and medium"), ("high", "High"), ("medium", "Medium"))
MINE, NOBODY, SNOOZED = "mine", "nobody", "snoozed"
SHOWN = (("", "All"), (MINE, "Mine"), (NOBODY, "Nobody's"), (SNOOZED, "Snoozed"))
MOST_PAGES = 10_000
LONGEST_SEARCH = 200
LONGEST_NOTE, LONGEST_REASON = 1000, 500
SNOOZES = {
    "1": ("for an hour", timedelta(hours=1)),
    "4": ("for four hours", timedelta(hours=4)),
    "24": ("for a day", timedelta(days=1)),
    "72": ("for three days", timedelta(days=3)),
    "168": ("for a week", timedelta(days=7)),
}


@dataclass(frozen=True)
class InboxFilters:
    """Filters of the inbox as every link and form keeps them; unknown values of an address are left out.

    `shown`: mine, nobody's or snoozed ones; "" is all that are not snoozed.
    """

    band: str = ""
    shown: str = ""
    tenant: UUID | None = None
    search: str = ""
    page: int = 1

    @classmethod
    def of(cls, given: QueryDict) -> "InboxFilters":
        band, shown, page = given.get("band", ""), given.get("shown", ""), given.get("page", "")
        search = given.get("q", "").strip()
        is_page = page.isascii() and page.isdigit() and 0 < len(page) <= len(str(MOST_PAGES))
        return cls(
            band=band if band in dict(BANDS) else "",
            shown=shown if shown in dict(SHOWN) else "",
            tenant=parse_id(given.get("tenant")),
            search=search if len(search) <= LONGEST_SEARCH and search.isprintable() else "",
            page=min(max(int(page), 1), MOST_PAGES) if is_page else 1,
        )

    def query(self, **also: Any) -> str:
        """Return the query string of these filters and of a place in the list (`agent`, `event`)."""
        page = self.page if self.page > 1 else ""
        own = {"band": self.band, "shown": self.shown, "tenant": self.tenant, "q": self.search, "page": page}
        return "?" + urlencode({name: value for name, value in {**own, **also}.items() if value})

    def but(self, **changes: Any) -> str:
        """Return the query string with other filters, on the first page."""
        return replace(self, **{"page": 1, **changes}).query()


class DecisionForm(forms.Form):
    """A note and a case number; `needs_note` is the error without a note of at most `longest` characters."""

    note = forms.CharField(max_length=LONGEST_NOTE, required=False)
    case_number = forms.CharField(max_length=64, required=False)

    def __init__(self, *args: Any, needs_note: str = "", longest: int = LONGEST_NOTE) -> None:
        super().__init__(*args)
        if needs_note:
            self.fields["note"] = forms.CharField(max_length=longest, error_messages={"required": needs_note})


def reviewers_of(request: HttpRequest, tenant_id: UUID) -> dict[str, str]:
    """Return who may review the tenant's events, by actor id: the one who asks, and its other officers."""
    own = {actor_of(request).id: visible(name_of(request.user))}
    memberships = Membership.objects.filter(tenant_id=tenant_id, role__in=OFFICERS, user__is_active=True)
    officers = [one.user for one in memberships.order_by("user__username").select_related("user__person")]
    return own | {Actor.person(user.person.id).id: visible(name_of(user)) for user in officers}
