"""Errors of changing people."""

from uuid import UUID

from compliance.core.errors import Conflict, Invalid, NotFound


class UserNotFound(NotFound):
    message = "User not found"


class LastOperator(Conflict):
    message = "Nobody else could administer the service: make another operator first"


class LinkIsOver(NotFound):
    message = "This link was used, replaced or is too old"


class SecondFactorExists(Conflict):
    message = "There is an authenticator app already: remove it first"


class NoSecondFactor(Conflict):
    message = "There is no second factor"


class KeyNotFound(NotFound):
    message = "This security key is not yours, or was removed already"


class KeyRegisteredAlready(Conflict):
    message = "This security key is registered already"


class TooManyKeys(Conflict):
    message = "You have as many security keys as the service keeps: remove one first"


class KeyRefused(Invalid):
    """What a browser sent as a security key's answer is not accepted.

    `why` is one word for the audit log; `key_id` is set where the answer names a key of the person.
    """

    message = "This security key was not accepted"

    def __init__(self, why: str, *, key_id: UUID | None = None) -> None:
        super().__init__()
        self.why, self.key_id = why, key_id

    @property
    def metadata(self) -> dict[str, str]:
        """What the audit log says of the refusal."""
        return {"why": self.why} | ({"security_key": str(self.key_id)} if self.key_id else {})
