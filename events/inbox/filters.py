"""The inbox's filters and place in the list, as its address holds them; every link and form keeps them."""

from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import QueryDict

from compliance.core.identifiers import parse_id
from events.models import RiskBand

BANDS = (RiskBand.HIGH.value, RiskBand.MEDIUM.value)
MINE, NOBODY, SNOOZED = "mine", "nobody", "snoozed"
SHOWN = (MINE, NOBODY, SNOOZED)
MOST_PAGES = 10_000
LONGEST_SEARCH = 200


@dataclass(frozen=True)
class InboxFilters:
    """What the inbox shows, with unknown values of an address left out.

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
            band=band if band in BANDS else "",
            shown=shown if shown in SHOWN else "",
            tenant=parse_id(given.get("tenant")),
            search=search if len(search) <= LONGEST_SEARCH and search.isprintable() else "",
            page=min(max(int(page), 1), MOST_PAGES) if is_page else 1,
        )

    def query(self, **also: Any) -> str:
        """Return the query string of these filters and of a place in the list (`agent`, `event`)."""
        own = {
            "band": self.band,
            "shown": self.shown,
            "tenant": self.tenant,
            "q": self.search,
            "page": self.page if self.page > 1 else "",
        }
        given = {name: value for name, value in {**own, **also}.items() if value}
        return f"?{urlencode(given)}" if given else "?"

    def but(self, **changes: Any) -> str:
        """Return the query string with other filters, on the first page."""
        return replace(self, **{"page": 1, **changes}).query()
