"""Addresses that name no environment: bookmarks, the bare prefix, short ones; and forms that are refused."""

from typing import Final

from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.shortcuts import render
from django.urls import resolve
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt

from compliance.api.exceptions import forbidden
from compliance.console.addresses import CONSOLE_PREFIX, SIGN_IN, URLCONF, environment_of_path, prefix_of
from compliance.console.display import visible
from compliance.core.environments import Environment
from compliance.core.identifiers import parse_id

NEVER_SHOWN: Final = ("csrf", "password", "secret", "token", "code", "credential")
"""Parts of the names of fields that a page never repeats."""


@never_cache
def to_environment(request: HttpRequest, page: str = "") -> HttpResponseBase:
    """Redirect to the same live page; a form other than the sign-in's is refused."""
    if environment_of_path(f"{request.path}/"):
        return HttpResponseRedirect(f"{request.path}/")
    # The admin's own routes end in one that matches everything, and has no name; none is a 404 as well.
    if not resolve(f"/{page}", URLCONF).url_name:
        raise Http404
    is_form = request.method not in ("GET", "HEAD")
    if is_form and page != SIGN_IN:
        return HttpResponseNotAllowed(["GET", "HEAD"])
    rest = request.get_full_path().removeprefix(CONSOLE_PREFIX)
    return HttpResponseRedirect(prefix_of(Environment.LIVE) + rest, preserve_request=is_form)


@csrf_exempt
def lead(request: HttpRequest, *, to: str) -> HttpResponseBase:
    """Lead people who typed a short address to the page they mean."""
    if request.method not in ("GET", "HEAD"):
        raise Http404
    return HttpResponseRedirect(to)


@never_cache
def refused_form(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer a form without a valid CSRF token: show what was typed, to be copied; nothing is sent again."""
    if not request.path.startswith(CONSOLE_PREFIX):
        return forbidden(request)
    typed = [
        (name.replace("_", " "), visible(value))
        for name, values in request.POST.lists()
        for value in values
        if value.strip() and not parse_id(value) and not any(word in name for word in NEVER_SHOWN)
    ]
    context = {
        "status": 403,
        "title": "The form was not sent",
        "explanation": "You signed in or out after opening the page. Open it anew and send the form again.",
        "typed": typed,
        "home": request.get_full_path(),
        "home_label": "Open the page anew",
    }
    return render(request, "admin/console/error.html", context, status=403)
