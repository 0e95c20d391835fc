"""Errors of events."""

from compliance.core.errors import Conflict, Invalid, InvalidState, NotFound, Unavailable


class EventNotFound(NotFound):
    message = "Event not found"


class InvalidActionType(Invalid):
    message = "Invalid action_type"


class SpellingsDisagree(Invalid):
    message = "The same field is given in two spellings with different values"


class BadArchive(InvalidState):
    message = "The archive is not sound"


class UnknownArchive(InvalidState):
    message = "The archive's digest is not in the audit log; --force restores it all the same"


class RangeTaken(Conflict):
    message = "There are events of that time; an archive is restored only where there are none"


class ArchivesUnavailable(Unavailable):
    message = "EVENT_ARCHIVE_DIR is not set: no events are dropped"


class ReviewedMeanwhile(Conflict):
    message = "Somebody else reviewed this event meanwhile"
