"""One-time links, by which people set their password: invitations, and resets of forgotten ones."""

import secrets
from datetime import datetime, timedelta
from hashlib import sha256

from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import send_mail
from django.db.models import Q

from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.core.errors import NotFound
from people import recording
from people.models import OneTimeLink, Person

MAIL = """Somebody who administers {service} made this link for your account {username}:

{address}

It sets your password, once, until {expires:%Y-%m-%d %H:%M} UTC. Nobody will ask you for it.
"""


class LinkIsOver(NotFound):
    """`reason` names the cause in the audit log, where a single sign-on was to use the link."""

    reason = "link_is_over"
    message = "This link was used, replaced or is too old"


def make(
    *, user: User, actor: Actor, now: datetime, signs_in: bool = False, **more: str
) -> tuple[str, OneTimeLink]:
    """Return the token of a new link with its row; the link before it is over.

    One that `signs_in` is the first factor of one sign-in, instead of setting a password.
    """
    token = secrets.token_urlsafe(32)
    expires_at = now + timedelta(hours=settings.SIGN_IN_LINK_HOURS)
    with environments.use(Environment.LIVE), environments.atomic():
        link, _ = OneTimeLink.objects.update_or_create(
            person=Person.objects.get(user=user),
            defaults={"digest": _digest(token), "expires_at": expires_at, "signs_in": signs_in},
        )
        text = f"One-time link for {user.username} made"
        metadata = {"expires_at": expires_at.isoformat(), **({"signs_in": True} if signs_in else {}), **more}
        recording.record(AuditAction.PERSON_LINK_MADE, user, text, actor, now, **metadata)
    return token, link


def find(token: str, now: datetime) -> OneTimeLink | None:
    """Return the link with its user; None if it is over or was never made.

    One that signs in serves nobody who is no operator any more.
    """
    is_operators = Q(person__user__is_staff=True, person__user__is_superuser=True)
    links = OneTimeLink.objects.filter(Q(signs_in=False) | is_operators, person__user__is_active=True)
    return links.select_related("person__user").filter(digest=_digest(token), expires_at__gt=now).first()


def use(*, token: str, password: str, now: datetime) -> None:
    """Set the password and end the link, and with it the person's sessions. Raises: LinkIsOver."""
    with environments.use(Environment.LIVE), environments.atomic():
        user = spend(token=token, signs_in=False, now=now)
        actor = Actor.person(Person.objects.get(user=user).id)
        with recording.recorded_changes(user_id=user.pk, actor=actor, now=now):
            user.set_password(password)
            user.save(update_fields=["password"])


def spend(*, token: str, signs_in: bool, now: datetime) -> User:
    """End the link, and return whose it was, for what follows in the same transaction. Raises: LinkIsOver."""
    with environments.use(Environment.LIVE), environments.atomic():
        found = find(token, now)
        # Of two at the same time one deletes the row.
        links = OneTimeLink.objects.filter(digest=_digest(token), signs_in=signs_in)
        if found is None or not links.delete()[0]:
            raise LinkIsOver()
        return found.person.user


def mail(*, user: User, address: str, link: OneTimeLink) -> bool:
    """Send the link to the user's e-mail address; whether that was done. False without a mail server.

    Raises: OSError (smtplib's errors are).
    """
    if not settings.EMAIL_HOST or not user.email:
        return False
    text = MAIL.format(
        service=settings.SERVICE_TITLE, username=user.username, address=address, expires=link.expires_at
    )
    send_mail(f"Your account at {settings.SERVICE_TITLE}", text, None, [user.email])
    return True


def _digest(token: str) -> str:
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
