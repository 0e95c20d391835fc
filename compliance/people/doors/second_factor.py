"""The second factor of a sign-in: an authenticator app (RFC 6238), recovery codes; keys are in `passkeys`."""

import base64
import re
import secrets
from collections.abc import Collection
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final
from urllib.parse import quote
from uuid import UUID

import segno
from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest
from django_otp.oath import TOTP

from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.encryption import decrypt, encrypt
from compliance.core.environments import Environment
from compliance.people import recording
from compliance.people.doors import sessions, tries
from compliance.people.errors import NoSecondFactor, SecondFactorExists
from compliance.people.models import Authenticator, Person, RecoveryCode, SecurityKey
from compliance.people.requirement import Requirement

SESSION_FLAG: Final = "second_factor"
"""Marks the sessions that began with a second factor."""
SECRET_OCTETS: Final = 20  # RFC 4226 §4 recommends 160 bits
TOLERANCE_STEPS: Final = 1
RECOVERY_CODES: Final = 10
_APP_CODE: Final = re.compile("[0-9]{6}")


class Factor(StrEnum):
    """The second factor that was shown."""

    APP = "app"
    RECOVERY_CODE = "recovery_code"
    SECURITY_KEY = "security_key"
    PROVIDER = "provider"


def is_required_of(user: Any) -> bool:
    """Whether the user must sign in with a second factor. An unknown setting requires it of everyone."""
    if settings.SECOND_FACTOR == Requirement.NOBODY:
        return False
    return bool(user.is_superuser) or settings.SECOND_FACTOR != Requirement.OPERATORS


def is_met(request: HttpRequest) -> bool:
    """Whether the request's session began with a second factor, or need not have."""
    return not is_required_of(request.user) or request.session.get(SESSION_FLAG) is True


def authenticator_of(user: User) -> Authenticator | None:
    return Authenticator.objects.filter(person__user=user).first()


def is_set_up(user: User) -> bool:
    """Whether the user has an authenticator app or a security key."""
    return authenticator_of(user) is not None or SecurityKey.objects.filter(person__user=user).exists()


def new_secret() -> bytes:
    return secrets.token_bytes(SECRET_OCTETS)


def as_text(secret: bytes) -> str:
    """Return the secret as apps let people type it."""
    return base64.b32encode(secret).decode()


def as_qr_code(secret: bytes, user: User) -> str:
    """Return a `data:` URL of the image that apps scan."""
    issuer, account = quote(settings.SERVICE_TITLE), quote(user.get_username())
    address = f"otpauth://totp/{issuer}:{account}?secret={as_text(secret)}&issuer={issuer}"
    image: str = segno.make(address, micro=False).svg_data_uri(scale=4, dark="#000", light="#fff")
    return image


def step_of(code: str, secret: bytes, *, after: int, now: datetime) -> int | None:
    """Return the time step that the app's code belongs to; None if it is wrong, or not of a step `after`."""
    totp = TOTP(secret)
    totp.time = now.timestamp()
    if not _APP_CODE.fullmatch(code) or not totp.verify(int(code), TOLERANCE_STEPS, after + 1):
        return None
    step: int = totp.t()
    return step


def enrol(
    *, user: User, secret: bytes, step: int, is_first: bool = False, actor: Actor, now: datetime
) -> list[str]:
    """Add an authenticator whose code of `step` was shown; return recovery codes if there were none.

    `is_first`: only as the first second factor, which the password alone lets somebody set up.
    Raises: SecondFactorExists.
    """
    with environments.use(Environment.LIVE), environments.atomic():
        person = locked(user)
        if authenticator_of(user) is not None or (is_first and is_set_up(user)):
            raise SecondFactorExists()
        Authenticator.objects.create(person=person, secret=encrypt(secret), last_step=step, created_at=now)
        text = f"Second factor of {user.username} added"
        recording.record(AuditAction.PERSON_SECOND_FACTOR_ADDED, user, text, actor, now)
        return first_codes(person)


def remake_codes(*, user: User, actor: Actor, now: datetime) -> list[str]:
    """Replace the recovery codes. Raises: NoSecondFactor."""
    with environments.use(Environment.LIVE), environments.atomic():
        person = locked(user)
        if not is_set_up(user):
            raise NoSecondFactor()
        text = f"Recovery codes of {user.username} made"
        recording.record(AuditAction.PERSON_RECOVERY_CODES_MADE, user, text, actor, now)
        return _new_codes(person)


def remove_app(*, user: User, reason: str, keep: Collection[UUID] = (), actor: Actor, now: datetime) -> None:
    """Remove the app, the recovery codes if nothing else is left, and the user's sessions but those to keep.

    Raises: NoSecondFactor.
    """
    with environments.use(Environment.LIVE), environments.atomic():
        person = locked(user)
        removed, _ = Authenticator.objects.filter(person=person).delete()
        if not removed:
            raise NoSecondFactor()
        drop_codes_of_nothing(user)
        text = f"Second factor of {user.username} removed"
        recording.record(AuditAction.PERSON_SECOND_FACTOR_REMOVED, user, text, actor, now, reason=reason)
        sessions.end(user=user, but=keep, reason="the second factor was removed", actor=actor, now=now)


def remove(*, user: User, reason: str, actor: Actor, now: datetime) -> None:
    """Remove authenticator, security keys and recovery codes, and end the user's sessions.

    Raises: NoSecondFactor.
    """
    with environments.use(Environment.LIVE), environments.atomic():
        person = locked(user)
        keys = SecurityKey.objects.filter(person=person)
        ids = [str(key.id) for key in keys.order_by("id")]
        removed, _ = Authenticator.objects.filter(person=person).delete()
        if not removed and not ids:
            raise NoSecondFactor()
        keys.delete()
        drop_codes_of_nothing(user)
        text = f"Second factor of {user.username} removed"
        more = {"security_keys": ids} if ids else {}
        recording.record(
            AuditAction.PERSON_SECOND_FACTOR_REMOVED, user, text, actor, now, reason=reason, **more
        )
        sessions.end(user=user, reason="the second factor was removed", actor=actor, now=now)


def verify(*, user: User, code: str, now: datetime) -> Factor | None:
    """Use up a code of the app or a recovery code; None if it is wrong, used, or comes while closed.

    From the third wrong code on, each closes the door for twice as long as the one before.
    """
    code = "".join(code.split()).replace("-", "").lower()
    with environments.use(Environment.LIVE), environments.atomic():
        counted = tries.lock(user)
        if tries.is_closed(counted, now):
            return None
        factor = _factor_of(code, counted.person_id, now)
        tries.count(counted, was_right=factor is not None, now=now)
        return factor


def locked(user: User) -> Person:
    """Lock the user's row, as nobody may lock the person's; return the person."""
    User.objects.select_for_update(no_key=True).get(pk=user.pk)
    return Person.objects.get(user=user)


def first_codes(person: Person) -> list[str]:
    """Make recovery codes if there are none; a second app or key shares those of the first."""
    return [] if RecoveryCode.objects.filter(person=person).exists() else _new_codes(person)


def drop_codes_of_nothing(user: User) -> None:
    """Remove the recovery codes of somebody who has neither app nor key any more."""
    if not is_set_up(user):
        RecoveryCode.objects.filter(person__user=user).delete()


def _factor_of(code: str, person_id: UUID, now: datetime) -> Factor | None:
    found = Authenticator.objects.filter(person_id=person_id).first()
    if found is not None:
        step = step_of(code, decrypt(bytes(found.secret)), after=found.last_step, now=now)
        if step is not None:
            Authenticator.objects.filter(pk=found.pk).update(last_step=step)
            return Factor.APP
    used, _ = RecoveryCode.objects.filter(person_id=person_id, digest=_digest(code)).delete()
    return Factor.RECOVERY_CODE if used else None


def _new_codes(person: Person) -> list[str]:
    RecoveryCode.objects.filter(person=person).delete()
    plain = [base64.b32encode(secrets.token_bytes(10)).decode().lower() for _ in range(RECOVERY_CODES)]
    RecoveryCode.objects.bulk_create(RecoveryCode(person=person, digest=_digest(code)) for code in plain)
    return ["-".join(re.findall("....", code)) for code in plain]


def _digest(code: str) -> str:
    return sha256(code.encode("utf-8", "surrogatepass")).hexdigest()
