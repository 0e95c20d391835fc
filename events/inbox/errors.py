"""Errors of the review inbox."""

from compliance.core.errors import Conflict


class ReviewedMeanwhile(Conflict):
    message = "Somebody else reviewed this event meanwhile"
