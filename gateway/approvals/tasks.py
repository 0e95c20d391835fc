"""The task of approvals."""

from compliance.core.tasks import task_calling
from gateway.approvals import services

sweep = task_calling("approvals.sweep", services.sweep)
