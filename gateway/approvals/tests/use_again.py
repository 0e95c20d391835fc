"""Use a receipt in a process of its own: the call comes in as JSON, the outcome goes out."""

import json
import os
import sys
from typing import Any
from uuid import UUID

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "compliance.settings")

import django

django.setup()

from compliance.core import environments  # noqa: E402
from compliance.core.clock import now  # noqa: E402
from compliance.core.environments import Environment  # noqa: E402
from gateway.approvals import services  # noqa: E402
from gateway.approvals.errors import ApprovalRefused  # noqa: E402

call: dict[str, Any] = json.load(sys.stdin)
call |= {name: UUID(call[name]) for name in ("tenant_id", "agent_id")}
with environments.use(Environment.LIVE):
    try:
        outcome = services.consume(**call, now=now()).status
    except ApprovalRefused as refused:
        outcome = refused.reason
sys.stdout.write(outcome)
