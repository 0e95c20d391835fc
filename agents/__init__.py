"""The registered AI agents of a tenant, and their life from pending to retired."""
