"""The navigation of the console: each table's page declares its line, and here they become groups."""

from dataclasses import dataclass
from typing import Any, Final

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse

GROUPS: Final = ("Agents", "Evidence", "Integration", "Trust", "Access")


@dataclass(frozen=True)
class NavigationLine:
    """The line of a page: its group, one of `GROUPS`, its place in it, its label and its icon.

    Beside the label stands the number that the page's `navigation_badge(request)` returns, unless it is 0.
    """

    group: str
    place: int
    label: str
    icon: str


def groups(request: HttpRequest) -> list[dict[str, Any]]:
    """Return Unfold's groups with the lines of the pages that the user may see."""
    pages: list[Any] = [page for page in admin.site._registry.values() if getattr(page, "navigation", None)]
    items: dict[str, list[dict[str, Any]]] = {}
    for page in sorted(pages, key=lambda one: (GROUPS.index(one.navigation.group), one.navigation.place)):
        if page.has_view_permission(request):
            line, count = page.navigation, getattr(page, "navigation_badge", lambda _: 0)(request)
            link = reverse(f"admin:{page.opts.app_label}_{page.opts.model_name}_changelist")
            shown = {"title": line.label, "icon": line.icon, "link": link}
            items.setdefault(line.group, []).append({**shown, "badge": count} if count else shown)
    return [{"title": title, "separator": True, "items": lines} for title, lines in items.items()]
