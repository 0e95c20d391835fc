"""An operation for each endpoint, in groups."""
