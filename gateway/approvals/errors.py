"""Errors of approvals, and the reasons why one can't be decided or used."""

from enum import StrEnum

from compliance.core.errors import Conflict, Forbidden, InvalidState, NotFound, Unavailable


class RefusedReason(StrEnum):
    """Why a decision or a receipt is refused; of a receipt, the first check in this order that fails."""

    MALFORMED = "malformed"
    INVALID_SIGNATURE = "invalid_signature"
    INVALID_ENVIRONMENT = "invalid_environment"
    WRONG_AGENT = "wrong_agent"
    WRONG_ACTION = "wrong_action"
    EXPIRED = "expired"
    NOT_APPROVED = "not_approved"
    ALREADY_USED = "already_used"
    AGENT_NOT_ACTIVE = "agent_not_active"
    NOT_SHOWN = "not_shown"
    ALREADY_DECIDED = "already_decided"


_MESSAGES = {
    RefusedReason.MALFORMED: "The receipt is not one",
    RefusedReason.INVALID_SIGNATURE: "The receipt was not signed by a key of this service that counts",
    RefusedReason.INVALID_ENVIRONMENT: "The receipt is of the other environment",
    RefusedReason.WRONG_AGENT: "The receipt is another agent's",
    RefusedReason.WRONG_ACTION: "The receipt is for another action or other details",
    RefusedReason.EXPIRED: "The approval has expired",
    RefusedReason.NOT_APPROVED: "The act is not approved",
    RefusedReason.ALREADY_USED: "The approval is used",
    RefusedReason.AGENT_NOT_ACTIVE: "The agent or its certificate is not active",
    RefusedReason.NOT_SHOWN: "The approval is of another type of action, or of a lower risk",
    RefusedReason.ALREADY_DECIDED: "The approval is decided already",
}


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
        super().__init__(_MESSAGES[reason])
