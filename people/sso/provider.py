"""What the provider publishes of itself: its endpoints (OpenID Connect Discovery 1.0) and keys (RFC 7517)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings

from compliance.core.circuit_breaker import CircuitBreaker
from compliance.outbound import http_client
from compliance.outbound.addresses import UrlPolicy
from compliance.outbound.http_client import Download, RequestOptions, SendingFailed
from people.sso.configuration import ProviderUnavailable, is_safe_address

KEPT_FOR: Final = timedelta(hours=1)
REFETCH_PAUSE: Final = timedelta(seconds=30)
MOST_KEYS: Final = 100
MAX_BYTES: Final = 256 * 1024
WELL_KNOWN: Final = "/.well-known/openid-configuration"
AUTH_METHODS: Final = ("client_secret_basic", "client_secret_post")
BY_DEFAULT: Final = "client_secret_basic"

# HTTP is for this machine alone (`is_safe_address`).
POLICY: Final = UrlPolicy(allow_http=True, allow_private=True)
# A provider that is away keeps threads for its first callers only.
circuit: Final = CircuitBreaker(
    lambda seconds: ProviderUnavailable("did not answer a moment ago", retry_after=int(seconds) + 1),
    failures=(ProviderUnavailable,),
    longest_pause=8.0,
)

Key = dict[str, Any]


@dataclass(frozen=True)
class Provider:
    """The provider's endpoints; `end_session` is empty where it offers no log-out."""

    authorization: str
    token: str
    jwks: str
    end_session: str
    auth_method: str
    names_itself: bool
    """Whether each answer carries `iss` (RFC 9207)."""
    fetched_at: datetime


@dataclass(frozen=True)
class KeySet:
    """Public keys as the provider publishes them; `refetched_at`: when an unknown one was last looked for."""

    keys: tuple[Key, ...]
    fetched_at: datetime
    refetched_at: datetime | None = None


_providers: dict[str, Provider] = {}
_key_sets: dict[str, KeySet] = {}
"""By issuer, of which there is one unless the settings change."""


def provider_now(now: datetime) -> Provider:
    """Return what the issuer says of itself, at most an hour old. Raises: ProviderUnavailable."""
    issuer = settings.OIDC_ISSUER
    kept = _providers.get(issuer)
    if kept is None or now - kept.fetched_at >= KEPT_FOR:
        kept = _providers[issuer] = _read(_json_of(issuer.rstrip("/") + WELL_KNOWN), issuer, now)
    return kept


def published_keys(now: datetime, *, lacking: bool = False) -> tuple[Key, ...]:
    """Return the issuer's keys, at most an hour old; `lacking`: fetched again, as one was not among them.

    They are not fetched again within half a minute. Raises: ProviderUnavailable.
    """
    kept = _key_sets.get(settings.OIDC_ISSUER)
    if kept is not None and now - kept.fetched_at < KEPT_FOR:
        is_asked_again = kept.refetched_at is not None and now - kept.refetched_at < REFETCH_PAUSE
        if not lacking or is_asked_again:
            return kept.keys
    listed = _json_of(provider_now(now).jwks).get("keys")
    if not isinstance(listed, list) or len(listed) > MOST_KEYS:
        raise ProviderUnavailable("published no list of keys")
    keys = tuple(key for key in listed if isinstance(key, dict))
    _key_sets[settings.OIDC_ISSUER] = KeySet(keys, now, now if lacking else None)
    return keys


def fetch(url: str, *, body: str | None = None, headers: Mapping[str, str] | None = None) -> Download:
    """GET the address, or POST `body` to it, within `OIDC_TIMEOUT_SECONDS`. Raises: ProviderUnavailable."""
    if not is_safe_address(url):
        raise ProviderUnavailable("named an address without HTTPS")
    with circuit.guarding():
        try:
            found = http_client.fetch(
                url,
                headers={"Accept": "application/json", **(headers or {})},
                most_bytes=MAX_BYTES,
                options=RequestOptions(POLICY, settings.OIDC_TIMEOUT_SECONDS, settings.OIDC_CA_FILE or None),
                body=None if body is None else body.encode(),
            )
        except SendingFailed as error:
            raise ProviderUnavailable(f"could not be asked: {error}") from error
        if found.status >= 500:
            raise ProviderUnavailable(f"answered {found.status}")
        return found


def json_object(body: bytes) -> dict[str, Any]:
    """Read a JSON object. Raises: ProviderUnavailable."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ProviderUnavailable("did not answer with JSON") from error
    if not isinstance(found, dict):
        raise ProviderUnavailable("did not answer with an object")
    return found


def _json_of(url: str) -> dict[str, Any]:
    fetched = fetch(url)
    if fetched.status != 200:
        raise ProviderUnavailable(f"answered {fetched.status}")
    return json_object(fetched.body)


def _read(document: dict[str, Any], issuer: str, now: datetime) -> Provider:
    # Compared to the letter (Discovery §4.3): a document that names another issuer does not count.
    if document.get("issuer") != issuer:
        raise ProviderUnavailable("says that it is another issuer")
    addresses = {}
    for name in ("authorization_endpoint", "token_endpoint", "jwks_uri", "end_session_endpoint"):
        address = document.get(name)
        is_usable = isinstance(address, str) and is_safe_address(address) and "#" not in address
        if not is_usable and name != "end_session_endpoint":
            raise ProviderUnavailable(f"publishes no {name} that can be used")
        addresses[name] = str(address) if is_usable else ""
    offered = document.get("token_endpoint_auth_methods_supported", [BY_DEFAULT])
    methods = [method for method in AUTH_METHODS if isinstance(offered, list) and method in offered]
    if not methods:
        raise ProviderUnavailable("takes no client secret")
    return Provider(
        authorization=addresses["authorization_endpoint"],
        token=addresses["token_endpoint"],
        jwks=addresses["jwks_uri"],
        end_session=addresses["end_session_endpoint"],
        auth_method=methods[0],
        names_itself=document.get("authorization_response_iss_parameter_supported") is True,
        fetched_at=now,
    )
