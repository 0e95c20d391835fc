"""Token keys, providers and clients of the OAuth endpoints."""

from delegation.issuers.tests.conftest import nothing_fetched, provider
from delegation.tests.conftest import agent, empty_rings, tenant

__all__ = ["agent", "empty_rings", "nothing_fetched", "provider", "tenant"]
