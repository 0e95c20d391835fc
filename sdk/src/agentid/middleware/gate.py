"""Asks the service about a request, from threads or from an event loop."""

import httpx

from agentid.middleware.decision import PATH, Action, Decision, Inbound, Policy, away, interpret


class Gate:
    """The service's decision on requests to one application; without an answer in time the answer is no.

    `timeout` is in seconds. See `Policy` for the rest.
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
    ) -> None:
        self.policy = Policy(gateway_key, route, action, frozenset(excluded), public_url)
        self._sync = httpx.Client(base_url=base_url, timeout=timeout)
        self._async = httpx.AsyncClient(base_url=base_url, timeout=timeout)

    def is_open(self, path: str) -> bool:
        """Whether anyone may ask for this path."""
        return path in self.policy.excluded

    def decide(self, inbound: Inbound, *, action: str | None = None) -> Decision:
        try:
            return _read(self._sync.get(PATH, headers=self.policy.question(inbound, action=action)))
        except httpx.HTTPError:
            return away()

    async def adecide(self, inbound: Inbound, *, action: str | None = None) -> Decision:
        try:
            return _read(await self._async.get(PATH, headers=self.policy.question(inbound, action=action)))
        except httpx.HTTPError:
            return away()


def _read(answer: httpx.Response) -> Decision:
    return interpret(status=answer.status_code, headers=answer.headers.multi_items(), body=answer.content)
