"""Tenants, their API keys and console memberships."""
