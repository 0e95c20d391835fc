"""Tenants, API keys, memberships and console users in the console."""

from compliance.tenancy.admin import keys, people, tenants

__all__ = ["keys", "people", "tenants"]
