"""Browsers that a person has signed in with: wrong passwords of theirs are counted apart from all others'."""

from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.contrib.auth.models import User
from django.core import signing
from django.http import HttpRequest, HttpResponse

from compliance.core.identifiers import new_id

COOKIE, SALT = "known_browser", "people.browser_of_user"
KNOWN_FOR: Final = timedelta(days=90)


def name_of(request: HttpRequest, username: str) -> str:
    """Return the browser's name if the person has signed in with it; else nothing."""
    try:
        found: Any = signing.loads(request.COOKIES.get(COOKIE, ""), salt=SALT, max_age=KNOWN_FOR)
    except signing.BadSignature:
        return ""
    owner, name = found
    # By its id: a name may go to another person.
    return str(name) if User.objects.filter(pk=owner, username__iexact=username).exists() else ""


def remember(request: HttpRequest, response: HttpResponse, user: Any) -> None:
    """Give the browser a name, for so long again each time."""
    name = name_of(request, user.get_username()) or str(new_id())
    response.set_cookie(
        COOKIE,
        signing.dumps([user.pk, name], salt=SALT),
        max_age=KNOWN_FOR,
        path="/admin/",
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
