"""What can go wrong between a program and the service."""

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
        self.status = status
        self.message = message
        self.error = error
        self.retry_after = retry_after
        self.request_id = request_id

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
