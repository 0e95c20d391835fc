"""Errors of approvals, and the reasons why one can't be decided or used."""

from django.db.models import TextChoices

from compliance.core.errors import Conflict, Forbidden, InvalidState, NotFound, Unavailable


class RefusedReason(TextChoices):
    """Why a decision or a receipt is refused; of a receipt, the first check in this order that fails."""

    MALFORMED = "malformed", "The receipt is not one"
    INVALID_SIGNATURE = "invalid_signature", "The receipt was not signed by a key of this service that counts"
    INVALID_ENVIRONMENT = "invalid_environment", "The receipt is of the other environment"
    WRONG_AGENT = "wrong_agent", "The receipt is another agent's"
    WRONG_ACTION = "wrong_action", "The receipt is for another action or other details"
    EXPIRED = "expired", "The approval has expired"
    NOT_APPROVED = "not_approved", "The act is not approved"
    ALREADY_USED = "already_used", "The approval is used"
    AGENT_NOT_ACTIVE = "agent_not_active", "The agent or its certificate is not active"
    NOT_SHOWN = "not_shown", "The approval is of another type of action, or of a lower risk"
    ALREADY_DECIDED = "already_decided", "The approval is decided already"


class ApprovalNotFound(NotFound):
    message = "Approval not found"


class TooManyPending(Conflict):
    message = "As many approvals of this agent wait for a decision as may wait"


class TooManyWait(Unavailable):
    message = "As many requests wait for a decision as may; ask again in a second"


class NotDecidedByKey(Forbidden):
    message = "Only a person decides on an approval"


class NotTheOwner(Forbidden):
    message = "The agent has another owner now"


class ApprovalRefused(InvalidState):
    """An approval can't be decided, or its receipt can't be used, for `reason`."""

    def __init__(self, reason: RefusedReason) -> None:
        self.reason = reason
        super().__init__(str(reason.label))
