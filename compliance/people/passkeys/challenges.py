"""Challenges of security keys: each for one person, one session and one purpose, and taken once."""

import secrets
from datetime import datetime
from typing import Final
from uuid import UUID

from django.contrib.auth.models import User
from django.http import HttpRequest

from compliance.core import environments
from compliance.core.environments import Environment
from compliance.core.identifiers import parse_id
from compliance.people.doors import pending
from compliance.people.models import ChallengePurpose, KeyChallenge, Person
from compliance.people.passkeys.ceremonies import LIFE

OCTETS: Final = 32


def give(request: HttpRequest, *, user: User, purpose: ChallengePurpose, now: datetime) -> bytes:
    """Return a new challenge, which replaces the session's last one; those that are over are removed."""
    with environments.use(Environment.LIVE), environments.atomic():
        KeyChallenge.objects.filter(expires_at__lte=now).delete()
        KeyChallenge.objects.filter(id__in=_given(request.session.get(pending.CHALLENGE))).delete()
        octets = secrets.token_bytes(OCTETS)
        challenge = KeyChallenge.objects.create(
            person=Person.objects.get(user=user), purpose=purpose, octets=octets, expires_at=now + LIFE
        )
    request.session[pending.CHALLENGE] = str(challenge.id)
    return octets


def take(request: HttpRequest, *, user: User, purpose: ChallengePurpose, now: datetime) -> bytes | None:
    """Return the challenge that the session was given, for the last time; None if it is over."""
    given = _given(request.session.pop(pending.CHALLENGE, None))
    with environments.use(Environment.LIVE), environments.atomic():
        mine = KeyChallenge.objects.filter(person__user=user, purpose=purpose, expires_at__gt=now)
        found = mine.filter(id__in=given).first()
        # Of two at the same time one deletes the row.
        if found is None or not KeyChallenge.objects.filter(pk=found.pk).delete()[0]:
            return None
    return bytes(found.octets)


def _given(text: object) -> list[UUID]:
    """Return the id of the session's challenge, if it has one."""
    found = parse_id(text)
    return [] if found is None else [found]
