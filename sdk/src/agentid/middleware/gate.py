"""Asks the service about a request, from threads or from an event loop."""

import asyncio
from functools import partial
from weakref import WeakKeyDictionary

import httpx

from agentid.client.transport import Configuration
from agentid.middleware.decision import PATH, Action, Decision, Inbound, Policy, away, interpret


class Gate:
    """The service's decision on requests to one application; without an answer in time the answer is no.

    `timeout` is in seconds; `allow_http` sends the key over plain HTTP to other machines. For the rest see
    `Policy`. Raises: ConfigurationError.
    """

    def __init__(
        self,
        base_url: str,
        gateway_key: str,
        *,
        route: str | None = None,
        action: Action = None,
        excluded: tuple[str, ...] = (),
        public_url: str | None = None,
        timeout: float = 2.0,
        allow_http: bool = False,
    ) -> None:
        base_url = Configuration(base_url, gateway_key, allow_http=allow_http).base_url
        self.policy = Policy(gateway_key, route, action, frozenset(excluded), public_url)
        # Certificates take long to load: once for all clients.
        context = httpx.create_ssl_context()
        self._sync = httpx.Client(base_url=base_url, timeout=timeout, verify=context)
        self._make = partial(httpx.AsyncClient, base_url=base_url, timeout=timeout, verify=context)
        self._of_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = WeakKeyDictionary()

    def is_open(self, path: str) -> bool:
        """Whether anyone may ask for this path."""
        return path in self.policy.excluded

    def decide(self, inbound: Inbound, *, action: str | None = None) -> Decision:
        try:
            return _read(self._sync.get(PATH, headers=self._question(inbound, action)))
        except httpx.HTTPError:
            return away()

    async def adecide(self, inbound: Inbound, *, action: str | None = None) -> Decision:
        try:
            return _read(await self._client().get(PATH, headers=self._question(inbound, action)))
        except httpx.HTTPError:
            return away()

    def close(self) -> None:
        """Close the connections of threads."""
        self._sync.close()

    async def aclose(self) -> None:
        """Close the connections of the running event loop; a later decision opens others."""
        client = self._of_loop.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    def _question(self, inbound: Inbound, action: str | None) -> list[tuple[bytes, bytes]]:
        asked = self.policy.question(inbound, action=action)
        return [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in asked]

    def _client(self) -> httpx.AsyncClient:
        """The running loop's own: connections can't be shared between loops."""
        loop = asyncio.get_running_loop()
        if loop not in self._of_loop:
            self._of_loop[loop] = self._make()
        return self._of_loop[loop]


def _read(answer: httpx.Response) -> Decision:
    return interpret(status=answer.status_code, headers=answer.headers.multi_items(), body=answer.content)
