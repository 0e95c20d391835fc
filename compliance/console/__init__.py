"""The base of the admin pages: access, tenant-scoped lists, confirmed actions, formatting of values."""
