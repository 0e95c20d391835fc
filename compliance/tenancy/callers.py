"""Who calls a lane: API keys looked up a moment ago, and kept fresh by a thread beside the event loop."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connections

from compliance import environments, sql
from compliance.api import rate_limits, unauthenticated
from compliance.api.lanes import Request
from compliance.api.permissions import Scope
from compliance.api.throttling import address_behind
from compliance.clock import now
from compliance.environments import Environment
from compliance.errors import ServiceError
from compliance.tenancy import keys, recent_keys, services
from compliance.tenancy.models import ApiKey

log = logging.getLogger(__name__)

MOST_LOOKUPS = 16
LOOKUPS = "lookups"
"""The bucket of looks at unknown keys, of each address and process."""


class Credentials(NamedTuple):
    """What a request shows of its key: the environment, and the digest under which it is stored."""

    environment: Environment
    digest: str


def credentials_of(request: Request) -> Credentials | None:
    """Those of a plain `Authorization` header; None for any other, which the view must judge."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    environment = keys.environment_of(secret) if scheme == "Bearer" and secret.isascii() else None
    return None if environment is None else Credentials(environment, keys.digest(secret))


class Callers:
    """The keys of those who call one lane; all but `close()` is for the event loop.

    `then` is told of each key that was looked up, on the thread and in the key's environment; `is_claimed` is
    what the look was asked for with.
    """

    def __init__(self, then: Callable[[ApiKey, bool], None] | None = None) -> None:
        self._then = then
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="callers")
        self._lookups: dict[Credentials, asyncio.Future[None]] = {}

    def warm(self) -> None:
        """Connect the thread to the database."""
        self._thread.submit(_connect)

    async def find(self, credentials: Credentials, scope: Scope, request: Request) -> ApiKey | None:
        """The key, looked up if need be, once for all who ask; None for one that the view must judge."""
        key = recent_keys.find(*credentials)
        if key is None:
            if _is_refused(credentials, request):
                return None
            await self.look_up(credentials)
            key = recent_keys.find(*credentials)
        if key is None or scope not in key.scopes or key.is_expired(now()):
            return None
        return key

    async def look_up(self, credentials: Credentials) -> None:
        """Wait for a look at the key, one for all who ask at a time."""
        pending = self._lookups.get(credentials)
        if pending is None:
            # Many keys tried at once are left to the view.
            if len(self._lookups) >= MOST_LOOKUPS:
                return
            loop = asyncio.get_running_loop()
            pending = loop.run_in_executor(self._thread, self._look, credentials)
            self._lookups[credentials] = pending
            pending.add_done_callback(lambda _: self._lookups.pop(credentials))
        await asyncio.shield(pending)

    def keep_fresh(self, credentials: Credentials, *, is_claimed: bool = False) -> None:
        """Have the key looked up again in time, so that nobody has to wait for it; `is_claimed`: now."""
        if recent_keys.claim_check(*credentials) or is_claimed:
            self._thread.submit(self._look, credentials, is_claimed=is_claimed)

    def close(self) -> None:
        """Finish what was begun."""
        self._thread.submit(connections.close_all)
        self._thread.shutdown(wait=True)

    def _look(self, credentials: Credentials, *, is_claimed: bool = False) -> None:
        """Look the key up; what fails is left to the view."""
        environment, digest = credentials
        with environments.use(environment):
            connections[environment.alias].close_if_unusable_or_obsolete()
            try:
                key = services.check(digest=digest, now=now())
            except (ServiceError, DatabaseError, InterfaceError) as error:
                # The view answers it; a line for each key that is tried would fill the log.
                log.debug("an API key is not vouched for: %s", type(error).__name__)
                recent_keys.drop(environment, digest)
                return
            if self._then is not None:
                self._then(key, is_claimed)


def _is_refused(credentials: Credentials, request: Request) -> bool:
    """Whether a key that was never found valid comes from an address that has tried too many here.

    The views, in a process of their own, count what callers are told; this bounds what is looked up for the
    lanes, and asks nobody.
    """
    if recent_keys.is_known(*credentials):
        return False
    address = address_behind(request.address, request.headers.get("x-forwarded-for", ""))
    limit = settings.RATE_LIMITS[unauthenticated.API]
    return not rate_limits.hit_here(LOOKUPS, address, limit=limit).allowed


def _connect() -> None:
    with environments.use(Environment.LIVE):
        sql.reach()
