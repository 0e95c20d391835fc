"""A tenant and its client."""

from tenancy.tests.fixtures import client, tenant

__all__ = ["client", "tenant"]
