"""Who may call: tenants, their API keys, and the console's memberships."""
