"""Errors of the audit log."""

from compliance.core.errors import Conflict, NotFound, ServiceError, TooEarly, Unavailable


class EntryNotFound(NotFound):
    message = "Audit log entry not found"


class ContentsDropped(NotFound):
    status = 410
    message = "The contents of these audit log entries are past their retention"


class NothingSealed(NotFound):
    message = "The audit log has no checkpoint yet"


class TileNotFound(NotFound):
    message = "No such tile"


class NotSealedYet(TooEarly):
    message = "The audit log entry is not sealed yet; try again shortly"


class ExportsUnderWay(Unavailable):
    message = "Other exports of the audit log are under way; try again later"


class LogKeysMissing(Unavailable):
    message = "KMS not configured: no key signs the audit log"


class LogKeyRotationUnderWay(Conflict):
    message = "Another process is rotating the key of the audit log"


class WitnessPolicyInvalid(Unavailable):
    message = "The witness policy cannot be read"


class PublicationStopped(Unavailable):
    message = "No checkpoint is published: a witness knows another tree of this log"


class TreeDamaged(ServiceError):
    """The stored tree contradicts itself or a signed checkpoint: someone has changed it."""

    status = 500
    message = "The audit log's tree is damaged"
