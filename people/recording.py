"""Audit entries for changes of people; they contain the values of names and rights alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

from allauth.usersessions.models import UserSession
from django.contrib.auth.models import User

from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.core.errors import Conflict
from people.models import OneTimeLink, Person

RIGHTS: Final = ("is_staff", "is_superuser")
DETAILS: Final = ("username", "first_name", "last_name", "email")


def store_new(*, user: User, actor: Actor, now: datetime) -> None:
    """Save a new user, and audit it."""
    with environments.use(Environment.LIVE), environments.atomic():
        user.save(force_insert=True)
        record_created(user=user, actor=actor, now=now)


def record_created(*, user: User, actor: Actor, now: datetime) -> None:
    """Audit a user who was made in this transaction."""
    rights = {name: getattr(user, name) for name in RIGHTS}
    metadata = {"username": user.username, **rights}
    record(AuditAction.PERSON_CREATED, user, f"User {user.username} created", actor, now, **metadata)


@contextmanager
def recorded_changes(*, user_id: int, actor: Actor, now: datetime) -> Iterator[None]:
    """Audit what the block changes of a user, in one transaction with it.

    Raises: Conflict if no active operator would be left.
    """
    with environments.use(Environment.LIVE), environments.atomic():
        # Always in this order, so that of two operators who deactivate one another one fails.
        operators = set(_operators().select_for_update(no_key=True).values_list("pk", flat=True))
        before = User.objects.select_for_update(no_key=True).get(pk=user_id)
        yield
        after = User.objects.get(pk=user_id)
        if operators and not _operators().exists():
            raise Conflict("Nobody else could administer the service: make another operator first")
        if before.is_active and not after.is_active:
            # Activating the person again must not bring them back.
            for session in UserSession.objects.filter(user=after):
                session.end()
            OneTimeLink.objects.filter(person__user=after).delete()
        for action, what, metadata in _differences(before, after):
            record(action, after, f"{what} of {after.username}", actor, now, **metadata)


def record(
    action: AuditAction, user: User, description: str, actor: Actor, now: datetime, **metadata: Any
) -> None:
    """Write an entry about a person to the service's live log."""
    with environments.use(Environment.LIVE), environments.atomic():
        auditlog.record(
            of=Person.objects.get(user=user),
            action=action,
            description=description,
            metadata=metadata,
            actor=actor,
            now=now,
        )


def _operators() -> Any:
    return User.objects.filter(is_superuser=True, is_staff=True, is_active=True).order_by("pk")


def _differences(before: User, after: User) -> Iterator[tuple[AuditAction, str, dict[str, Any]]]:
    """Yield an action, its words and metadata for each kind of change."""
    changed = [name for name in DETAILS if getattr(before, name) != getattr(after, name)]
    if changed:
        renamed = {"username_before": before.username} if "username" in changed else {}
        yield AuditAction.PERSON_UPDATED, "Details", {"changed": changed, **renamed}
    rights = {name: getattr(after, name) for name in RIGHTS if getattr(before, name) != getattr(after, name)}
    if rights:
        yield AuditAction.PERSON_RIGHTS_CHANGED, "Rights", rights
    if before.is_active and not after.is_active:
        yield AuditAction.PERSON_DEACTIVATED, "Deactivation", {}
    if after.is_active and not before.is_active:
        yield AuditAction.PERSON_REACTIVATED, "Reactivation", {}
    if before.password != after.password:
        usable = {"has_password": after.has_usable_password()}
        yield AuditAction.PERSON_PASSWORD_CHANGED, "Password", usable
