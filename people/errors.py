"""Errors of changing people."""

from uuid import UUID

from compliance.core.errors import Conflict, Forbidden, Invalid, NotFound, Unavailable


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


class SecurityKeyNotFound(NotFound):
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


class ProviderUnavailable(Unavailable):
    """The identity provider gave no answer that can be used; the message says what it did instead."""

    message = "could not be asked"


class SignOnRefused(Forbidden):
    """A single sign-on that is refused; `reason` names the cause in the audit log."""

    message = "This sign-in was refused"

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__()


class IdentityTaken(Conflict):
    message = "This account of the identity provider signs in somebody else"


class IdentityExists(Conflict):
    message = "This person is linked to an account of the identity provider already: unlink it first"


class NoIdentity(Conflict):
    message = "This person is not linked to the identity provider"


class LastWayIn(Conflict):
    message = "You could not sign in any more: set a password first, or ask an operator"
