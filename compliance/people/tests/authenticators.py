"""Authenticator apps, as a phone has them."""

from datetime import timedelta

from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django_otp.oath import TOTP

from auditlog.vocabulary import Actor
from compliance.core.clock import now
from compliance.core.encryption import decrypt
from compliance.people.doors import pending, second_factor
from compliance.people.models import Authenticator

ACTOR = Actor.system("tests")


def make_authenticator(user: User) -> list[str]:
    """Set up an app, of which no code has been used yet; return the recovery codes."""
    return second_factor.enrol(user=user, secret=second_factor.new_secret(), step=0, actor=ACTOR, now=now())


def code_of(user: User, *, later: int = 0) -> str:
    """What the user's app shows, so many steps later."""
    return code_from(decrypt(bytes(Authenticator.objects.get(person__user=user).secret)), later=later)


def code_from(secret: bytes, *, later: int = 0) -> str:
    totp = TOTP(secret)
    totp.time = (now() + later * timedelta(seconds=30)).timestamp()
    return f"{totp.token():06}"


def offered_code(client: Client, page: str = "account_enrol") -> str:
    """What an app shows that has scanned the page of an enrolment."""
    client.get(reverse(f"admin:{page}"))
    kept = decrypt(client.session[pending.SECRET].encode()).decode()
    return code_from(bytes.fromhex(kept))
