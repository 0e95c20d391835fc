"""What every endpoint shares: parsing, the envelope, errors, limits, pages, idempotency, the schema."""
