"""Authenticator apps, as a phone has them."""

import time

from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal import auth
from allauth.mfa.totp.internal.auth import TOTP
from allauth.mfa.utils import decrypt
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from auditlog.vocabulary import Actor

ACTOR = Actor.system("tests")


def make_authenticator(user: User) -> list[str]:
    """Set up an app, of which no code has been used yet; return the recovery codes."""
    TOTP.activate(user, auth.generate_totp_secret())
    codes: list[str] = RecoveryCodes.activate(user).get_unused_codes()
    return codes


def code_of(user: User, *, later: int = 0) -> str:
    """What the user's app shows, so many steps later."""
    app = Authenticator.objects.get(user=user, type=Authenticator.Type.TOTP)
    return code_from(decrypt(app.data["secret"]), later=later)


def code_from(secret: str, *, later: int = 0) -> str:
    return str(auth.format_hotp_value(auth.hotp_value(secret, int(time.time()) // 30 + later)))


def show_again(client: Client, user: User) -> None:
    """Make it so that the browser's person has just shown the second factor, at the sign-in and again."""
    session = client.session
    shown = {"method": "mfa", "at": time.time(), "type": "totp", "reauthenticated": True}
    session["account_authentication_methods"] = [shown]
    session["account_authentication_methods_user"] = str(user.pk)
    session.save()


def offered_code(client: Client, page: str = "mfa_activate_totp") -> str:
    """What an app shows that has scanned the page of an enrolment."""
    client.get(reverse(page))
    return code_from(client.session[auth.SECRET_SESSION_KEY])
