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
from people import recording
from people.models import Person

DOOR: Final = Actor.system("console")
"""The actor of a failed sign-in: nobody is known to have acted."""
STRANGERS: Final = "strangers"
BUCKET: Final = "sign_in_entries"


def record_own(
    request: HttpRequest, action: AuditAction, what: str, *, now: datetime, **details: str | None
) -> None:
    """Audit what the request's user did, signed in or out."""
    user: Any = request.user
    metadata = {**details, "address": address_of(request)}
    recording.record(action, user, f"{user.username} {what}", actor_of(request), now, **metadata)


def record_failure(request: HttpRequest, *, account: str, now: datetime, **more: Any) -> None:
    """Audit a failed sign-in to `account`; `more` tells what was wrong besides the password.

    The name is kept only if an account has it: people type passwords into this field.
    Each existing account has a number of entries a minute, and all other names share one: guessed names
    cannot crowd out the attempts on a real one. The last entry that there is room for says so.
    """
    person = Person.objects.filter(user__username=account).first()
    known = account if person else None
    text = f"Sign-in as {known or 'nobody the service knows'} failed"
    metadata = {"account": known, "address": address_of(request), **more}
    record_bounded(AuditAction.PERSON_SIGN_IN_FAILED, person, text, metadata, DOOR, now)


def record_wrong_proof(request: HttpRequest, *, proof: str, now: datetime, **more: Any) -> None:
    """Audit that the signed-in user gave a wrong password or code; as many a minute as failed sign-ins."""
    user: Any = request.user
    text = f"Wrong {proof} given by {user.username}, who is signed in"
    metadata = {"proof": proof, "address": address_of(request), **more}
    record_bounded(AuditAction.PERSON_CHECK_FAILED, user.person, text, metadata, actor_of(request), now)


def record_wrong_factor(request: HttpRequest, *, user: User, is_signed_in: bool, now: datetime) -> None:
    """Audit that a code or security key of the user was refused, at sign-in or where it is asked again."""
    if is_signed_in:
        record_wrong_proof(request, proof="second_factor", now=now)
    else:
        record_failure(request, account=user.get_username(), second_factor="wrong", now=now)


def address_of(request: HttpRequest) -> str:
    """Return the client's address, which a trusted proxy may tell."""
    return gate.client_address(GateRequest.of(request))


def record_bounded(
    action: AuditAction,
    person: Person | None,
    text: str,
    metadata: dict[str, Any],
    actor: Actor,
    now: datetime,
) -> None:
    """Write an entry about the person, or about nobody known, if the minute has room for one more."""
    room = hit(BUCKET, str(person.id) if person else STRANGERS)
    if not room.allowed:
        return
    if not room.remaining:
        metadata["more_not_recorded"] = True
    with environments.use(Environment.LIVE), environments.atomic():
        auditlog.record(
            tenant_id=SERVICE_TENANT_ID,
            action=action,
            affected_id=person and person.id,
            description=text,
            metadata=metadata,
            actor=actor,
            now=now,
        )
