"""The sessions of people, as django-allauth lists them, ended by operators and by changes of the person."""

from datetime import datetime

from allauth.usersessions.models import UserSession
from django.contrib.auth.models import User

from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.core.wording import counted
from people import recording


def end(*, user: User, but: str | None = None, reason: str | None = None, actor: Actor, now: datetime) -> int:
    """End the sessions of the user, except the one of the key `but`; return how many."""
    with environments.use(Environment.LIVE), environments.atomic():
        found = [one for one in UserSession.objects.purge_and_list(user) if one.session_key != but]
        for session in found:
            session.end()
        record_ended(user, len(found), reason=reason, actor=actor, now=now)
    return len(found)


def record_ended(user: User, count: int, *, reason: str | None = None, actor: Actor, now: datetime) -> None:
    """Audit that so many sessions of the user were ended, if any."""
    if count:
        text = f"{counted(count, 'session')} of {user.username} ended"
        metadata = {"count": count} | ({"reason": reason} if reason else {})
        recording.record(AuditAction.PERSON_SESSIONS_ENDED, user, text, actor, now, **metadata)
