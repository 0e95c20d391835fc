"""The switch between the live and the test environment."""

from django.contrib import messages
from django.contrib.admin.views.decorators import staff_member_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import Resolver404, resolve, reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from compliance.core.environments import Environment

SESSION_KEY = "environment"
CONSOLE_PREFIX = "/admin/"


@never_cache
@require_POST
@staff_member_required(login_url="admin:login")
def switch_environment(request: HttpRequest) -> HttpResponse:
    """Store the chosen environment in the session, and redirect to a page that exists there."""
    chosen = request.POST.get("environment")
    if chosen not in {environment.value for environment in Environment}:
        messages.error(request, "There are two environments: live and test.")
    elif request.session.get(SESSION_KEY, Environment.LIVE.value) != chosen:
        request.session[SESSION_KEY] = chosen
        messages.info(request, f"You now see the {chosen} environment.")
    return HttpResponseRedirect(page_after_switch(request.POST.get("next", "")))


def page_after_switch(path: str) -> str:
    """Return the list of a row's page, since the row exists in one environment only; else the index."""
    index = reverse("admin:index")
    path = path.partition("?")[0]
    if not path.startswith(CONSOLE_PREFIX) or not url_has_allowed_host_and_scheme(path, allowed_hosts=None):
        return index
    try:
        match = resolve(path)
    except Resolver404:
        return index
    page = getattr(match.func, "model_admin", None)
    if page is not None:
        return reverse(f"admin:{page.opts.app_label}_{page.opts.model_name}_changelist")
    return index
