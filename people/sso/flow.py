"""The authorization code flow with PKCE (RFC 6749, RFC 7636, RFC 9207), bound to one browser's session."""

import secrets
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final
from urllib.parse import quote

from authlib.common.urls import add_params_to_uri
from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri, prepare_token_request
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from django.conf import settings
from django.contrib.sessions.models import Session
from django.http import HttpRequest
from django.utils.crypto import constant_time_compare

from compliance.core import environments
from compliance.core.environments import Environment
from people.sso import tokens
from people.sso.configuration import address_of, client_secret, is_on
from people.sso.provider import Provider, fetch, json_object, provider_now, published_keys
from people.sso.tokens import Claims, SignOnRefused

FLOW: Final = "sign_on_flow"
LONGEST: Final = timedelta(minutes=10)
LONGEST_CODE: Final = 4096
CALLBACK: Final = "admin:sso_callback"
FORM: Final = "application/x-www-form-urlencoded"
SIGN_ON: Final = "sign_on"
"""Where the session keeps, until somebody signs in with a password, what log-out and the audit log need."""
LONGEST_HINT: Final = 4096


class Purpose(StrEnum):
    """What the account is shown for."""

    SIGN_IN = "sign_in"
    LINK = "link"
    INVITATION = "invitation"


@dataclass(frozen=True)
class Flow:
    """A sign-on under way; `about` is the user's id (link) or the one-time link's token (invitation)."""

    purpose: Purpose
    issuer: str
    state: str
    nonce: str
    verifier: str
    next_url: str
    about: str
    begun_at: str


@dataclass(frozen=True)
class Shown:
    """The account that was shown, with the token that says so."""

    claims: Claims
    id_token: str
    provider: Provider


def begin(request: HttpRequest, *, purpose: Purpose, next_url: str, about: str = "", now: datetime) -> str:
    """Keep a new flow in the session; return where the browser goes. Raises: ProviderUnavailable."""
    provider = provider_now(now)
    flow = Flow(
        purpose=purpose,
        issuer=settings.OIDC_ISSUER,
        state=secrets.token_urlsafe(32),
        nonce=secrets.token_urlsafe(32),
        verifier=secrets.token_urlsafe(48),
        next_url=next_url,
        about=about,
        begun_at=now.isoformat(),
    )
    request.session[FLOW] = asdict(flow)
    address: str = prepare_grant_uri(
        provider.authorization,
        client_id=settings.OIDC_CLIENT_ID,
        response_type="code",
        redirect_uri=address_of(CALLBACK),
        scope=" ".join(settings.OIDC_SCOPES),
        state=flow.state,
        nonce=flow.nonce,
        code_challenge=create_s256_code_challenge(flow.verifier),
        code_challenge_method="S256",
        acr_values=" ".join(sorted(settings.OIDC_SECOND_FACTOR_ACR)) or None,
    )
    return address


def take(request: HttpRequest, state: str, now: datetime) -> Flow:
    """Return the session's flow for the last time, if `state` is its own. Raises: SignOnRefused.

    Another state ends nothing: any site can send a browser here.
    """
    key = request.session.session_key
    with environments.use(Environment.LIVE), environments.atomic():
        # Of two answers at the same time the second waits, and then finds no flow.
        Session.objects.select_for_update(of=("self",)).filter(session_key=key or "").first()
        stored: Any = type(request.session)(key)
        found = stored.get(FLOW)
        if found is None or not constant_time_compare(
            found["state"].encode(), state.encode("utf-8", "surrogatepass")
        ):
            raise SignOnRefused("state")
        del stored[FLOW]
        stored.save()
    request.session.pop(FLOW, None)
    flow = Flow(**found)
    if now - datetime.fromisoformat(flow.begun_at) > LONGEST:
        raise SignOnRefused("too_late")
    return flow


def finish(flow: Flow, *, answer: dict[str, str], now: datetime) -> Shown:
    """Exchange the code of the provider's answer, and return the account that it proves.

    Raises: SignOnRefused, ProviderUnavailable.
    """
    provider, issuer = provider_now(now), settings.OIDC_ISSUER
    # Before all else, errors too: an answer of another provider counts for nothing (RFC 9207 §2.4).
    named = answer.get("iss", "" if provider.names_itself else issuer)
    if flow.issuer != issuer or named != issuer:
        raise SignOnRefused("issuer")
    if (said := answer.get("error")) is not None:
        # In the provider's own word if it is one (RFC 6749 §4.1.2.1).
        is_word = 0 < len(said) <= 40 and said.replace("_", "").isalpha() and said.isascii()
        raise SignOnRefused(f"provider_{said}" if is_word else "provider_error")
    code = answer.get("code", "")
    if not 0 < len(code) <= LONGEST_CODE or not tokens.is_plain(code):
        raise SignOnRefused("no_code")
    granted = _exchange(code, flow.verifier, provider)
    claims = tokens.verify(
        granted.get("id_token"),
        nonce=flow.nonce,
        access_token=granted.get("access_token"),
        keys=lambda lacking: published_keys(now, lacking=lacking),
        now=now,
    )
    return Shown(claims, granted["id_token"], provider)


def _exchange(code: str, verifier: str, provider: Provider) -> dict[str, Any]:
    body = prepare_token_request(
        "authorization_code", redirect_uri=address_of(CALLBACK), code=code, code_verifier=verifier
    )
    client, secret = settings.OIDC_CLIENT_ID, client_secret()
    if provider.auth_method == "client_secret_basic":
        # Encoded first (RFC 6749 §2.3.1), which Authlib leaves to its caller.
        client, secret = quote(client, safe=""), quote(secret, safe="")
    auth = ClientAuth(client, secret, provider.auth_method)
    address, headers, body = auth.prepare("POST", provider.token, {"Content-Type": FORM}, body)
    fetched = fetch(address, body=body, headers=headers)
    if fetched.status != 200:
        raise SignOnRefused("code")
    return json_object(fetched.body)


def mark(request: HttpRequest, *, shown: Shown) -> None:
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
