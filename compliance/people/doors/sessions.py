"""The sessions of people: begun at sign-in, listed, and ended by their person or an operator."""

from collections.abc import Collection
from datetime import datetime
from typing import Final
from uuid import UUID

from django.contrib.auth import HASH_SESSION_KEY
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest

from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.core.identifiers import new_id
from compliance.core.wording import counted
from compliance.people import recording
from compliance.people.doors.attempts import address_of
from compliance.people.models import ConsoleSession, Person

FACTS: Final = "signed_in"
LONGEST_BROWSER: Final = 200


def begin(request: HttpRequest, *, user: User, now: datetime) -> None:
    """Note in the session whose it is; remove sessions that have expired."""
    request.session[FACTS] = {
        "id": str(new_id()),
        "person_id": str(Person.objects.get(user=user).id),
        "started_at": now.isoformat(),
        "address": address_of(request)[:45],
        "browser": request.headers.get("User-Agent", "").replace("\x00", "")[:LONGEST_BROWSER],
    }
    ConsoleSession.objects.filter(expire_date__lt=now).delete()


def own_id(request: HttpRequest) -> UUID | None:
    """Return the id of the request's session."""
    found = request.session.get(FACTS)
    return UUID(found["id"]) if found else None


def own_ids(request: HttpRequest) -> list[UUID]:
    """Return what to keep where a person's other sessions end."""
    found = own_id(request)
    return [] if found is None else [found]


def of(user: User, now: datetime) -> QuerySet[ConsoleSession]:
    """Return the user's sessions, newest first."""
    return ConsoleSession.objects.filter(person__user=user, expire_date__gt=now).order_by("-started_at", "id")


def living(user: User, now: datetime) -> list[ConsoleSession]:
    """Return those of the user's sessions that a change of password has not ended, newest first."""
    current = user.get_session_auth_hash()
    return [one for one in of(user, now) if one.get_decoded().get(HASH_SESSION_KEY) == current]


def end(
    *,
    user: User,
    only: UUID | None = None,
    but: Collection[UUID] = (),
    reason: str | None = None,
    actor: Actor,
    now: datetime,
) -> int:
    """End sessions of the user: one, or all except some; return how many."""
    with environments.use(Environment.LIVE), environments.atomic():
        found = of(user, now).exclude(id__in=but)
        count, _ = (found if only is None else found.filter(id=only)).delete()
        if count:
            text = f"{counted(count, 'session')} of {user.username} ended"
            metadata = {"count": count} | ({"reason": reason} if reason else {})
            recording.record(AuditAction.PERSON_SESSIONS_ENDED, user, text, actor, now, **metadata)
    return count
