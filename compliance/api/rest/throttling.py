"""Whom the rate limits count, for DRF's views."""

from rest_framework.exceptions import Throttled
from rest_framework.request import Request

from compliance.api import gate
from compliance.api.gate import GateRequest
from compliance.api.rate_limits import COUNTED_BY_OCTETS, cost_of, hit, sender_of
from compliance.api.rest.requests import credential_of
from compliance.core import environments


def body_octets(request: Request) -> int:
    """Return the size of a request's body, which the server has read."""
    return int(request.META.get("CONTENT_LENGTH") or 0)


def count_the_rest(request: Request, bucket: str, count: int) -> None:
    """Count what a request holds against its key's limit; its body has been. Raises: Throttled."""
    count -= cost_of(body_octets(request), bucket)
    key = credential_of(request)
    if count <= 0 or key is None:
        return
    request.rate_limit = limit = hit(bucket, str(key.id), cost=count)  # type: ignore[attr-defined]
    if not limit.allowed:
        raise Throttled(limit.retry_after)


def count_request(request: Request, bucket: str) -> None:
    """Count a request against a limit: of its API key, or of the client address without one.

    What a key sends to be stored counts against its tenant's limit of octets, too. Raises: Throttled.
    """
    key, octets = credential_of(request), body_octets(request)
    identity = str(key.id) if key else gate.client_address(GateRequest.of(request))
    limit = hit(bucket, identity, cost=cost_of(octets, bucket))
    if limit.allowed and key and octets and bucket in COUNTED_BY_OCTETS:
        sent = hit(*sender_of(environments.current(), key), cost=octets)
        limit = limit if sent.allowed else sent
    request.rate_limit = limit  # type: ignore[attr-defined]
    if not limit.allowed:
        raise Throttled(limit.retry_after)
