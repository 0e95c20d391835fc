"""Errors of stops."""

from compliance.core.errors import InvalidState, NotFound, TooEarly


class StopNotFound(NotFound):
    message = "Stop not found"


class StopNotReleasable(InvalidState):
    message = "Only a finished stop that put certificates on hold can be released"


class StopUnderWay(TooEarly):
    message = "The stop is still running; its receipt follows"
