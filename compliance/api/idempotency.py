"""`Idempotency-Key` on POSTs that create: the same key gives the same answer for 24 hours.

The key's row commits with what the request made, so a crash leaves both or neither; a second request
with the same key waits for the first one's transaction and then repeats its answer. Only successes are
kept: an error changed nothing and may be tried again. Each API key has `Idempotency-Key`s of its own: an
answer may hold a secret that was shown to one key of the tenant and is not for the others. An action that is
given `proven_key`, the key a DPoP proof showed, repeats its answer for that key alone.
"""

import hashlib
import json
from collections.abc import Callable
from datetime import timedelta
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

RETENTION = timedelta(hours=24)
MAX_KEY_LENGTH = 255

Action = Callable[..., Response]


def idempotent(action: Action) -> Action:
    """Make a view's action honour `Idempotency-Key`; free for requests without one."""

    @wraps(action)
    def wrapper(view: Any, request: ApiRequest, *args: Any, **kwargs: Any) -> Response:
        key = request.headers.get("Idempotency-Key")
        if key is None:
            return action(view, request, *args, **kwargs)
        if not 1 <= len(key) <= MAX_KEY_LENGTH or not key.isascii() or not key.isprintable():
            raise Invalid(f"Idempotency-Key must be 1 to {MAX_KEY_LENGTH} printable ASCII characters")
        with environments.atomic():
            return _once(key, view, request, action, args, kwargs)

    return wrapper


def _once(key: str, view: Any, request: ApiRequest, action: Action, args: Any, kwargs: Any) -> Response:
    moment = now()
    digest = _fingerprint(request, kwargs.get("proven_key"))
    record, is_first = IdempotencyRecord.objects.claim(
        tenant_id=request.auth.tenant_id,
        api_key_id=request.auth.id,
        key=key,
        fingerprint=digest,
        now=moment,
        retention=RETENTION,
    )
    if not is_first:
        if record.fingerprint != digest:
            raise Conflict("Idempotency-Key was already used with a different request")
        stored = json.loads(decrypt(bytes(record.body)))
        return Response(stored, status=record.status, headers={"Idempotent-Replayed": "true"})
    response = action(view, request, *args, **kwargs)
    record.status = response.status_code
    record.body = encrypt(dumps(response.data))
    record.save(update_fields=["status", "body"])
    return response


def _fingerprint(request: ApiRequest, proven_key: str | None) -> str:
    body = dumps(request.data, sort_keys=True)
    what = f"{request.method} {request.get_full_path()}\n"
    by = f"DPoP {proven_key}\n" if proven_key else ""
    return hashlib.sha256(f"{what}{by}".encode() + body).hexdigest()
