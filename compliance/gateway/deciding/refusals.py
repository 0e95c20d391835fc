"""Refusals of a client, in the forms that gateways hand on (RFC 6750 §3, RFC 9449 §7.1)."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from compliance.api.service_headers import service_header
from compliance.core.errors import ServiceError
from compliance.gateway.models import GatewayCredential
from delegation.errors import ProofRejected
from delegation.jose.holder_keys import ALGORITHMS

if TYPE_CHECKING:
    from compliance.gateway.deciding.rules import RouteRules

DECISION, REASON, MESSAGE = "Gateway-Decision", "Gateway-Reason", "Gateway-Message"
ALLOW, DENY = "allow", "deny"
SCOPE_VIOLATION = "Scope violation"
SERIAL_CHALLENGE = 'CertSerial realm="gateway"'
_SCHEMES = {GatewayCredential.DPOP: "DPoP", GatewayCredential.BEARER: "Bearer"}


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
        marks = {
            service_header(DECISION): DENY,
            service_header(REASON): reason,
            service_header(MESSAGE): message,
        }
        super().__init__(message, headers={**marks, **(headers or {})})


class ScopeViolated(GatewayRefused):
    """The action is outside the certificate's scope of `agent_id`, an agent of `tenant_id`."""

    def __init__(self, agent_id: UUID, tenant_id: UUID, *, headers: Mapping[str, str] | None = None) -> None:
        self.agent_id = agent_id
        self.tenant_id = tenant_id
        super().__init__(403, SCOPE_VIOLATION, "scope_violation", headers=headers)


def credential_missing(rules: "RouteRules") -> GatewayRefused:
    return GatewayRefused(
        401,
        "The request presents no credential that this route takes",
        "credential_missing",
        headers={"WWW-Authenticate": challenge(rules)},
    )


def invalid_token(rules: "RouteRules", message: str, kind: GatewayCredential, reason: str) -> GatewayRefused:
    named = challenge(rules, kind, error="invalid_token", error_description=message)
    return GatewayRefused(401, message, reason, headers={"WWW-Authenticate": named})


def proof_refused(rules: "RouteRules", rejected: ProofRejected) -> GatewayRefused:
    """401 for a proof that does not hold, with the nonce to use where one is missing."""
    described = challenge(
        rules, GatewayCredential.DPOP, error=rejected.error, error_description=rejected.description
    )
    headers = {**rejected.headers, "WWW-Authenticate": described}
    return GatewayRefused(401, rejected.message, rejected.error, headers=headers)


def insufficient_scope(rules: "RouteRules", kind: GatewayCredential, action: str) -> dict[str, str]:
    """The header of a 403 that tells which scope a token would need."""
    if kind is GatewayCredential.SERIAL:
        return {}
    return {"WWW-Authenticate": challenge(rules, kind, error="insufficient_scope", scope=action)}


def challenge(rules: "RouteRules", used: GatewayCredential | None = None, **about: str) -> str:
    """`WWW-Authenticate`: each scheme that the route takes, with what is said about the `used` one."""
    return ", ".join(_challenges(rules, used, about)) or SERIAL_CHALLENGE


def _challenges(
    rules: "RouteRules", used: GatewayCredential | None, about: Mapping[str, str]
) -> Iterator[str]:
    for kind, scheme in _SCHEMES.items():
        if kind not in rules.credentials and kind is not used:
            continue
        named = {"realm": "gateway"} | ({"algs": " ".join(ALGORITHMS)} if kind == "dpop" else {})
        found = {**named, **(about if kind is used else {})}
        yield f"{scheme} " + ", ".join(f'{name}="{value}"' for name, value in found.items())
