"""Refusals of a client, in the forms that gateways hand on (RFC 6750 §3, RFC 9449 §7.1)."""

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from compliance.api.answers import service_header
from compliance.core.errors import ServiceError
from delegation import proofs
from delegation.agent_keys.errors import SignatureFault, SignatureRejected
from delegation.agent_keys.message_signatures import ACCEPTED
from delegation.errors import ProofRejected
from delegation.jose.holder_keys import ALGORITHMS
from gateway.models import GatewayCredential, GatewayRoute

DECISION, REASON, MESSAGE = "Gateway-Decision", "Gateway-Reason", "Gateway-Message"
ALLOW, DENY = "allow", "deny"
SCOPE_VIOLATION = "Scope violation"
SERIAL_CHALLENGE = 'CertSerial realm="gateway"'
_SCHEMES = {
    GatewayCredential.DPOP: "DPoP",
    GatewayCredential.BEARER: "Bearer",
    GatewayCredential.HTTPSIG: "Signature",
}


class GatewayRefused(ServiceError):
    """The client may not pass: 401 for its credential, 403 for what it asks or who it is.

    The header of the decision tells it from a refusal of the gateway's own key.
    """

    def __init__(
        self, status: int, message: str, reason: str, *, headers: Mapping[str, str] | None = None
    ) -> None:
        self.status = status
        self.reason = reason
        # nginx hands on headers of a decision, never its body.
        marks = {DECISION: DENY, REASON: reason, MESSAGE: message}
        named = {service_header(name): text for name, text in marks.items()}
        super().__init__(message, headers={**named, **(headers or {})})


class ScopeViolated(GatewayRefused):
    """The action is outside the certificate's scope of `agent_id`, an agent of `tenant_id`.

    `is_proven`: the agent itself asked; else somebody in its name, so far as is known.
    """

    def __init__(
        self, agent_id: UUID, tenant_id: UUID, *, is_proven: bool, headers: Mapping[str, str] | None = None
    ) -> None:
        self.agent_id = agent_id
        self.tenant_id = tenant_id
        self.is_proven = is_proven
        super().__init__(403, SCOPE_VIOLATION, "scope_violation", headers=headers)


def invalid_token(route: GatewayRoute, message: str, kind: GatewayCredential, reason: str) -> GatewayRefused:
    named = challenge(route, kind, error="invalid_token", error_description=message)
    return GatewayRefused(401, message, reason, headers=named)


def proof_refused(route: GatewayRoute, rejected: ProofRejected) -> GatewayRefused:
    """401 for a proof that does not hold, with the nonce to use where one is missing."""
    about = {"error": rejected.error, "error_description": rejected.description}
    headers = {**rejected.headers, **challenge(route, GatewayCredential.DPOP, **about)}
    return GatewayRefused(401, rejected.message, rejected.error, headers=headers)


def signature_refused(route: GatewayRoute, rejected: SignatureRejected, *, now: datetime) -> GatewayRefused:
    """401 for a signature that proves nothing, with what one must be like (RFC 9421 §5)."""
    headers = {**challenge(route, GatewayCredential.HTTPSIG), "Accept-Signature": ACCEPTED}
    if rejected.fault is SignatureFault.NONCE:
        headers["Accept-Signature"] += f';nonce="{proofs.current_nonce(now=now)}"'
    return GatewayRefused(401, rejected.message, rejected.fault, headers=headers)


def challenge(route: GatewayRoute, used: GatewayCredential | None = None, **about: str) -> dict[str, str]:
    """`WWW-Authenticate`: each scheme that the route takes, with what is said about the `used` one."""
    found = []
    for kind, scheme in _SCHEMES.items():
        if kind in route.credentials or kind is used:
            named = {"realm": "gateway"} | ({"algs": " ".join(ALGORITHMS)} if kind == "dpop" else {})
            told = {**named, **(about if kind is used else {})}
            found.append(f"{scheme} " + ", ".join(f'{name}="{value}"' for name, value in told.items()))
    return {"WWW-Authenticate": ", ".join(found) or SERIAL_CHALLENGE}
