"""What the service is measured against, on the same PostgreSQL and machine."""
