"""Answers of the API outside Django's request cycle: whole, in the envelope, with the same headers."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.conf import settings

from compliance.api.renderers import dumps

Headers = list[tuple[str, str]]


@dataclass(frozen=True)
class Answer:
    """A response, whole."""

    status: int
    headers: Headers
    body: bytes


@cache
def standing_headers(*, is_secure: bool) -> tuple[tuple[str, str], ...]:
    """What every JSON answer carries, as Django's middleware writes it; `is_secure`: to a client of HTTPS.

    Made once a process, as the middleware reads its settings once.
    """
    found = [
        ("content-type", "application/json"),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", settings.X_FRAME_OPTIONS),
        ("referrer-policy", settings.SECURE_REFERRER_POLICY),
        ("cross-origin-opener-policy", "same-origin"),
    ]
    if settings.SECURE_HSTS_SECONDS and is_secure:
        found.append(("strict-transport-security", f"max-age={settings.SECURE_HSTS_SECONDS}"))
    return tuple(found)


def json_answer(status: int, body: Any, headers: Mapping[str, str], *, is_secure: bool) -> Answer:
    """A JSON answer with `headers` beside the standing ones."""
    more = [(name.lower(), value) for name, value in headers.items()]
    return Answer(status, [*standing_headers(is_secure=is_secure), *more], dumps(body))
