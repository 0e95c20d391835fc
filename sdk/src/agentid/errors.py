"""What can go wrong between a program and the service, and why something is not valid."""

from enum import StrEnum
from typing import ClassVar


class AgentIdError(Exception):
    """Every error that this package raises on purpose."""


class ConfigurationError(AgentIdError):
    """The client cannot be set up like this."""


class Unreachable(AgentIdError):
    """No complete answer came: refused, reset or timed out."""


class UnexpectedAnswer(AgentIdError):
    """An answer that this version cannot read."""


class ServiceError(AgentIdError):
    """The service refused a request; `retry_after` is in seconds, `error` a code of OAuth (RFC 6749 §5.2)."""

    family: ClassVar[dict[int, type["ServiceError"]]] = {}

    def __init__(
        self,
        status: int,
        message: str,
        *,
        error: str | None = None,
        retry_after: float | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(f"{status}: {message}")
        self.status, self.message, self.error = status, message, error
        self.retry_after, self.request_id = retry_after, request_id

    def __init_subclass__(cls, *, status: int | None = None) -> None:
        if status is not None:
            ServiceError.family[status] = cls

    @staticmethod
    def kind_for(status: int) -> type["ServiceError"]:
        """The class for a status; one of a hundred stands for those without a class of their own."""
        return ServiceError.family.get(status) or ServiceError.family.get(status // 100 * 100, ServiceError)


class Refused(ServiceError, status=400):
    """The request itself is wrong (4xx)."""


class NotAuthenticated(Refused, status=401):
    """No API key, or one that does not count."""


class NotPermitted(Refused, status=403):
    """The key may not do this."""


class NotFound(Refused, status=404):
    """No such thing, or another tenant's."""


class Conflict(Refused, status=409):
    """Another request holds the thing, or the idempotency key was used for something else."""


class NotPossible(Refused, status=422):
    """Sound, but impossible in the present state."""


class RateLimited(Refused, status=429):
    """Too many requests; wait `retry_after` seconds."""


class ServerFailed(ServiceError, status=500):
    """The service failed (5xx)."""


class Unavailable(ServerFailed, status=503):
    """A part of the service is away; wait `retry_after` seconds."""


PASSING = (RateLimited, Unavailable, Unreachable)
"""What a later try may get past."""


class NotAllowed(AgentIdError):
    """An act that is not allowed; `reasons` are the names of the decision's."""

    def __init__(
        self, message: str, *, decision_id: str, approval_id: str | None, reasons: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message)
        self.decision_id = decision_id
        self.approval_id = approval_id
        self.reasons = reasons


class Denied(NotAllowed):
    """The service or the person who was asked says no, or the approval has been used already."""


class ApprovalExpired(NotAllowed):
    """Nobody decided, or the receipt was not used, while the approval lasted."""


class ApprovalTimedOut(NotAllowed):
    """Nobody decided in the time that the caller waits; the approval may still be decided."""


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
