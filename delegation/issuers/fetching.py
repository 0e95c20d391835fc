"""Issuers' published keys, kept in this process: fetched seldom, from checked addresses, in bounded time.

A set of keys is used for as long as its `Cache-Control` says, within bounds, and for an hour longer while its
issuer does not answer. A key that is not in it makes us fetch again, at most every `COOLDOWN_SECONDS`.
"""

import logging
import math
import re
from collections.abc import Sequence
from threading import Lock
from time import monotonic
from typing import Final, NamedTuple
from uuid import UUID

from django.conf import settings

from compliance.api.rest.parsers import loads
from compliance.core.bounded_cache import BoundedCache
from compliance.core.errors import Invalid
from compliance.core.shares import AllTaken, SharedSlots
from compliance.outbound import http_client
from compliance.outbound.addresses import UrlPolicy, UrlRefused, check_url
from compliance.outbound.http_client import Download, RequestOptions, SendingFailed
from delegation.issuers import key_sets
from delegation.issuers.errors import IssuerKeysUnavailable
from delegation.issuers.key_sets import InvalidKeySet, IssuerKey

log = logging.getLogger(__name__)

DISCOVERY: Final = "/.well-known/openid-configuration"
MAX_BYTES: Final = 256 * 1024
SHORTEST_USE, USUAL_USE, LONGEST_USE = 60.0, 600.0, 3600.0
STALE_SECONDS: Final = 3600.0
COOLDOWN_SECONDS: Final = 30.0
FIRST_PAUSE, LONGEST_PAUSE = 5.0, 300.0
"""Seconds after a failed fetch until the next; they double with each failure in a row."""
MOST_AT_ONCE: Final = max(1, min(4, settings.WEB_THREADS // 2))
"""Fetches of one process at a time: slow issuers must not hold all of its threads."""
MOST_OF_A_TENANT: Final = 2
"""Of those, fetches for one tenant: its slow issuers must not hold up the others'."""
PATIENCE_SECONDS: Final = 2.0
"""How long after the start of a fetch others wait for it, for the same reason."""
_MAX_AGE: Final = re.compile(r"max-age=\"?([0-9]{1,9})", re.IGNORECASE)

_finding = Lock()
_slots = SharedSlots(MOST_AT_ONCE, share=MOST_OF_A_TENANT)


class KeyLocation(NamedTuple):
    """The location of an issuer's keys: at `jwks_uri`, else where its discovery document says."""

    issuer: str
    jwks_uri: str | None


def url_policy() -> UrlPolicy:
    """Return what the settings allow beyond HTTPS to public addresses."""
    return UrlPolicy(settings.TRUSTED_ISSUER_ALLOW_HTTP, settings.TRUSTED_ISSUER_ALLOW_PRIVATE_ADDRESSES)


def first_url(location: KeyLocation) -> str:
    """The address that is asked first."""
    return location.jwks_uri or location.issuer.rstrip("/") + DISCOVERY


def keys_at(location: KeyLocation, *, kid: str | None, tenant_id: UUID) -> Sequence[IssuerKey]:
    """The issuer's keys; asks for them where `kid` is not among those at hand. Raises: IssuerKeysUnavailable.

    Tenants that trust the same issuer share its keys; a fetch takes a slot of `tenant_id`. Not for use inside
    a transaction: it may wait for another server.
    """
    with _finding:
        kept = _kept.get(location)
        if kept is None:
            kept = _KeptKeys(location)
            _kept.put(location, kept)
    return kept.get(kid, tenant_id)


def forget() -> None:
    """Forget what was fetched, and what failed."""
    _kept.clear()


class _KeptKeys:
    def __init__(self, location: KeyLocation) -> None:
        self._location = location
        self._lock = Lock()
        self._keys: Sequence[IssuerKey] = ()
        self._fresh_until = self._usable_until = self._next_try = float("-inf")
        self._failures = 0
        self._fetching_since: float | None = None

    def get(self, kid: str | None, tenant_id: UUID) -> Sequence[IssuerKey]:
        """One thread fetches while the others use the keys at hand; without any they wait a little for it."""
        waited = 0.0 if self._fetching_since is None else monotonic() - self._fetching_since
        patience = 0.0 if monotonic() < self._usable_until else max(PATIENCE_SECONDS - waited, 0.0)
        if not self._has(kid) and self._lock.acquire(timeout=patience):
            try:
                if not self._has(kid) and monotonic() >= self._next_try:
                    self._fetch(tenant_id)
            finally:
                self._lock.release()
        if monotonic() >= self._usable_until:
            # Where no slot was free, no next try is known.
            raise IssuerKeysUnavailable(retry_after=math.ceil(max(self._next_try - monotonic(), 1.0)))
        return self._keys

    def _has(self, kid: str | None) -> bool:
        is_known = kid is None or any(key.kid == kid for key in self._keys)
        return is_known and monotonic() < self._fresh_until

    def _fetch(self, tenant_id: UUID) -> None:
        try:
            slot = _slots.take(tenant_id)
        except AllTaken:
            return
        self._fetching_since = monotonic()
        try:
            found, seconds = _fetched(self._location)
        except (SendingFailed, UrlRefused, Invalid, InvalidKeySet) as error:
            self._failures += 1
            pause = min(FIRST_PAUSE * 2 ** min(self._failures - 1, 10), LONGEST_PAUSE)
            self._next_try = monotonic() + pause
            log.warning("keys of a trusted issuer not fetched: %s: %s", type(error).__name__, error)
        else:
            now = monotonic()
            self._keys, self._failures = found, 0
            self._fresh_until, self._next_try = now + seconds, now + COOLDOWN_SECONDS
            self._usable_until = self._fresh_until + STALE_SECONDS
        finally:
            self._fetching_since = None
            slot.release()


_kept: BoundedCache[KeyLocation, _KeptKeys] = BoundedCache(1_000)


def _fetched(location: KeyLocation) -> tuple[Sequence[IssuerKey], float]:
    """The keys, and for how many seconds they may be used."""
    jwks_uri = location.jwks_uri
    if jwks_uri is None:
        document = loads(_get(first_url(location)).body)
        # Compared to the letter (Discovery §4.3): a document that names another issuer does not count.
        if not isinstance(document, dict) or document.get("issuer") != location.issuer:
            raise SendingFailed("The discovery document is another issuer's")
        jwks_uri = document.get("jwks_uri")
        if not isinstance(jwks_uri, str):
            raise SendingFailed("The discovery document names no jwks_uri")
    answer = _get(jwks_uri)
    stated = _MAX_AGE.search(answer.cache_control)
    seconds = min(max(float(stated[1]) if stated else USUAL_USE, SHORTEST_USE), LONGEST_USE)
    return key_sets.read(loads(answer.body)), seconds


def _get(url: str) -> Download:
    options = RequestOptions(
        url_policy(), settings.TRUSTED_ISSUER_TIMEOUT_SECONDS, settings.TRUSTED_ISSUER_CA_FILE or None
    )
    check_url(url, options.policy)
    found = http_client.fetch(
        url, headers={"Accept": "application/json"}, most_bytes=MAX_BYTES, options=options
    )
    if found.status != 200:
        raise SendingFailed(f"Answered {found.status}")
    return found
