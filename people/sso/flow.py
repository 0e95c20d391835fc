"""The authorization code flow with PKCE (RFC 6749, RFC 7636, RFC 9207), bound to one browser's session."""

import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final
from urllib.parse import quote

from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri, prepare_token_request
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from django.contrib.sessions.models import Session
from django.http import HttpRequest
from django.utils.crypto import constant_time_compare

from compliance.core import environments
from compliance.core.environments import Environment
from people.errors import SignOnRefused
from people.sso import tokens
from people.sso.configuration import SignOn, address_of, client_secret
from people.sso.provider import Key, Provider, fetch, json_object, keys_of, provider_of
from people.sso.tokens import Claims

FLOW: Final = "sign_on_flow"
LONGEST: Final = timedelta(minutes=10)
LONGEST_CODE: Final = 4096
CALLBACK: Final = "admin:sso_callback"
FORM: Final = "application/x-www-form-urlencoded"


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


def begin(
    request: HttpRequest, *, config: SignOn, purpose: Purpose, next_url: str, about: str = "", now: datetime
) -> str:
    """Keep a new flow in the session; return where the browser goes. Raises: ProviderUnavailable."""
    provider = provider_of(config, now)
    flow = Flow(
        purpose=purpose,
        issuer=config.issuer,
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
        client_id=config.client_id,
        response_type="code",
        redirect_uri=address_of(CALLBACK),
        scope=config.scopes,
        state=flow.state,
        nonce=flow.nonce,
        code_challenge=create_s256_code_challenge(flow.verifier),
        code_challenge_method="S256",
        acr_values=" ".join(sorted(config.factor_acr)) or None,
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
        if found is None or not constant_time_compare(found["state"].encode(), _octets(state)):
            raise SignOnRefused("state")
        del stored[FLOW]
        stored.save()
    request.session.pop(FLOW, None)
    flow = Flow(**{**found, "purpose": Purpose(found["purpose"])})
    if now - datetime.fromisoformat(flow.begun_at) > LONGEST:
        raise SignOnRefused("too_late")
    return flow


def finish(flow: Flow, *, answer: dict[str, str], config: SignOn, now: datetime) -> Shown:
    """Exchange the code of the provider's answer, and return the account that it proves.

    Raises: SignOnRefused, ProviderUnavailable.
    """
    provider = provider_of(config, now)
    # Before all else, errors too: an answer of another provider counts for nothing (RFC 9207 §2.4).
    named = answer.get("iss")
    if flow.issuer != config.issuer or (named is None and provider.names_itself):
        raise SignOnRefused("issuer")
    if named is not None and named != config.issuer:
        raise SignOnRefused("issuer")
    if "error" in answer:
        raise SignOnRefused(_error_of(answer["error"]))
    code = answer.get("code", "")
    if not 0 < len(code) <= LONGEST_CODE or not tokens.is_plain(code):
        raise SignOnRefused("no_code")
    granted = _exchange(code, flow.verifier, provider, config)

    def keys(lacking: bool) -> Iterable[Key]:
        return keys_of(config, now, lacking=lacking)

    claims = tokens.verify(
        granted.get("id_token"),
        config=config,
        nonce=flow.nonce,
        access_token=granted.get("access_token"),
        keys=keys,
        now=now,
    )
    return Shown(claims, granted["id_token"], provider)


def _exchange(code: str, verifier: str, provider: Provider, config: SignOn) -> dict[str, Any]:
    body = prepare_token_request(
        "authorization_code", redirect_uri=address_of(CALLBACK), code=code, code_verifier=verifier
    )
    client, secret = config.client_id, client_secret()
    if provider.auth_method == "client_secret_basic":
        # Encoded first (RFC 6749 §2.3.1), which Authlib leaves to its caller.
        client, secret = quote(client, safe=""), quote(secret, safe="")
    auth = ClientAuth(client, secret, provider.auth_method)
    address, headers, body = auth.prepare("POST", provider.token, {"Content-Type": FORM}, body)
    fetched = fetch(address, config=config, body=body, headers=headers)
    if fetched.status != 200:
        raise SignOnRefused("code")
    return json_object(fetched.body)


def _error_of(said: str) -> str:
    """Return a reason for the provider's error, in its own word if it is one (RFC 6749 §4.1.2.1)."""
    is_word = 0 < len(said) <= 40 and said.replace("_", "").isalpha() and said.isascii()
    return f"provider_{said}" if is_word else "provider_error"


def _octets(state: str) -> bytes:
    return state.encode("utf-8", "surrogatepass")
