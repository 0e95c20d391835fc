"""Errors of incidents."""

from compliance.core.errors import Invalid, InvalidState, NotFound


class IncidentNotFound(NotFound):
    message = "Incident not found"


class IncidentClosed(InvalidState):
    message = "The incident is closed; only notes and attachments can be added"


class IncidentMerged(InvalidState):
    """422: what is stated belongs to the incident that goes on with this one."""


class Unmergeable(InvalidState):
    """422: merging these two incidents would lose a report, a statement or a deadline."""


class DutiesOpen(InvalidState):
    message = "A reporting clock is open: state when the report was sent, or that the duty does not apply"


class InconsistentStatement(Invalid):
    """400: what is stated contradicts itself, the record or the calendar."""
