"""What the parts of `./run bench trust` share."""

import json
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from bench.harness.place import Place
from bench.harness.report import Tables
from bench.harness.web import WebServer
from compliance.localdev.console import StepFailed
from compliance.localdev.ports import HOST

CALL_SECONDS = 30.0


@dataclass(frozen=True)
class TrustOptions:
    """What the person asked for."""

    seconds: float
    offered: float
    turns: int
    only: frozenset[str]
    json: Path | None = None


@dataclass
class TrustRun(Tables):
    """One run, from its place to its tables."""

    options: TrustOptions
    place: Place
    service: WebServer

    @property
    def base_url(self) -> str:
        """The service's address, as proofs name it."""
        return f"http://{HOST}:{self.service.port}"

    def call(self, method: str, path: str, body: Any = None, *, key: str | None = None) -> tuple[int, Any]:
        """Status and JSON of one request, with the run's API key or another."""
        connection = HTTPConnection(HOST, self.service.port, timeout=CALL_SECONDS)
        headers = {"Authorization": f"Bearer {key or self.place.api_key}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"null")
        finally:
            connection.close()

    def done(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of a request that must succeed."""
        status, found = self.call(method, path, body)
        if status >= 300:
            raise StepFailed(f"{method} {path} answered {status}: {found}", hint="read bench-service.log")
        return found
