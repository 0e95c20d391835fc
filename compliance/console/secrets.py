"""A new secret, shown exactly once: the form that made it redirects to a page of its own.

Reloading that page neither repeats the action nor shows the secret again. Until it is shown the secret waits
in Redis, encrypted, for its maker alone, and for minutes.
"""

import json
import logging
import secrets
from typing import Any, Final

from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_GET
from redis.exceptions import RedisError

from compliance.core.encryption import decrypt, encrypt
from compliance.stores import redis

log = logging.getLogger(__name__)

KEPT_SECONDS: Final = 300


def secret_page(
    request: HttpRequest, *, label: str, secret: str, explanation: str, next_url: str
) -> HttpResponse:
    """Return a redirect to the page that shows `secret` once.

    `label` tells what the secret is for, `explanation` what happens now, `next_url` where to go next. Without
    Redis the page itself is the answer: the secret exists, and would otherwise be lost.
    """
    page = {"label": label, "explanation": explanation, "next_url": next_url}
    ticket = secrets.token_urlsafe(16)
    try:
        _keep(request, ticket, page, secret)
    except RedisError as error:
        log.warning("a secret is shown without a redirect: %s", type(error).__name__)
        return _shown(request, page, secret)
    return HttpResponseRedirect(reverse("console_secret", args=[ticket]))


@require_GET
def show_secret(request: HttpRequest, ticket: str) -> HttpResponse:
    """Show the secret of `ticket`, or that it cannot be shown again."""
    kept = redis.key("secret-page", request.user.pk, ticket)
    with redis.client().pipeline(transaction=True) as pipeline:
        pipeline.hgetall(kept)
        pipeline.hdel(kept, "secret")
        found = pipeline.execute()[0]
    page = json.loads(found.get(b"page", b"{}"))
    secret = found.get(b"secret")
    return _shown(request, page, decrypt(secret).decode() if secret else None)


def _keep(request: HttpRequest, ticket: str, page: dict[str, str], secret: str) -> None:
    kept = redis.key("secret-page", request.user.pk, ticket)
    with redis.client().pipeline(transaction=True) as pipeline:
        pipeline.hset(kept, mapping={"page": json.dumps(page), "secret": encrypt(secret.encode())})
        pipeline.expire(kept, KEPT_SECONDS)
        pipeline.execute()


def _shown(request: HttpRequest, page: dict[str, str], secret: str | None) -> HttpResponse:
    title = "Keep this now" if secret else "Shown already"
    context: dict[str, Any] = {**admin.site.each_context(request), **page, "title": title, "secret": secret}
    return TemplateResponse(request, "admin/console/secret.html", context, status=200 if secret else 410)


def secret_route() -> URLPattern:
    """Return the route of the page; only who signed in to the console reaches it."""
    view: Any = admin.site.admin_view(show_secret)
    route: URLPattern = path("secrets/<str:ticket>/", view, name="console_secret")
    return route
