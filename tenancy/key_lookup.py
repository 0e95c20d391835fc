"""API keys for the event loop: looked up by a thread beside it, once for all requests that wait."""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor

from django.db import DatabaseError, InterfaceError, connections

from compliance.api import gate, rate_limits, unauthenticated
from compliance.api.gate import GateRequest
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.errors import ServiceError
from tenancy import keys, recent_keys, services
from tenancy.models import ApiKey

log = logging.getLogger(__name__)

MOST_LOOKUPS = 16  # keys that are looked up at once; the view judges more


class KeyLookup:
    """The keys of those who call one worker; all but `close()` is for the event loop."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="key-lookup")
        self._pending: dict[tuple[Environment, str], asyncio.Future[None]] = {}

    async def find(self, request: GateRequest, secret: str) -> tuple[Environment, ApiKey] | None:
        """The valid key that a request presents, with its environment; None where the view has to judge."""
        environment = keys.environment_of(secret)
        if environment is None:
            return None
        digest = keys.digest(secret)
        key = recent_keys.find(environment, digest)
        if key is None:
            # Bounds the look-ups of unknown keys; the views, in another process, count the refusals.
            caller = f"lookups:{gate.client_address(request)}"
            is_known = recent_keys.is_known(environment, digest)
            if not is_known and not rate_limits.hit_here(unauthenticated.LIMIT, caller).allowed:
                return None
            if (pending := self._look_up(environment, digest)) is not None:
                await asyncio.shield(pending)
            key = recent_keys.find(environment, digest)
        elif recent_keys.is_due(environment, digest):
            self._look_up(environment, digest)
        return None if key is None or key.is_expired(now()) else (environment, key)

    def close(self) -> None:
        """End the thread and its connections."""
        self._thread.submit(connections.close_all)
        self._thread.shutdown(wait=True)

    def _look_up(self, environment: Environment, digest: str) -> "asyncio.Future[None] | None":
        """The look-up of a key, begun unless it is under way; None if too many others are."""
        pending = self._pending.get((environment, digest))
        if pending is None and len(self._pending) < MOST_LOOKUPS:
            loop = asyncio.get_running_loop()
            pending = loop.run_in_executor(self._thread, _look_up_in_thread, environment, digest)
            self._pending[environment, digest] = pending
            pending.add_done_callback(lambda _: self._pending.pop((environment, digest)))
        return pending


def _look_up_in_thread(environment: Environment, digest: str) -> None:
    """Look the key up; the view answers for one that is not valid."""
    with environments.use(environment):
        connections[environment.alias].close_if_unusable_or_obsolete()
        try:
            services.check(digest=digest, now=now())
        except ServiceError as error:
            # A line for each key that is tried would fill the log.
            log.debug("an API key is not valid: %s", type(error).__name__)
            recent_keys.drop(environment, digest)
        except (DatabaseError, InterfaceError) as error:
            # A key that was valid stays known: its caller guesses no keys.
            log.debug("an API key could not be looked up: %s", type(error).__name__)
