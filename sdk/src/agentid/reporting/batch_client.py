"""Sends one batch to `POST /v1/events/batch`."""

from collections.abc import Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

import httpx

from agentid.client.transport import Configuration
from agentid.reporting.answers import Outcome, Verdict, interpret

PATH = "/v1/events/batch"


class BatchClient:
    """A connection for batches: each is tried once, and the reporter decides on the next try."""

    def __init__(self, service: Configuration) -> None:
        headers = {"Authorization": f"Bearer {service.api_key}", "Content-Type": "application/x-ndjson"}
        self._http = httpx.Client(base_url=service.base_url, headers=headers, timeout=service.timeout)

    def post(self, key: str, lines: Sequence[bytes]) -> Verdict:
        """Send the lines under an Idempotency-Key and read the answer."""
        body = b"".join(line + b"\n" for line in lines)
        try:
            answer = self._http.post(PATH, content=body, headers={"Idempotency-Key": key})
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            return Verdict(Outcome.REFUSED, type(error).__name__)
        except httpx.HTTPError as error:
            return Verdict(Outcome.UNKNOWN, type(error).__name__)
        return interpret(
            status=answer.status_code,
            headers=answer.headers,
            body=answer.content,
            count=len(lines),
            now=datetime.now(UTC),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._http.close()
