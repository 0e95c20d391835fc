"""Failed single sign-ons in the audit log, bounded as those by password are."""

from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest

from auditlog.vocabulary import AuditAction
from compliance.core import environments
from compliance.core.environments import Environment
from people.doors import attempts
from people.models import Person


def record_failure(
    request: HttpRequest, *, reason: str, issuer: str, subject: str | None, user: User | None, now: datetime
) -> None:
    """Audit a single sign-on that failed; `subject` and `user` are what the provider has proved."""
    with environments.use(Environment.LIVE):
        person = Person.objects.filter(user=user).first() if user else None
        metadata: dict[str, Any] = {"sign_on": issuer, "reason": reason}
        metadata |= {"subject": subject} if subject else {}
        metadata |= {"address": attempts.address_of(request)}
        text = f"Single sign-on failed: {reason}"
        attempts.record_bounded(AuditAction.PERSON_SIGN_IN_FAILED, person, text, metadata, attempts.DOOR, now)
