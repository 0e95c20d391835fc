"""What a session keeps of a single sign-on: for the audit log, and to log out at the provider as well."""

from typing import Final

from authlib.common.urls import add_params_to_uri
from django.conf import settings
from django.http import HttpRequest

from people.sso.configuration import address_of, is_on
from people.sso.flow import Shown

SIGN_ON: Final = "sign_on"
"""Where the session keeps it until somebody signs in with a password."""
LONGEST_HINT: Final = 4096


def begin(request: HttpRequest, *, shown: Shown) -> None:
    """Mark the session as one in which this account was shown."""
    request.session[SIGN_ON] = {
        "issuer": settings.OIDC_ISSUER,
        "id_token": shown.id_token if len(shown.id_token) <= LONGEST_HINT else "",
        "end_session": shown.provider.end_session,
    }


def farewell(request: HttpRequest) -> str | None:
    """Return where to log out at the provider (RP-Initiated Logout 1.0); None where it offers that not."""
    found = request.session.get(SIGN_ON)
    if not found or not found["end_session"] or not is_on() or found["issuer"] != settings.OIDC_ISSUER:
        return None
    hint = [("id_token_hint", found["id_token"])] if found["id_token"] else []
    client = ("client_id", settings.OIDC_CLIENT_ID)
    back = ("post_logout_redirect_uri", address_of("admin:login"))
    address: str = add_params_to_uri(found["end_session"], [*hint, client, back])
    return address
