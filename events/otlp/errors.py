"""Errors of spans and the names in them."""

from compliance.core.errors import Conflict, NotFound


class TracedNameNotFound(NotFound):
    message = "Traced name not found"


class NameMapped(Conflict):
    message = "The name stands for an agent already; delete that first"


class TooManyNames(Conflict):
    message = "The tenant has as many mapped names as it can have"
