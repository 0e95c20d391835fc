"""The second factor of a sign-in: codes of an authenticator app (RFC 6238), and recovery codes."""

import base64
import re
import secrets
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final
from urllib.parse import quote

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
from compliance.people.errors import NoSecondFactor, SecondFactorExists
from compliance.people.models import Authenticator, Person, RecoveryCode

SESSION_FLAG: Final = "second_factor"
"""Marks the sessions that began with a second factor."""
SECRET_OCTETS: Final = 20  # RFC 4226 §4 recommends 160 bits
TOLERANCE_STEPS: Final = 1
FREE_FAILURES: Final = 3
LONGEST_CLOSURE: Final = timedelta(minutes=15)
RECOVERY_CODES: Final = 10
_APP_CODE: Final = re.compile("[0-9]{6}")


class Requirement(StrEnum):
    """The values of SECOND_FACTOR: who must have a second factor."""

    OPERATORS = "operators"
    EVERYONE = "everyone"
    NOBODY = "nobody"


class Factor(StrEnum):
    """The second factor that was shown."""

    APP = "app"
    RECOVERY_CODE = "recovery_code"
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


def enrol(*, user: User, secret: bytes, step: int, actor: Actor, now: datetime) -> list[str]:
    """Add an authenticator whose code of `step` was shown; return its recovery codes.

    Raises: SecondFactorExists.
    """
    with environments.use(Environment.LIVE), environments.atomic():
        person = _locked(user)
        if Authenticator.objects.filter(person=person).exists():
            raise SecondFactorExists()
        Authenticator.objects.create(person=person, secret=encrypt(secret), last_step=step, created_at=now)
        text = f"Second factor of {user.username} added"
        recording.record(AuditAction.PERSON_SECOND_FACTOR_ADDED, user, text, actor, now)
        return _new_codes(person)


def remake_codes(*, user: User, actor: Actor, now: datetime) -> list[str]:
    """Replace the recovery codes. Raises: NoSecondFactor."""
    with environments.use(Environment.LIVE), environments.atomic():
        person = _locked(user)
        if not Authenticator.objects.filter(person=person).exists():
            raise NoSecondFactor()
        text = f"Recovery codes of {user.username} made"
        recording.record(AuditAction.PERSON_RECOVERY_CODES_MADE, user, text, actor, now)
        return _new_codes(person)


def remove(*, user: User, reason: str, actor: Actor, now: datetime) -> None:
    """Remove authenticator and recovery codes. Raises: NoSecondFactor."""
    with environments.use(Environment.LIVE), environments.atomic():
        person = _locked(user)
        removed, _ = Authenticator.objects.filter(person=person).delete()
        if not removed:
            raise NoSecondFactor()
        RecoveryCode.objects.filter(person=person).delete()
        text = f"Second factor of {user.username} removed"
        recording.record(AuditAction.PERSON_SECOND_FACTOR_REMOVED, user, text, actor, now, reason=reason)


def closed_for(user: User, now: datetime) -> timedelta | None:
    """Return for how long no code of the user is accepted, after too many wrong ones."""
    found = authenticator_of(user)
    if found is None or found.closed_until is None or found.closed_until <= now:
        return None
    return found.closed_until - now


def verify(*, user: User, code: str, now: datetime) -> Factor | None:
    """Use up a code of the app or a recovery code; None if it is wrong, used, or comes while closed.

    From the third wrong code on, each closes the door for twice as long as the one before.
    """
    code = "".join(code.split()).replace("-", "").lower()
    with environments.use(Environment.LIVE), environments.atomic():
        found = Authenticator.objects.select_for_update(of=("self",)).filter(person__user=user).first()
        if found is None or (found.closed_until is not None and now < found.closed_until):
            return None
        step = step_of(code, decrypt(bytes(found.secret)), after=found.last_step, now=now)
        if step is not None:
            Authenticator.objects.filter(pk=found.pk).update(last_step=step, failures=0, closed_until=None)
            return Factor.APP
        used, _ = RecoveryCode.objects.filter(person_id=found.pk, digest=_digest(code)).delete()
        if used:
            Authenticator.objects.filter(pk=found.pk).update(failures=0, closed_until=None)
            return Factor.RECOVERY_CODE
        failures = found.failures + 1
        closure = min(timedelta(seconds=2 ** min(failures, 20)), LONGEST_CLOSURE)
        closed_until = now + closure if failures >= FREE_FAILURES else None
        Authenticator.objects.filter(pk=found.pk).update(failures=failures, closed_until=closed_until)
        return None


def _locked(user: User) -> Person:
    """Lock the user's row, as nobody may lock the person's."""
    User.objects.select_for_update(no_key=True).get(pk=user.pk)
    return Person.objects.get(user=user)


def _new_codes(person: Person) -> list[str]:
    RecoveryCode.objects.filter(person=person).delete()
    plain = [base64.b32encode(secrets.token_bytes(10)).decode().lower() for _ in range(RECOVERY_CODES)]
    RecoveryCode.objects.bulk_create(RecoveryCode(person=person, digest=_digest(code)) for code in plain)
    return ["-".join(re.findall("....", code)) for code in plain]


def _digest(code: str) -> str:
    return sha256(code.encode("utf-8", "surrogatepass")).hexdigest()
