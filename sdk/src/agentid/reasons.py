"""Why something is not valid."""

from enum import StrEnum

from agentid.errors import AgentIdError


class Reason(StrEnum):
    """The first check that failed."""

    MALFORMED = "malformed"
    UNSUPPORTED_ALGORITHM = "unsupported_algorithm"
    UNKNOWN_KEY = "unknown_key"
    INVALID_SIGNATURE = "invalid_signature"
    INVALID_ISSUER = "invalid_issuer"
    WRONG_ENVIRONMENT = "wrong_environment"
    WRONG_AUDIENCE = "wrong_audience"
    NOT_YET_VALID = "not_yet_valid"
    EXPIRED = "expired"
    REVOKED = "revoked"
    STATUS_UNKNOWN = "status_unknown"
    # Proofs of possession
    PROOF_REQUIRED = "proof_required"
    WRONG_KEY = "wrong_key"
    WRONG_REQUEST = "wrong_request"
    WRONG_TOKEN = "wrong_token"
    WRONG_NONCE = "wrong_nonce"
    # Certificates
    UNTRUSTED_ISSUER = "untrusted_issuer"
    NOT_AN_AUTHORITY = "not_an_authority"
    UNKNOWN_EXTENSION = "unknown_critical_extension"
    NOT_COVERED = "not_covered"
    STALE = "stale"
    # Audit log
    NOT_AS_SEALED = "not_as_sealed"
    TOO_FEW_WITNESSES = "too_few_witnesses"


class NotValid(AgentIdError):
    """A check failed; `reason` says which, `detail` more for people."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason.value)
        self.reason = reason
        self.detail = detail
