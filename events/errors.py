"""What events refuse."""

from compliance.core.errors import Invalid, NotFound


class EventNotFound(NotFound):
    message = "Event not found"


class InvalidActionType(Invalid):
    message = "Invalid action_type"


class SpellingsDisagree(Invalid):
    message = "The same field is given in two spellings with different values"
