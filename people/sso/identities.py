"""Which account of the identity provider signs in which person: linked, unlinked, found."""

import re
import secrets
from datetime import datetime
from typing import Any, Final

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError

from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.core.errors import Conflict
from compliance.stores import sql
from people import recording
from people.models import ExternalIdentity, Person
from people.sso.tokens import Claims

CREATOR: Final = Actor.system("single_sign_on")
LONGEST_NAME: Final = 100
CREATING: Final = 0x73736F  # "sso": the advisory lock under which people are made, one after the other


class IdentityTaken(Conflict):
    """`reason` names the cause in the audit log, as that of `SignOnRefused`."""

    reason = "taken"
    message = "This account of the identity provider signs in somebody else"


class IdentityExists(Conflict):
    """`reason` names the cause in the audit log, as that of `SignOnRefused`."""

    reason = "linked"
    message = "This person is linked to an account of the identity provider already: unlink it first"


def user_of(*, issuer: str, subject: str) -> User | None:
    """Return whom the account signs in, active or not."""
    return User.objects.filter(
        person__external_identities__issuer=issuer, person__external_identities__subject=subject
    ).first()


def identity_of(user: User, issuer: str) -> ExternalIdentity | None:
    return ExternalIdentity.objects.filter(person__user=user, issuer=issuer).first()


def link(*, user: User, issuer: str, subject: str, via: str, actor: Actor, now: datetime) -> None:
    """Let the account sign in the user. Raises: IdentityExists, IdentityTaken."""
    with environments.use(Environment.LIVE), environments.atomic():
        User.objects.select_for_update(no_key=True).get(pk=user.pk)
        if identity_of(user, issuer) is not None:
            raise IdentityExists()
        row = ExternalIdentity(
            person=Person.objects.get(user=user), issuer=issuer, subject=subject, linked_at=now
        )
        try:
            with environments.atomic():
                row.save(force_insert=True)
        except IntegrityError as error:
            raise IdentityTaken() from error
        metadata = {"issuer": issuer, "subject": subject, "via": via}
        text = f"Single sign-on of {user.username} linked"
        recording.record(AuditAction.PERSON_SIGN_ON_LINKED, user, text, actor, now, **metadata)


def unlink(*, user: User, issuer: str, reason: str, by_person: bool, actor: Actor, now: datetime) -> None:
    """End it. Raises: Conflict if there is none, or the person would shut themselves out."""
    with environments.use(Environment.LIVE), environments.atomic():
        user = User.objects.select_for_update(no_key=True).get(pk=user.pk)
        found = identity_of(user, issuer)
        if found is None:
            raise Conflict("This person is not linked to the identity provider")
        if by_person and not may_unlink(user):
            raise Conflict("You could not sign in any more: set a password first, or ask an operator")
        found.delete()
        metadata = {"issuer": issuer, "subject": found.subject, "reason": reason}
        text = f"Single sign-on of {user.username} unlinked"
        recording.record(AuditAction.PERSON_SIGN_ON_UNLINKED, user, text, actor, now, **metadata)


def may_unlink(user: User) -> bool:
    """Whether the user has another way to sign in."""
    return user.has_usable_password() and not settings.OIDC_ONLY


def create(*, claims: Claims, now: datetime) -> User:
    """Make a person for the account, without a password and in no tenant. Raises: IdentityTaken."""
    with environments.use(Environment.LIVE), environments.atomic():
        # Two accounts may claim one name at the same moment.
        sql.query("SELECT pg_advisory_xact_lock(%s)", [CREATING])
        user = User(username=_free_username(claims.values), email=_email(claims.values), is_staff=True)
        user.set_unusable_password()
        recording.store_new(user=user, actor=CREATOR, now=now)
        account = {"issuer": settings.OIDC_ISSUER, "subject": claims.subject}
        link(user=user, **account, via="creation", actor=CREATOR, now=now)
    return user


def _free_username(values: dict[str, Any]) -> str:
    """Return a name that nobody has, whatever the account calls itself."""
    for claim in ("preferred_username", "email"):
        said = values.get(claim)
        name = re.sub(r"[^A-Za-z0-9@.+_-]", "", said)[:LONGEST_NAME] if isinstance(said, str) else ""
        if name:
            break
    else:
        name = "person"
    if User.objects.filter(username__iexact=name).exists():
        name = f"{name}-{secrets.token_hex(3)}"
    return name


def _email(values: dict[str, Any]) -> str:
    """Return the address, if the provider has verified it."""
    said = values.get("email")
    if not isinstance(said, str) or values.get("email_verified") is not True or len(said) > 254:
        return ""
    try:
        validate_email(said)
    except ValidationError:
        return ""
    return said
