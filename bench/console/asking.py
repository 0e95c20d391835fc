"""Requests pages over HTTP as a browser does, signed in, in a random order, one after the other."""

import http.client
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from compliance.localdev.ports import HOST

SEED = 21
TIMEOUT = 60.0


@dataclass
class Timed:
    """One address as a person sees it: what the child said of it, and the seconds of each request."""

    who: str
    page: dict[str, Any]
    seconds: list[float] = field(default_factory=list)
    failures: int = 0


def ask_all(pages: Sequence[Timed], sessions: dict[str, str], *, port: int, rounds: int) -> None:
    """Request each page `rounds` times, each round in another order; one more round before warms up."""
    chance = random.Random(SEED)
    connection = http.client.HTTPConnection(HOST, port, timeout=TIMEOUT)
    for number in range(rounds + 1):
        for timed in chance.sample(pages, len(pages)):
            seconds, is_right = _ask(connection, timed.page["url"], sessions[timed.who])
            if number and is_right:
                timed.seconds.append(seconds)
            timed.failures += not is_right
    connection.close()


def _ask(connection: http.client.HTTPConnection, url: str, session: str) -> tuple[float, bool]:
    began = time.perf_counter()
    try:
        connection.request("GET", url, headers={"Cookie": f"sessionid={session}", "Accept": "text/html"})
        answer = connection.getresponse()
        answer.read()
    except (OSError, http.client.HTTPException):
        connection.close()
        return time.perf_counter() - began, False
    return time.perf_counter() - began, answer.status == 200
