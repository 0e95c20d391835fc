"""The page that answers the making of a secret, and is the only place that ever shows it."""

from dataclasses import dataclass

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse


@dataclass(frozen=True)
class FreshSecret:
    """What the page says: of what it is the secret, what happens now, and where to go afterwards."""

    label: str
    secret: str
    explanation: str
    next_url: str


def secret_page(request: HttpRequest, fresh: FreshSecret) -> HttpResponse:
    """The answer to a POST, never kept: reloading it cannot show the secret again."""
    context = {
        **admin.site.each_context(request),
        "title": "Keep this now",
        "secret": fresh.secret,
        "fresh": fresh,
    }
    return TemplateResponse(request, "admin/console/secret.html", context)
