"""Wait for the decision on an approval; waiting requests share the threads that they hold."""

import time
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.conf import settings

from compliance.core.shares import AllTaken, SharedSlots
from gateway.approvals.errors import TooManyWait
from gateway.approvals.models import Approval, ApprovalStatus

LONGEST_WAIT: Final = 30
LOOK_SECONDS: Final = 0.1
SLOTS: Final = SharedSlots(max(1, settings.WEB_THREADS // 4))
"""Of one web process, which serves everything else with the threads that are left."""


def when_decided(*, tenant_id: UUID, approval_id: Any, seconds: float, now: datetime) -> Approval:
    """The approval once it is decided or has expired, at the latest after so many seconds.

    Raises: ApprovalNotFound, TooManyWait.
    """
    own = Approval.objects.for_tenant(tenant_id)
    approval = own.find(approval_id)
    longest = min(seconds, (approval.expires_at - now).total_seconds())
    if approval.status != ApprovalStatus.PENDING or longest <= 0:
        return approval
    end = time.monotonic() + longest
    try:
        slot = SLOTS.take(tenant_id)
    except AllTaken as error:
        raise TooManyWait(retry_after=1) from error
    with slot:
        while time.monotonic() < end and approval.status == ApprovalStatus.PENDING:
            time.sleep(LOOK_SECONDS)
            approval = own.find(approval_id)
    return approval
