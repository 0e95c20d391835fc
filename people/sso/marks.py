"""What a session keeps of a single sign-on: for the audit log, and to log out at the provider as well."""

from typing import Any, Final

from authlib.common.urls import add_params_to_uri
from django.http import HttpRequest

from people.sso.configuration import address_of, sign_on
from people.sso.provider import Provider

SIGN_ON: Final = "sign_on"
LONGEST_HINT: Final = 4096


def begin(request: HttpRequest, *, issuer: str, subject: str, id_token: str, provider: Provider) -> None:
    """Mark the session as one in which this account was shown."""
    hint = id_token if len(id_token) <= LONGEST_HINT else ""
    kept = {"issuer": issuer, "subject": subject, "id_token": hint, "end_session": provider.end_session}
    request.session[SIGN_ON] = kept


def end(request: HttpRequest) -> None:
    """Forget it: somebody signs in with a password."""
    request.session.pop(SIGN_ON, None)


def facts(request: HttpRequest) -> dict[str, Any]:
    """Return what the audit log says of the sign-in: the issuer, if it was a single sign-on."""
    found = _kept(request)
    return {"sign_on": found["issuer"]} if found else {}


def farewell(request: HttpRequest) -> str | None:
    """Return where to log out at the provider (RP-Initiated Logout 1.0); None where it offers that not."""
    found, config = _kept(request), sign_on()
    if not found or not found["end_session"] or config is None or found["issuer"] != config.issuer:
        return None
    hint = [("id_token_hint", found["id_token"])] if found["id_token"] else []
    back = ("post_logout_redirect_uri", address_of("admin:login"))
    address: str = add_params_to_uri(found["end_session"], [*hint, ("client_id", config.client_id), back])
    return address


def _kept(request: HttpRequest) -> dict[str, Any]:
    found: dict[str, Any] = request.session.get(SIGN_ON, {})
    return found
