"""The sessions of people: encrypted, listed by django-allauth, ended by operators and by changes."""

import re
from datetime import datetime
from typing import Any, Final

from allauth.usersessions.models import UserSession
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore

from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.encryption import Undecryptable, decrypt, encrypt
from compliance.core.environments import Environment
from compliance.core.wording import counted
from people import recording

_KEY: Final = re.compile("[a-z0-9]{32}")


class SessionStore(DatabaseStore):
    """Django's sessions in the live database, encrypted: one under way may hold a new app's secret."""

    def encode(self, session_dict: dict[str, Any]) -> str:
        return encrypt(super().encode(session_dict).encode()).decode()

    def decode(self, session_data: Any) -> dict[str, Any]:
        try:
            return super().decode(decrypt(session_data.encode()).decode())
        except Undecryptable:
            return {}

    def _validate_session_key(self, key: str | None) -> bool:
        """Take a key for none if Django did not make it; PostgreSQL fails on one with NUL."""
        return bool(key and _KEY.fullmatch(key))


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
