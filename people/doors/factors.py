"""Second factors in the audit log, as django-allauth tells of them; and their removal by operators."""

from datetime import datetime
from typing import Any

from allauth.mfa import signals
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User
from django.dispatch import receiver
from django.http import HttpRequest

from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.errors import Conflict
from people import recording
from people.doors import attempts, sessions
from people.doors.second_factor import NAMES

App, Key = Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN


def remove(*, user: User, reason: str, actor: Actor, now: datetime) -> None:
    """Remove app, security keys and recovery codes, and end the user's sessions.

    Raises: Conflict if there are none.
    """
    with environments.use(Environment.LIVE), environments.atomic():
        User.objects.select_for_update(no_key=True).get(pk=user.pk)
        found = Authenticator.objects.filter(user=user)
        keys = [str(key.pk) for key in found.filter(type=Key).order_by("pk")]
        if not found.delete()[0]:
            raise Conflict("There is no second factor")
        text = f"Second factor of {user.username} removed"
        more = {"reason": reason} | ({"security_keys": keys} if keys else {})
        recording.record(AuditAction.PERSON_SECOND_FACTOR_REMOVED, user, text, actor, now, **more)
        sessions.end(user=user, reason="the second factor was removed", actor=actor, now=now)


@receiver(signals.authenticator_added)
def _added(user: User, authenticator: Authenticator, **kwargs: Any) -> None:
    if authenticator.type == App:
        text = f"Second factor of {user.username} added"
        _record(AuditAction.PERSON_SECOND_FACTOR_ADDED, user, text)
    elif authenticator.type == Key:
        text = f"Security key of {user.username} added"
        key = {"security_key": str(authenticator.pk), "name": str(authenticator)}
        _record(AuditAction.PERSON_SECURITY_KEY_ADDED, user, text, **key)


@receiver(signals.authenticator_removed)
def _removed(request: HttpRequest, user: User, authenticator: Authenticator, **kwargs: Any) -> None:
    if authenticator.type == App:
        text = f"Second factor of {user.username} removed"
        _record(AuditAction.PERSON_SECOND_FACTOR_REMOVED, user, text, reason="by the person")
    elif authenticator.type == Key:
        text = f"Security key of {user.username} removed"
        _record(AuditAction.PERSON_SECURITY_KEY_REMOVED, user, text, name=str(authenticator))
    sessions.end(
        user=user,
        but=request.session.session_key,
        reason="a second factor was removed",
        actor=Actor.person(user.person.id),
        now=now(),
    )


@receiver(signals.authenticator_reset)
def _codes_made(user: User, **kwargs: Any) -> None:
    _record(AuditAction.PERSON_RECOVERY_CODES_MADE, user, f"Recovery codes of {user.username} made")


@receiver(signals.authenticator_used)
def _used(user: User, authenticator: Authenticator, reauthenticated: bool, **kwargs: Any) -> None:
    if reauthenticated:
        text = f"{user.username} confirmed with a second factor"
        _record(AuditAction.PERSON_CONFIRMED, user, text, second_factor=NAMES[authenticator.type])


@receiver(signals.authentication_failed)
def _failed(request: HttpRequest, user: User, reauthentication: bool = False, **kwargs: Any) -> None:
    attempts.record_wrong_factor(request, user=user, is_signed_in=reauthentication, now=now())


def _record(action: AuditAction, user: User, text: str, **metadata: Any) -> None:
    recording.record(action, user, text, Actor.person(user.person.id), now(), **metadata)
