"""Errors of changing people."""

from compliance.core.errors import Conflict


class LastOperator(Conflict):
    message = "Nobody else could administer the service: make another operator first"
