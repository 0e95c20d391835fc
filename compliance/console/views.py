"""Addresses of the console that name no environment: bookmarks, and the bare prefix."""

from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponseNotAllowed, HttpResponseRedirect
from django.views.decorators.cache import never_cache

from compliance.console.addresses import CONSOLE_PREFIX, SIGN_IN, environment_of_path, page_at, prefix_of
from compliance.core.environments import Environment

# A cookie, since two tabs in two environments would write a session with every click.
LAST_ENVIRONMENT = "console_environment"


@never_cache
def to_environment(request: HttpRequest, page: str = "") -> HttpResponseBase:
    """Redirect to the same page of the environment last used; a form other than the sign-in's is refused."""
    if environment_of_path(f"{request.path}/"):
        return HttpResponseRedirect(f"{request.path}/")
    if page_at(page) is None:
        raise Http404
    is_form = request.method not in ("GET", "HEAD")
    if is_form and page != SIGN_IN:
        return HttpResponseNotAllowed(["GET", "HEAD"])
    rest = request.get_full_path().removeprefix(CONSOLE_PREFIX)
    return HttpResponseRedirect(prefix_of(last_environment(request)) + rest, preserve_request=is_form)


def last_environment(request: HttpRequest) -> Environment:
    """Return the environment that this browser looked at last; live if none."""
    is_test = request.COOKIES.get(LAST_ENVIRONMENT) == Environment.TEST.value
    return Environment.TEST if is_test else Environment.LIVE
