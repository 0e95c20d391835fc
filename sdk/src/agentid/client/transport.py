"""The two ways of carrying a conversation out: one blocks, one awaits."""

import asyncio
import os
import time
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

import httpx

from agentid.client.request import Request
from agentid.client.retries import Conversation, Retries, Send, Wait, conversation
from agentid.errors import ConfigurationError

T = TypeVar("T")
LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Configuration:
    """Where the service is, and as whom to call it; the API key is in no repr."""

    base_url: str
    api_key: str | None = field(default=None, repr=False)
    timeout: float = 10.0
    retries: Retries = field(default_factory=Retries)
    allow_http: bool = False

    def __post_init__(self) -> None:
        try:
            url = urlsplit(self.base_url)
            httpx.Request("GET", self.base_url)
        except (ValueError, httpx.InvalidURL):
            raise ConfigurationError("base_url: not a URL") from None
        is_safe = url.scheme == "https" or (
            url.scheme == "http" and (self.allow_http or url.hostname in LOOPBACK)
        )
        if not is_safe or not url.hostname or "@" in url.netloc or url.query or url.fragment:
            raise ConfigurationError("base_url: https://, or http:// to this machine, and nothing but a path")
        if self.api_key is not None and not (self.api_key.isascii() and self.api_key.isprintable()):
            raise ConfigurationError("api_key: not an API key")

    @classmethod
    def of(cls, base_url: str | None, api_key: str | None, **more: Any) -> Self:
        """Of the arguments, or else of AGENTID_BASE_URL and AGENTID_API_KEY."""
        base_url = base_url or os.environ.get("AGENTID_BASE_URL")
        if not base_url:
            raise ConfigurationError("base_url: give it, or set AGENTID_BASE_URL")
        key = api_key or os.environ.get("AGENTID_API_KEY") or None
        return cls(base_url.rstrip("/"), key, **more)

    def http(self, request: Request[Any]) -> dict[str, Any]:
        """The arguments with which httpx builds the request."""
        own = {"Accept": "application/json"}
        own |= {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}
        own |= {"Idempotency-Key": request.key} if request.key else {}
        url = self.base_url + request.path
        own |= {"DPoP": request.prove(request.method, url, nonce=request.nonce)} if request.prove else {}
        return {
            "method": request.method,
            "url": url,
            "params": dict(request.query) or None,
            "content": request.content,
            "headers": own | dict(request.headers),
        }


class Transport:
    """Carries requests out and blocks meanwhile; safe to share between threads."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self._http = httpx.Client(timeout=configuration.timeout)

    def send(self, request: Request[T]) -> T:
        talk = conversation(request, self.configuration.retries)
        step = next(talk)
        while True:
            try:
                step = talk.send(self._carry_out(step))
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]

    def _carry_out(self, step: Send | Wait) -> httpx.Response | httpx.HTTPError | None:
        if isinstance(step, Wait):
            time.sleep(step.seconds)
            return None
        try:
            return self._http.request(**self.configuration.http(step.request))
        except httpx.HTTPError as error:
            return error

    def close(self) -> None:
        self._http.close()


class AsyncTransport:
    """Carries requests out in an event loop."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self._http = httpx.AsyncClient(timeout=configuration.timeout)

    async def send(self, request: Request[T]) -> T:
        talk: Conversation[T] = conversation(request, self.configuration.retries)
        step = next(talk)
        while True:
            try:
                step = talk.send(await self._carry_out(step))
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]

    async def _carry_out(self, step: Send | Wait) -> httpx.Response | httpx.HTTPError | None:
        if isinstance(step, Wait):
            await asyncio.sleep(step.seconds)
            return None
        try:
            return await self._http.request(**self.configuration.http(step.request))
        except httpx.HTTPError as error:
            return error

    async def close(self) -> None:
        await self._http.aclose()
