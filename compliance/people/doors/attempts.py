"""Signing in and out in the audit log, failures bounded so that nobody can flood it."""

from datetime import datetime
from typing import Any, Final

from django.contrib.auth.models import User
from django.http import HttpRequest

from auditlog import services as auditlog
from auditlog.actors.requests import actor_of
from auditlog.vocabulary import SERVICE_TENANT_ID, Actor, AuditAction
from compliance.api import gate
from compliance.api.gate import GateRequest
from compliance.api.rate_limits import hit
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.people import recording
from compliance.people.models import Person

DOOR: Final = Actor.system("console")
"""The actor of a failed sign-in: nobody is known to have acted."""
STRANGERS: Final = "strangers"
LONGEST_ACCOUNT: Final = 150
BUCKET: Final = "sign_in_entries"


def record_sign_in(request: HttpRequest, *, second_factor: str | None, now: datetime, **more: Any) -> None:
    """Audit that the request's user has signed in; `more` tells of the first factor."""
    metadata = {"second_factor": second_factor, **more}
    _record_own(request, AuditAction.PERSON_SIGNED_IN, "signed in", now, **metadata)


def record_sign_out(request: HttpRequest, *, now: datetime) -> None:
    """Audit that the request's user signs out."""
    _record_own(request, AuditAction.PERSON_SIGNED_OUT, "signed out", now)


def record_failure(request: HttpRequest, *, account: str, now: datetime, **more: Any) -> None:
    """Audit a failed sign-in to `account`, as it was given; `more` tells what was wrong besides the password.

    Each existing account has a number of entries a minute, and all other names share one: guessed names
    cannot crowd out the attempts on a real one. The last entry that there is room for says so.
    """
    account = account[:LONGEST_ACCOUNT]
    with environments.use(Environment.LIVE):
        person = Person.objects.filter(user__username=account).first()
        room = hit(BUCKET, str(person.id) if person else STRANGERS)
        if not room.allowed:
            return
        if not room.remaining:
            more["more_not_recorded"] = True
        with environments.atomic():
            auditlog.record(
                tenant_id=SERVICE_TENANT_ID,
                action=AuditAction.PERSON_SIGN_IN_FAILED,
                affected_id=person and person.id,
                description=f"Sign-in as {account} failed",
                metadata={"account": account, "address": address_of(request), **more},
                actor=DOOR,
                now=now,
            )


def address_of(request: HttpRequest) -> str:
    """Return the client's address, which a trusted proxy may tell."""
    return gate.client_address(GateRequest.of(request))


def _record_own(request: HttpRequest, action: AuditAction, what: str, now: datetime, **metadata: Any) -> None:
    user = request.user
    assert isinstance(user, User)  # noqa: S101  (for the types: the caller has signed in)
    text = f"{user.username} {what}"
    metadata |= {"address": address_of(request)}
    recording.record(action, user, text, actor_of(request), now, **metadata)
