"""What a session keeps while somebody signs in: who has passed the first step, and secrets not yet shown."""

from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib.auth.models import User
from django.http import HttpRequest
from django.utils.crypto import constant_time_compare

from compliance.core.encryption import decrypt, encrypt

PENDING, SECRET, CODES, LINK = "sign_in", "enrolment", "recovery_codes", "one_time_link"
CHALLENGE: Final = "key_challenge"
CONFIRMED: Final = "confirmed_at"
LONGEST: Final = timedelta(minutes=10)


def begin(request: HttpRequest, user: Any, now: datetime) -> None:
    """Remember that the user has passed the first step, such as a password; nobody is signed in yet.

    Whoever used the session before knows neither its new key nor the secret that this user may be shown.
    """
    request.session.cycle_key()
    request.session.pop(SECRET, None)
    request.session.pop(CHALLENGE, None)
    request.session[PENDING] = {
        "user": user.pk,
        "backend": user.backend,
        "hash": user.get_session_auth_hash(),
        "at": now.isoformat(),
    }


def user_of(request: HttpRequest, now: datetime) -> User | None:
    """Return who passed the first step within the last ten minutes and may still sign in."""
    kept = request.session.get(PENDING)
    if kept is None or now - datetime.fromisoformat(kept["at"]) > LONGEST:
        return None
    user = User.objects.filter(pk=kept["user"], is_active=True, is_staff=True).first()
    if user is None or not constant_time_compare(kept["hash"], user.get_session_auth_hash()):
        return None
    user.backend = kept["backend"]
    return user


def end(request: HttpRequest) -> None:
    """Forget who is signing in."""
    request.session.pop(PENDING, None)


def keep(request: HttpRequest, name: str, plain: str) -> None:
    """Keep a secret in the session, encrypted."""
    request.session[name] = encrypt(plain.encode()).decode()


def kept(request: HttpRequest, name: str) -> str | None:
    return unsealed(request.session.get(name))


def unsealed(found: str | None) -> str | None:
    """Return in clear what a session holds of a secret that is kept."""
    return None if found is None else decrypt(found.encode()).decode()


def take(request: HttpRequest, name: str) -> str | None:
    """Return a secret that is kept, for the last time."""
    found = kept(request, name)
    request.session.pop(name, None)
    return found


def confirm(request: HttpRequest, moment: datetime | None) -> None:
    """Note when the session's person last showed a second factor."""
    request.session[CONFIRMED] = moment and moment.isoformat()


def is_confirmed(request: HttpRequest, now: datetime) -> bool:
    """Whether the session's person has shown a second factor within ten minutes."""
    at = request.session.get(CONFIRMED)
    return at is not None and now - datetime.fromisoformat(at) <= LONGEST
