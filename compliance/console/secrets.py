"""The page that shows a new secret, once."""

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse


def secret_page(
    request: HttpRequest, *, label: str, secret: str, explanation: str, next_url: str
) -> HttpResponse:
    """Return the page as the answer to a POST: reloading it cannot show the secret again.

    `label` tells what the secret is for, `explanation` what happens now, `next_url` where to go next.
    """
    shown = {"label": label, "secret": secret, "explanation": explanation, "next_url": next_url}
    context = {**admin.site.each_context(request), "title": "Keep this now", **shown}
    return TemplateResponse(request, "admin/console/secret.html", context)
