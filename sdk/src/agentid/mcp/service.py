"""The service's answers to the tools, or errors in words that a model may read."""

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import httpx
from mcp.server.mcpserver.exceptions import ToolError


class ToolService:
    """A connection to the service. Raises: ToolError, which never holds a key or a token."""

    def __init__(self, base_url: str, api_key: str | None, *, timeout: float = 10.0) -> None:
        self._http = httpx.AsyncClient(base_url=base_url, timeout=timeout)
        self._api_key = api_key

    async def get(self, path: str) -> Any:
        return await self._ask("GET", path)

    async def post(
        self, path: str, body: Any, *, with_key: bool = False, headers: Mapping[str, str] | None = None
    ) -> Any:
        if with_key and self._api_key is None:
            raise ToolError("AGENTID_API_KEY is not set")
        own = {"Authorization": f"Bearer {self._api_key}"} if with_key else {}
        return await self._ask("POST", path, json=body, headers={**own, **(headers or {})})

    async def _ask(self, method: str, path: str, **more: Any) -> Any:
        try:
            answer = await self._http.request(method, path, **more)
        except httpx.HTTPError as error:
            raise ToolError(f"The service does not answer: {type(error).__name__}") from None
        try:
            content = answer.json()
        except ValueError:
            content = None
        if not isinstance(content, dict) or (answer.is_success and "data" not in content):
            raise ToolError(f"The service answered HTTP {answer.status_code} in a form unknown here")
        if not answer.is_success:
            raise ToolError(f"HTTP {answer.status_code}: {content.get('error', 'no reason given')}")
        return content["data"]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._http.aclose()
