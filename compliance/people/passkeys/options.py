"""The options of ceremonies as JSON, which the console's script asks for when somebody presses the button."""

from datetime import datetime

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse

from compliance.people.models import ChallengePurpose, Person
from compliance.people.passkeys import ceremonies, challenges, keys, relying_party


def to_sign(request: HttpRequest, *, user: User, purpose: ChallengePurpose, now: datetime) -> HttpResponse:
    """Answer with a new challenge for the keys of the user."""
    challenge = challenges.give(request, user=user, purpose=purpose, now=now)
    known = keys.known(keys.of(user))
    return _json(ceremonies.request_options(relying_party.current(), challenge=challenge, known=known))


def to_create(request: HttpRequest, *, user: User, now: datetime) -> HttpResponse:
    """Answer with a new challenge for a key that the user has not registered yet."""
    challenge = challenges.give(request, user=user, purpose=ChallengePurpose.REGISTER, now=now)
    made = ceremonies.creation_options(
        relying_party.current(),
        service=settings.SERVICE_TITLE,
        username=user.get_username(),
        handle=Person.objects.get(user=user).id.bytes,
        challenge=challenge,
        known=keys.known(keys.of(user)),
    )
    return _json(made)


def over() -> HttpResponse:
    """Answer that the page is no longer anybody's: the script says so and offers to begin anew."""
    return HttpResponse("This page is over.", content_type="text/plain", status=409)


def _json(text: str) -> HttpResponse:
    return HttpResponse(text, content_type="application/json")
