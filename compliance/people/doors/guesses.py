"""Wrong passwords, codes and security keys of somebody who is signed in: one rule for all pages."""

from datetime import datetime
from typing import Any, Final

from django.http import HttpRequest

from compliance.people.doors import attempts, lockout, tries

PASSWORD, CODE, SECURITY_KEY = "password", "code", "security_key"
"""What is shown as a proof."""
CLOSED: Final = "Too many wrong passwords or codes: try again"


def wait_of(request: HttpRequest, *, proof: str, now: datetime) -> str | None:
    """Return what is said while no such proof of the user is looked at, and audit it; None if one is."""
    user: Any = request.user
    closed = None if proof == PASSWORD else tries.closed_for(user, now)
    if closed is None and not lockout.is_closed(request, username=user.username, now=now):
        return None
    attempts.record_wrong_proof(request, proof=proof, locked_out=True, now=now)
    return f"{CLOSED} in {closed.seconds + 1} s." if closed else f"{CLOSED} later."


def count(request: HttpRequest, *, proof: str, now: datetime, **more: str) -> None:
    """Count a wrong proof for browser and address, as a failed sign-in is counted, and audit it.

    Codes and keys have been counted for the second step already, where they were compared.
    """
    user: Any = request.user
    lockout.count_failure(request, username=user.username, now=now)
    attempts.record_wrong_proof(request, proof=proof, now=now, **more)
