"""The navigation of the console: each table's page declares its line, and here they become groups."""

from dataclasses import dataclass
from typing import Any, Final

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse

GROUPS: Final = ("Agents", "Evidence", "Integration", "Trust", "Access")


@dataclass(frozen=True)
class NavigationLine:
    """The line of a page: its group, one of `GROUPS`, its place in it, its label and its icon."""

    group: str
    place: int
    label: str
    icon: str


def groups(request: HttpRequest) -> list[dict[str, Any]]:
    """Return Unfold's groups with the lines of the pages that the user may see."""
    found = sorted(
        ((line, model, page) for model, page in admin.site._registry.items() if (line := _line_of(page))),
        key=lambda each: (GROUPS.index(each[0].group), each[0].place),
    )
    items: dict[str, list[dict[str, Any]]] = {}
    for line, model, page in found:
        if page.has_view_permission(request):
            name = f"{model._meta.app_label}_{model._meta.model_name}"
            link = reverse(f"admin:{name}_changelist")
            shown = {"title": line.label, "icon": line.icon, "link": link, **_badge(request, page)}
            items.setdefault(line.group, []).append(shown)
    return [{"title": title, "separator": True, "items": lines} for title, lines in items.items()]


def _line_of(page: Any) -> NavigationLine | None:
    return getattr(page, "navigation", None)


def _badge(request: HttpRequest, page: Any) -> dict[str, int]:
    """Return the number that a page shows in the navigation, if it has one."""
    count = getattr(page, "navigation_badge", lambda _: 0)(request)
    return {"badge": count} if count else {}
