"""Django's PostgreSQL backend, sparing the question whether a connection still lives."""
