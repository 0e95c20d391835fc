"""Errors of signal streams."""

from compliance.core.errors import Conflict, Invalid, InvalidState, NotFound, Unavailable


class StreamNotFound(NotFound):
    message = "Stream not found"


class InvalidEndpoint(Invalid):
    message = "delivery.endpoint_url: not a URL that signals can be sent to"


class TooManyStreams(Conflict):
    message = "The tenant has as many streams as it can have"


class StreamDisabled(InvalidState):
    message = "The stream is disabled"


class VerificationTooSoon(Conflict):
    message = "The stream was asked for a verification event a moment ago"


class NotPolled(InvalidState):
    message = "The stream delivers by push"


class TooManyPolls(Unavailable):
    message = "As many polls wait as may; poll again later, or with returnImmediately"
