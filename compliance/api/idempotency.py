"""`Idempotency-Key` on POSTs that create: the same key gives the same answer for 24 hours.

The key's row commits with what the request made, so a crash leaves both or neither; a second request
with the same key waits for the first one's transaction, at most for the lock time-out (then 409), and then
repeats its answer, or does the portions that are left. Only successes are kept: an error leaves the portions
before it, and may be tried again. Each API key has `Idempotency-Key`s of its own: an
answer may hold a secret that was shown to one key of the tenant and is not for the others. An action that is
given `proven_key`, the key a DPoP proof showed, repeats its answer for that key alone.
"""

import hashlib
import json
from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Any

from rest_framework.response import Response

from compliance.api.models import IdempotencyRecord
from compliance.api.rest.renderers import dumps
from compliance.api.rest.requests import ApiRequest
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.encryption import decrypt, encrypt
from compliance.core.errors import Conflict, Invalid

MAX_KEY_LENGTH = 255

Action = Callable[..., Response]
Portion = Callable[[list[Any]], Response | None]
"""Does the next portion of a request's work, of which the list notes what is done, as JSON has it, and notes
what it did. Returns the answer after the last portion."""


def idempotent(action: Action) -> Action:
    """Make a view's action honour `Idempotency-Key`; free for requests without one."""

    @wraps(action)
    def wrapper(view: Any, request: ApiRequest, *args: Any, **kwargs: Any) -> Response:
        proven_key = kwargs.get("proven_key")
        return in_portions(request, lambda _: action(view, request, *args, **kwargs), proven_key=proven_key)

    return wrapper


def in_portions(request: ApiRequest, portion: Portion, *, proven_key: str | None = None) -> Response:
    """Do a request's work portion by portion, each of which commits; honour `Idempotency-Key`.

    Each portion's notes commit with it, so that a repeated request, even one at the same time, goes on behind
    the last portion.
    """
    key = request.headers.get("Idempotency-Key")
    answer = None
    if key is None:
        notes: list[Any] = []
        while answer is None:
            answer = portion(notes)
        return answer
    if not (1 <= len(key) <= MAX_KEY_LENGTH and key.isascii() and key.isprintable()):
        raise Invalid(f"Idempotency-Key must be 1 to {MAX_KEY_LENGTH} printable ASCII characters")
    by = f"DPoP {proven_key}\n" if proven_key else ""
    said = f"{request.method} {request.get_full_path()}\n{by}".encode() + dumps(request.data, sort_keys=True)
    digest = hashlib.sha256(said).hexdigest()
    while answer is None:
        with environments.atomic():
            record = IdempotencyRecord.objects.claim(
                tenant_id=request.auth.tenant_id,
                api_key_id=request.auth.id,
                key=key,
                fingerprint=digest,
                now=now(),
            )
            if record.fingerprint != digest:
                raise Conflict("Idempotency-Key was already used with a different request")
            stored = json.loads(decrypt(bytes(record.body))) if record.body else []
            if record.status is not None:
                return Response(stored, status=record.status, headers={"Idempotent-Replayed": "true"})
            answer = portion(stored)
            record.status = None if answer is None else answer.status_code
            record.body = encrypt(dumps(stored if answer is None else answer.data))
            record.save(update_fields=["status", "body"])
    return answer


def forget(*, now: datetime) -> int:
    """Delete the kept answers past their 24 hours: some hold a secret shown once. Return how many."""
    return IdempotencyRecord.objects.expired(now).delete()[0]
