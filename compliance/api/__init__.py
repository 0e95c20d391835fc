"""The base of every endpoint: parsing, the envelope, errors, limits, pages, idempotency, the schema."""
