"""A person's security keys: registered, used, listed, removed; each in the audit log."""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Final
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest

from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.people import recording
from compliance.people.doors import attempts, second_factor, sessions, tries
from compliance.people.errors import (
    KeyRefused,
    KeyRegisteredAlready,
    SecondFactorExists,
    SecurityKeyNotFound,
    TooManyKeys,
)
from compliance.people.models import Person, SecurityKey
from compliance.people.passkeys import ceremonies, relying_party
from compliance.people.passkeys.ceremonies import Assertion, KnownKey

MOST_KEYS: Final = 20
CHALLENGE, UNKNOWN, COUNTER, CLOSED = "challenge", "unknown", "counter", "closed"
"""Why a key is refused, besides `malformed` and `invalid`."""


def of(user: User) -> QuerySet[SecurityKey]:
    """Return the user's keys, the oldest first."""
    return SecurityKey.objects.filter(person__user=user).order_by("created_at", "id")


def known(keys: Iterable[SecurityKey]) -> list[KnownKey]:
    """Return the keys as options name them."""
    return [KnownKey(bytes(key.credential_id), tuple(key.transports.split(","))) for key in keys]


def register(
    *,
    user: User,
    name: str,
    answer: str,
    challenge: bytes | None,
    is_first: bool = False,
    actor: Actor,
    now: datetime,
) -> list[str]:
    """Add the key that answered the challenge; return recovery codes if there were none.

    `is_first`: only as the first second factor, which the password alone lets somebody set up.
    Raises: KeyRefused, KeyRegisteredAlready (also by somebody else), TooManyKeys, SecondFactorExists.
    """
    if challenge is None:
        raise KeyRefused(CHALLENGE)
    found = ceremonies.verify_registration(relying_party.current(), answer, challenge=challenge)
    with environments.use(Environment.LIVE), environments.atomic():
        person = second_factor.locked(user)
        if is_first and second_factor.is_set_up(user):
            raise SecondFactorExists()
        if SecurityKey.objects.filter(person=person).count() >= MOST_KEYS:
            raise TooManyKeys()
        key, is_new = SecurityKey.objects.get_or_create(
            credential_id=found.credential_id,
            defaults={
                "person": person,
                "name": name,
                "public_key": found.public_key,
                "sign_count": found.sign_count,
                "transports": ",".join(found.transports),
                "created_at": now,
            },
        )
        if not is_new:
            raise KeyRegisteredAlready()
        text = f"Security key of {user.username} added"
        recording.record(
            AuditAction.PERSON_SECURITY_KEY_ADDED, user, text, actor, now, security_key=str(key.id), name=name
        )
        return second_factor.first_codes(person)


def use(*, user: User, answer: str, challenge: bytes | None, now: datetime) -> SecurityKey:
    """Accept the answer of one of the user's keys, whose counter goes on; wrong ones count as codes do.

    Raises: KeyRefused.
    """
    with environments.use(Environment.LIVE), environments.atomic():
        counted = tries.lock(user)
        if tries.is_closed(counted, now):
            raise KeyRefused(CLOSED)
        try:
            key, refusal = _used(user, answer, challenge, now), None
        except KeyRefused as error:
            key, refusal = None, error
        tries.count(counted, was_right=key is not None, now=now)
    # Only now: raised in the block it would undo the count.
    if key is None:
        raise refusal or KeyRefused(UNKNOWN)
    return key


def remove(*, user: User, key_id: UUID, keep: Collection[UUID] = (), actor: Actor, now: datetime) -> None:
    """Remove one of the user's keys, the recovery codes if nothing else is left, and other sessions.

    Raises: SecurityKeyNotFound.
    """
    with environments.use(Environment.LIVE), environments.atomic():
        second_factor.locked(user)
        key = of(user).filter(id=key_id).first()
        if key is None:
            raise SecurityKeyNotFound()
        SecurityKey.objects.filter(pk=key.pk).delete()
        second_factor.drop_codes_of_nothing(user)
        text = f"Security key of {user.username} removed"
        recording.record(
            AuditAction.PERSON_SECURITY_KEY_REMOVED,
            *(user, text, actor, now),
            security_key=str(key_id),
            name=key.name,
        )
        sessions.end(user=user, but=keep, reason="a security key was removed", actor=actor, now=now)


def record_refusal(
    request: HttpRequest, *, user: User, refusal: KeyRefused, actor: Actor, now: datetime
) -> None:
    """Audit that a new key of the user was refused; as many a minute as failed sign-ins."""
    person = Person.objects.get(user=user)
    text = f"Security key of {user.username} refused"
    metadata = {**refusal.metadata, "address": attempts.address_of(request)}
    attempts.record_bounded(AuditAction.PERSON_SECURITY_KEY_REFUSED, person, text, metadata, actor, now)


def record_confirmation(*, user: User, actor: Actor, now: datetime, **details: str) -> None:
    """Audit that a signed-in person showed a second factor again."""
    text = f"{user.username} confirmed with a second factor"
    recording.record(AuditAction.PERSON_CONFIRMED, user, text, actor, now, **details)


def _used(user: User, answer: str, challenge: bytes | None, now: datetime) -> SecurityKey:
    assertion = ceremonies.read_assertion(answer)
    if challenge is None:
        raise KeyRefused(CHALLENGE)
    key = _named_by(assertion, user)
    try:
        count = ceremonies.verify_assertion(
            relying_party.current(), assertion, challenge=challenge, public_key=bytes(key.public_key)
        )
    except KeyRefused as error:
        raise KeyRefused(error.why, key_id=key.id) from error
    # Keys without a counter say 0 for ever; where one goes back, a copy may exist (§6.1.1).
    if (count or key.sign_count) and count <= key.sign_count:
        raise KeyRefused(COUNTER, key_id=key.id)
    SecurityKey.objects.filter(pk=key.pk).update(sign_count=count, last_used_at=now)
    return key


def _named_by(assertion: Assertion, user: User) -> SecurityKey:
    """Return the user's key; another person's is as unknown as one that was never registered."""
    key = of(user).filter(credential_id=assertion.credential_id).first()
    if key is None or assertion.user_handle not in {b"", key.person_id.bytes}:
        raise KeyRefused(UNKNOWN)
    return key
