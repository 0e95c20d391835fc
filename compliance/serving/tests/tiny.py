"""The smallest site with a fast path: each answer tells which process gave it."""

import json
import os
import time
from collections.abc import Callable, Iterable
from typing import Any

from compliance.api.answers import Answer
from compliance.serving.fast_path import FastPath
from compliance.serving.http.messages import Received
from compliance.serving.server import Site


class TinyPath(FastPath):
    """Answers POST /here from the event loop."""

    def __init__(self) -> None:
        """Nothing is needed."""

    async def answer(self, received: Received) -> Answer | None:
        if (received.method, received.path, received.query) != ("POST", "/here", ""):
            return None
        body = {"pid": os.getpid(), "fast": True, "length": len(received.body)}
        return Answer(200, [], json.dumps(body).encode())

    async def holder_of(self, received: Received) -> str:
        return dict(received.headers).get("holder", "")

    async def close(self) -> None:
        """Nothing is left."""


sleepers: list[float] = []


def views(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answers every request; `?seconds=` lets it take its time. `slept` counts the requests that began to."""
    name, _, seconds = environ["QUERY_STRING"].partition("=")
    if name == "seconds":
        sleepers.append(float(seconds))
        time.sleep(sleepers[-1])
    length = len(environ["wsgi.input"].read())
    start_response("200 OK", [("content-type", "application/json")])
    yield json.dumps(
        {
            "pid": os.getpid(),
            "fast": False,
            "length": length,
            "path": environ["PATH_INFO"],
            "slept": len(sleepers),
        }
    ).encode()


site = Site(views, fast_path=TinyPath)
