"""The console's site: Unfold's, with doors that are audited."""

import time
from typing import TYPE_CHECKING, Any, Final

from django.core.paginator import Paginator
from django.db.models import UUIDField
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import path
from django.views.decorators.cache import never_cache
from unfold.dataclasses import SearchResult

from compliance.console.admin import TenantScopedAdmin
from compliance.console.display import visible
from compliance.console.reading import bounded
from compliance.core.identifiers import parse_id
from people.doors import link_pages
from people.doors.second_factor import is_met
from people.sso import pages as single_sign_on

MOST_OF_A_PAGE: Final = 5


def rows_called(page: TenantScopedAdmin, request: HttpRequest, term: str) -> Any:
    """Return the rows of a page that the user may see with `term` as their ID, or in their name."""
    rows, identifier = page.get_queryset(request), parse_id(term)
    if identifier is not None:
        return rows.filter(pk=identifier) if isinstance(page.opts.pk, UUIDField) else ()
    if not page.found_by_name:
        return ()
    return page.get_search_results(request, rows, term)[0][:MOST_OF_A_PAGE]


if TYPE_CHECKING:  # Unfold carries no types; its classes extend Django's.
    from django.contrib.admin import AdminSite as UnfoldAdminSite
else:
    from unfold.sites import UnfoldAdminSite


class ConsoleSite(UnfoldAdminSite):
    """Unfold's site behind the doors of `people.urls`."""

    def has_permission(self, request: HttpRequest) -> bool:
        return super().has_permission(request) and is_met(request)

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:
        return super().admin_view(bounded(view), cacheable)

    def search(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """Answer Ctrl-K. Unfold's own search keeps answers for both environments together."""
        began, term = time.monotonic(), request.GET.get("s", "").strip()
        groups: Any = self.get_sidebar_list(request)  # type: ignore[attr-defined]
        pages = (item for group in groups for item in group["items"])
        results = [
            SearchResult(str(item["title"]), "page", str(item["link"]), item.get("icon"))
            for item in pages
            if term and term.lower() in str(item["title"]).lower()
        ]
        for page in self._registry.values() if term else ():
            if isinstance(page, TenantScopedAdmin) and page.navigation and page.has_view_permission(request):
                kind, icon = str(page.opts.verbose_name), page.navigation.icon
                results += [
                    SearchResult(visible(row), kind, page.row_url(row), icon)
                    for row in rows_called(page, request, term)
                ]
        context = {
            "page_obj": Paginator(results, len(results) + 1),
            "results": Paginator(results, len(results) + 1).page(1),
            "page_counter": 0,
            "execution_time": time.monotonic() - began,
        }
        return TemplateResponse(request, "unfold/helpers/command_results.html", context)

    def get_urls(self) -> list[Any]:
        return [
            # Before the links, one of which it would be.
            path("join/sso/", single_sign_on.accept_invitation, name="sso_invitation"),
            path("join/<str:token>/", never_cache(link_pages.open_link), name="link"),
            path(
                "join/",
                link_pages.LinkPasswordView.as_view(),
                name="link_password",
            ),
            path("login/sso/", single_sign_on.begin, name="sso_begin"),
            path("login/sso/callback/", single_sign_on.CallbackView.as_view(), name="sso_callback"),
            path("account/sso/", self.admin_view(single_sign_on.own_identity), name="account_sso"),
            # Django's redirect to any row's own page is not there: it tells which rows of all tenants exist.
            *(route for route in super().get_urls() if getattr(route, "name", None) != "view_on_site"),
        ]
