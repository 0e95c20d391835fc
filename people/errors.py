"""Errors of changing people."""

from compliance.core.errors import Conflict, Forbidden, NotFound, Unavailable


class UserNotFound(NotFound):
    message = "User not found"


class LastOperator(Conflict):
    message = "Nobody else could administer the service: make another operator first"


class LinkIsOver(NotFound):
    reason = "link_is_over"
    message = "This link was used, replaced or is too old"


class NoSecondFactor(Conflict):
    message = "There is no second factor"


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
    reason = "taken"
    message = "This account of the identity provider signs in somebody else"


class IdentityExists(Conflict):
    reason = "linked"
    message = "This person is linked to an account of the identity provider already: unlink it first"


class NoIdentity(Conflict):
    message = "This person is not linked to the identity provider"


class LastWayIn(Conflict):
    message = "You could not sign in any more: set a password first, or ask an operator"
