"""The console's foundation: who sees what, pages of scoped rows, confirmed actions, and how values look."""

from compliance.console.access import NO_ACCESS, ConsoleAccess, ConsoleRole, access_of
from compliance.console.actions import ActionCall, ConfirmedAction, ReasonForm
from compliance.console.admin import RelatedLink, ScopedInline, SystemAdmin, TenantScopedAdmin

__all__ = [
    "NO_ACCESS",
    "ActionCall",
    "ConfirmedAction",
    "ConsoleAccess",
    "ConsoleRole",
    "ReasonForm",
    "RelatedLink",
    "ScopedInline",
    "SystemAdmin",
    "TenantScopedAdmin",
    "access_of",
]
