"""Errors of delegation, and the reasons why a token is invalid."""

from enum import StrEnum
from typing import ClassVar

from compliance.core.errors import Conflict, Forbidden, Invalid, InvalidState, NotFound, Unavailable


class RejectionReason(StrEnum):
    """The `reason` of an invalid token: the first check, in this order, that fails."""

    MALFORMED = "malformed"
    UNSUPPORTED_ALGORITHM = "unsupported_algorithm"
    UNKNOWN_KEY = "unknown_key"
    INVALID_SIGNATURE = "invalid_signature"
    INVALID_ISSUER = "invalid_issuer"
    NOT_YET_VALID = "not_yet_valid"
    EXPIRED = "expired"
    INVALID_AUDIENCE = "invalid_audience"


class TokenRejected(Exception):
    def __init__(self, reason: RejectionReason) -> None:
        self.reason = reason
        super().__init__(reason.value)


class AgentMayNotDelegate(InvalidState):
    message = "A suspended or retired agent can't delegate"


class CertificateDoesNotCount(InvalidState):
    message = "The agent's certificate is revoked or has expired"


class AgentDoesNotStand(InvalidState):
    message = "The agent is suspended or retired, or has no certificate in force"


class ScopeNotPermitted(InvalidState):
    message = "The scope exceeds the agent's permitted actions"


class ActorNotProven(InvalidState):
    message = "A chain can't name this agent by a DID of the service"


class ParentTokenMalformed(Invalid):
    message = "parent_token is not a delegation token"


class ParentTokenRejected(InvalidState):
    message = "The parent token doesn't count (any more)"


class ParentTokenRevoked(ParentTokenRejected):
    message = "The parent token, or one that it came of, is revoked"


class ParentKeyNotProven(InvalidState):
    message = "The parent token is bound to a key whose possession was not proven"


class ParentExceeded(InvalidState):
    message = "The delegation goes beyond its parent token"


class ParentScopeExceeded(ParentExceeded):
    message = "The scope exceeds the parent token's"


class ParentAudienceExceeded(ParentExceeded):
    message = "The audience must be the parent token's"


class IssuedByAnother(Forbidden):
    message = "The token was issued by another tenant's agent"


class IssuedTokenNotFound(NotFound):
    message = "Delegation not found"


class StatusListNotFound(NotFound):
    message = "Status list not found"


class TokenKeysMissing(Unavailable):
    message = "KMS not configured: no token signing key"


class KeyRingUnavailable(Unavailable):
    message = "The token keys can't be read now; retry with exponential backoff"


class RotationUnderWay(Conflict):
    message = "The next token key is already published"


class ProofRejected(Invalid):
    """A DPoP proof that does not count; `error` and `description` are as RFC 9449 and RFC 6749 have them."""

    error: ClassVar = "invalid_dpop_proof"

    def __init__(self, description: str, *, nonce: str | None = None) -> None:
        self.description = description
        self.nonce = nonce
        super().__init__(
            f"{self.error}: {description}", headers=None if nonce is None else {"DPoP-Nonce": nonce}
        )


class NonceRequired(ProofRejected):
    """The proof must carry `nonce`, a nonce of this service (RFC 9449 §8, §9)."""

    error: ClassVar = "use_dpop_nonce"


class ReplayStoreUnavailable(Unavailable):
    message = "DPoP proofs can't be checked for replay now; retry with exponential backoff"
