"""The parts common to all pages: which of them a user may see, and the environment with its switch."""

from typing import Any

from django.apps import apps
from django.contrib import admin
from django.contrib.admin.exceptions import NotRegistered
from django.http import HttpRequest
from django.urls import reverse

from compliance.console.access import access_of
from compliance.console.addresses import within
from compliance.core.environments import Environment


def registered(name: str) -> Any:
    """Return the page of the model `app_model`; None if there is none."""
    try:
        return admin.site.get_model_admin(apps.get_model(name.replace("_", ".", 1)))
    except (LookupError, NotRegistered):
        return None


def may_see(request: HttpRequest, name: str) -> bool:
    """Return whether the page of `app_model` exists and the user may see it."""
    page = registered(name)
    return page is not None and bool(page.has_view_permission(request))


def environment_of_page(request: HttpRequest) -> dict[str, Any]:
    """Return the template variables of every page: its environment, and its counterparts in both."""
    access, match, page = access_of(request), request.resolver_match, "admin:index"
    if match is not None and match.url_name and not match.kwargs:
        page = match.view_name
    elif match is not None and (of_row := getattr(match.func, "model_admin", None)):
        # A row exists in one environment only: its page's counterpart is the list.
        page = f"admin:{of_row.opts.app_label}_{of_row.opts.model_name}_changelist"
    counterparts = {}
    for environment in Environment if access.is_operator or access.roles else ():
        with within(environment):
            counterparts[environment] = reverse(page)
    return {
        "console": access,
        "console_is_live": access.environment is Environment.LIVE,
        "console_counterparts": counterparts,
    }


def title_prefix(request: HttpRequest) -> str | None:
    """Return the prefix of the browser tab's title, which marks the sandbox."""
    return None if access_of(request).environment is Environment.LIVE else "[TEST]"
