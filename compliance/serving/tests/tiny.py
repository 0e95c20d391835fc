"""The smallest site with a lane: each answer tells which process gave it."""

import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from compliance.api.answers import Answer
from compliance.api.lanes import Lane, Request
from compliance.serving.site import Site


class PidLane:
    """Answers POST /here from the event loop."""

    method, path = "POST", "/here"

    def warm(self) -> None:
        """Nothing is needed."""

    async def answer(self, request: Request) -> Answer | None:
        body = {"pid": os.getpid(), "lane": True, "length": len(request.body)}
        return None if request.query else Answer(200, [], json.dumps(body).encode())

    def close(self) -> None:
        """Nothing is left."""


class NoWarming:
    """Nothing to do before the first request."""

    def begin_process(self) -> None:
        """Nothing is needed."""

    def begin_thread(self) -> None:
        """Nothing is needed."""


def views(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answers every request; `?seconds=` lets it take its time."""
    name, _, seconds = environ["QUERY_STRING"].partition("=")
    if name == "seconds":
        time.sleep(float(seconds))
    length = len(environ["wsgi.input"].read())
    start_response("200 OK", [("content-type", "application/json")])
    yield json.dumps(
        {"pid": os.getpid(), "lane": False, "length": length, "path": environ["PATH_INFO"]}
    ).encode()


def lanes() -> Sequence[Lane]:
    return (PidLane(),)


site = Site(views, lanes=lanes, warming=NoWarming())
