"""The former name of `role_audit`, until its last importer takes the new one."""

from compliance.wiring.role_audit import excesses

__all__ = ["excesses"]
