"""The API as a test calls it."""

import json
from typing import Any

from django.http import HttpResponse
from django.test import Client


def whole(answer: Any) -> HttpResponse:
    """Read a streamed answer to its end, which closes it."""
    body = b"".join(answer.streaming_content)
    return HttpResponse(body, status=answer.status_code, headers=dict(answer.headers))


class ApiClient:
    """JSON in, `HttpResponse` out (`.json()` reads it); errors of the server are answers, not exceptions."""

    def __init__(self, key: str | None = None) -> None:
        self.key = key
        self._client = Client(raise_request_exception=False)

    def as_key(self, key: str) -> "ApiClient":
        return ApiClient(key)

    def get(self, path: str, **headers: str) -> Any:
        return self._send("GET", path, None, headers)

    def head(self, path: str, **headers: str) -> Any:
        return self._send("HEAD", path, None, headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self._send("POST", path, body, headers)

    def patch(self, path: str, body: Any = None, **headers: str) -> Any:
        return self._send("PATCH", path, body, headers)

    def put(self, path: str, body: Any = None, **headers: str) -> Any:
        return self._send("PUT", path, body, headers)

    def delete(self, path: str, **headers: str) -> Any:
        return self._send("DELETE", path, None, headers)

    def raw(self, method: str, path: str, body: bytes, content_type: str = "application/json") -> Any:
        """Exactly these bytes."""
        return self._client.generic(method, path, body, content_type, headers=self._headers({}))

    def _send(self, method: str, path: str, body: Any, headers: dict[str, str]) -> Any:
        data = b"" if body is None else json.dumps(body).encode()
        answer = self._client.generic(method, path, data, "application/json", headers=self._headers(headers))
        return whole(answer) if answer.streaming else answer

    def _headers(self, headers: dict[str, str]) -> dict[str, str]:
        found = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.key:
            found["Authorization"] = f"Bearer {self.key}"
        return found
