"""A new secret, shown exactly once: in the answer to the form that made it, which nobody stores."""

from hashlib import sha256
from typing import Final

from django.contrib import admin
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CSRF_TOKEN_LENGTH
from django.template.response import TemplateResponse

from compliance.core.errors import Conflict

REMEMBERED_SECONDS: Final = 24 * 3600


def refuse_repeated(request: HttpRequest) -> None:
    """Raise Conflict if this very form was sent before, as a page that is reloaded sends it.

    Django masks the CSRF token of each form that it shows in another way; scripts may send it unmasked.
    """
    token = request.POST.get("csrfmiddlewaretoken", "")
    key = f"sent-form:{sha256(token.encode()).hexdigest()}"
    if len(token) == CSRF_TOKEN_LENGTH and not cache.add(key, True, REMEMBERED_SECONDS):
        raise Conflict("Already done: this form was sent before, and nothing was done again.")


def secret_page(
    request: HttpRequest, *, label: str, secret: str, explanation: str, next_url: str
) -> HttpResponse:
    """Return the page that shows `secret`.

    `label` tells what the secret is for, `explanation` what happens now, `next_url` where to go next.
    """
    context = {
        **admin.site.each_context(request),
        "title": "Keep this now",
        "label": label,
        "secret": secret,
        "explanation": explanation,
        "next_url": next_url,
    }
    return TemplateResponse(request, "admin/console/secret.html", context)
