"""Database privileges: the list, the comparison with a database, and the audit of the service's role."""
