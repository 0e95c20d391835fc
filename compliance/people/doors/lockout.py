"""Lock-out: wrong passwords close an account's door, and those of an address close every door to it.

An account has a door for unknown browsers and one for each browser that its person has signed in with, which
a signed cookie tells: guessing from elsewhere keeps nobody out (OWASP, device cookies).
"""

import logging
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponse
from redis.exceptions import RedisError

from compliance.core import environments
from compliance.core.environments import Environment
from compliance.core.identifiers import new_id
from compliance.people.doors.attempts import address_of
from compliance.people.models import Door, Person
from compliance.stores import redis

log = logging.getLogger(__name__)

COOKIE, SALT = "known_browser", "compliance.people.known_browser"
KNOWN_FOR: Final = timedelta(days=90)
FREE_FAILURES: Final = 5
LONGEST_CLOSURE: Final = timedelta(hours=1)
HOUR: Final = 3600


def is_closed(request: HttpRequest, *, username: str, now: datetime) -> bool:
    """Whether no password is accepted for the account now, or none from this address."""
    if _failures_of_address(request) >= settings.SIGN_IN_FAILURES_PER_ADDRESS:
        return True
    person = Person.objects.filter(user__username=username).first()
    if person is None:
        return False
    doors = Door.objects.filter(person=person, browser=_browser(request, person))
    return doors.filter(closed_until__gt=now).exists()


def count_failure(request: HttpRequest, *, username: str, now: datetime) -> None:
    """Count a wrong password. From the fifth in a row on, each closes the door for twice as long."""
    _count_of_address(request)
    with environments.use(Environment.LIVE), environments.atomic():
        person = Person.objects.filter(user__username=username).first()
        if person is None:
            return
        browser = _browser(request, person)
        Door.objects.bulk_create([Door(person=person, browser=browser)], ignore_conflicts=True)
        door = Door.objects.select_for_update().get(person=person, browser=browser)
        door.failures += 1
        if door.failures >= FREE_FAILURES:
            minutes = 2 ** min(door.failures - FREE_FAILURES, 10)
            door.closed_until = now + min(timedelta(minutes=minutes), LONGEST_CLOSURE)
        door.save(update_fields=["failures", "closed_until"])


def count_success(request: HttpRequest, *, person: Person) -> None:
    """Forget the failures of the door that was gone through."""
    Door.objects.filter(person=person, browser=_browser(request, person)).delete()


def remember_browser(request: HttpRequest, response: HttpResponse, *, person: Person) -> None:
    """Give the browser a door of its own next time, and each time for so long again."""
    browser = _browser(request, person) or str(new_id())
    response.set_cookie(
        COOKIE,
        signing.dumps([str(person.id), browser], salt=SALT),
        max_age=KNOWN_FOR,
        path="/admin/",
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def _browser(request: HttpRequest, person: Person) -> str:
    """Return the name of the browser's own door to the account; empty if it has none."""
    try:
        found: Any = signing.loads(request.COOKIES.get(COOKIE, ""), salt=SALT, max_age=KNOWN_FOR)
    except signing.BadSignature:
        return ""
    owner, name = found
    return str(name) if owner == str(person.id) else ""


def _name(request: HttpRequest) -> str:
    return f"{settings.SERVICE_NAME}:sign_in_failures:{address_of(request)}"


def _failures_of_address(request: HttpRequest) -> int:
    try:
        with redis.circuit.guarding():
            return int(redis.client().get(_name(request)) or 0)
    except RedisError as error:
        return _unknown(error)


def _count_of_address(request: HttpRequest) -> None:
    name = _name(request)
    try:
        with redis.circuit.guarding():
            pipeline = redis.client().pipeline()
            pipeline.incr(name)
            pipeline.expire(name, HOUR, nx=True)
            pipeline.execute()
    except RedisError as error:
        _unknown(error)


def _unknown(error: RedisError) -> int:
    """Let the address pass: the limit a minute, counted in the process, still holds, and so do the doors."""
    log.warning("failed sign-ins of addresses are not counted: %s", type(error).__name__)
    return 0
