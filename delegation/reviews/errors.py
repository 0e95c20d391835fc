"""Errors of reviews of access."""

from compliance.core.errors import Conflict, InvalidState, NotFound


class ReviewNotFound(NotFound):
    message = "Access review not found"


class ItemNotFound(NotFound):
    message = "The agent is not part of this access review"


class NothingToReview(InvalidState):
    message = "No agent matches that is not retired"


class NothingToReduce(InvalidState):
    message = (
        "The agent has no action to remove, or is stopped: its figures must be complete, or name actions"
    )


class AlreadyDecided(Conflict):
    message = "The agent is decided on already"


class ReviewUnfinished(InvalidState):
    message = "The access review is not finished"
