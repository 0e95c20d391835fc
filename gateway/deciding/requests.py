"""A gateway's question as it came, and which credential of the client's counts."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import quote
from uuid import UUID

from agents.models import MAX_ACTION_NAME
from compliance.api.answers import service_header
from compliance.api.endpoint import EndpointRequest
from compliance.core.errors import Forbidden, Invalid
from delegation.agent_keys import message_signatures
from gateway.deciding.refusals import GatewayRefused, challenge, invalid_token
from gateway.models import GatewayCredential, GatewayRoute

KEY, ROUTE, ACTION, SERIAL = "Gateway-Key", "Gateway-Route", "Action", "Cert-Serial"
APPROVAL = "Approval"
MOST_OF_PATH = 512  # characters of a path that are put on record

# One token of a scope (RFC 6749 §3.3).
_ACTION = re.compile(r"[\x21\x23-\x5B\x5D-\x7E]+", re.ASCII)
_HOST = re.compile(r"[^/?#\s]+")  # nothing that would begin a path
_METHOD = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,32}", re.ASCII)


class ActionMissing(Invalid):
    """The gateway named no action, or none that a scope could hold."""


class RequestNotForwarded(Invalid):
    """The gateway did not say which request a proof belongs to."""


@dataclass(frozen=True, slots=True)
class OriginalRequest:
    """The client's request; `uri` with its query."""

    method: str
    uri: str
    path: str


@dataclass(frozen=True, slots=True)
class DecisionRequest:
    """A gateway's question. `authorization`, `proof`, `receipt`, `headers` are of the client, unread."""

    tenant_id: UUID
    key_id: UUID
    now: datetime
    route: str | None
    action: str | None
    serial: str | None
    authorization: str | None
    proof: str | None
    original: OriginalRequest | None
    receipt: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


def read(request: EndpointRequest) -> DecisionRequest:
    """The question in a request that presented a gateway's key."""
    if request.tenant_id is None or request.key_id is None:
        raise Forbidden()
    headers = request.headers
    # Without a header of its own, the gateway's key stood in Authorization, and the client's has no place.
    is_clients = service_header(KEY).lower() in headers
    return DecisionRequest(
        tenant_id=request.tenant_id,
        key_id=request.key_id,
        now=request.received_at,
        route=_own(headers, ROUTE),
        action=_own(headers, ACTION),
        serial=_own(headers, SERIAL),
        authorization=headers.get("authorization") if is_clients else None,
        proof=headers.get("dpop"),
        original=_original(headers),
        receipt=_own(headers, APPROVAL),
        headers=headers,
    )


def action_of(request: DecisionRequest, route: GatewayRoute) -> str:
    """The action that is asked for: the route's, else the header's. Raises: ActionMissing."""
    action = route.action or request.action
    if action is None:
        raise ActionMissing(f"{service_header(ACTION)} is missing, and the route names no action")
    if len(action) > MAX_ACTION_NAME or _ACTION.fullmatch(action) is None:
        raise ActionMissing(f"{service_header(ACTION)} must be one action of printable ASCII")
    return action


def credential_of(request: DecisionRequest, route: GatewayRoute) -> tuple[GatewayCredential, str]:
    """The client's credential: a token where tokens count, else its signature, else its serial number.

    A token or signature that is refused leaves no way by another. Raises: GatewayRefused.
    """
    scheme, _, text = (request.authorization or "").strip().partition(" ")
    scheme, text = scheme.lower(), text.strip()
    reads_tokens = not {"bearer", "dpop"}.isdisjoint(route.credentials)
    if reads_tokens and scheme in ("bearer", "dpop"):
        kind = GatewayCredential(scheme)
        if kind not in route.credentials or not text:
            raise invalid_token(route, "This route does not take such a token", kind, "credential_not_taken")
        return kind, text
    if GatewayCredential.HTTPSIG in route.credentials and message_signatures.is_offered(request.headers):
        return GatewayCredential.HTTPSIG, ""
    if GatewayCredential.SERIAL in route.credentials and request.serial:
        return GatewayCredential.SERIAL, request.serial
    message = "The request presents no credential that this route takes"
    raise GatewayRefused(401, message, "credential_missing", headers=challenge(route))


def original_of(request: DecisionRequest) -> OriginalRequest:
    """The request that a proof must fit. Raises: RequestNotForwarded."""
    if request.original is None:
        raise RequestNotForwarded(
            "X-Forwarded-Method, -Proto, -Host and -Uri must name the request that the proof is for"
        )
    return request.original


def _own(headers: Mapping[str, str], name: str) -> str | None:
    """The value of one of the service's headers; an empty one counts as left out."""
    return headers.get(service_header(name).lower(), "").strip() or None


def _original(headers: Mapping[str, str]) -> OriginalRequest | None:
    method, scheme, host, target = (
        headers.get(f"x-forwarded-{name}", "").strip() for name in ("method", "proto", "host", "uri")
    )
    if not _METHOD.fullmatch(method) or scheme not in ("http", "https"):
        return None
    if not _HOST.fullmatch(host) or target[:1] != "/":
        return None
    path = quote(target.partition("?")[0].encode("latin-1", "replace"), safe="/:@!$&'()*+,;=~%")
    return OriginalRequest(method, f"{scheme}://{host}{target}", path[:MOST_OF_PATH])
