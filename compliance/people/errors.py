"""Errors of changing people."""

from compliance.core.errors import Conflict, NotFound


class UserNotFound(NotFound):
    message = "User not found"


class LastOperator(Conflict):
    message = "Nobody else could administer the service: make another operator first"


class LinkIsOver(NotFound):
    message = "This link was used, replaced or is too old"


class SecondFactorExists(Conflict):
    message = "There is an authenticator app already: remove it first"


class NoSecondFactor(Conflict):
    message = "There is no authenticator app"
